"""Tables of run lengths, as of Kaggle: a row per image and class, with starts and lengths."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.table_files import file_rows
from segiou.masks.finding import files_below, split_ending
from segiou.masks.formats.drawing import check_size
from segiou.masks.formats.drawn_image import DrawnImage, image_size
from segiou.masks.sources.annotations import AnnotationFormat, Annotations, ImageSegments

#: Names of columns, without signs and in small letters.
_IMAGES = ("imageid", "image", "id", "img", "imagename", "filename")
_RUNS = ("encodedpixels", "rle", "rlemask", "segmentation", "predicted", "annotation")
_CLASSES = ("classid", "class", "label", "category", "categoryid", "classname")
#: Columns with image and class, as ``a.jpg_1`` and ``a.jpg_Fish``.
_BOTH = ("imageidclassid", "imagelabel", "imageclass")
_SIZES = {side: (side, f"img{side}", f"image{side}") for side in ("height", "width")}
#: Cells of images without objects.
_EMPTY = ("", "-1", "nan", "none")
_ENDINGS = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".webp", ".gif")
_ORDERS = ("columns", "rows")
_WANTED = "pairs of a start (from 1) and a length"
#: More changes than these determine the order of runs.
_CLEAR = 32


@dataclass(frozen=True)
class Runs:
    """The run lengths of a row: starts from 1 and lengths, along columns unless told."""

    text: str
    order: str = ""

    def area(self, size: tuple[int, int]) -> NDArray[np.bool_]:
        """The pixels in an image of this size; ValueError if they do not fit."""
        starts, lengths = self._pairs()
        pixels = size[0] * size[1]
        ends = starts + lengths
        if starts.size and (int(ends.max()) > pixels or int(lengths.max()) > pixels):
            msg = f"its runs end at pixel {int(ends.max())}, but the image has {pixels}"
            raise ValueError(msg)
        if (starts[1:] < ends[:-1]).any():
            msg = f"its runs are not in ascending order; expected {_WANTED}"
            raise ValueError(msg)
        edges = np.zeros(pixels + 1, np.int8)
        edges[starts] += 1
        np.subtract.at(edges, ends, 1)
        flat: NDArray[np.bool_] = edges[:-1].cumsum(dtype=np.int8) > 0
        if not self.order:
            _check_order(flat, size)
        if self.order == "rows":
            return flat.reshape(size)
        return flat.reshape(size[::-1]).T

    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        words = self.text.split()
        try:
            numbers = np.array(words, dtype=np.int64)
        except (ValueError, OverflowError):
            numbers = np.zeros(1, np.int64)
        if len(numbers) % 2 or (numbers < 1).any() or (numbers > 1 << 40).any():
            msg = f"its run lengths are not {_WANTED}: {self.text!r:.40}"
            raise ValueError(msg)
        return numbers[::2] - 1, numbers[1::2]


def _check_order(flat: NDArray[np.bool_], size: tuple[int, int]) -> None:
    """ValueError if runs along rows, read along columns, would be noise."""
    height, width = size
    if height == width:
        return
    by_column, by_row = (int((flat[n:] != flat[:-n]).sum()) for n in (height, width))
    if by_column > _CLEAR and 2 * by_row < by_column:
        msg = (
            "its runs go along rows, but those of Kaggle along columns; if this is right, add a "
            "column 'order' with 'rows'"
        )
        raise ValueError(msg)


@dataclass(frozen=True)
class Row:
    """A row of a table: an image, a class, its runs, and the size or where to take it from."""

    image: str
    label: str
    runs: Runs | None
    size: tuple[int, int] | Path | None


def _read(path: Path, _data: Any) -> Annotations | None:
    """A table of run lengths, whose classes are numbers, or names."""
    if not _has_run_lengths(path):
        return None
    rows = [*_rows_of(path)]
    labels, sizes = {row.label for row in rows} - {""}, _sizes_of(rows)
    fix = f"; put the images into {path.parent}, or add columns height and width"
    if all(label.isascii() and label.isdigit() and len(label) < 10 for label in labels):
        images: dict[str, ImageSegments] = {}
        for row in rows:
            image = images.setdefault(row.image, ImageSegments(sizes[row.image]))
            if row.runs is not None:
                image.segments.append((int(row.label or 1), row.runs))
        return Annotations(images, [int(label) for label in labels], fix_of_size=fix)
    shapes: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        several = shapes.setdefault(row.image, [])
        if row.runs is not None:
            several.append({"label": row.label, "runs": row.runs})
    return Annotations(
        {
            name: DrawnImage(sizes[name] or path.parent / name, several, _named_runs)
            for name, several in shapes.items()
        }
    )


def _sizes_of(rows: Iterable[Row]) -> dict[str, tuple[int, int] | Path | None]:
    """The size of each image, in any of its rows; ValueError for two sizes of one image."""
    sizes: dict[str, tuple[int, int] | Path | None] = {}
    for row in rows:
        known = sizes.get(row.image)
        if isinstance(known, tuple) and isinstance(row.size, tuple) and known != row.size:
            shown = " and ".join(f"{height} × {width}" for height, width in (known, row.size))
            msg = f"image {row.image!r} has the sizes {shown} (height × width); correct one"
            raise ValueError(msg)
        sizes[row.image] = known if isinstance(known, tuple) else row.size or known
    return sizes


def _named_runs(shape: Any, size: tuple[int, int]) -> tuple[str, NDArray[np.bool_]]:
    return shape["label"], shape["runs"].area(size)


def _has_run_lengths(path: Path) -> bool:
    """Whether the header of a table has columns of images and of run lengths."""
    try:
        with path.open("rb") as file:
            head = file.read(1 << 12)
    except OSError:
        return False
    is_wide = head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    lines = head.decode("utf-16" if is_wide else "utf-8-sig", "ignore").splitlines()
    first = next((line for line in lines if not line.startswith("sep=")), "")
    columns = _columns(re.split("[,;\t]", first))
    return "runs" in columns and bool(columns.keys() & {"image", "both"})


def _columns(heads: Sequence[str]) -> dict[str, str]:
    """The columns by what they have."""
    plain = {re.sub(r"[\W_]", "", head).lower(): head for head in heads}
    wanted = {"image": _IMAGES, "runs": _RUNS, "class": _CLASSES, "both": _BOTH, **_SIZES}
    wanted["order"] = ("order",)
    columns = {
        what: next((plain[name] for name in names if name in plain), "")
        for what, names in wanted.items()
    }
    return {what: head for what, head in columns.items() if head}


def _rows_of(path: Path) -> Iterator[Row]:
    """The rows of a table; ValueError for one that cannot be read."""
    rows = file_rows(path)
    columns = _columns([*rows[0]]) if rows else {}
    if "runs" not in columns or not columns.keys() & {"image", "both"}:
        msg = "has no columns of images and run lengths, such as ImageId and EncodedPixels"
        raise ValueError(msg)
    images = _Images(path.parent)
    for number, row in enumerate(rows, 1):
        cells = {what: str(row.get(head) or "").strip() for what, head in columns.items()}
        try:
            yield _row(cells, images)
        except ValueError as error:
            msg = f"row {number}: {error}"
            raise ValueError(msg) from error


def _row(cells: Mapping[str, str], images: _Images) -> Row:
    """A row by the text of its cells."""
    image, label = cells.get("image", ""), cells.get("class", "")
    if "both" in cells:
        image, _, label = cells["both"].rpartition("_")
        if not (image and label):
            msg = f"expected an image and a class, as in IMAGE_CLASS, got {cells['both']!r:.60}"
            raise ValueError(msg)
    if not image:
        msg = "names no image"
        raise ValueError(msg)
    order, text = cells.get("order", "").lower(), cells["runs"]
    if order not in ("", *_ORDERS):
        msg = f"order {order!r}; choose from {', '.join(_ORDERS)}"
        raise ValueError(msg)
    runs = None if text.lower() in _EMPTY else Runs(text, order)
    if runs is not None and not label and "class" in cells:
        msg = f"has run lengths without a class, of image {image!r}"
        raise ValueError(msg)
    # Programs write whole numbers of a column with empty cells as 1.0.
    label = label.partition(".")[0] if re.fullmatch(r"[0-9]+\.0+", label) else label
    if cells.get("height") and cells.get("width"):
        return Row(image, label, runs, _size(cells["height"], cells["width"]))
    return Row(image, label, runs, images.of(image))


def _size(height: str, width: str) -> tuple[int, int]:
    try:
        sides = [float(height), float(width)]
        return check_size([int(side) if side.is_integer() else side for side in sides])
    except (ValueError, OverflowError):
        msg = f"invalid height {height!r:.20} and width {width!r:.20}"
        raise ValueError(msg) from None


class _Images:
    """The images below a folder, from which sizes are taken."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Path | None] = {}

    def of(self, name: str) -> Path | None:
        """The image of this name, with or without folder and extension; None if there is none."""
        if name not in self._known:
            self._known[name] = self._only(name)
        return self._known[name]

    def _only(self, name: str) -> Path | None:
        last = name.rpartition("/")[2]
        found = self._by_stem.get(split_ending(last)[0]) or self._by_stem.get(last) or []
        for end in (f"/{name}", f"/{last}"):
            found = [path for path in found if path.as_posix().endswith(end)] or found
        inside = [path for path in found if path.with_suffix("").as_posix().endswith(f"/{name}")]
        found = inside or found
        if len(found) > 1 and len({*map(image_size, found)}) > 1:
            msg = f"image {name!r} may be {found[0]} or {found[1]}, of other sizes; add columns "
            msg += "height and width, or the folder to the name"
            raise ValueError(msg)
        return found[0] if found else None

    @cached_property
    def _by_stem(self) -> dict[str, list[Path]]:
        """The images by name without extension; photos before others."""
        files = [Path(path) for path in files_below(self._folder, _ENDINGS).values()]
        files.sort(key=lambda path: (_ENDINGS.index(path.suffix.lower()), path))
        images: dict[str, list[Path]] = {}
        for path in files:
            images.setdefault(path.stem, []).append(path)
        return images


KAGGLE = AnnotationFormat(_read, endings=(".csv", ".tsv"))
