"""Files of scores: arrays with an axis of classes, and one file per class."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp
from segiou._support.text import listed, plural
from segiou.masks.pairing import split_ending
from segiou.masks.read import TIFF_MAGIC, VOLUME_SUFFIXES, MaskError, RawMask, damage, zip_member
from segiou.masks.sources import Source
from segiou.masks.volumes import Volume

_AXES = {"first": 0, "last": -1}
#: Name of the array of nnU-Net's files, of several.
_OF_SEVERAL = ("probabilities", "scores", "softmax", "logits")
_MOST_BYTES = 1 << 32


def read_scores(data: bytes | RawMask, path: str) -> tuple[NDArray[Any], Volume | None]:
    """The array of a file, and the geometry of a volume; MaskError if it holds no scores."""
    if isinstance(data, RawMask):
        return _of_image(data, path), None
    if not data:
        raise MaskError(path, "is empty (0 bytes)")
    if data[:6] == b"\x93NUMPY":
        return _from_npy(data, path), None
    if data[:4] == b"PK\x03\x04":
        return _from_npz(data, path), None
    if data[:4] in TIFF_MAGIC:
        import tifffile

        with damage(path, "is a corrupt TIFF", MemoryError):
            return np.asarray(tifffile.imread(io.BytesIO(data))), None
    if split_ending(path)[1].lower() in VOLUME_SUFFIXES:
        from segiou.masks.volumes import scores_from_nifti

        if not path.lower().endswith((".nii", ".nii.gz")):
            kind = split_ending(path)[1].lower()
            problem = f"is a {kind} file; save scores as .nii, .nii.gz, .npy or .npz"
            raise MaskError(path, problem)
        volume = scores_from_nifti(data, path)
        return volume.values, volume
    from segiou.masks.image_files import from_image

    return _of_image(from_image(data, path), path), None


def _of_image(raw: RawMask, path: str) -> NDArray[Any]:
    if raw.mode == "scores":
        return np.asarray(raw.values)
    if raw.lossy:
        raise MaskError(path, f"is a lossy {raw.kind}; save scores as PNG, TIFF or .npy")
    if raw.mode not in ("L", "I;16", "I", "I;16B"):
        problem = f"is an image of mode {raw.mode}; expected 8- or 16-bit greyscale"
        raise MaskError(path, problem)
    values = np.asarray(raw.values)
    if raw.maximum not in (None, 255, 65535):
        return values / np.float64(raw.maximum)
    return values.astype(np.uint16) if values.dtype.itemsize > 1 else values


def _from_npy(data: bytes, path: str) -> NDArray[Any]:
    with damage(path, "is a corrupt or unsafe .npy file"):
        return np.asarray(np.lib.format.read_array(io.BytesIO(data), allow_pickle=False))


def _from_npz(data: bytes, path: str) -> NDArray[Any]:
    with (
        damage(path, "is a corrupt or unsafe .npz file"),
        zipfile.ZipFile(io.BytesIO(data)) as archive,
    ):
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        named = [name for name in _OF_SEVERAL if name in members] or [*members]
        if len(members) > 1 and named[0] not in _OF_SEVERAL:
            problem = f"contains {plural(len(members), 'array')} ({listed([*members], 8)}); "
            raise MaskError(path, f"{problem}expected one array, or one named 'probabilities'")
        if members[named[0]].file_size > _MOST_BYTES:
            raise MaskError(path, "decompresses beyond the size limit; save it as .npy")
        return _from_npy(zip_member(archive, members[named[0]]), path)


def class_axis(
    shape: tuple[int, ...], truth: tuple[int, ...], classes: int, given: str, path: str
) -> int | None:
    """The axis of classes in an array; None without one. MaskError if it is not certain."""
    if shape == truth and not given:
        return None
    fits = {
        "first": shape == (classes, *truth),
        "last": shape == (*truth, classes),
    }
    if given:
        fits = {given: fits[given]}
    found = [name for name, is_right in fits.items() if is_right]
    if len(found) == 1:
        return _AXES[found[0]]
    if found:
        problem = (
            f"has shape {shape}, in which the first and the last axis fit {classes} classes; pass "
            "axis='first' or axis='last' (--scores-axis first or last)"
        )
        raise MaskError(path, problem)
    sides = [f"{(classes, *truth)} (first)", f"{(*truth, classes)} (last)"]
    wanted = " or ".join(side for side in sides if not given or given in side)
    problem = (
        f"has shape {shape}, but {plural(classes, 'class', 'classes')} and truth {truth} "
        f"need {wanted}"
    )
    raise MaskError(path, problem)


@dataclass(frozen=True)
class ClassFiles:
    """A source whose images are stored as one file of scores per class."""

    files: Source
    #: Relative path of a file without extension, such as ``"{id}_{class}"``.
    pattern: str
    #: Names of the classes; their indices serve as well.
    names: tuple[str, ...]

    @property
    def root(self) -> str:
        """That of the files."""
        return self.files.root

    def find(self) -> dict[str, str]:
        """One entry per image: the path of its first class. ValueError if a file is missing."""
        found = self.files.find()
        names = {self.names[0], "0"} - {*self.names[1:]}
        matches = ((self._match(path), path) for path in found.values())
        first = [(match["id"], path) for match, path in matches if match and match["name"] in names]
        if not first:
            msg = f"{self.root}: no file matches {self.pattern!r} with the first class"
            raise ValueError(msg)
        there = {*found.values()}
        for image, path in first:
            several = zip(self.names, self._paths(path), strict=True)
            if missing := [name for name, one in several if one not in there]:
                msg = f"{self.root}: {image} has no file for {listed(missing, 8)}"
                raise ValueError(msg)
        return {f"{image}{split_ending(path)[1]}": path for image, path in first}

    def _match(self, path: str) -> re.Match[str] | None:
        """The image and the class in the name of a file; None if it does not match."""
        pattern = re.escape(self.pattern).replace(r"\{id\}", "(?P<id>.+)")
        named = re.compile(pattern.replace(r"\{class\}", "(?P<name>[^/]+)"))
        start = len(self.root) + path[len(self.root) :].startswith("/")
        return named.fullmatch(path, start, len(split_ending(path)[0]))

    def _paths(self, path: str) -> list[str]:
        """The paths of all classes of the image whose first class is at this path."""
        match = self._match(path)
        assert match is not None
        own = self.names if match["name"] in self.names else map(str, range(len(self.names)))
        return [f"{path[: match.start('name')]}{one}{path[match.end('name') :]}" for one in own]

    def stamp(self, path: str) -> Stamp:
        """That of all files of an image, by the file of its first class."""
        return _joined([self.files.stamp(one) for one in self._paths(path)])

    def read(self, path: str) -> tuple[RawMask, Stamp]:
        """The scores of an image, (C, ...), and the stamp of its files."""
        planes: list[NDArray[Any]] = []
        stamps = []
        for one in self._paths(path):
            data, stamp = self.files.read(one)
            plane, _ = read_scores(data, one)
            if planes and (plane.shape, plane.dtype) != (planes[0].shape, planes[0].dtype):
                problem = (
                    f"is {plane.dtype} of shape {plane.shape}, but {path} is {planes[0].dtype} of "
                    f"shape {planes[0].shape}"
                )
                raise MaskError(one, problem)
            planes.append(plane)
            stamps.append(stamp)
        return RawMask(np.stack(planes), "scores", "scores"), _joined(stamps)


def _joined(stamps: list[Stamp]) -> Stamp:
    found = stamps[0]
    for stamp in stamps[1:]:
        found = found.joined(stamp)
    return found
