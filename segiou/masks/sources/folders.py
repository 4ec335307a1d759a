"""Mask sources: local and remote folders behind the interface of all sources.

Remote paths are read through fsspec (S3, HTTP and others).
"""

from __future__ import annotations

import fnmatch
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from segiou._support.files import Stamp, os_problem
from segiou._support.text import without_credentials
from segiou.masks.finding import (
    IS_A_FILE,
    RASTER_SUFFIXES,
    check_found,
    find_masks,
    is_hidden,
    masks_among,
)
from segiou.masks.formats.image_files import Scratch, read_small
from segiou.masks.formats.nifti_pairs import as_header, data_of, is_pair_header, read_whole
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


@dataclass(frozen=True)
class PatternFolder(LocalFolder):
    """The folders and mask files that match a pattern."""

    def find(self) -> dict[str, str]:
        """Mask files by the parts of their path that the pattern leaves open."""
        files: dict[str, str] = {}
        places = {str(as_header(Path(match))): kept for match, kept in matches(self.root).items()}
        names = [Path(match).name for match in places]
        masks = {*masks_among(names)} or {name for name in names if is_pair_header(name)}
        for match, kept in places.items():
            if Path(match).is_dir():
                inner = find_masks(match)
            elif Path(match).name in masks:
                kept, inner = [*kept, ""][:-1], {"": match}
            else:
                continue
            name = "/".join(kept)
            files |= {f"{name}/{path}".strip("/"): full for path, full in inner.items()}
        check_found(files, self.root)
        check_links(files.values())
        return files


def check_links(paths: Iterable[str]) -> None:
    """ValueError for paths that lead to the same place through links to folders."""
    places: dict[str, str] = {}
    known: dict[tuple[str, str], str] = {}
    for folder, name in map(os.path.split, paths):
        if folder not in places:
            places[folder] = os.path.realpath(folder)
        if (other := known.setdefault((places[folder], name), folder)) != folder:
            msg = f"{folder}: leads to the same folder as {other}; remove or do not match one"
            raise ValueError(msg)


def matches(pattern: str) -> dict[str, list[str]]:
    """The paths that match a pattern, and the parts of each that the pattern leaves open."""
    parts = Path(pattern).parts
    open_parts: dict[str, list[str]] = {}
    # Names of folders that exist are no patterns, such as "[old] masks".
    is_fixed = [not is_pattern(p) or Path(*parts[: i + 1]).exists() for i, p in enumerate(parts)]
    head = is_fixed.index(False) if False in is_fixed else len(parts)
    is_open = [i >= head and is_pattern(part) for i, part in enumerate(parts)]
    for path in sorted({*_matching(str(Path(*parts[:head])), parts[head:])}):
        names = Path(path).parts
        if pattern.endswith("/") and not Path(path).is_dir():
            continue
        # Fixed names are omitted, because they are equal everywhere; below `**`, none is fixed.
        same = len(names) == len(parts) and "**" not in parts
        kept = (p for p, o in zip(names, is_open, strict=False) if o) if same else names[head:]
        open_parts[path] = [*kept]
    return open_parts


def _matching(path: str, parts: Sequence[str], above: tuple[str, ...] = ()) -> Iterator[str]:
    """Paths that match the parts of a pattern below a path.

    ``above`` has the real places of the folders passed. A link to a folder that contains it is not
    followed, because a file would have many paths.
    """
    passed = above
    if Path(path).is_dir():
        place = os.path.realpath(path).rstrip(os.sep) + os.sep
        if any(other.startswith(place) for other in above):
            return
        passed = (*above, place)
    if not parts:
        yield path
        return
    first, rest = parts[0], parts[1:]
    if not is_pattern(first):
        if os.path.lexists(inner := str(Path(path) / first)):
            yield from _matching(inner, rest, () if first == ".." else passed)
    elif first == "**":
        yield from _matching(path, rest, above)
        for inner in _entries(path, "*"):
            if Path(inner).is_dir():
                yield from _matching(inner, parts, passed)
    else:
        for inner in _entries(path, first):
            yield from _matching(inner, rest, passed)


def _entries(folder: str, pattern: str) -> list[str]:
    """Entries of a folder that match a part of a pattern, without hidden ones; none of a file."""
    try:
        names = [entry.name for entry in Path(folder).iterdir()]
    except OSError:  # a file, or not readable
        return []
    names = [name for name in names if pattern[0] == "." or name[0] != "."]
    return [str(Path(folder) / name) for name in fnmatch.filter(names, pattern)]


def is_pattern(name: str) -> bool:
    """Whether a name has signs of a pattern."""
    return any(sign in name for sign in "*?[")


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


_REMOTE_TRIES = 3
#: Keys of a file's version in fsspec listings, best first.
_VERSIONS = ("ETag", "etag", "md5", "CRC", "mtime", "LastModified", "last_modified")
_DATES = ("Last-Modified", "updated", "modified")


