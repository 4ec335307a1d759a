"""Shapes of LabelMe, with the pixels that LabelMe draws."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from segiou.annotations.shapes import annotations_of, png_area, polygon_tool
from segiou.masks.formats.drawing import check_corners, check_size
from segiou.masks.formats.drawn_image import Area, DrawnImage
from segiou.masks.sources.annotations import AnnotationFormat, Annotations

#: Widths of LabelMe's lines and points.
_LINE, _POINT = 10, 5
#: Shapes with a fixed number of corners.
_CORNERS = {"circle": 2, "rectangle": 2, "line": 2, "point": 1, "oriented_rectangle": 4, "mask": 2}


def _read(path: Path, data: Any) -> Annotations | None:
    shapes = data.get("shapes") if isinstance(data, dict) else None
    if not isinstance(shapes, list):
        return None
    size = check_size((data.get("imageHeight"), data.get("imageWidth")))
    drawn = polygon_tool("Pillow", shapes, "shape_type")
    return annotations_of([(path.stem, DrawnImage(size, shapes, _area, drawn))])


def _area(shape: Any, size: tuple[int, int]) -> tuple[str, Area]:
    """A LabelMe shape, with the pixels that LabelMe draws."""
    kind = shape.get("shape_type") or "polygon"
    least = _CORNERS.get(kind, 3 if kind == "polygon" else 2)
    points = check_corners(shape.get("points"), size, least)
    if kind in _CORNERS and len(points) != least:
        msg = f"a {kind} has {least} corners, got {len(points)}"
        raise ValueError(msg)
    if kind == "mask":
        area, png_size = png_area(shape.get("mask"), points[0], size)
        (left, top), (right, bottom) = points.astype(int).tolist()
        if png_size != (bottom - top + 1, right - left + 1):
            msg = f"its mask has size {png_size}, which differs from its corners"
            raise ValueError(msg)
    else:
        area = _drawn(kind, points, size)
    return shape.get("label"), area


def _drawn(kind: str, points: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.bool_]:
    image = Image.fromarray(np.zeros(size, dtype=np.uint8))
    draw = ImageDraw.Draw(image)
    xy = [(x, y) for x, y in points.tolist()]
    if kind in ("polygon", "oriented_rectangle"):
        draw.polygon(xy, outline=1, fill=1)
    elif kind in ("line", "linestrip"):
        draw.line(xy, fill=1, width=_LINE)
    elif kind in ("circle", "point"):
        radius = _POINT if kind == "point" else math.dist(*xy)
        (x, y) = xy[0]
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=1, fill=1)
    elif kind == "rectangle":
        (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
        draw.rectangle((left, top, right, bottom), outline=1, fill=1)
    else:
        msg = f"unknown shape_type {kind!r:.40}"
        raise ValueError(msg)
    return np.asarray(image) > 0


LABELME = AnnotationFormat(_read, form="an object with 'shapes' (LabelMe)")
