"""Tasks of Label Studio: brushes and polygons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import listed
from segiou.annotations.shapes import annotations_of
from segiou.masks.formats.drawing import check_size
from segiou.masks.formats.drawn_image import Area, DrawnImage, reason
from segiou.masks.sources.annotations import AnnotationFormat, Annotations

#: Extensions of images.
_IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".avif", ".heic")
#: Types of shapes to which no label was given.
_UNLABELLED = ("polygon", "brush", "rectangle", "ellipse", "keypoint", "bitmask")
#: Prefix that Label Studio adds to uploaded files.
_UPLOADED = re.compile(r"^[0-9a-f]{8}-")


def _read(path: Path, data: Any) -> Annotations | None:
    first = data[0] if isinstance(data, list) and data else None
    if not isinstance(first, dict):
        return None
    is_min = "annotations" not in first
    if is_min and not first.keys() & {"annotation_id", "annotator"}:
        return None
    tasks = map(_as_task, data) if is_min else data
    return annotations_of(_image_of_task(*task, path) for task in enumerate(tasks, 1))


def _image_of_task(number: int, task: Any, path: Path) -> tuple[str, DrawnImage]:
    """The image of a Label Studio task, and its file name."""
    try:
        done = [a for a in task["annotations"] if not a.get("was_cancelled")]
        if len(done) != 1:
            msg = f"has {len(done)} annotations; expected one"
            raise ValueError(msg)
        results = [r for r in done[0]["result"] if _is_shape(str(r.get("type")))]
        sizes = {(r["original_height"], r["original_width"]) for r in results}
        if len(sizes) > 1:
            msg = f"has {len(sizes)} image sizes; expected shapes with one size"
            raise ValueError(msg)
        name = _image_name(task["data"])
        # Without shapes, the size is that of the image.
        size = check_size(sizes.pop()) if sizes else path.parent / name
        return name, DrawnImage(size, results, _drawn_area)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"task {number}: {reason(error)}"
        raise ValueError(msg) from error


def _is_shape(kind: str) -> bool:
    """Whether a result is a shape, also one without a label, rather than a choice or a relation."""
    return kind.endswith("labels") or kind in _UNLABELLED


def _as_task(entry: Any) -> Any:
    """A task of JSON_MIN in the structure of JSON."""
    if not isinstance(entry, dict):
        return entry
    lists = (value for value in entry.values() if isinstance(value, list))
    shapes = [shape for members in lists for shape in members if isinstance(shape, dict)]
    results = [
        {
            **shape,
            "type": next((key for key in shape if key.endswith("labels")), _unlabelled(shape)),
            "value": shape,
        }
        for shape in shapes
    ]
    return {"data": entry, "annotations": [{"result": results}]}


def _unlabelled(shape: Mapping[str, Any]) -> str:
    """The type of a shape of JSON_MIN without a label; empty for other entries."""
    if "points" in shape:
        return "polygon"
    return "brush" if "rle" in shape else ""


def _drawn_area(result: Any, size: tuple[int, int]) -> tuple[str, Area]:
    """A Label Studio result: a brush, or a polygon in per cent of the image size."""
    kind, value = result["type"], result["value"]
    if kind in _UNLABELLED:
        msg = f"has a {kind} without a label; label or delete it"
        raise ValueError(msg)
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
    files = images or {key: path for key, path in paths.items() if re.search(r"\.\w+$", path)}
    if len(files) > 1:
        files = {key: path for key, path in files.items() if key == "image"} or files
    if len(files) != 1:
        msg = f"has {len(files)} possible image names in its data ({listed(list(files))}); expected"
        msg += " one, or one named 'image'"
        raise ValueError(msg)
    return _UPLOADED.sub("", PurePosixPath(*files.values()).name)


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


LABEL_STUDIO = AnnotationFormat(_read, form="Label Studio's list of tasks")
