"""Shapes → masks: run lengths, polygons, and the files of annotation tools.

Each shape is drawn with exactly the pixels of its own tool, pycocotools or OpenCV.
"""

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
#: Most pixels of a mask in an annotation file.
MOST_PIXELS = 1 << 28
#: Polygon sides are traced on a grid this much finer, as in pycocotools.
_FINER = 5
#: Most steps of an outline on that grid.
_MOST_STEPS = 1 << 26
#: Mean length in pixels below which all runs are set together; longer ones are set one by one.
_CLOSE = 64
#: Subpixel resolution of OpenCV.
_PARTS = 1 << 16


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
        is_tasks = bool(data) and isinstance(data[0], dict) and "annotations" in data[0]
        return map(_of_task, enumerate(data, 1)) if is_tasks else ()
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


def _of_task(numbered: tuple[int, Any]) -> tuple[str, DrawnImage]:
    """The image of a Label Studio task, and its file name."""
    number, task = numbered
    try:
        done = [a for a in task["annotations"] if not a.get("was_cancelled")]
        if len(done) != 1:
            msg = f"has {len(done)} annotations; expected one"
            raise ValueError(msg)
        results = [r for r in done[0]["result"] if str(r.get("type")).endswith("labels")]
        sizes = {(r["original_height"], r["original_width"]) for r in results}
        if len(sizes) != 1:
            msg = f"has {len(sizes)} image sizes; expected shapes with one size"
            raise ValueError(msg)
        image = DrawnImage(check_size(sizes.pop()), results, _of_label_studio)
        return _image_name(task["data"]), image
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"task {number}: {_reason(error)}"
        raise ValueError(msg) from error


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
    names = [value for value in data.values() if isinstance(value, str) and "." in value]
    if len(names) != 1:
        msg = f"has {len(names)} possible image names in its data; expected one"
        raise ValueError(msg)
    path = names[0].rpartition("?d=")[2] if "?d=" in names[0] else names[0].partition("?")[0]
    return _UPLOADED.sub("", PurePosixPath(path).name)


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


# Drawing ---------------------------------------------------------------------------------


def check_size(size: Any) -> tuple[int, int]:
    """Height and width of an image."""
    sides = tuple(size) if isinstance(size, (list, tuple)) else ()
    whole = len(sides) == 2 and all(type(side) is int and side > 0 for side in sides)
    if not whole or sides[0] * sides[1] > MOST_PIXELS:
        msg = f"has an invalid size (height, width): {size!r:.80}"
        raise ValueError(msg)
    return sides


