"""Objects of Supervisely, with the pixels that Supervisely draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from segiou.annotations.shapes import annotations_of, png_area, polygon_tool
from segiou.masks.formats.drawing import check_corners, check_size, filled
from segiou.masks.formats.drawn_image import Area, DrawnImage
from segiou.masks.sources.annotations import AnnotationFormat, Annotations


def _read(path: Path, data: Any) -> Annotations | None:
    objects = data.get("objects") if isinstance(data, dict) else None
    if not isinstance(objects, list):
        return None
    known = data["size"] if isinstance(data.get("size"), dict) else {}
    size = check_size((known.get("height"), known.get("width")))
    drawn = polygon_tool("OpenCV", objects, "geometryType")
    return annotations_of([(path.stem, DrawnImage(size, objects, _area, drawn))])


def _area(shape: Any, size: tuple[int, int]) -> tuple[str, Area]:
    """A Supervisely object, with the pixels that Supervisely draws."""
    kind = shape.get("geometryType")
    if kind == "bitmap":
        packed = shape["bitmap"]
        return shape["classTitle"], png_area(packed["data"], packed["origin"], size)[0]
    if kind not in ("polygon", "rectangle"):
        msg = f"unsupported geometryType {kind!r:.40}; expected a bitmap, polygon or rectangle"
        raise ValueError(msg)
    least = 3 if kind == "polygon" else 2
    exterior, holes = shape["points"]["exterior"], shape["points"].get("interior") or ()
    corners, *inner = (
        np.floor(check_corners(ring, size, least)).astype(np.int64) for ring in (exterior, *holes)
    )
    if kind == "rectangle":
        (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
        corners = np.array([(left, top), (right, top), (right, bottom), (left, bottom)])
    area = filled(corners, size)
    for hole in inner:
        area &= ~filled(hole, size)
    return shape["classTitle"], area


SUPERVISELY = AnnotationFormat(_read, form="an object with 'objects' (Supervisely)")
