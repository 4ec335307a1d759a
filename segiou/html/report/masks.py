"""The pictures of one image: its masks as class indices and its photograph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

__all__ = [
    "Indices",
    "PictureError",
    "find_photograph",
    "find_photographs",
    "read_indices",
    "read_photograph",
    "resized",
]

Indices = NDArray[np.uint16]

_PHOTOGRAPHS = frozenset(
    (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".jp2", ".gif")
)


class PictureError(ValueError):
    """A picture that cannot be shown; the message says why, for a reader of the page."""


@dataclass(frozen=True, slots=True)
class _Side:
    path: str
    labels: LabelSet
    codes: ValueCodes


def read_indices(truth: str, preds: Sequence[tuple[str, ClassOptions]]) -> list[Indices]:
    """Read masks as class indices, predictions at the truth's size.

    Parameters
    ----------
    truth : str
        File of the truth.
    preds : sequence of (str, ClassOptions)
        Files of predictions, at least one, with how they were counted; the
        first one's options say what the truth means.

    Returns
    -------
    list of ndarray of uint16, shape (H, W)
        Truth, then predictions: class indices; C where the truth is ignored,
        C + 1 where a value names no class.

    Raises
    ------
    PictureError
        If a file was not kept, is gone, or is no picture of two dimensions.
    """
    first = preds[0][1]
    sides = [_Side(truth, first.labels, first.encoding().truth)]
    sides += [_Side(path, own.pred_labels, own.encoding().pred) for path, own in preds]
    arrays = [_indices(side, first.num_classes) for side in sides]
    height, width = arrays[0].shape
    return [resized(array, (width, height)) for array in arrays]


def resized(indices: Indices, size: tuple[int, int]) -> Indices:
    """Bring indices to a size (width, height) by the nearest pixel."""
    if indices.shape == size[::-1]:
        return indices
    return np.asarray(Image.fromarray(indices).resize(size, Image.Resampling.NEAREST))


def _indices(side: _Side, num_classes: int) -> Indices:
    if not side.path:
        raise PictureError("it was scored from arrays, not from files")
    try:
        values = read_mask(side.path, side.labels, allow_lossy=True)
    except MaskError as error:
        raise PictureError(str(error)) from error
    if values.ndim != 2:
        msg = f"{side.path} has {values.ndim} dimensions, which cannot be drawn as a picture"
        raise PictureError(msg)
    return _coded(values, side.codes, num_classes)


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
