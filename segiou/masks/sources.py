"""Where masks come from: folders, archives and addresses, all read the same way.

Archives are read in place. Nothing is ever written by a member's name, so a name
such as ``../../x.png`` is only a key. What a member or a compressed archive may grow
to is bounded before it is unpacked. Addresses are read through fsspec: S3, HTTP and
what else it knows.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import struct
import tarfile
import tempfile
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from segiou._support.compiled import fallback, load_part
from segiou._support.files import Stamp, os_problem
from segiou.masks.pairing import check_found, find_masks, is_mask
from segiou.masks.png import PngMask, Scratch
from segiou.masks.read import MaskError, RawMask, zip_member

if TYPE_CHECKING:
    from segiou.masks.windows import FileMask


def _read_none(paths: Sequence[str], tick: int, pixels: Any = None, /) -> list[None]:
    return [None] * len(paths)


_files = load_part("segiou.masks._files")
_read_small = _files.read_small if _files else fallback("segiou.masks._files", _read_none)

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_FILES_OF_MASKS = (*ARCHIVE_SUFFIXES, ".npz", ".json", ".parquet")
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
        """A stamp that changes when the file does; cheap after :meth:`find`.

        Parameters
        ----------
        path : str
            The file.
        """

    def read(self, path: str) -> tuple[bytes | RawMask, Stamp]:
        """The content of a file, or the mask it is, and the stamp it had then.

        Parameters
        ----------
        path : str
            The file.
        """


def open_source(where: str | Path, storage_options: Mapping[str, Any] | None = None) -> Source:
    """Find out what a path or address is.

    Parameters
    ----------
    where : str or path
        A folder; a ``.zip``, ``.tar``, ``.tar.gz`` (``.tgz``, ``.tar.bz2``,
        ``.tar.xz``) archive or a folder in one (``masks.zip/truth``); an
        ``.npz`` file of several arrays; a JSON file of segments; a Parquet
        file, and after it the column (``val.parquet/mask``); a pattern of
        several of these (``val-*.tar``, ``val-{000..009}.tar``); or an address
        that fsspec knows, such as ``s3://bucket/truth``.
    storage_options : mapping, optional
        Options for fsspec: keys, end points.

    Returns
    -------
    Source

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
        if part.name.lower().endswith(_FILES_OF_MASKS) and not part.is_dir():
            return _file_of_masks(path, part)
    return LocalFolder(str(path))


def _file_of_masks(path: Path, file: Path) -> Source:
    """A file that holds several masks, a part of it, or a pattern of such files."""
    kind = file.suffix.lower()
    if any(sign in file.name for sign in "*?[{") and not file.exists():
        from segiou.masks.record_files import Shards

        return Shards(str(path))
    if kind == ".json":
        from segiou.masks.segment_files import SegmentFile

        return SegmentFile(str(file))
    if kind == ".parquet":
        from segiou.masks.record_files import ParquetFile

        return ParquetFile(str(path), str(file))
    if kind == ".npz" and path == file and _is_one_mask(file):
        return LocalFolder(str(file))
    return ArchiveFolder(str(path), str(file))


