"""Where masks come from: folders, archives and addresses, all read the same way."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from segiou._support.compiled import fallback, load_part
from segiou._support.files import Stamp, os_problem
from segiou.masks.archives import ARCHIVE_SUFFIXES, ArchiveFolder
from segiou.masks.pairing import find_masks
from segiou.masks.png import PngMask, Scratch
from segiou.masks.read import MaskError
from segiou.masks.remote import RemoteFolder


def _read_none(paths: Sequence[str], tick: int, pixels: Any = None, /) -> list[None]:
    return [None] * len(paths)


_files = load_part("segiou.masks._files")
_read_small = _files.read_small if _files else fallback("segiou.masks._files", _read_none)

_TRIES = 4
#: Pixels of masks that are decoded at once: as many as stay in the processor's cache.
PIXELS_AHEAD = 1 << 20
#: Clocks of file systems tick this coarsely: two changes within a tick have one time.
_TICK_NS = 20_000_000
#: O_NONBLOCK: what turns out to be a pipe is not waited for.
_READING = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class Source(Protocol):
    """A place that holds masks; small, so that it can be sent to workers."""

    @property
    def root(self) -> str:
        """Its path or address; paths of its files begin with it."""

    def find(self) -> dict[str, str]:
        """Mask files: path within the place (with ``/``) → whole path."""

    def stamp(self, path: str) -> Stamp:
        """A stamp that changes when the file does; cheap after :meth:`find`."""

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of a file, and the stamp it had then."""


def open_source(where: str | Path, storage_options: Mapping[str, Any] | None = None) -> Source:
    """Find out what a path or address is.

    Parameters
    ----------
    where : str or path
        A folder; a ``.zip``, ``.tar``, ``.tar.gz`` (``.tgz``, ``.tar.bz2``,
        ``.tar.xz``) archive or a folder in one (``masks.zip/truth``); or an
        address that fsspec knows, such as ``s3://bucket/truth``.
    storage_options : mapping, optional
        Options for fsspec: keys, end points.

    Raises
    ------
    ImportError
        If an address is given and fsspec is not installed.
    """
    text = str(where)
    if isinstance(where, str) and ("://" in text or "::" in text) and not Path(text).exists():
        return RemoteFolder(text.rstrip("/"), dict(storage_options or {}))
    path = Path(where).expanduser()
    for part in (path, *path.parents):
        if part.name.lower().endswith(ARCHIVE_SUFFIXES) and not part.is_dir():
            return ArchiveFolder(str(path), str(part))
    return LocalFolder(str(path))


@dataclass(frozen=True)
class LocalFolder:
    """A folder of this machine.

    Attributes
    ----------
    root : str
    """

    root: str

    def find(self) -> dict[str, str]:
        """Mask files by their path within the folder, as ``find_masks``."""
        return find_masks(self.root)

    def stamp(self, path: str) -> Stamp:
        """Size and modification time of a file; unknown if it cannot be asked."""
        try:
            return _stamp(Path(path).stat())
        except OSError:
            return Stamp(None, None)

    def read_small(
        self, paths: Sequence[str], scratch: Scratch | None = None
    ) -> list[tuple[bytes | PngMask, Stamp] | None]:
        """What :meth:`read` gives, for those files that are small and regular.

        With ``scratch``, plain PNG masks come decoded, in its memory, as long as they fit. All
        of it happens without the interpreter's lock.
        """
        if scratch is None:
            found = _read_small(paths, _TICK_NS)
            return [file and (file[0], Stamp(file[1], file[2])) for file in found]
        pixels = scratch.take((PIXELS_AHEAD,))
        found = _read_small(paths, _TICK_NS, pixels)
        return [file and (_content(file[0], pixels), Stamp(file[1], file[2])) for file in found]

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of a file and what it was then.

        Raises
        ------
        MaskError
            If it is no regular file, cannot be read, or is being changed.
        """
        try:
            for _ in range(_TRIES):
                if (found := _read_once(path)) is not None:
                    return found
        except OSError as error:
            raise MaskError(path, os_problem(error)) from error
        raise MaskError(path, "is being changed while it is read; score when it is complete")


def stable_stamp(path: str | Path) -> tuple[tuple[int, ...], Stamp]:
    """A version that shows whether a file is changed meanwhile, and its stamp."""
    try:
        found = Path(path).stat()
        _check_regular(found, str(path))
        _wait_for_tick(found)
        found = Path(path).stat()
    except OSError as error:
        raise MaskError(path, os_problem(error)) from error
    return _version(found), _stamp(found)


def _content(found: Any, pixels: NDArray[np.uint8]) -> bytes | PngMask:
    """The content of a file, or the mask that was decoded of it."""
    if isinstance(found, bytes):
        return found
    offset, height, width, mode = found
    return PngMask(pixels[offset : offset + height * width].reshape(height, width), mode)


def _read_once(path: str) -> tuple[bytes, Stamp] | None:
    """Content and stamp, or None if the file changed meanwhile."""
    # Calls of the operating system, since path and file objects would cost as much
    # again as reading a small mask. A pipe is never opened: that would wait for a
    # writer, or take its data.
    _check_regular(os.stat(path), path)  # noqa: PTH116
    handle = os.open(path, _READING)
    try:
        before = os.fstat(handle)
        _check_regular(before, path)
        if _wait_for_tick(before):
            before = os.fstat(handle)
        data = _read_all(handle, before.st_size)
        after = os.fstat(handle)
    finally:
        os.close(handle)
    same = _version(before) == _version(after) and len(data) == after.st_size
    return (data, _stamp(after)) if same else None


def _read_all(handle: int, size: int) -> bytes:
    """The file from its beginning, and one byte more if it has grown."""
    data = os.read(handle, size + 1)
    if len(data) == size or not data:
        return data
    blocks = [data]
    while data and sum(map(len, blocks)) <= size:
        data = os.read(handle, size + 1)
        blocks.append(data)
    return b"".join(blocks)


def _check_regular(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise MaskError(path, "is not a regular file")


def _version(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _wait_for_tick(found: os.stat_result) -> bool:
    # A file that was written just now could be written again without its time
    # showing it; a moment later it could not.
    age = time.time_ns() - found.st_mtime_ns
    if not 0 <= age < _TICK_NS:
        return False
    time.sleep((_TICK_NS - age) / 1e9)
    return True


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_size, found.st_mtime_ns)
