"""Images and regions of VIA, with the corners of its COCO export."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.annotations.shapes import annotations_of
from segiou.masks.formats.drawing import check_corners
from segiou.masks.formats.drawn_image import Area, DrawnImage
from segiou.masks.sources.annotations import AnnotationFormat, Annotations

#: VIA turns circles into polygons with one corner per this many degrees.
_DEGREES = 5


def _read(path: Path, data: Any) -> Annotations | None:
    entries = data.get("_via_img_metadata", data) if isinstance(data, dict) else None
    images = entries.values() if isinstance(entries, dict) else ()
    if not all(isinstance(entry, dict) and "regions" in entry for entry in images):
        return None
    return annotations_of(_image(entry, path) for entry in images)


def _image(entry: Mapping[str, Any], path: Path) -> tuple[str, DrawnImage]:
    """A VIA image. VIA does not save its size, so the image must be next to the file."""
    name, regions = entry.get("filename"), entry["regions"]
    if not isinstance(name, str) or not isinstance(regions, (list, dict)):
        msg = f"an image has filename {name!r:.60} and regions {regions!r:.60}"
        raise ValueError(msg)
    shapes = list(regions.values()) if isinstance(regions, dict) else regions
    return name, DrawnImage(path.parent / PurePosixPath(name).name, shapes, _drawn_area)


def _drawn_area(region: Any, size: tuple[int, int]) -> tuple[str, Area]:
    """A VIA region."""
    corners = _corners(region["shape_attributes"], size)
    # The only text attribute, or the only ticked box.
    attributes = region["region_attributes"]
    texts = [value for value in attributes.values() if isinstance(value, str) and value]
    for boxes in attributes.values():
        texts += [key for key, on in boxes.items() if on] if isinstance(boxes, dict) else []
    if len(texts) != 1:
        msg = f"exactly one attribute must name its class, got {dict(attributes)!r:.80}"
        raise ValueError(msg)
    return texts[0], [check_corners(corners, size, 3).ravel()]


def _corners(shape: Mapping[str, Any], size: tuple[int, int]) -> NDArray[np.float64]:
    """The corners of a shape in VIA's COCO export."""
    kind = shape["name"]
    if kind == "polygon":
        across, down = shape["all_points_x"], shape["all_points_y"]
        if len(across) != len(down):
            msg = f"has {len(across)} x and {len(down)} y; expected one of each per corner"
            raise ValueError(msg)
        return np.array([across, down], dtype=float).T
    if kind == "rect":
        x, y, width, height = (float(shape[key]) for key in ("x", "y", "width", "height"))
        return np.array([(x, y), (x + width, y), (x + width, y + height), (x, y + height)])
    if kind in ("circle", "ellipse"):
        keys = ("cx", "cy", "r", "r") if kind == "circle" else ("cx", "cy", "rx", "ry")
        center, radii = check_corners([shape[key] for key in keys], size, 2)
        angles = np.radians(np.arange(0, 360, _DEGREES))
        turned = float(shape.get("theta") or 0)
        axes = (math.cos(turned), math.sin(turned)), (-math.sin(turned), math.cos(turned))
        corners = np.column_stack([np.cos(angles), np.sin(angles)]) * radii @ axes + center
        return np.asarray(corners.round(3))
    msg = f"unsupported shape {kind!r:.40}; expected a polygon, rectangle, circle or ellipse"
    raise ValueError(msg)


VIA = AnnotationFormat(_read, form="a project of VIA")
