"""Files of scores: arrays with an axis of classes, and one file per class."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import listed, plural
from segiou.masks.colors import grey_scores
from segiou.masks.finding import split_ending
from segiou.masks.formats.numpy_files import Fits, npy_array, npz_array
from segiou.masks.raw_mask import (
    TIFF_MAGIC,
    VOLUME_SUFFIXES,
    MaskError,
    RawMask,
    Volume,
    image_shape,
)
from segiou.masks.sources.class_files import match_class
from segiou.masks.sources.derived import SEVERAL, SeveralFiles

_AXES = {"first": 0, "last": -1}
#: Name of the array of nnU-Net's files, of several.
_OF_SEVERAL = ("probabilities", "scores", "softmax", "logits")


@dataclass(frozen=True)
class ScoreShape:
    """Valid shapes of the scores of an image; no memory is allocated for others.

    Attributes
    ----------
    truth : tuple of int
        Shape of the truth.
    classes : int
    axis : str
        Where the axis of classes is: ``"first"``, ``"last"``, or ``""`` if unknown.
    other : int
        Number of channels by another reading; 0 if it is unknown.
    hint : str
        What to do for this reading.
    """

    truth: tuple[int, ...]
    classes: int
    axis: str = ""
    other: int = 0
    hint: str = ""

    def axis_of(self, shape: tuple[int, ...], path: str) -> int | None:
        """The class axis of an array; None without one. MaskError if it is ambiguous."""
        truth, classes, axis = self.truth, self.classes, self.axis
        if shape == truth and not axis:
            return None
        flat = (classes, 1, *truth)  # nnU-Net's of 2-D images
        fits = {"first": shape in ((classes, *truth), flat), "last": shape == (*truth, classes)}
        if axis:
            fits = {axis: fits[axis]}
        fitting = [name for name, is_right in fits.items() if is_right]
        if len(fitting) == 1:
            return _AXES[fitting[0]]
        if not (fitting or axis) and image_shape(shape, truth) == truth:
            return None
        if fitting:
            problem = (
                f"has shape {shape}, in which the first and the last axis fit {classes} classes; "
                "pass axis='first' or axis='last' (--scores-axis first or last)"
            )
            raise MaskError(path, problem)
        sides = [f"{(classes, *truth)} (first)", f"{(*truth, classes)} (last)"]
        wanted = " or ".join(side for side in sides if not axis or axis in side)
        problem = (
            f"has shape {shape}, but {plural(classes, 'class', 'classes')} and truth {truth} "
            f"need {wanted}"
        )
        if self.hint and (not self.other or self.other in (*shape[:1], *shape[-1:])):
            problem += f"; {self.hint}"
        raise MaskError(path, problem)

    def check_plane(self, shape: tuple[int, ...], path: str) -> None:
        """Raise an error unless the scores of a single class have the shape of the truth."""
        if shape != self.truth:
            raise MaskError(path, f"has shape {shape}, but its truth has shape {self.truth}")


def read_scores(
    data: bytes | RawMask, path: str, wanted: ScoreShape
) -> tuple[NDArray[Any], Volume | None]:
    """The array of a file, and the geometry of a volume; MaskError without valid scores."""
    if isinstance(data, RawMask) and data.mode == SEVERAL:
        return _stacked(data.values, wanted), None
    return _read(data, path, partial(wanted.axis_of, path=path))


def _stacked(files: Sequence[tuple[str, bytes | RawMask]], wanted: ScoreShape) -> NDArray[Any]:
    """The scores of an image (C, ...) from the files of its classes."""
    planes: list[NDArray[Any]] = []
    for path, data in files:
        plane, _ = _read(data, path, partial(wanted.check_plane, path=path))
        if planes and plane.dtype != planes[0].dtype:
            first = f"{files[0][0]} contains {planes[0].dtype}"
            raise MaskError(path, f"contains {plane.dtype}, but {first}")
        planes.append(plane)
    return np.stack(planes)


def _read(data: bytes | RawMask, path: str, fits: Fits) -> tuple[NDArray[Any], Volume | None]:
    if isinstance(data, RawMask):
        return _image_channels(data, path, fits), None
    if not data:
        raise MaskError(path, "is empty (0 bytes)")
    if data[:6] == b"\x93NUMPY":
        return npy_array(data, path, fits), None
    if data[:4] == b"PK\x03\x04":
        return npz_array(data, path, fits, names=_OF_SEVERAL), None
    if data[:4] in TIFF_MAGIC:
        from segiou.masks.formats.tiff import scores_from_tiff

        return scores_from_tiff(data, path, fits), None
    if split_ending(path)[1].lower() in VOLUME_SUFFIXES:
        from segiou.masks.formats.volumes import scores_from_nifti

        if not path.lower().endswith((".nii", ".nii.gz")):
            kind = split_ending(path)[1].lower()
            problem = f"is a {kind} file; save scores as .nii, .nii.gz, .npy or .npz"
            raise MaskError(path, problem)
        volume = scores_from_nifti(data, path, fits)
        return volume.values, volume
    from segiou.masks.formats.image_files import read_pixels

    return _image_channels(read_pixels(data, path), path, fits), None


def _image_channels(raw: RawMask, path: str, fits: Fits) -> NDArray[Any]:
    values = grey_scores(raw, path)
    fits(tuple(values.shape))
    return values


@dataclass(frozen=True)
class ClassFiles(SeveralFiles):
    """A source whose images are stored as one file of scores per class."""

    #: Relative path of a file without extension, such as ``"{id}_{class}"``.
    pattern: str
    #: Names of the classes; their indices serve as well.
    names: tuple[str, ...]

    def find(self) -> dict[str, str]:
        """One entry per image: the path of its first class. ValueError if a file is missing."""
        paths = self.place.find()
        names = {self.names[0], "0"} - {*self.names[1:]}
        matches = ((self._match(path), path) for path in paths.values())
        first = [
            (match["id"] or "image", path)
            for match, path in matches
            if match and match["name"] in names
        ]
        if not first:
            msg = f"{self.root}: no file matches {self.pattern!r} with the first class"
            raise ValueError(msg)
        there = {*paths.values()}
        for image, path in first:
            if missing := [name for name, file in self.files_of(path).items() if file not in there]:
                msg = f"{self.root}: {image} has no file for {listed(missing, 8)}"
                raise ValueError(msg)
        return {f"{image}{split_ending(path)[1]}": path for image, path in first}

    def _match(self, path: str) -> re.Match[str] | None:
        """The image and the class in the name of a file; None if it does not match."""
        return match_class(self.pattern, self.root, path)

    def files_of(self, path: str) -> dict[str, str]:
        """The files of all classes of the image whose first class is at this path."""
        match = self._match(path)
        assert match is not None
        names = self.names if match["name"] in self.names else map(str, range(len(self.names)))
        start, end = path[: match.start("name")], path[match.end("name") :]
        return {c: f"{start}{name}{end}" for c, name in zip(self.names, names, strict=True)}
