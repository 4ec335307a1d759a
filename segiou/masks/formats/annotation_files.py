"""Files of annotation tools → masks: each shape is drawn with exactly the pixels of its tool."""

from __future__ import annotations

import base64
import binascii
import io
import math
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from segiou._support.files import os_problem
from segiou._support.text import listed
from segiou.masks.formats.drawing import Painting, check_corners, check_size, filled
from segiou.masks.formats.image_files import SIGNATURE
from segiou.masks.raw_mask import RawMask

#: Polygons, or an area, for :class:`Painting`.
Area = list[Any] | NDArray[np.bool_]
#: Returns the name of a shape and its area in an image of the given size.
Reader = Callable[[Any, tuple[int, int]], tuple[str, Area]]

#: Widths of LabelMe's lines and points.
_LINE, _POINT = 10, 5
#: Shapes with a fixed number of corners.
_CORNERS = {"circle": 2, "rectangle": 2, "line": 2, "point": 1, "oriented_rectangle": 4, "mask": 2}
#: Extensions of images.
_IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".avif", ".heic")
#: Prefix that Label Studio adds to uploaded files.
_UPLOADED = re.compile(r"^[0-9a-f]{8}-")
#: Most bytes of a PNG in addition to its pixels.
_MOST_HEADER = 1 << 16
#: Errors of Pillow for invalid images.
_NO_IMAGE = (OSError, SyntaxError, Image.DecompressionBombError)
#: EXIF's orientation, and its values for images that are stored on their side.
_ORIENTATION, _ON_SIDE = 274, (5, 6, 7, 8)
#: VIA turns circles into polygons with one corner per this many degrees.
_DEGREES = 5


@dataclass(frozen=True)
class DrawnImage:
    """An image with its shapes, in drawing order."""

    #: Height and width, or the image file to take them from.
    size: tuple[int, int] | Path
    shapes: Sequence[Any]
    #: Returns the name of a shape and its area in an image of the given size.
    read: Reader

    def draw(self) -> RawMask:
        """Draw the mask: indices of ``names``, 0 outside all shapes."""
        size = _size_next_to(self.size) if isinstance(self.size, Path) else self.size
        values = {"": 0}
        painting = Painting(size, 0, np.int32)
        for number, shape in enumerate(self.shapes, 1):
            try:
                name, area = self._area(shape, size)
                painting.add(area, values.setdefault(name, len(values)))
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
                msg = f"shape {number} of {len(self.shapes)}: {_reason(error)}"
                raise ValueError(msg) from error
        return RawMask(painting.mask, "json", "JSON", names=tuple(values))

    def _area(self, shape: Any, size: tuple[int, int]) -> tuple[str, Area]:
        """The name of a shape and its area."""
        if not isinstance(shape, dict):
            msg = f"expected an object, got {shape!r:.40}"
            raise ValueError(msg)
        name, area = self.read(shape, size)
        if not isinstance(name, str) or not name:
            msg = f"expected a label, got {name!r:.40}"
            raise ValueError(msg)
        return name, area


def _size_next_to(image: Path) -> tuple[int, int]:
    try:
        return image_size(image)
    except ValueError as error:
        msg = f"{error}; put the image next to the file, or export as COCO"
        raise ValueError(msg) from error


def image_size(path: Path) -> tuple[int, int]:
    """Height and width of an image as browsers and training tools show it, turned by its EXIF."""
    try:
        with Image.open(path) as image:
            size = image.height, image.width
            is_on_side = image.getexif().get(_ORIENTATION) in _ON_SIDE
    except _NO_IMAGE as error:
        msg = f"has no size, because {path} {os_problem(error)}"
        raise ValueError(msg) from error
    return check_size(size[::-1] if is_on_side else size)


