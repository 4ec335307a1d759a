"""One mask file → one array, by what the file holds, never by what it is called."""

from __future__ import annotations

import io
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._arguments import check_flag, check_kind, check_path
from segiou.labels import LabelSet
from segiou.readers.colors import labels_of_colors
from segiou.readers.scratch import Scratch

__all__ = ["LossyMaskError", "MaskError", "RawMask", "from_bytes", "open_mask", "read_mask"]


_MOST_NPZ_BYTES = 1 << 30


class MaskError(ValueError):
    """A file that cannot be read as a mask; the message names it and the mend.

    Attributes
    ----------
    path : str
        The file.
    problem : str
        What is wrong and what to do, without the file's name.
    """

    def __init__(self, path: str | Path, problem: str) -> None:
        self.path = str(path)
        self.problem = problem
        super().__init__(f"{self.path}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.path, self.problem))


class LossyMaskError(MaskError):
    """A mask in a format that does not keep values exactly."""


@dataclass(frozen=True, slots=True, eq=False)
class RawMask:
    """What a mask file holds, before any label set has its say.

    Attributes
    ----------
    values : ndarray
        Labels of shape (H, W), integers or bool; or colours (H, W, 3), uint8.
    mode : str
        Pillow's name of the mode (``"L"``, ``"P"``, ``"RGB"``, …), or the kind
        of file (``"npy"``, ``"npz"``, ``"tiff"``).
    kind : str
        Name of the file format, such as ``"PNG"``.
    lossy : bool
        Whether the format may have changed values when it was saved.
    """

    values: NDArray[Any]
    mode: str
    kind: str
    lossy: bool = False

    @property
    def is_color(self) -> bool:
        """Whether the values are colours."""
        return self.mode in ("RGB", "RGBA")


def open_mask(path: str | Path) -> RawMask:
    """Read what a mask file holds.

    PNG, TIFF, NumPy files and what Pillow reads. Palette images give their
    indices, never their colours.

    Raises
    ------
    MaskError
        If it is no regular file, cannot be read, is damaged, has several
        frames, is not fully opaque, or holds floats.
    """
    check_path("path", path)
    path = Path(path).expanduser()
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise MaskError(path, "is not a regular file")
        with path.open("rb") as file:
            if file.read(6) == b"\x93NUMPY":
                return _from_npy(path, path)
            file.seek(0)
            return from_bytes(file.read(), path)
    except OSError as error:
        raise MaskError(path, _os_problem(error)) from error


def _os_problem(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    if isinstance(error, PermissionError):
        return "may not be read: permission denied"
    return f"cannot be read: {error.strerror or error}"


def from_bytes(data: bytes, path: str | Path, scratch: Scratch | None = None) -> RawMask:
    """Read a mask from the content of its file.

    Parameters
    ----------
    data : bytes
    path : str or path
        Its name, for messages only.
    scratch : Scratch, optional
        Memory for the values where the format can use it; they are then good
        until it is used again.

    Raises
    ------
    MaskError
        As :func:`open_mask`.
    """
    if not data:
        raise MaskError(path, "is empty (0 bytes)")
    if data[:6] == b"\x93NUMPY":
        return _from_npy(io.BytesIO(data), path)
    if data[:4] == b"PK\x03\x04":
        return _from_npz(data, path)
    if data[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        from segiou.readers.tiff import from_tiff

        return from_tiff(data, path)
    from segiou.readers.images import from_image

    return from_image(data, path, scratch)


def _from_npy(file: Any, path: str | Path) -> RawMask:
    mapped: Literal["r"] | None = "r" if isinstance(file, Path) else None
    try:
        array = np.load(file, mmap_mode=mapped, allow_pickle=False)
    except Exception as error:
        raise MaskError(path, f"is a damaged or unsafe .npy file: {error}") from error
    return RawMask(_integers(array, path), "npy", "NPY")


def _from_npz(data: bytes, path: str | Path) -> RawMask:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            names = archive.files
            if len(names) != 1:
                problem = (
                    f"holds {len(names)} arrays ({', '.join(names[:8])}); a mask file holds one"
                )
                raise MaskError(path, problem)
            if archive.zip.infolist()[0].file_size > _MOST_NPZ_BYTES:
                problem = "unpacks to more than a mask may have; save it as .npy, uncompressed"
                raise MaskError(path, problem)
            return RawMask(_integers(archive[names[0]], path), "npz", "NPZ")
    except MaskError:
        raise
    except Exception as error:
        raise MaskError(path, f"is a damaged or unsafe .npz file: {error}") from error


def _integers(array: Any, path: str | Path) -> NDArray[Any]:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biu":
        dtype = getattr(array, "dtype", type(array).__name__)
        raise MaskError(path, f"holds {dtype}; labels must be integers: save array.astype(int)")
    return array


def read_mask(
    path: str | Path, labels: LabelSet | None = None, *, allow_lossy: bool = False
) -> NDArray[np.integer[Any] | np.bool_]:
    """Read the labels of a mask file.

    Parameters
    ----------
    path : str or path
    labels : LabelSet, optional
        Needed for colour masks: a pixel gets the first value of the class
        whose colour it has exactly.
    allow_lossy : bool
        Whether to take JPEG and other formats that do not keep values.

    Returns
    -------
    ndarray of int or bool, shape (H, W)
        File values; palette images give indices.

    Raises
    ------
    MaskError
        If the file cannot be read as a mask; the message says why and what to do.
    """
    if labels is not None:
        check_kind("labels", labels, LabelSet, "a LabelSet, such as segiou.load_labels gives")
    check_flag("allow_lossy", allow_lossy)
    return to_labels(open_mask(path), path, labels, allow_lossy=allow_lossy)


def to_labels(
    raw: RawMask, path: str | Path, labels: LabelSet | None, *, allow_lossy: bool = False
) -> NDArray[np.integer[Any] | np.bool_]:
    """Labels of what a file holds; colours through the label set, exactly."""
    if raw.lossy and not allow_lossy:
        problem = (
            f"is a {raw.kind}, which does not keep label values exactly; save masks as PNG, "
            "or allow it: allow_lossy=True (--allow-lossy)"
        )
        raise LossyMaskError(path, problem)
    if not raw.is_color:
        return raw.values
    if labels is None or not labels.has_colors:
        name = "no label set" if labels is None else f"nothing in label set {labels.name!r}"
        problem = f"holds colours (mode {raw.mode}), but {name} says what they mean"
        if _is_grey(raw.values):
            problem += "; its three channels are equal: save one of them as a grey PNG"
        else:
            problem += "; give a label set with colors"
        raise MaskError(path, problem)
    try:
        return labels_of_colors(raw.values, labels)
    except ValueError as error:
        raise MaskError(path, str(error)) from error


def _is_grey(rgb: NDArray[Any]) -> bool:
    return bool((rgb[..., 0] == rgb[..., 1]).all() and (rgb[..., 1] == rgb[..., 2]).all())
