"""Rasters that GDAL opens, and rasters of floats whose values are whole numbers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.locks import Lockable
from segiou.masks.formats.georeference import NODATA, Raster, label_nodata
from segiou.masks.raw_mask import MaskError, RawMask, damage
from segiou.masks.windows import FileMask, limits, unread

_GDAL = {"GDAL_CACHEMAX": 64}
_MOST_NAMED = 8
#: Of two threads that change the filters of warnings at once, one restores those of the other.
_FILTERS = Lockable()


def open_by_gdal(
    path: str | Path, file: Any, need: str, problem: str, settings: Mapping[str, Any], **more: Any
) -> Any:
    """A dataset of rasterio; ``need`` is the problem without it, ``problem`` that of bad files."""
    try:
        rasterio: Any = import_module("rasterio")
    except ImportError as error:
        raise MaskError(path, need) from error
    with (
        damage(path, problem),
        rasterio.Env(**settings),
        _FILTERS.lock,
        warnings.catch_warnings(),
    ):
        # A geotransform is optional.
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        return rasterio.open(file, **more)


def open_raster(path: str | Path) -> RawMask:
    """Open a raster by GDAL; its values are read window by window."""
    alone = ""
    if str(path).lower().endswith(".img"):
        header = Path(path).with_suffix(".hdr")
        is_what = "corrupt; copy both files again" if header.is_file() else "missing"
        alone = f"; the data of a NIfTI volume need {header.name}, which is {is_what}"
    need = f"needs GDAL: pip install 'segiou[geo]'{alone}"
    dataset = open_by_gdal(path, str(path), need, f"cannot be opened by GDAL{alone}", _GDAL)
    try:
        _check_bands(dataset, path)
    except MaskError:
        dataset.close()
        raise
    values: FileMask = GdalMask(path, dataset, "cannot be read by GDAL", _GDAL)
    nodata = dataset.nodata
    if values.dtype.kind == "f":
        values = WholeNumbers(values, nodata)
    raster = Raster(
        label_nodata(nodata, floats=dataset.dtypes[0].startswith("float")),
        None if dataset.transform.is_identity else tuple(dataset.transform)[:6],
        *_system_of(dataset.crs),
    )
    return RawMask(values, "raster", dataset.driver, raster=raster)


def _check_bands(dataset: Any, path: str | Path) -> None:
    """Raise an error that names the bands or subdatasets unless there is one band."""
    if dataset.count == 0 and (several := list(dataset.subdatasets)):
        lines = "\n".join(f"  {name}" for name in several[:_MOST_NAMED])
        problem = f"contains {len(several)} subdatasets; extract one with gdal_translate:\n{lines}"
        raise MaskError(path, problem)
    if dataset.count != 1:
        names = [
            f"{number}: {name or kind.name}"
            for number, name, kind in zip(
                dataset.indexes, dataset.descriptions, dataset.colorinterp, strict=True
            )
        ]
        more = ", …" if len(names) > _MOST_NAMED else ""
        problem = (
            f"has {dataset.count} bands ({', '.join(names[:_MOST_NAMED])}{more}); expected one. "
            f"Extract it: gdal_translate -b 1 {Path(path).name} mask.tif"
        )
        raise MaskError(path, problem)
    if np.dtype(dataset.dtypes[0]).kind not in "iuf":
        raise MaskError(path, f"contains {dataset.dtypes[0]} values; expected labels")


def _system_of(crs: Any) -> tuple[str, tuple[Any, ...], float | None]:
    """Name, keys and metres of a coordinate system."""
    if not crs:
        return "", (), None
    code = crs.to_epsg()
    metres = 0.0 if crs.is_geographic else float(crs.linear_units_factor[1])
    return (f"EPSG:{code}" if code else crs.to_wkt()), (), metres


class GdalMask(FileMask):
    """The band or bands of a dataset of GDAL."""

    def __init__(
        self,
        path: str | Path,
        dataset: Any,
        problem: str,
        settings: Mapping[str, Any],
        bands: Any = 1,
        dtype: np.dtype[Any] | None = None,
    ) -> None:
        self._dataset, self._bands = dataset, bands
        self._problem, self._settings = problem, settings
        dtype = np.dtype(dataset.dtypes[0]) if dtype is None else dtype
        super().__init__(path, dataset.shape, dtype, dataset.block_shapes[0], unread)
        self._closing.callback(dataset.close)

    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        window = limits(index, self.shape)
        with damage(self.path, self._problem), import_module("rasterio").Env(**self._settings):
            pixels = np.asarray(self._dataset.read(self._bands, window=window))
        pixels = np.moveaxis(pixels, 0, -1) if pixels.ndim == 3 else pixels
        return pixels.astype(self.dtype, copy=False)


class WholeNumbers(FileMask):
    """Floats of a raster as integers; any other value than a whole number is an error."""

    def __init__(self, mask: FileMask, nodata: float | None) -> None:
        super().__init__(mask.path, mask.shape, np.dtype(np.int64), mask.chunks, unread)
        self._mask, self._nodata = mask, nodata
        self._closing.push(mask.__exit__)

    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        corner = [start for start, _ in limits(index, self.shape)]
        return whole_numbers(self._mask[index], self._nodata, self.path, corner)


def whole_numbers(
    values: NDArray[Any], nodata: float | None, path: str | Path, corner: Any = (0, 0)
) -> NDArray[np.int64]:
    """Floats as integers, and nodata as a label; MaskError names the first other value."""
    is_nodata = np.zeros(values.shape, dtype=bool)
    if nodata is not None:
        # The file's decimal text of a float32 is not the float32 itself.
        stored = values.dtype.type(nodata)
        is_nodata = np.isnan(values) if math.isnan(nodata) else values == stored
    with np.errstate(invalid="ignore"):
        is_whole = (np.abs(values) < 2.0**53) & (values == np.trunc(values))
    if not (fine := is_whole | is_nodata).all():
        row, column = np.argwhere(~fine)[0].tolist()
        problem = (
            f"contains {values[row, column]:g} at row {row + corner[0]}, column "
            f"{column + corner[1]} (from 0); a raster of floats must have whole numbers as labels"
        )
        raise MaskError(path, problem)
    label = label_nodata(nodata, floats=True)
    labels = np.where(is_nodata, 0, values).astype(np.int64)
    labels[is_nodata] = NODATA if label is None else label
    return labels