def drawn_images(data: Any, path: Path) -> dict[str, DrawnImage] | None:
    """The images of a file of an annotation tool; None for other JSON."""
    images: dict[str, DrawnImage] = {}
    for name, image in _images(data, path):
        if name in images:
            msg = f"contains the image {name!r} twice; keep one"
            raise ValueError(msg)
        images[name] = image
    return images or None


def _images(data: Any, path: Path) -> Iterable[tuple[str, DrawnImage]]:
    if isinstance(data, list):
        first = data[0] if data and isinstance(data[0], dict) else {}
        if "annotations" in first:
            return (_of_task(number, task, path) for number, task in enumerate(data, 1))
        if first.keys() & {"annotation_id", "annotator"}:
            return (_of_task(i, _as_task(one), path) for i, one in enumerate(data, 1))
        return ()
    if not isinstance(data, dict):
        return ()
    if isinstance(data.get("shapes"), list):
        size = data.get("imageHeight"), data.get("imageWidth")
        return [(path.stem, DrawnImage(check_size(size), data["shapes"], _of_labelme))]
    if isinstance(data.get("objects"), list):
        known = data["size"] if isinstance(data.get("size"), dict) else {}
        size = known.get("height"), known.get("width")
        return [(path.stem, DrawnImage(check_size(size), data["objects"], _of_supervisely))]
    entries = data.get("_via_img_metadata", data)
    kept = entries.values() if isinstance(entries, dict) else ()
    is_via = all(isinstance(one, dict) and "regions" in one for one in kept)
    return (_of_via_image(one, path) for one in kept) if is_via else ()


def _reason(error: Exception) -> str:
    if isinstance(error, ValueError):
        return str(error)
    return f"{error} is missing" if isinstance(error, KeyError) else "unexpected structure"


def _of_labelme(shape: Any, size: tuple[int, int]) -> tuple[str, Area]:
    """A LabelMe shape, with the pixels that LabelMe draws."""
    kind = shape.get("shape_type") or "polygon"
    least = _CORNERS.get(kind, 3 if kind == "polygon" else 2)
    points = check_corners(shape.get("points"), size, least)
    if kind in _CORNERS and len(points) != least:
        msg = f"a {kind} has {least} corners, got {len(points)}"
        raise ValueError(msg)
    if kind == "mask":
        area, png_size = _png_area(shape.get("mask"), points[0], size)
        (left, top), (right, bottom) = points.astype(int).tolist()
        if png_size != (bottom - top + 1, right - left + 1):
            msg = f"its mask has size {png_size}, which differs from its corners"
            raise ValueError(msg)
    else:
        area = _labelme_drawing(kind, points, size)
    return shape.get("label"), area


def _labelme_drawing(
    kind: str, points: NDArray[np.float64], size: tuple[int, int]
) -> NDArray[np.bool_]:
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


