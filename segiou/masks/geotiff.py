"""GeoTIFF: where pixels lie, which value is no data, and how GDAL reads what tifffile cannot."""

from __future__ import annotations

import io
import math
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou.masks.read import MaskError

if TYPE_CHECKING:
    from segiou.masks.windows import RemoteFile

_NODATA, _SCALE, _TIE_POINTS, _TRANSFORM, _KEYS = 42113, 33550, 33922, 34264, 34735
_TAGS = {_NODATA, _SCALE, _TIE_POINTS, _TRANSFORM, _KEYS}
_RASTER_TYPE, _GEOGRAPHIC, _PROJECTED = 1025, 2048, 3072
#: Codes from here on are no EPSG codes: the system is described in words, or not at all.
_USER_DEFINED = 32767
#: Kinds of pages that are copies in lower resolution; of these a COG has some.
_REDUCED = 1
_GDAL = {"GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR", "GDAL_CACHEMAX": 64}
#: GDAL unpacks each of several strips whole, so that a larger one would need too much memory.
_MOST_BLOCK_BYTES = 1 << 30
#: Corners may lie this share of a pixel apart.
_TOLERANCE = 0.01


class Raster(NamedTuple):
    """Where a raster lies, as far as its file says so.

    Attributes
    ----------
    nodata : int, optional
        The value of pixels without data.
    affine : tuple of float, optional
        ``a, b, c, d, e, f``: the corner of a pixel lies at x = a column + b row + c
        and y = d column + e row + f.
    crs : str
        Its coordinate reference system, such as ``"EPSG:32632"``; empty if not known.
    """

    nodata: int | None = None
    affine: tuple[float, ...] | None = None
    crs: str = ""

    def difference(
        self, pred: Raster, shape: tuple[int, ...], pred_shape: tuple[int, ...]
    ) -> str | None:
        """How a prediction lies differently from this truth, in words; None if it does not."""
        if self.crs and pred.crs and self.crs != pred.crs:
            return f"the coordinate system {pred.crs}, but its truth has {self.crs}"
        if self.affine is None or pred.affine is None:
            return None
        a, b, _, d, e, _ = self.affine
        most = _TOLERANCE * max(math.hypot(a, d), math.hypot(b, e))
        corners = zip(_corners(self.affine, shape), _corners(pred.affine, pred_shape), strict=True)
        if all(math.dist(one, other) <= most for one, other in corners):
            return None
        return f"{_placed(pred.affine)}, but its truth has {_placed(self.affine)}"


_NOTHING = Raster()


def raster_of(page: Any) -> Raster:
    """What the tags of a page say."""
    if _TAGS.isdisjoint(page.tags.keys()):
        return _NOTHING
    try:
        keys = _keys(page.tags.valueof(_KEYS))
        known = next((keys[k] for k in (_PROJECTED, _GEOGRAPHIC) if k in keys), _USER_DEFINED)
        crs = f"EPSG:{known}" if 0 < known < _USER_DEFINED else ""
        return Raster(_nodata(page.tags.valueof(_NODATA)), _affine(page, keys), crs)
    except (TypeError, ValueError, IndexError, OverflowError):
        return _NOTHING


def _keys(words: Any) -> dict[int, int]:
    """Keys with a number: four words each, after four of a header; the second is the place."""
    parts = words or ()
    entries = (parts[at : at + 4] for at in range(4, len(parts) - 3, 4))
    return {key: value for key, place, _, value in entries if place == 0}


def _nodata(text: Any) -> int | None:
    value = float(text) if isinstance(text, str) else math.nan
    # That of floats, -3.4e38, is no label.
    return int(value) if value.is_integer() and abs(value) < 1 << 63 else None


def _affine(page: Any, keys: dict[int, int]) -> tuple[float, ...] | None:
    matrix = page.tags.valueof(_TRANSFORM)
    scale, ties = page.tags.valueof(_SCALE), page.tags.valueof(_TIE_POINTS)
    if matrix:
        a, b, _, c, d, e, _, f = matrix[:8]
    elif scale and ties and len(ties) == 6:
        (a, e), (column, row, _, x, y, _) = (scale[0], -scale[1]), ties
        b = d = 0.0
        c, f = x - a * column, y - e * row
    else:
        return None
    if keys.get(_RASTER_TYPE) == 2:  # the points are the centres of pixels
        c, f = c - (a + b) / 2, f - (d + e) / 2
    found = tuple(map(float, (a, b, c, d, e, f)))
    return found if all(map(math.isfinite, found)) and (a or d) and (b or e) else None


