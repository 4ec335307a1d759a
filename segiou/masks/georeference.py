"""Georeferences of GeoTIFFs: where their pixels are, and their nodata value."""

from __future__ import annotations

import io
import math
from importlib import import_module
from typing import Any, NamedTuple

_NODATA, _SCALE, _TIE_POINTS, _TRANSFORM, _KEYS = 42113, 33550, 33922, 34264, 34735
#: Tags with the numbers and texts of the keys.
_PARAMETERS = {34736: "d", 34737: "s"}
_RASTER_TYPE, _GEOGRAPHIC, _PROJECTED = 1025, 2048, 3072
#: This code and larger ones are not EPSG codes.
_USER_DEFINED = 32767
#: Tolerance of corners, in pixels.
_TOLERANCE = 0.01


def nodata_of(file: Any) -> int | None:
    """The nodata value of a TIFF, given by path or content; None if it has none."""
    import tifffile

    try:
        with tifffile.TiffFile(file) as opened:
            page: Any = opened.pages.first
            return raster_of(page).nodata if page.samplesperpixel == 1 else None
    except Exception:  # noqa: BLE001 - reading the file reports the problem
        return None


class Raster(NamedTuple):
    """The georeference of a raster, as far as its file contains one.

    Attributes
    ----------
    nodata : int, optional
        The value of pixels without data.
    affine : tuple of float, optional
        ``a, b, c, d, e, f``: the corner of a pixel is at x = a column + b row + c
        and y = d column + e row + f.
    crs : str
        Coordinate reference system, such as ``"EPSG:32632"`` or ``"custom"``; empty
        if unknown.
    keys : tuple of tuple
        GeoTIFF tags that define a custom system: code, type and values.
    """

    nodata: int | None = None
    affine: tuple[float, ...] | None = None
    crs: str = ""
    keys: tuple[tuple[int, str, Any], ...] = ()

    def difference(
        self, pred: Raster, shape: tuple[int, ...], pred_shape: tuple[int, ...]
    ) -> str | None:
        """Describe how a prediction's georeference differs from this truth; None if it does not."""
        if self.crs and pred.crs and (self.crs, self.keys) != (pred.crs, pred.keys):
            if not (self.keys or pred.keys):
                return f"coordinate system {pred.crs}, but its truth has {self.crs}"
            if problem := self._other_place(pred, shape):
                return problem
        if self.affine is None or pred.affine is None:
            return None
        a, b, _, d, e, _ = self.affine
        most = _TOLERANCE * max(math.hypot(a, d), math.hypot(b, e))
        corners = zip(_corners(self.affine, shape), _corners(pred.affine, pred_shape), strict=True)
        if all(math.dist(one, other) <= most for one, other in corners):
            return None
        return f"{_placed(pred.affine)}, but its truth has {_placed(self.affine)}"

    def _other_place(self, pred: Raster, shape: tuple[int, ...]) -> str:
        """How a custom coordinate system differs; empty if both place the corners alike."""
        named = " but its truth has ".join(
            "a custom coordinate system" if one.keys else f"coordinate system {one.crs}"
            for one in (pred, self)
        )
        try:
            transform: Any = import_module("rasterio.warp").transform
        except ImportError:
            return f"{named}, and comparing them needs pip install 'segiou[geo]'"
        affine = self.affine or (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
        corners = _corners(affine, shape)
        try:
            moved = zip(
                *transform(_system(pred), _system(self), *zip(*corners, strict=True)), strict=True
            )
        except Exception as error:  # noqa: BLE001 - systems that PROJ cannot transform differ
            return f"{named}, and they cannot be compared: {error}"
        most = _TOLERANCE * math.hypot(affine[0], affine[3])
        is_same = all(math.dist(*ends) <= most for ends in zip(corners, moved, strict=True))
        return "" if is_same else f"{named}, which places its pixels elsewhere"


def _system(raster: Raster) -> Any:
    """The coordinate system of a raster, parsed by GDAL."""
    import tifffile

    if not raster.keys:
        return raster.crs
    rasterio: Any = import_module("rasterio")
    file = io.BytesIO()
    tags = [(code, kind, len(value), value, True) for code, kind, value in raster.keys]
    tags.append((_SCALE, "d", 3, (1.0, 1.0, 0.0), True))
    tags.append((_TIE_POINTS, "d", 6, (0.0,) * 6, True))
    tifffile.imwrite(file, [[0]], dtype="uint8", extratags=tags)
    with rasterio.MemoryFile(file.getvalue()) as memory, memory.open() as opened:
        return opened.crs


def raster_of(page: Any) -> Raster:
    """The georeference in the tags of a page."""
    try:
        words = page.tags.valueof(_KEYS) or ()
        # Four words per key, after a header of four; the second word of a number is 0.
        entries = (words[at : at + 4] for at in range(4, len(words) - 3, 4))
        keys = {key: value for key, place, _, value in entries if place == 0}
        known = next((keys[k] for k in (_PROJECTED, _GEOGRAPHIC) if k in keys), _USER_DEFINED)
        crs = f"EPSG:{known}" if 0 < known < _USER_DEFINED else ""
        custom: list[tuple[int, str, Any]] = []
        if not crs and {_PROJECTED, _GEOGRAPHIC} & keys.keys():
            crs, custom = "custom", [(_KEYS, "H", tuple(words))]
            for code, kind in _PARAMETERS.items():
                if value := page.tags.valueof(code):
                    custom.append((code, kind, value if kind == "s" else tuple(value)))
        text = page.tags.valueof(_NODATA)
        number = float(text) if isinstance(text, str) else math.nan
        # The nodata value of floats, -3.4e38, cannot be a label.
        nodata = int(number) if number.is_integer() and abs(number) < 1 << 63 else None
        return Raster(nodata, _affine(page, keys), crs, tuple(custom))
    except (TypeError, ValueError, IndexError, OverflowError):
        return Raster()


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
    # Signs show flipped axes.
    turned = f"({a:.10g}, {d:.10g}) × ({b:.10g}, {e:.10g})"
    size = turned if b or d else f"{a:.10g} × {e:.10g}"
    return f"pixels of {size} from ({c:.10g}, {f:.10g})"
