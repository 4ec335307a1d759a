"""Objects of Supervisely, with the pixels that Supervisely draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from segiou.masks.formats.drawing import check_corners, filled
from segiou.masks.formats.drawn_image import Area, png_area


def supervisely_area(shape: Any, size: tuple[int, int]) -> tuple[str, Area]:
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