def _of_supervisely(shape: Any, size: tuple[int, int]) -> tuple[str, Area]:
    """A Supervisely object, with the pixels that Supervisely draws."""
    kind = shape.get("geometryType")
    if kind == "bitmap":
        packed = shape["bitmap"]
        return shape["classTitle"], _png_area(packed["data"], packed["origin"], size)[0]
    if kind not in ("polygon", "rectangle"):
        msg = f"unsupported geometryType {kind!r:.40}; expected a bitmap, polygon or rectangle"
        raise ValueError(msg)
    least = 3 if kind == "polygon" else 2
    exterior, holes = shape["points"]["exterior"], shape["points"].get("interior") or ()
    corners, *inner = (
        np.floor(check_corners(one, size, least)).astype(np.int64) for one in (exterior, *holes)
    )
    if kind == "rectangle":
        (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
        corners = np.array([(left, top), (right, top), (right, bottom), (left, bottom)])
    area = filled(corners, size)
    for hole in inner:
        area &= ~filled(hole, size)
    return shape["classTitle"], area


def _png_area(
    text: Any, corner: Sequence[Any], size: tuple[int, int]
) -> tuple[NDArray[np.bool_], tuple[int, int]]:
    """The area of a base64 PNG placed at a corner, and the PNG's size.

    The area is where the PNG is not transparent, or not black if it has no transparency.
    """
    left, top = int(corner[0]), int(corner[1])
    try:
        data = base64.b64decode(text)
        if not data.startswith(SIGNATURE):  # Supervisely compresses it again
            data = zlib.decompressobj().decompress(data, 4 * size[0] * size[1] + _MOST_HEADER)
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            if min(left, top) < 0 or image.height > size[0] or image.width > size[1]:
                msg = f"its mask, {image.width} × {image.height} from ({left}, {top}), is outside"
                raise ValueError(msg)
            has_alpha = "transparency" in image.info or image.mode.endswith("A")
            grey = image.convert("RGBA").getchannel("A") if has_alpha else image.convert("L")
            part = np.asarray(grey) > 0
    except (*_NO_IMAGE, TypeError, binascii.Error, zlib.error) as error:
        # Pillow's text may end with an object of Python.
        msg = f"its mask is not a base64 PNG: {error}".partition(" <_io.")[0]
        raise ValueError(msg) from error
    area = np.zeros(size, dtype=bool)
    place = area[top : top + part.shape[0], left : left + part.shape[1]]
    place |= part[: place.shape[0], : place.shape[1]]
    return area, (part.shape[0], part.shape[1])


def _of_via_image(entry: Mapping[str, Any], path: Path) -> tuple[str, DrawnImage]:
    """A VIA image. VIA does not save its size, so the image must be next to the file."""
    name, regions = entry.get("filename"), entry["regions"]
    if not isinstance(name, str) or not isinstance(regions, (list, dict)):
        msg = f"an image has filename {name!r:.60} and regions {regions!r:.60}"
        raise ValueError(msg)
    shapes = list(regions.values()) if isinstance(regions, dict) else regions
    return name, DrawnImage(path.parent / PurePosixPath(name).name, shapes, _of_via)


def _of_via(region: Any, size: tuple[int, int]) -> tuple[str, Area]:
    """A VIA region."""
    corners = _via_corners(region["shape_attributes"], size)
    # The only text attribute, or the only ticked box.
    attributes = region["region_attributes"]
    texts = [value for value in attributes.values() if isinstance(value, str) and value]
    for boxes in attributes.values():
        texts += [key for key, on in boxes.items() if on] if isinstance(boxes, dict) else []
    if len(texts) != 1:
        msg = f"exactly one attribute must name its class, got {dict(attributes)!r:.80}"
        raise ValueError(msg)
    return texts[0], [check_corners(corners, size, 3).ravel()]


def _via_corners(shape: Mapping[str, Any], size: tuple[int, int]) -> NDArray[np.float64]:
    """The corners of a shape in VIA's COCO export."""
    kind = shape["name"]
    if kind == "polygon":
        return np.array([shape["all_points_x"], shape["all_points_y"]], dtype=float).T
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


def _of_task(number: int, task: Any, path: Path) -> tuple[str, DrawnImage]:
    """The image of a Label Studio task, and its file name."""
    try:
        done = [a for a in task["annotations"] if not a.get("was_cancelled")]
        if len(done) != 1:
            msg = f"has {len(done)} annotations; expected one"
            raise ValueError(msg)
        results = [r for r in done[0]["result"] if str(r.get("type")).endswith("labels")]
        sizes = {(r["original_height"], r["original_width"]) for r in results}
        if len(sizes) > 1:
            msg = f"has {len(sizes)} image sizes; expected shapes with one size"
            raise ValueError(msg)
        name = _image_name(task["data"])
        # Without shapes, the size is that of the image.
        size = check_size(sizes.pop()) if sizes else path.parent / name
        return name, DrawnImage(size, results, _of_label_studio)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"task {number}: {_reason(error)}"
        raise ValueError(msg) from error


def _as_task(entry: Any) -> Any:
    """A task of JSON_MIN in the structure of JSON."""
    if not isinstance(entry, dict):
        return entry
    lists = (value for value in entry.values() if isinstance(value, list))
    shapes = [one for several in lists for one in several if isinstance(one, dict)]
    results = [
        {
            **shape,
            "type": next((key for key in shape if key.endswith("labels")), ""),
            "value": shape,
        }
        for shape in shapes
    ]
    return {"data": entry, "annotations": [{"result": results}]}


def _of_label_studio(result: Any, size: tuple[int, int]) -> tuple[str, Area]:
    """A Label Studio result: a brush, or a polygon in per cent of the image size."""
    kind, value = result["type"], result["value"]
    if kind not in ("brushlabels", "polygonlabels"):
        msg = f"unsupported type {kind}; expected a brush or polygon"
        raise ValueError(msg)
    labels = value.get(kind)
    if not isinstance(labels, list) or len(labels) != 1:
        msg = f"expected one label, got {labels!r:.60}"
        raise ValueError(msg)
    if kind == "brushlabels":
        return labels[0], _brushed(value.get("rle"), size)
    corners = np.array(value["points"], dtype=float) * (size[1] / 100, size[0] / 100)
    return labels[0], [corners.ravel()]


def _image_name(data: Mapping[str, Any]) -> str:
    texts = {key: value for key, value in data.items() if isinstance(value, str)}
    paths = {
        key: text.rpartition("?d=")[2] if "?d=" in text else text.partition("?")[0]
        for key, text in texts.items()
    }
    images = {key: path for key, path in paths.items() if path.lower().endswith(_IMAGES)}
    found = images or {key: path for key, path in paths.items() if re.search(r"\.\w+$", path)}
    if len(found) > 1:
        found = {key: path for key, path in found.items() if key == "image"} or found
    if len(found) != 1:
        msg = f"has {len(found)} possible image names in its data ({listed(list(found))}); expected"
        msg += " one, or one named 'image'"
        raise ValueError(msg)
    return _UPLOADED.sub("", PurePosixPath(*found.values()).name)


def _brushed(packed: Any, size: tuple[int, int]) -> NDArray[np.bool_]:
    """The opaque area of a Label Studio brush, an rle-pack of RGBA bytes."""
    try:
        # bytes() rejects -1, which NumPy 1 reads as 255.
        bits = np.unpackbits(np.frombuffer(bytes([*packed]), dtype=np.uint8))
    except (TypeError, ValueError):
        bits = np.empty(0, dtype=np.uint8)
    stream = _Bits(bits)
    total, word = stream.number(32), stream.number(5) + 1
    widths = [stream.number(4) + 1 for _ in range(4)]
    if total != 4 * size[0] * size[1] or word != 8:
        msg = f"its brush has {total} values of {word} bits; expected four bytes per pixel"
        raise ValueError(msg)
    values = np.empty(total, dtype=np.uint8)
    at = 0
    while at < total:
        is_run = stream.number(1)
        end = at + stream.number(widths[stream.number(2)]) + 1
        if end > total:
            msg = "its brush exceeds the image"
            raise ValueError(msg)
        values[at:end] = np.packbits(stream.take(8 if is_run else 8 * (end - at)))
        at = end
    return values[3::4].reshape(size) > 0


class _Bits:
    """Bits that are read one after the other."""

    def __init__(self, bits: NDArray[np.uint8]) -> None:
        self._bits, self._used = bits, 0

    def take(self, count: int) -> NDArray[np.uint8]:
        """The next bits."""
        self._used += count
        if self._used > self._bits.size:
            msg = "its brush is truncated, or not a list of bytes"
            raise ValueError(msg)
        return self._bits[self._used - count : self._used]

    def number(self, width: int) -> int:
        """The next bits as a number, the highest first."""
        return int("".join(map(str, self.take(width).tolist())), 2)
