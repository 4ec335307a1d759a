"""Shapes that people have drawn, with names instead of values: LabelMe and Label Studio."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from segiou.masks.painting import Painting, check_corners, check_size
from segiou.masks.read import RawMask

#: Widths of lines and points of LabelMe.
_LINE, _POINT = 10, 5
#: Shapes with a fixed number of corners.
_CORNERS = {"circle": 2, "rectangle": 2, "line": 2, "point": 1, "oriented_rectangle": 4, "mask": 2}
#: Label Studio puts this before the name of a file that is uploaded.
_UPLOADED = re.compile(r"^[0-9a-f]{8}-")
#: Parts of a result of Label Studio that are areas, but no masks.
_NO_MASKS = ("rectanglelabels", "ellipselabels", "keypointlabels", "vectorlabels")


@dataclass(frozen=True)
class DrawnImage:
    """An image with its shapes.

    Attributes
    ----------
    size : (int, int)
        Height and width.
    shapes : sequence of dict
        In the order in which they are drawn.
    is_labelme : bool
        Whether they are those of LabelMe, and not results of Label Studio.
    """

    size: tuple[int, int]
    shapes: Sequence[Any]
    is_labelme: bool

    def draw(self) -> RawMask:
        """The mask: 0 where no shape is, and the place of each name in ``names`` elsewhere.

        Raises
        ------
        ValueError
            Naming the shape that cannot be drawn.
        """
        names = [""]
        painting = Painting(self.size, 0, np.int32)
        for number, shape in enumerate(self.shapes, 1):
            try:
                name = _name_of(shape) if self.is_labelme else _label_of(shape)
                if name not in names:
                    names.append(name)
                value = names.index(name)
                if self.is_labelme:
                    painting.cover(_area(shape, self.size), value)
                elif shape["type"] == "brushlabels":
                    painting.cover(_brushed(shape["value"].get("rle"), self.size), value)
                else:
                    scale = self.size[1] / 100, self.size[0] / 100
                    corners = np.array(shape["value"]["points"], dtype=float) * scale
                    painting.add([corners.ravel().tolist()], value)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                reason = str(error) if isinstance(error, ValueError) else f"it lacks {error}"
                msg = f"shape {number} of {len(self.shapes)}: {reason}"
                raise ValueError(msg) from error
        return RawMask(painting.mask, "json", "JSON", names=tuple(names))


def of_labelme(data: Mapping[str, Any]) -> DrawnImage:
    """An image as LabelMe keeps it: one JSON file with ``shapes``."""
    size = check_size((data.get("imageHeight"), data.get("imageWidth")))
    return DrawnImage(size, data["shapes"], True)


def _name_of(shape: Any) -> str:
    name = shape.get("label")
    if not isinstance(name, str) or not name:
        msg = f"its label is {name!r:.40}"
        raise ValueError(msg)
    return name


def _area(shape: Mapping[str, Any], size: tuple[int, int]) -> NDArray[np.bool_]:
    """The pixels of a shape of LabelMe, pixel by pixel as LabelMe draws it."""
    kind = shape.get("shape_type") or "polygon"
    least = _CORNERS.get(kind, 3 if kind == "polygon" else 2)
    points = check_corners(shape.get("points"), size, least)
    if kind in _CORNERS and len(points) != least:
        msg = f"a {kind} has {least} corners, not {len(points)}"
        raise ValueError(msg)
    if kind == "mask":
        return _pasted(shape.get("mask"), points, size)
    area = Image.fromarray(np.zeros(size, dtype=np.uint8))
    draw = ImageDraw.Draw(area)
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
        msg = f"its shape_type {kind!r:.40} is not known"
        raise ValueError(msg)
    return np.asarray(area) > 0


def _pasted(packed: Any, points: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.bool_]:
    """A mask of LabelMe: a PNG that lies between two corners."""
    (left, top), (right, bottom) = points.astype(int)
    try:
        with Image.open(io.BytesIO(base64.b64decode(packed)), formats=["PNG"]) as image:
            if image.size != (right - left + 1, bottom - top + 1) or min(left, top) < 0:
                msg = f"its mask has the size {image.size}, which is not that of its corners"
                raise ValueError(msg)
            part = np.asarray(image.convert("L")) > 0
    except (OSError, TypeError, SyntaxError, Image.DecompressionBombError) as error:
        msg = f"its mask is no PNG in base 64: {error}"
        raise ValueError(msg) from error
    area = np.zeros(size, dtype=bool)
    place = area[top : bottom + 1, left : right + 1]
    place |= part[: place.shape[0], : place.shape[1]]
    return area


def of_label_studio(tasks: Sequence[Any]) -> Iterator[tuple[str, DrawnImage]]:
    """Images of Label Studio's JSON, by the name of their file.

    Raises
    ------
    ValueError
        Naming the task that has no image, or several annotations.
    """
    for number, task in enumerate(tasks, 1):
        try:
            done = [a for a in task["annotations"] if not a.get("was_cancelled")]
            if len(done) != 1:
                msg = f"has {len(done)} annotations; keep one of them"
                raise ValueError(msg)
            results = [r for r in done[0]["result"] if str(r.get("type")).endswith("labels")]
            sizes = {(r["original_height"], r["original_width"]) for r in results}
            if len(sizes) != 1:
                msg = f"says {len(sizes)} sizes of its image; it must have one, and shapes"
                raise ValueError(msg)
            drawn = DrawnImage(check_size(sizes.pop()), results, False)
            yield _image_name(task["data"]), drawn
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            reason = str(error) if isinstance(error, ValueError) else f"is none: it lacks {error}"
            msg = f"task {number} {reason}"
            raise ValueError(msg) from error


def _image_name(data: Mapping[str, Any]) -> str:
    found = [value for value in data.values() if isinstance(value, str) and "." in value]
    if len(found) != 1:
        msg = f"has {len(found)} texts in its data that could be its image"
        raise ValueError(msg)
    path = found[0].rpartition("?d=")[2] if "?d=" in found[0] else found[0].partition("?")[0]
    return _UPLOADED.sub("", PurePosixPath(path).name)


def _label_of(result: Mapping[str, Any]) -> str:
    kind = result["type"]
    if kind in _NO_MASKS:
        msg = f"it is one of {kind}; only brushes and polygons make masks"
        raise ValueError(msg)
    labels = result["value"].get(kind)
    if not isinstance(labels, list) or len(labels) != 1 or not isinstance(labels[0], str):
        msg = f"it has the labels {labels!r:.60}; it must have one"
        raise ValueError(msg)
    return labels[0]


def _brushed(packed: Any, size: tuple[int, int]) -> NDArray[np.bool_]:
    """Where a brush of Label Studio is not transparent: rle-pack of RGBA, as bytes."""
    try:
        bits = np.unpackbits(np.array(packed, dtype=np.uint8))
    except (OverflowError, TypeError, ValueError):
        bits = np.empty(0, dtype=np.uint8)
    stream = _Bits(bits)
    total, word = stream.number(32), stream.number(5) + 1
    widths = [stream.number(4) + 1 for _ in range(4)]
    if total != 4 * size[0] * size[1] or word != 8:
        msg = f"its brush holds {total} values of {word} bits, and not four bytes a pixel"
        raise ValueError(msg)
    values = np.empty(total, dtype=np.uint8)
    at = 0
    while at < total:
        is_run = stream.number(1)
        end = at + stream.number(widths[stream.number(2)]) + 1
        if end > total:
            msg = "its brush runs over the end of the image"
            raise ValueError(msg)
        values[at:end] = stream.bytes(1) if is_run else stream.bytes(end - at)
        at = end
    return values[3::4].reshape(size) > 0


class _Bits:
    """Numbers of any width, one after the other."""

    def __init__(self, bits: NDArray[np.uint8]) -> None:
        self._bits = bits
        self._at = 0

    def _take(self, count: int) -> NDArray[np.uint8]:
        found = self._bits[self._at : self._at + count]
        self._at += count
        if len(found) < count:
            msg = "its brush is cut off, or is no list of bytes"
            raise ValueError(msg)
        return found

    def number(self, width: int) -> int:
        return int("".join(map(str, self._take(width).tolist())), 2)

    def bytes(self, count: int) -> NDArray[np.uint8]:
        return np.packbits(self._take(8 * count))
