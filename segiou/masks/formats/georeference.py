"""Georeferences of GeoTIFFs: where their pixels are, and their nodata value."""

from __future__ import annotations

import io
import math
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_NODATA, _SCALE, _TIE_POINTS, _TRANSFORM, _KEYS = 42113, 33550, 33922, 34264, 34735
#: Tags with the numbers and texts of the keys.
_PARAMETERS = {34736: "d", 34737: "s"}
_RASTER_TYPE, _GEOGRAPHIC, _PROJECTED, _UNITS = 1025, 2048, 3072, 3076
#: Metres of linear units, by EPSG code: metre, foot, US survey foot.
_METRES = {9001: 1.0, 9002: 0.3048, 9003: 1200 / 3937}
#: UTM on WGS 84, in metres.
_UTM = {*range(32601, 32661), *range(32701, 32761)}
#: Web Mercator enlarges areas: four times at 60° latitude.
_ENLARGED = ("EPSG:3857", "EPSG:900913", "EPSG:3395")
#: WGS 84: semi-major axis in metres, eccentricity.
_AXIS, _ECCENTRICITY = 6378137.0, 0.0818191908426215
#: This code and larger ones are not EPSG codes.
_USER_DEFINED = 32767
#: Label of pixels whose nodata value cannot be a label, such as NaN or -3.4e38.
NODATA = -(1 << 31)
#: Tolerance of corners, in pixels.
_TOLERANCE = 0.01


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
        Coordinate reference system, such as ``"EPSG:32632"``, WKT or ``"custom"``;
        empty if unknown.
    keys : tuple of tuple
        GeoTIFF tags that define a custom system: code, type and values.
    metres : float, optional
        Metres per unit of x and y, 0 for degrees; None if unknown.
    """

    nodata: int | None = None
    affine: tuple[float, ...] | None = None
    crs: str = ""
    keys: tuple[tuple[int, str, Any], ...] = ()
    metres: float | None = None

    @property
    def is_epsg(self) -> bool:
        """Whether the coordinate system has an EPSG code; otherwise it is tags or WKT."""
        return self.crs.startswith("EPSG:")

    def pixel_areas(self, rows: int) -> NDArray[np.float64]:
        """Area of a pixel of each row in m²; ValueError if it is unknown.

        Geographic coordinates are on WGS 84, where the area depends on the latitude.
        """
        if self.affine is None or not self.crs:
            msg = "is not georeferenced, so the area of a pixel is unknown"
            raise ValueError(msg)
        if self.crs in _ENLARGED:
            msg = f"is in {self.crs}, which distorts areas; warp it to an equal-area projection"
            raise ValueError(msg)
        a, b, _, d, e, f = self.affine
        metres = _metres_of(self) if self.metres is None else self.metres
        if metres:
            return np.full(rows, abs(a * e - b * d) * metres**2)
        edges = f + e * np.arange(rows + 1)
        if b or d or np.abs(edges).max() > 90 + abs(e):
            msg = "has rotated or impossible degrees; warp it to an equal-area projection"
            raise ValueError(msg)
        sine = _ECCENTRICITY * np.sin(np.radians(np.clip(edges, -90, 90)))
        # Area between the equator and a latitude, per radian of longitude.
        above = sine / (1 - sine**2) + np.arctanh(sine)
        scale = _AXIS**2 * (1 - _ECCENTRICITY**2) / (2 * _ECCENTRICITY)
        return np.asarray(scale * abs(math.radians(a)) * np.abs(np.diff(above)))

    def difference(
        self, pred: Raster, shape: tuple[int, ...], pred_shape: tuple[int, ...]
    ) -> str | None:
        """Describe how a prediction's georeference differs from this truth; None if it does not."""
        if self.crs and pred.crs and (self.crs, self.keys) != (pred.crs, pred.keys):
            if self.is_epsg and pred.is_epsg:
                return f"coordinate system {pred.crs}, but its truth has {self.crs}"
            if problem := self._other_place(pred, shape):
                return problem
        if self.affine is None or pred.affine is None:
            return None
        a, b, _, d, e, _ = self.affine
        most = _TOLERANCE * max(math.hypot(a, d), math.hypot(b, e))
        corners = zip(_corners(self.affine, shape), _corners(pred.affine, pred_shape), strict=True)
        if all(math.dist(corner, other) <= most for corner, other in corners):
            return None
        return f"{_placed(pred.affine)}, but its truth has {_placed(self.affine)}"

    def _other_place(self, pred: Raster, shape: tuple[int, ...]) -> str:
        """Difference of a custom coordinate system; empty if both place the corners equally."""
        problem = " but its truth has ".join(
            f"coordinate system {raster.crs}" if raster.is_epsg else "a custom coordinate system"
            for raster in (pred, self)
        )
        try:
            transform: Any = import_module("rasterio.warp").transform
        except ImportError:
            return f"{problem}, and comparing them needs pip install 'segiou[geo]'"
        affine = self.affine or (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
        corners = _corners(affine, shape)
        try:
            moved = zip(
                *transform(_system(pred), _system(self), *zip(*corners, strict=True)), strict=True
            )
        except Exception as error:  # noqa: BLE001 - systems that PROJ cannot transform differ
            return f"{problem}, and they cannot be compared: {error}"
        most = _TOLERANCE * math.hypot(affine[0], affine[3])
        is_same = all(math.dist(*ends) <= most for ends in zip(corners, moved, strict=True))
        return "" if is_same else f"{problem}, which places its pixels elsewhere"


def _metres_of(raster: Raster) -> float:
    """Metres per unit of a coordinate system by GDAL, 0 for degrees."""
    try:
        system = _system(raster)
        crs: Any = import_module("rasterio.crs").CRS.from_user_input(system)
    except ImportError:
        msg = f"is in {raster.crs}, whose unit needs pip install 'segiou[geo]'"
        raise ValueError(msg) from None
    return 0.0 if crs.is_geographic else float(crs.linear_units_factor[1])


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


def stored_nodata(page: Any) -> float | None:
    """The nodata value in the tags of a page."""
    text = page.tags.valueof(_NODATA)
    return float(text) if isinstance(text, str) else None


def label_nodata(number: float | None, *, floats: bool) -> int | None:
    """The label of nodata pixels; None if there are none."""
    if number is None:
        return None
    if float(number).is_integer() and abs(number) < 1 << (53 if floats else 63):
        return int(number)
    return NODATA if floats else None


def raster_of(page: Any) -> Raster:
    """The georeference in the tags of a page."""
    try:
        words = page.tags.valueof(_KEYS) or ()
        # Four words per key, after a header of four; the second word of a number is 0.
        entries = (words[at : at + 4] for at in range(4, len(words) - 3, 4))
        keys = {key: value for key, location, _, value in entries if location == 0}
        known = next((keys[k] for k in (_PROJECTED, _GEOGRAPHIC) if k in keys), _USER_DEFINED)
        crs = f"EPSG:{known}" if 0 < known < _USER_DEFINED else ""
        custom: list[tuple[int, str, Any]] = []
        if not crs and {_PROJECTED, _GEOGRAPHIC} & keys.keys():
            crs, custom = "custom", [(_KEYS, "H", tuple(words))]
            for code, kind in _PARAMETERS.items():
                if value := page.tags.valueof(code):
                    custom.append((code, kind, value if kind == "s" else tuple(value)))
        nodata = label_nodata(stored_nodata(page), floats=page.dtype.kind == "f")
        metres = _METRES.get(keys.get(_UNITS, 9001 if known in _UTM else 0))
        if _GEOGRAPHIC in keys and _PROJECTED not in keys:
            metres = 0.0
        return Raster(nodata, _affine(page, keys), crs, tuple(custom), metres)
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
    affine = tuple(map(float, (a, b, c, d, e, f)))
    return affine if all(map(math.isfinite, affine)) and (a or d) and (b or e) else None


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