@dataclass(frozen=True)
class RemoteFolder(Source):
    """A remote folder.

    Attributes
    ----------
    root : str
        The URL, without passwords.
    options : mapping
        Options for fsspec; never shown or saved.
    """

    root: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _infos: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _url: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        # Paths of files begin with the root, so that no message, run or page has a password.
        object.__setattr__(self, "_url", self.root)
        object.__setattr__(self, "root", without_credentials(self.root))

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers look up the files they need instead of receiving the whole listing.
        return type(self), (self._url, dict(self.options))

    def find(self) -> dict[str, str]:
        """Mask files by relative path.

        Raises
        ------
        ImportError
            If fsspec, or its package for this protocol, is not installed.
        ValueError
            If the folder cannot be listed or contains no masks.
        """
        files, base = self._system()
        try:
            listing = files.find(base, detail=True)
        except Exception as error:
            msg = f"{self.root}: cannot be listed: {_said(error)}"
            raise ValueError(msg) from error
        if not listing:
            self._check_reachable(files, base)
        infos = {name[len(base) :].lstrip("/"): info for name, info in sorted(listing.items())}
        if [*infos] == [""]:
            as_zip = f", or pass zip://::{self.root}" * self.root.lower().endswith(".zip")
            msg = f"{self.root}: {IS_A_FILE}; copy it to this machine{as_zip}"
            raise ValueError(msg)
        masks = {relative: f"{self.root}/{relative}" for relative in masks_among(infos)}
        self._infos.update((path, infos[relative]) for relative, path in masks.items())
        check_found(masks, self.root, infos)
        return masks

    def _check_reachable(self, files: Any, base: str) -> None:
        """Raise the error of a folder without files; fsspec's ``find`` hides it."""
        try:
            files.ls(base, detail=False)
        except Exception as error:
            is_absent = isinstance(error, FileNotFoundError)
            problem = "does not exist" if is_absent else f"cannot be listed: {_said(error)}"
            msg = f"{self.root}: {problem}"
            raise ValueError(msg) from error

    def _system(self) -> tuple[Any, str]:
        try:
            core: Any = import_module("fsspec.core")
        except ImportError as error:
            msg = f"{self.root}: remote paths need pip install 'segiou[remote]' ({error})"
            raise ImportError(msg) from error
        try:
            files, base = core.url_to_fs(self._url, **self.options)
        except ImportError as error:  # the package for this protocol
            msg = f"{self.root}: {error}; pip install 'segiou[remote]' for s3:// and https://"
            raise ImportError(msg) from error
        except ValueError as error:
            msg = f"{self.root}: is not a URL supported by fsspec: {_said(error)}"
            raise ValueError(msg) from error
        except Exception as error:
            msg = f"{self.root}: cannot be opened: {_said(error)}"
            raise ValueError(msg) from error
        return files, str(base).rstrip("/")

    def _file(self, path: str) -> tuple[Any, str]:
        files, base = self._system()
        relative = path[len(self.root) + 1 :]
        return files, f"{base}/{relative}" if base else relative

    def stamp(self, path: str) -> Stamp:
        """Size and ETag or date, as reported by the server.

        Parameters
        ----------
        path : str
            The file.
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

        Raises
        ------
        MaskError
            If it cannot be read after three tries, or is too large.
        """
        # Taken before reading: if the file is replaced in between, the next run reads it again.
        stamp = self.stamp(path)
        if stamp.size is not None and stamp.size > MOST_MEMBER_BYTES:
            raise MaskError(path, f"has {stamp.size} bytes; copy it to this machine to score it")
        return self._fetched(path), stamp

    def open_tiff(self, path: str) -> RawMask | None:
        """Open a large TIFF of which only windows are fetched; None for a small one.

        Parameters
        ----------
        path : str
            The file.

        Raises
        ------
        MaskError
            If it cannot be read, or is corrupt.
        """
        from segiou.masks.formats.tiff import open_tiff
        from segiou.masks.read import WHOLE_PIXELS
        from segiou.masks.windows import RemoteFile

        files, name = self._file(path)
        with files.open(name, "rb") as file:
            size, read = int(files.info(name)["size"]), partial(self._fetched, path)
            return open_tiff(path, WHOLE_PIXELS, RemoteFile(file, size, read, files, name))

    def _fetched(self, path: str, *span: int) -> bytes:
        """The content of a file, or a range of its bytes."""
        files, name = self._file(path)
        for left in reversed(range(_REMOTE_TRIES)):
            try:
                return bytes(files.cat_file(name, *span))
            except (FileNotFoundError, PermissionError) as error:
                raise MaskError(path, os_problem(error)) from error
            except Exception as error:
                if not left:
                    raise MaskError(path, f"cannot be read: {_said(error)}") from error
                time.sleep(0.2)
        raise AssertionError


def _said(error: Exception) -> str:
    return without_credentials(str(error)) or type(error).__name__


def _remote_stamp(info: Mapping[str, Any]) -> Stamp:
    size = info.get("size")
    version = next((info[key] for key in (*_VERSIONS, *_DATES) if info.get(key) is not None), None)
    return Stamp(int(size) if size is not None else None, None if version is None else str(version))