def _is_one_mask(file: Path) -> bool:
    """Whether an .npz file is a mask itself, and not several by name."""
    try:
        with zipfile.ZipFile(file) as archive:
            return len(archive.infolist()) < 2
    except _DAMAGE:
        return True


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
        """Size and modification time of a file; unknown if it cannot be asked.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        Stamp
        """
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

        Parameters
        ----------
        paths : sequence of str
            The files.
        scratch : Scratch, optional
            Memory for decoded masks.

        Returns
        -------
        list of tuple of bytes or PngMask and Stamp or None
        """
        if scratch is None:
            found = _read_small(paths, _TICK_NS)
            return [file and (file[0], Stamp(file[1], file[2])) for file in found]
        pixels = scratch.take((PIXELS_AHEAD,))
        found = _read_small(paths, _TICK_NS, pixels)
        return [file and (_content(file[0], pixels), Stamp(file[1], file[2])) for file in found]

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of a file and what it was then.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        tuple of bytes and Stamp

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


#: No mask in an archive or at an address is larger than this; huge ones are files of their own.
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
        """Size and checksum of a zip's member; of a tar's, size and the archive's time.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        Stamp
        """
        try:
            return self._members().stamp(self._name(path))
        except _DAMAGE:
            return Stamp(None, None)

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of a member.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        tuple of bytes and Stamp

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
        return _opened(self.archive, _archive_version(self.archive))

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


def _archive_version(archive: str) -> tuple[int, ...]:
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
        if _archive_version(self._archive) != self._version:
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


_REMOTE_TRIES = 3
#: Keys under which file systems give a file's version, the best first.
_VERSIONS = ("ETag", "etag", "md5", "CRC", "mtime", "LastModified", "last_modified")
_DATES = ("Last-Modified", "updated", "modified")


@dataclass(frozen=True)
class RemoteFolder:
    """A folder at an address.

    Attributes
    ----------
    root : str
        The address.
    options : mapping
        Options for fsspec; never shown or kept.
    """

    root: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _infos: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        # Workers ask for what they need, instead of getting the whole listing.
        return {"root": self.root, "options": dict(self.options), "_infos": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def find(self) -> dict[str, str]:
        """Mask files by their path within the folder.

        Raises
        ------
        ImportError
            If fsspec, or what it needs for the address, is not installed.
        ValueError
            If the folder cannot be listed or holds no masks.
        """
        files, base = self._system()
        try:
            listing = files.find(base, detail=True)
        except Exception as error:
            msg = f"{self.root}: cannot be listed: {_said(error)}"
            raise ValueError(msg) from error
        found = {}
        for name, info in sorted(listing.items()):
            relative = name[len(base) :].lstrip("/")
            path = f"{self.root}/{relative}"
            if is_mask(relative):
                found[relative] = path
                self._infos[path] = info
        check_found(found, self.root)
        return found

    def _system(self) -> tuple[Any, str]:
        try:
            core: Any = import_module("fsspec.core")
            files, base = core.url_to_fs(self.root, **self.options)
        except ImportError as error:
            msg = f"{self.root}: reading addresses needs pip install 'segiou[remote]' ({error})"
            raise ImportError(msg) from error
        except ValueError as error:
            msg = f"{self.root}: is no address that fsspec knows: {error}"
            raise ValueError(msg) from error
        return files, str(base).rstrip("/")

    def _file(self, path: str) -> tuple[Any, str]:
        files, base = self._system()
        relative = path[len(self.root) + 1 :]
        return files, f"{base}/{relative}" if base else relative

    def stamp(self, path: str) -> Stamp:
        """Size and ETag or date, as the server gives them.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        Stamp
        """
        known = _remote_stamp(self._infos.get(path) or {})
        if known.known:
            return known
        try:
            files, name = self._file(path)
            return _remote_stamp(files.info(name))
        except Exception:  # noqa: BLE001 - an unknown stamp only means to read again
            return Stamp(None, None)

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of a file.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        tuple of bytes and Stamp

        Raises
        ------
        MaskError
            If it cannot be read, tried three times, or is too large.
        """
        # Asked before reading: if the file is replaced in between, it looks changed the next
        # time and is read again.
        stamp = self.stamp(path)
        if stamp.size is not None and stamp.size > MOST_MEMBER_BYTES:
            raise MaskError(path, f"has {stamp.size} bytes; copy it here to score it")
        return self._fetched(path), stamp

    def open_tiff(self, path: str) -> FileMask | None:
        """A view of a large TIFF, of which only windows are fetched; None of a small one.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        FileMask or None

        Raises
        ------
        MaskError
            If it cannot be read, or is damaged.
        """
        from segiou.masks.tiff import open_tiff
        from segiou.masks.windows import WHOLE_PIXELS

        files, name = self._file(path)
        with files.open(name, "rb") as file:
            size = int(files.info(name)["size"])
            return open_tiff(path, WHOLE_PIXELS, (file, size, partial(self._fetched, path)))

    def _fetched(self, path: str, *span: int) -> bytes:
        """The content of a file, or its bytes from one place to another."""
        files, name = self._file(path)
        for left in reversed(range(_REMOTE_TRIES)):
            try:
                return bytes(files.cat_file(name, *span))
            except FileNotFoundError as error:
                raise MaskError(path, "does not exist") from error
            except PermissionError as error:
                raise MaskError(path, "may not be read: permission denied") from error
            except Exception as error:
                if not left:
                    raise MaskError(path, f"cannot be read: {_said(error)}") from error
                time.sleep(0.2)
        raise AssertionError


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _remote_stamp(info: Mapping[str, Any]) -> Stamp:
    size = info.get("size")
    version = next((info[key] for key in (*_VERSIONS, *_DATES) if info.get(key) is not None), None)
    return Stamp(int(size) if size is not None else None, None if version is None else str(version))
