"""Annotations of CVAT (``annotations.xml``, "CVAT for images"), with the pixels of its exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import read_text
from segiou.masks.formats.drawing import check_corners, check_size
from segiou.masks.formats.drawn_image import Area, DrawnImage
from segiou.masks.sources.annotations import AnnotationFormat, Annotations

#: Tags of an image that are not shapes.
_OTHERS = ("tag",)


def _read(path: Path, _data: Any) -> Annotations | None:
    return Annotations(_images(path)) if _is_cvat(path) else None


def _is_cvat(path: Path) -> bool:
    """Whether a file begins as an XML file of CVAT."""
    try:
        with path.open("rb") as file:
            return b"<annotations" in file.read(1 << 12).replace(b"\0", b"")  # also in UTF-16
    except OSError:
        return False


def _images(path: Path) -> dict[str, DrawnImage]:
    """The images of a file; ValueError if it cannot be read."""
    text = read_text(path)
    # Neither is needed, and entities may expand without a bound.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("declares a document type, which CVAT does not; export it again")
    try:
        root = ElementTree.fromstring(text.lstrip())
    except (ElementTree.ParseError, ValueError) as error:
        msg = f"is not valid XML: {error}"
        raise ValueError(msg) from error
    if root.find("track") is not None:
        raise ValueError("is an export of tracks; export it from CVAT as 'CVAT for images'")
    images: dict[str, DrawnImage] = {}
    for entry in root.iter("image"):
        name = entry.get("name", "")
        if not name or name in images:
            msg = f"has an image {name!r} twice" if name else "has an image without a name"
            raise ValueError(msg)
        images[name] = DrawnImage(_size_of(entry, name), _shapes_of(entry), _area)
    if not images:
        raise ValueError("contains no images; export it from CVAT as 'CVAT for images'")
    return images


def _size_of(entry: Any, name: str) -> tuple[int, int]:
    try:
        return check_size([int(entry.get(key)) for key in ("height", "width")])
    except (TypeError, ValueError):
        msg = f"image {name!r} has an invalid size: {entry.get('width')} × {entry.get('height')}"
        raise ValueError(msg) from None


def _shapes_of(entry: Any) -> list[dict[str, str]]:
    """The shapes of an image from the lowest to the highest."""
    shapes = [{"kind": shape.tag, **shape.attrib} for shape in entry if shape.tag not in _OTHERS]
    return sorted(shapes, key=_height)


def _height(shape: dict[str, str]) -> int:
    order = shape.get("z_order", "0")
    return int(order) if order.lstrip("-").isascii() and order.lstrip("-").isdigit() else 0


def _area(shape: Any, size: tuple[int, int]) -> tuple[str, Area]:
    """The class and the area of a shape, with the pixels of CVAT's own exports."""
    kind, label = shape["kind"], shape["label"]
    if kind == "mask":
        return label, _mask(shape, size)
    if kind == "polygon":
        corners = [pair.split(",") for pair in shape["points"].split(";")]
    elif kind == "box" and not float(shape.get("rotation", 0)):
        left, top, right, bottom = (shape[key] for key in ("xtl", "ytl", "xbr", "ybr"))
        corners = [(left, top), (left, bottom), (right, bottom), (right, top)]
    else:
        turned = "rotated " * (kind == "box")
        msg = f"unsupported {turned}{kind}; expected a mask, polygon or box. Export CVAT's "
        msg += "'Segmentation mask' instead"
        raise ValueError(msg)
    return label, [check_corners(corners, size, 3).ravel()]


def _mask(shape: Any, size: tuple[int, int]) -> NDArray[np.bool_]:
    """The area of run lengths in a box, row by row, alternately outside and inside."""
    try:
        left, top, width, height = (int(shape[key]) for key in ("left", "top", "width", "height"))
        runs = np.array([int(n) for n in shape["rle"].split(",")], dtype=np.int64)
    except ValueError:
        box = {key: shape[key] for key in ("left", "top", "width", "height", "rle")}
        msg = f"its mask has a number that is not whole: {box!r:.80}"
        raise ValueError(msg) from None
    if min(left, top) < 0 or min(width, height) < 1:
        msg = f"its mask has a box of {width} × {height} from ({left}, {top})"
        raise ValueError(msg)
    if left + width > size[1] or top + height > size[0]:
        msg = f"its mask, {width} × {height} from ({left}, {top}), is outside"
        raise ValueError(msg)
    if (runs < 0).any() or (runs > width * height).any() or runs.sum() != width * height:
        msg = f"its run lengths do not cover its {width * height} pixels"
        raise ValueError(msg)
    inside = np.repeat(np.arange(runs.size) % 2 == 1, runs)
    area = np.zeros(size, dtype=bool)
    area[top : top + height, left : left + width] = inside.reshape(height, width)
    return area


CVAT = AnnotationFormat(_read, endings=(".xml",))
