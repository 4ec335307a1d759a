"""The pictures of one image: its masks as class indices and its photograph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from segiou.classes import ClassOptions
from segiou.counting.codes import ValueCodes
from segiou.labels import LabelSet
from segiou.readers import MaskError, read_mask
from segiou.readers.masks import from_bytes, to_labels

__all__ = [
    "LARGEST",
    "Indices",
    "Masks",
    "PictureError",
    "Reader",
    "find_photograph",
    "find_photographs",
    "read_indices",
    "read_photograph",
    "reduced_size",
    "resized",
]

Indices = NDArray[np.uint16]
Size = tuple[int, int]
Reader = Callable[[str], bytes]

#: Pixels across of the largest picture in a page.
LARGEST = 480

_PHOTOGRAPHS = frozenset(
    (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".jp2", ".gif")
)


class PictureError(ValueError):
    """A picture that cannot be shown; the message says why, for a reader of the page."""


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """The masks of one image, as large as a page can show them.

    Attributes
    ----------
    arrays : tuple of ndarray of uint16, shape (H, W)
        Truth, then predictions: class indices; C where the truth is ignored,
        C + 1 where a value names no class.
    full_size : (int, int)
        Width and height of the truth itself.
    """

    arrays: tuple[Indices, ...]
    full_size: Size


@dataclass(frozen=True, slots=True)
class _Side:
    path: str
    labels: LabelSet
    codes: ValueCodes


def read_indices(
    truth: str, preds: Sequence[tuple[str, ClassOptions]], read: Reader | None = None
) -> Masks:
    """Read masks as class indices, predictions at the truth's size.

    Parameters
    ----------
    truth : str
        File of the truth.
    preds : sequence of (str, ClassOptions)
        Files of predictions, at least one, with how they were counted; the
        first one's options say what the truth means.
    read : callable, optional
        Gives the content of a file that is not on this machine's disk.

    Raises
    ------
    PictureError
        If a file was not kept, is gone, or is no picture of two dimensions.
    """
    first = preds[0][1]
    sides = [_Side(truth, first.labels, first.encoding().truth)]
    sides += [_Side(path, own.pred_labels, own.encoding().pred) for path, own in preds]
    # One after the other, each reduced at once: the masks may be huge.
    arrays: list[Indices] = []
    full_size = size = (0, 0)
    for side in sides:
        values = _values(side, read)
        if not arrays:
            full_size = (values.shape[1], values.shape[0])
            size = reduced_size(full_size, LARGEST)
        arrays.append(_coded(resized(values, size), side.codes, first.num_classes))
    return Masks(tuple(arrays), full_size)


def reduced_size(size: Size, largest: int) -> Size:
    """Reduce a size to a width, and to a height of half as much again.

    Examples
    --------
    >>> reduced_size((2048, 1024), 480), reduced_size((100, 3000), 480)
    ((480, 240), (24, 720))
    """
    scale = min(1.0, largest / size[0], 1.5 * largest / size[1])
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def resized(array: NDArray[Any], size: Size) -> NDArray[Any]:
    """Bring an array to a size (width, height) by the nearest pixel."""
    if array.shape == size[::-1]:
        return array
    return array[np.ix_(*map(_nearest, array.shape, size[::-1]))]


def _nearest(old: int, new: int) -> NDArray[np.intp]:
    return ((2 * np.arange(new) + 1) * old) // (2 * new)


def _values(side: _Side, read: Reader | None) -> NDArray[Any]:
    if not side.path:
        raise PictureError("it was scored from arrays, not from files")
    try:
        if read is None:
            values = read_mask(side.path, side.labels, allow_lossy=True)
        else:
            raw = from_bytes(read(side.path), side.path)
            values = to_labels(raw, side.path, side.labels, allow_lossy=True)
    except (MaskError, OSError) as error:
        raise PictureError(str(error)) from error
    if values.ndim != 2 or not values.size:
        msg = f"{side.path} has shape {values.shape}, which cannot be drawn as a picture"
        raise PictureError(msg)
    return values


def _coded(values: NDArray[Any], codes: ValueCodes, num_classes: int) -> Indices:
    offset = values.astype(np.int64) - codes.low
    inside = (offset >= 0) & (offset < len(codes.codes))
    found = codes.codes[np.where(inside, offset, 0)]
    found = np.where(inside, found, codes.undeclared).astype(np.uint16)
    # Undeclared is one past ignored in the truth and takes ignored's place in
    # the prediction, which knows no ignoring.
    found[found == codes.undeclared] = num_classes + 1
    return found


def find_photographs(folder: str | Path) -> dict[str, Path]:
    """Photographs of a folder by relative path without ending.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        msg = f"{root} is no folder; name the folder that holds the photographs"
        raise FileNotFoundError(msg)
    files = sorted(p for p in root.rglob("*") if p.suffix.lower() in _PHOTOGRAPHS)
    return {p.relative_to(root).with_suffix("").as_posix(): p for p in files}


def find_photograph(photographs: Mapping[str, Path], id: str) -> Path | None:
    """The photograph of an image: of the same id, the same name, or of a name it begins.

    Examples
    --------
    >>> found = {"val/a_001_photo": Path("a.png"), "val/a_002": Path("b.jpg")}
    >>> find_photograph(found, "a_001").name, find_photograph(found, "a_0")
    ('a.png', None)
    """
    if id in photographs:
        return photographs[id]
    stem = id.rpartition("/")[2]
    names = [(key.rpartition("/")[2], path) for key, path in photographs.items()]
    same = [path for name, path in names if name == stem]
    longer = [
        path
        for name, path in names
        if name.startswith(stem) and name != stem and not name[len(stem)].isalnum()
    ]
    found = same or longer
    return found[0] if len(found) == 1 else None


def read_photograph(path: Path, size: tuple[int, int]) -> Image.Image:
    """Read a photograph at a size (width, height).

    Raises
    ------
    PictureError
        If it cannot be read.
    """
    try:
        with Image.open(path) as image:
            # JPEG decodes at an eighth, a quarter or a half for almost nothing.
            image.draft("RGB", size)
            return image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    except (
        UnidentifiedImageError,
        Image.DecompressionBombError,
        OSError,
        SyntaxError,
        ValueError,
    ) as error:
        msg = f"{path} cannot be shown: {error}"
        raise PictureError(msg) from error