def _corners(affine: tuple[float, ...], shape: tuple[int, ...]) -> list[tuple[float, float]]:
    a, b, c, d, e, f = affine
    height, width = shape[:2]
    ends = ((0, 0), (width, 0), (0, height), (width, height))
    return [(a * x + b * y + c, d * x + e * y + f) for x, y in ends]


def _placed(affine: tuple[float, ...]) -> str:
    a, b, c, d, e, f = affine
    size = f"{math.hypot(a, d):.10g} × {math.hypot(b, e):.10g}"
    return f"pixels of {size} from ({c:.10g}, {f:.10g})"


def mask_page(file: Any, path: str | Path) -> Any:
    """The page of a TIFF that is the mask; overviews of a COG are not.

    Raises
    ------
    MaskError
        If there are several pages that could be, or one that says which pixels are valid.
    """
    pages = list(file.pages)
    kinds = [int(page.subfiletype) for page in pages]
    others = sum(not kind & _REDUCED for kind in kinds[1:])
    if 4 in kinds:
        problem = "has a page that says which pixels are valid; write nodata as a value instead"
        raise MaskError(path, problem)
    if others or not pages:
        raise MaskError(path, f"has {others + 1} pages; a mask has one: save each as a file")
    return pages[0]


def nodata_of(file: Any) -> int | None:
    """The value of pixels without data in a TIFF, by its path or content; None without one."""
    import tifffile

    try:
        with tifffile.TiffFile(file) as opened:
            page: Any = opened.pages.first
            return raster_of(page).nodata if page.samplesperpixel == 1 else None
    except Exception:  # noqa: BLE001 - whatever is wrong with the file is said when it is read
        return None


class GdalFile:
    """A TIFF opened by rasterio: of this machine, by its content, or at an address.

    GDAL knows all ways of packing, and does not unpack a large strip at once.
    """

    def __init__(
        self,
        path: str | Path,
        page: Any,
        content: bytes = b"",
        remote: RemoteFile | None = None,
    ) -> None:
        self._path, self._bands = path, [1, 2, 3] if page.samplesperpixel == 3 else 1
        try:
            rasterio: Any = import_module("rasterio")
        except ImportError as error:
            packed = getattr(page.compression, "name", page.compression)
            problem = (
                f"is packed as {packed}, for which pip install 'segiou[geo]' is needed; or save "
                "it deflated, in tiles of 256 × 256 or so"
            )
            raise MaskError(path, problem) from error
        # Only this file is opened, and of what it holds little is kept.
        self._settings = partial(rasterio.Env, **_GDAL)
        place = io.BytesIO(content) if content else remote.name if remote else str(path)
        try:
            with warnings.catch_warnings(), self._settings():
                # It need not say where its pixels lie.
                warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
                opener = remote.files if remote else None
                self._dataset = rasterio.open(place, driver="GTiff", opener=opener)
        except Exception as error:
            raise MaskError(path, f"is a damaged TIFF: {error}") from error
        self.chunks: tuple[int, int] = self._dataset.block_shapes[0]
        if (size := math.prod(self.chunks) * page.dtype.itemsize) > _MOST_BLOCK_BYTES:
            self.close()
            problem = f"is packed in pieces of {size} bytes; save it in tiles of 256 × 256 or so"
            raise MaskError(path, problem)

    def __getitem__(self, index: tuple[slice, ...]) -> NDArray[Any]:
        shape = self._dataset.shape
        window = tuple(part.indices(size)[:2] for part, size in zip(index, shape, strict=True))
        try:
            with self._settings():
                pixels = self._dataset.read(self._bands, window=window)
        except Exception as error:
            raise MaskError(self._path, f"is a damaged TIFF: {error}") from error
        return np.moveaxis(pixels, 0, -1) if pixels.ndim == 3 else np.asarray(pixels)

    def close(self) -> None:
        """Close the file."""
        self._dataset.close()
