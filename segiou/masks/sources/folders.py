"""The interface of all sources of masks, and local folders."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from segiou._support.files import Stamp, os_problem
from segiou.masks.finding import RASTER_SUFFIXES, find_masks, is_hidden
from segiou.masks.formats.image_files import Scratch, read_small
from segiou.masks.formats.nifti_pairs import data_of, is_pair_header, read_whole
from segiou.masks.raw_mask import MaskError, RawMask

#: Size limit of masks in archives and at URLs; larger masks must be separate local files.
MOST_MEMBER_BYTES = 1 << 30
#: Most masks in one file or store, which are listed by name.
MOST_MASKS = 1 << 20
#: Files of a folder from which its kind is guessed, also with those of its folders.
_FIRST, _MOST_FIRST = 20, 100
#: Size limit of local files, except those whose formats are read window by window.
_MOST_BYTES = 1 << 31
_LARGE_SUFFIXES = (".npy", ".nii", ".tif", ".tiff", *RASTER_SUFFIXES)
_TRIES = 4
#: Fields of ``os.stat`` that change when a file does.
_version = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
#: Resolution of file system clocks: two changes within a tick have the same time.
_TICK_NS = 20_000_000


class Source(Protocol):
    """A place with masks; small, so that it can be sent to workers."""

    if TYPE_CHECKING:  # a field of most sources

        @property
        def root(self) -> str:
            """Its path or URL, a prefix of the paths of its files."""

    @property
    def draws(self) -> bool:
        """Whether its masks may be drawn from polygons."""
        return False

    @property
    def for_empty(self) -> str:
        """What stores an image without objects, if its file may be missing."""
        return ""

    def find(self) -> dict[str, str]:
        """Mask files: relative path (with ``/``) → full path."""

    def stamp(self, path: str) -> Stamp:
        """A stamp that changes with the file; cheap after :meth:`find`.

        Parameters
        ----------
        path : str
            The file.
        """

    def read(self, path: str) -> tuple[bytes | RawMask, Stamp]:
        """The content of a file, or its mask, and the stamp at that time.

        Parameters
        ----------
        path : str
            The file.
        """

    def lacks_size(self, path: str) -> bool:
        """Whether a file has polygons without the size of their image.

        Parameters
        ----------
        path : str
            The file.
        """
        return False

    def read_sized(self, path: str, shape: tuple[int, ...]) -> tuple[bytes | RawMask, Stamp]:
        """As :meth:`read`; the mask has this shape if its file lacks the size.

        Parameters
        ----------
        path : str
            The file.
        shape : tuple of int
            Shape of the other mask of its pair.
        """
        return self.read(path)


def check_number(masks: Collection[str], root: str) -> None:
    """Raise ValueError for more masks than can be listed."""
    if len(masks) > MOST_MASKS:
        msg = f"{root}: contains more than {MOST_MASKS} masks; split it"
        raise ValueError(msg)


def first_files(folder: Path) -> list[str]:
    """Some files of a folder and its first folders, as listed; none if they cannot be read."""
    try:
        return _some_files(folder, _MOST_FIRST)
    except OSError:  # reported when it is searched
        return []


def _some_files(folder: str | Path, most: int) -> list[str]:
    files: list[str] = []
    inner: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_hidden(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.path)
            elif len(files) == _FIRST:
                return files
            else:
                files.append(entry.path)
    for path in inner:
        if len(files) >= most:
            break
        files += _some_files(path, _FIRST)
    return files


def stamp_of(path: str | Path) -> Stamp:
    """Size and modification time of a file; unknown if stat fails."""
    try:
        return _stamp(os.stat(path))  # noqa: PTH116 - called for each image
    except OSError:
        return Stamp(None, None)


@dataclass(frozen=True)
class LocalFolder(Source):
    """A local folder.

    Attributes
    ----------
    root : str
    """

    root: str

    def find(self) -> dict[str, str]:
        """Mask files by relative path, as returned by ``find_masks``."""
        return find_masks(self.root)

    def stamp(self, path: str) -> Stamp:
        """Size and modification time of a file; unknown if stat fails.

        Parameters
        ----------
        path : str
            The file.
        """
        stamp = stamp_of(path)
        other = data_of(path) if is_pair_header(path) else None
        return stamp if other is None else stamp.joined(stamp_of(other))

    def read_small(self, path: str, scratch: Scratch) -> tuple[bytes | RawMask, Stamp] | None:
        """The result of :meth:`read` for a small regular file, decoded if it is a plain PNG mask.

        Parameters
        ----------
        path : str
            The file.
        scratch : Scratch
            Memory for a decoded mask.

        Returns
        -------
        tuple of bytes or RawMask, and Stamp
            None if the file must be read with more care.
        """
        if is_pair_header(path):
            return None
        small = read_small(path, _TICK_NS, scratch)
        return small and (small[0], Stamp(*small[1]))

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of a file and its stamp.

        Parameters
        ----------
        path : str
            The file.

        Raises
        ------
        MaskError
            If it is not a regular file, cannot be read, or changes meanwhile.
        """
        return read_whole(path, _read_local)


def _read_local(path: str) -> tuple[bytes, Stamp]:
    """The content of a regular file that does not change during reading, and its stamp."""
    try:
        for _ in range(_TRIES):
            if (content := _read_once(path)) is not None:
                return content
    except OSError as error:
        raise MaskError(path, os_problem(error)) from error
    raise MaskError(path, "changed while being read; wait until it is fully written")


def stable_stamp(path: str | Path) -> tuple[tuple[int, ...], Stamp]:
    """A version that reveals changes of a file, and its stamp."""
    try:
        status = Path(path).stat()
        _check_regular(status, str(path))
        _wait_for_tick(status)
        status = Path(path).stat()
    except OSError as error:
        raise MaskError(path, os_problem(error)) from error
    return _version(status), _stamp(status)


def _read_once(path: str) -> tuple[bytes, Stamp] | None:
    """Content and stamp; None if the file changed meanwhile."""
    # Never open a pipe: that would wait for a writer, or consume its data.
    _check_regular(os.stat(path), path)  # noqa: PTH116
    # Without waiting, because a pipe may have taken its place meanwhile.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", getattr(os, "O_BINARY", 0)))
    try:
        before = os.fstat(handle)
        _check_regular(before, path)
        if before.st_size > _MOST_BYTES and not path.lower().endswith(_LARGE_SUFFIXES):
            problem = f"is too large ({before.st_size} bytes); store it as tiled TIFF or .npy"
            raise MaskError(path, problem)
        if _wait_for_tick(before):
            before = os.fstat(handle)
        # One extra byte reveals that it has grown. A call of the system reads at most 2 GiB.
        data = os.read(handle, before.st_size + 1)
        while len(data) < before.st_size and (
            more := os.read(handle, before.st_size + 1 - len(data))
        ):
            data += more
        after = os.fstat(handle)
    finally:
        os.close(handle)
    same = _version(before) == _version(after) and len(data) == after.st_size
    return (data, _stamp(after)) if same else None


def _check_regular(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise MaskError(path, "is not a regular file")


def version_of(path: str | Path) -> tuple[int, ...]:
    """A version that reveals changes of a file."""
    return _version(os.stat(path))  # noqa: PTH116 - called for each image


def _wait_for_tick(status: os.stat_result) -> bool:
    # A file written within the last tick could be written again without a new time.
    age = time.time_ns() - status.st_mtime_ns
    if not 0 <= age < _TICK_NS:
        return False
    time.sleep((_TICK_NS - age) / 1e9)
    return True


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_size, status.st_mtime_ns)