class Painting:
    """A mask drawn segment by segment; later segments cover earlier ones."""

    def __init__(self, size: tuple[int, int], background: int, dtype: Any) -> None:
        self.size = size
        self._flat = np.full(size[0] * size[1], background, dtype=dtype)

    @property
    def mask(self) -> NDArray[Any]:
        """The mask, shape (H, W)."""
        height, width = self.size
        return np.ascontiguousarray(self._flat.reshape(width, height).T)

    def add(self, segmentation: Any, value: int) -> None:
        """Set the pixels of a segment: run lengths (a dict), polygons (a list), or an area."""
        if isinstance(segmentation, np.ndarray):
            self._flat[segmentation.T.ravel()] = value
        elif isinstance(segmentation, dict):
            if "size" in segmentation and check_size(segmentation["size"]) != self.size:
                msg = f"its size {segmentation['size']} differs from its image's {self.size}"
                raise ValueError(msg)
            self._add_runs(run_lengths(segmentation.get("counts")), value)
        elif isinstance(segmentation, list):
            for corners in segmentation:
                self._add_runs(_polygon_runs(corners, self.size), value)
        else:
            msg = "it has neither run lengths nor polygons"
            raise ValueError(msg)

    def _add_runs(self, runs: NDArray[np.int64], value: int) -> None:
        """Set runs of pixels, column by column, alternately outside and inside the segment."""
        if (runs < 0).any() or (runs > self._flat.size).any():
            msg = "its run lengths are negative, or longer than the image"
            raise ValueError(msg)
        if (covered := int(runs.sum())) != self._flat.size:
            msg = f"its run lengths cover {covered} of {self._flat.size} pixels"
            raise ValueError(msg)
        if runs.size < 2:
            return
        ends = runs.cumsum()
        first, last = int(ends[0]), int(ends[(runs.size - 2) // 2 * 2 + 1])
        if last - first < _CLOSE * runs.size:
            inside = np.arange(runs.size - 1) % 2 == 0
            self._flat[first:][np.repeat(inside, runs[1:])] = value
            return
        for begin, end in zip(ends[:-1:2].tolist(), ends[1::2].tolist(), strict=True):
            self._flat[begin:end] = value


def run_lengths(counts: Any) -> NDArray[np.int64]:
    """Run lengths from a list, or from COCO's compressed text.

    >>> run_lengths("1310"), run_lengths([1, 3, 1, 3])
    (array([1, 3, 1, 3]), array([1, 3, 1, 3]))
    """
    if isinstance(counts, str):
        return _decoded(counts)
    if not isinstance(counts, list) or not all(type(n) is int for n in counts):
        msg = "its run lengths are neither text nor a list of integers"
        raise ValueError(msg)
    try:
        return np.array(counts, dtype=np.int64)
    except OverflowError:
        msg = "its run lengths are larger than any image"
        raise ValueError(msg) from None


def _decoded(text: str) -> NDArray[np.int64]:
    """Decode numbers of six bits per character: five bits of the value and a continuation bit."""
    bits = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.int64) - 48
    if ((bits < 0) | (bits > 63)).any() or (bits.size and bits[-1] & 32):
        msg = "its compressed run lengths are corrupt or truncated"
        raise ValueError(msg)
    last = np.flatnonzero((bits & 32) == 0)
    first = np.concatenate([[0], last[:-1] + 1]).astype(np.int64)[: last.size]
    lengths = last - first + 1
    if lengths.size and lengths.max() > 8:
        msg = "its compressed run lengths are larger than any image"
        raise ValueError(msg)
    shifts = 5 * (np.arange(bits.size) - np.repeat(first, lengths))
    runs = np.add.reduceat((bits & 31) << shifts, first) if last.size else bits
    runs = np.where(bits[last] & 16, runs - (1 << 5 * lengths), runs)
    # From the fourth number on, each is a difference to the second before.
    runs[1::2], runs[2::2] = runs[1::2].cumsum(), runs[2::2].cumsum()
    return runs


def _polygon_runs(corners: Any, size: tuple[int, int]) -> NDArray[np.int64]:
    """Run lengths of a polygon's inside, identical to pycocotools."""
    points = check_corners(corners, size, 3)
    height, width = size
    fine = (_FINER * points + 0.5).astype(np.int64)
    u, v = _outline(fine, np.roll(fine, -1, axis=0))
    # An outline that enters another column toggles the pixels below it.
    step = np.flatnonzero(u[1:] != u[:-1])
    goes_left = u[step + 1] < u[step]
    column = (np.where(goes_left, u[step + 1], u[step + 1] - 1) + 0.5) / _FINER - 0.5
    row = (np.minimum(v[step], v[step + 1]) + 0.5) / _FINER - 0.5
    kept = (np.floor(column) == column) & (column >= 0) & (column <= width - 1)
    rows = np.ceil(np.clip(row[kept], 0, height)).astype(np.int64)
    toggles = np.sort(column[kept].astype(np.int64) * height + rows)
    return np.diff(toggles, prepend=0, append=height * width)


def check_corners(corners: Any, size: tuple[int, int], least: int) -> NDArray[np.float64]:
    """Corners of a shape, (N, 2), from a list of pairs or of alternating x, y."""
    try:
        points = np.array(corners, dtype=np.float64).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError):
        points = np.empty((0, 2))
    if len(points) < max(1, least):
        msg = f"expected a list of at least {least} corners (x, y)"
        raise ValueError(msg)
    if not (np.abs(points) <= 2 * max(size) + 64).all():  # also where a number is NaN
        msg = f"it has a corner that is not a number, or far outside the {size} pixels"
        raise ValueError(msg)
    return points


