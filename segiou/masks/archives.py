"""Masks in zip and tar archives, read in place.

Nothing is ever written by a member's name, so a name such as ``../../x.png``
is only a key. What a member or a compressed archive may grow to is bounded
before it is unpacked.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import tarfile
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from segiou._support.files import Stamp, os_problem
from segiou.masks.pairing import check_found, is_mask
from segiou.masks.read import MaskError, zip_member

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
#: No mask is larger than this in an archive; huge ones are files of their own.
MOST_MEMBER_BYTES = 1 << 30
#: A compressed tar grows at most to this many times its size, or to the least.
MOST_RATIO = 250
LEAST_BOUND = 256 << 20
_CHUNK = 1 << 20

_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OSError,
    OverflowError,
    KeyError,
    IndexError,
    struct.error,
)


@dataclass(frozen=True)
class ArchiveFolder:
    """A zip or tar archive, or a folder in one.

    Attributes
    ----------
    root : str
        The archive's path, and the folder's in it.
    archive : str
        The archive's path.
    """

    root: str
    archive: str

    def find(self) -> dict[str, str]:
        """Mask files by their path within; one folder around everything is left out.

        Raises
        ------
        ValueError
            If the archive is not there, damaged, holds no masks, or holds one
            name twice.
        """
        if not Path(self.archive).is_file():
            msg = f"{self.root}: does not exist"
            raise ValueError(msg)
        try:
            names = self._members().names()
        except (_Refused, *_DAMAGE) as error:
            text = os_problem(error) if isinstance(error, OSError) and error.errno else str(error)
            msg = f"{self.root}: cannot be read as an archive: {text}"
            raise ValueError(msg) from error
        folder = self.root[len(self.archive) :].strip("/")
        inner = f"{folder}/" if folder else ""
        inside = [name for name in names if name.startswith(inner) and is_mask(name)]
        if doubled := {name for name in inside if names[name] > 1}:
            msg = f"{self.root}: holds {sorted(doubled)[0]!r} more than once; keep one of them"
            raise ValueError(msg)
        check_found(inside, self.root)
        relative = relative_names([name[len(inner) :] for name in inside])
        return {
            short: f"{self.archive}/{name}"
            for short, name in sorted(zip(relative, inside, strict=True))
        }

    def stamp(self, path: str) -> Stamp:
        """Size and checksum of a zip's member; of a tar's, size and the archive's time."""
        try:
            return self._members().stamp(self._name(path))
        except _DAMAGE:
            return Stamp(None, None)

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of a member.

        Raises
        ------
        MaskError
            If it is damaged, encrypted, too large, or the archive is changing.
        """
        try:
            members = self._members()
            return members.read(self._name(path)), members.stamp(self._name(path))
        except _Refused as refused:
            raise MaskError(path, str(refused)) from None
        except _DAMAGE as error:
            raise MaskError(path, f"is damaged in its archive: {error}") from error

    def _members(self) -> _Zip | _Tar:
        return _opened(self.archive, _version(self.archive))

    def _name(self, path: str) -> str:
        return path[len(self.archive) + 1 :]


class _Refused(Exception):
    """A member that is not read, and why."""


def relative_names(names: list[str]) -> list[str]:
    """Names without the one folder around all of them, where there is one.

    Examples
    --------
    >>> relative_names(["gt/x/a.png", "gt/y/b.png"]), relative_names(["a.png", "gt/b.png"])
    (['x/a.png', 'y/b.png'], ['a.png', 'gt/b.png'])
    """
    tops = {name.partition("/")[0] if "/" in name.strip("/") else "" for name in names}
    top = tops.pop() if len(tops) == 1 else ""
    return [name[len(top) + 1 :] for name in names] if top else list(names)


def _version(archive: str) -> tuple[int, ...]:
    found = Path(archive).stat()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=8)
def _opened(archive: str, version: tuple[int, ...]) -> _Zip | _Tar:
    """An open archive; another version of the file is another archive."""
    # Not zipfile.is_zipfile: a tar that ends in an .npz looks like a zip to it.
    with Path(archive).open("rb") as file:
        begins_as_zip = file.read(2) == b"PK"
    if begins_as_zip or archive.lower().endswith(".zip"):
        return _Zip(archive)
    return _Tar(archive, version)


class _Zip:
    def __init__(self, archive: str) -> None:
        self._zip = zipfile.ZipFile(archive)

    def names(self) -> dict[str, int]:
        """Names of the regular files, and how often each is there."""
        counted: dict[str, int] = {}
        for info in self._zip.infolist():
            # The upper half of external_attr is the Unix mode: links are no masks.
            kind = (info.external_attr >> 28) & 0xF
            if not info.is_dir() and kind in (0, 0o10):
                counted[info.filename] = counted.get(info.filename, 0) + 1
        return counted

    def stamp(self, name: str) -> Stamp:
        info = self._zip.getinfo(name)
        return Stamp(info.file_size, f"crc32:{info.CRC:08x}")

    def read(self, name: str) -> bytes:
        info = self._zip.getinfo(name)
        _check_size(info.file_size)
        return zip_member(self._zip, info)


class _Tar:
    def __init__(self, archive: str, version: tuple[int, ...]) -> None:
        self._version = version
        self._archive = archive
        self._file = _plain_tar(archive)
        self._lock = threading.Lock()
        self._index: dict[str, tarfile.TarInfo] = {}
        self._counted: dict[str, int] = {}
        try:
            with tarfile.open(fileobj=self._file, mode="r:") as tar:
                for member in tar:
                    if member.isreg() and not member.issparse():
                        self._index[member.name] = member
                        self._counted[member.name] = self._counted.get(member.name, 0) + 1
        except BaseException:
            self._file.close()
            raise

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def names(self) -> dict[str, int]:
        """Names of the regular files, and how often each is there."""
        return self._counted

    def stamp(self, name: str) -> Stamp:
        return Stamp(self._index[name].size, self._version[-1])

    def read(self, name: str) -> bytes:
        member = self._index[name]
        _check_size(member.size)
        with self._lock:
            self._file.seek(member.offset_data)
            data = self._file.read(member.size)
        if len(data) != member.size:
            msg = "the archive is cut off"
            raise _Refused(msg)
        if _version(self._archive) != self._version:
            msg = "its archive is being changed while it is read; score when it is complete"
            raise _Refused(msg)
        return data


def _check_size(size: int) -> None:
    if size > MOST_MEMBER_BYTES:
        msg = f"declares {size} bytes, more than a mask in an archive may have; unpack it"
        raise _Refused(msg)


_OPENERS: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}


def _plain_tar(archive: str) -> IO[bytes]:
    """The archive as an open file that can be sought in, unpacked once if it is compressed."""
    with Path(archive).open("rb") as file:
        magic = file.read(6)
    opener = next((o for begin, o in _OPENERS.items() if magic.startswith(begin)), None)
    if opener is None:
        return Path(archive).open("rb")
    bound = max(LEAST_BOUND, MOST_RATIO * Path(archive).stat().st_size)
    # The file has no name, and goes with the process however that ends.
    unpacked = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its owner
    try:
        with opener(archive, "rb") as compressed:
            while chunk := compressed.read(_CHUNK):
                if unpacked.tell() + len(chunk) > bound:
                    msg = f"unpacks to more than {bound} bytes; if that is right, unpack it"
                    raise _Refused(msg)
                unpacked.write(chunk)
        unpacked.seek(0)
    except BaseException:
        unpacked.close()
        raise
    return unpacked