def _outline(
    start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All points of a polygon's sides on the fine grid, in order."""
    extent = np.abs(end - start)
    wide = extent[:, 0] >= extent[:, 1]
    # The coordinate in which a side is longer comes first.
    start, end = (np.where(wide[:, None], ends, ends[:, ::-1]) for ends in (start, end))
    flipped = start[:, 0] > end[:, 0]
    least, most = (np.where(flipped[:, None], *ends) for ends in ((end, start), (start, end)))
    length, across = (most - least).T
    slope = across / np.maximum(length, 1)
    side, step = _steps(length + 1)
    step = np.where(flipped[side], length[side] - step, step)
    first = least[side, 0] + step
    second = (least[side, 1] + slope[side] * step + 0.5).astype(np.int64)
    return np.where(wide[side], first, second), np.where(wide[side], second, first)


def _steps(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Side, and position on it, of each step along a polygon's sides."""
    if lengths.sum() > _MOST_STEPS:
        msg = f"a polygon's outline is longer than {_MOST_STEPS // _FINER} pixels"
        raise ValueError(msg)
    side = np.repeat(np.arange(len(lengths)), lengths)
    return side, np.arange(side.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def filled(points: NDArray[np.int64], size: tuple[int, int]) -> NDArray[np.bool_]:
    """A polygon's inside and sides, identical to OpenCV's fillPoly if its corners are inside."""
    after = np.roll(points, -1, axis=0)
    begin, end = _clipped(points, after, size)
    from_left = (begin[:, 0] > end[:, 0])[:, None]
    start, way = np.where(from_left, end, begin), np.abs(end - begin)
    direction = np.sign(np.where(from_left, begin, end) - start)
    side, step = _steps(way.max(axis=1) + 1)
    most = np.maximum(way.max(axis=1), 1)[side, None]
    # Ties go to the pixel nearer to the left end of the side.
    moved = (2 * way[side] * step[:, None] + most - 1) // (2 * most)
    x, y = (start[side] + direction[side] * moved).T
    is_inside = (x >= 0) & (x < size[1]) & (y >= 0) & (y < size[0])
    area = _between_sides(points, after, size)
    area[y[is_inside], x[is_inside]] = True
    return area


def _clipped(
    begin: NDArray[np.int64], end: NDArray[np.int64], size: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sides without their parts outside the image, in the order of OpenCV's clipLine."""
    ends, last = np.stack([begin, end]), (size[1] - 1, size[0] - 1)
    for axis in (1, 0):  # rows first
        for k in (0, 1):
            outside = (ends[k, :, axis] < 0) | (ends[k, :, axis] > last[axis])
            # Sides that are outside at both ends stay unchanged; none of their pixels is set.
            beyond = [(e[:, axis] > last[axis]) * 1 - (e[:, axis] < 0) for e in ends]
            chosen = outside & ((beyond[0] != beyond[1]) | (beyond[0] == 0))
            (x, u), (y, v) = ends[:, chosen, axis], ends[:, chosen, 1 - axis]
            to = np.where(ends[k, chosen, axis] < 0, 0, last[axis])
            moved = np.trunc((to - (x, u)[k]) * (v - y) / (u - x)).astype(np.int64)
            ends[k, chosen, 1 - axis] += moved
            ends[k, chosen, axis] = to
    return ends[0], ends[1]


def _between_sides(
    points: NDArray[np.int64], after: NDArray[np.int64], size: tuple[int, int]
) -> NDArray[np.bool_]:
    """Pixels between the first and second side in each row, the third and fourth, and so on."""
    height, width = size
    goes_up = (points[:, 1] > after[:, 1])[:, None]
    top, bottom = np.where(goes_up, after, points), np.where(goes_up, points, after)
    crossed = top[:, 1] < bottom[:, 1]
    top, rows = top[crossed], bottom[crossed] - top[crossed]
    # In 1/65536 of a pixel, as in OpenCV.
    slope = np.trunc(rows[:, 0] * _PARTS / rows[:, 1]).astype(np.int64)
    side, step = _steps(rows[:, 1])
    x, y = top[side, 0] * _PARTS + slope[side] * step, top[side, 1] + step
    order = np.lexsort((x, y))
    y, left, right = y[order][::2], -(-x[order][::2] // _PARTS), x[order][1::2] // _PARTS + 1
    kept = (y >= 0) & (y < height) & (left < right)
    area = np.zeros((height, width + 1), dtype=np.int8)
    np.add.at(area, (y[kept], left[kept].clip(0, width)), 1)
    np.add.at(area, (y[kept], right[kept].clip(0, width)), -1)
    return np.asarray(area.cumsum(axis=1, dtype=np.int8)[:, :width] > 0)
