"""Archives and ``.npz`` files of several arrays.

Archives are read in place. No file is ever written under a member's name, so a name
such as ``../../x.png`` is only a key. The decompressed size of members and archives is
bounded in advance.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

from segiou._support.files import IS_A_POINTER, Stamp, is_pointer, no_file_problem, os_problem
from segiou._support.locks import Lockable
from segiou.masks.finding import HEADER_SUFFIXES, check_found, is_mask, masks_among, unknown_part
from segiou.masks.formats.nifti_pairs import begins_as_volume, data_of, read_whole
from segiou.masks.formats.numpy_files import zip_member
from segiou.masks.raw_mask import VOLUME_SUFFIXES, MaskError, damage
from segiou.masks.sources.adjusted import AdjustedSource
from segiou.masks.sources.folders import (
    MOST_MEMBER_BYTES,
    LocalFolder,
    Source,
    stamp_of,
    version_of,
)
from segiou.masks.sources.patterns import matches
from segiou.masks.sources.shards import Shards

#: Limits of decompressed tars: times the compressed size, and a minimum in bytes.
MOST_RATIO = 250
LEAST_BOUND = 256 << 20
_CHUNK = 1 << 20
#: Stamp and reader of an archive member.
_Member = tuple[Stamp, Callable[[], bytes]]


def open_archive(path: Path, file: Path) -> Source:
    """The source for an archive, a folder in one, or a pattern of archives."""
    return Shards.at(path, file) or ArchiveFolder(str(path), str(file))


def open_npz(path: Path, file: Path) -> Source | None:
    """The source for an ``.npz`` file of several arrays, or for shards; None for single masks."""
    if shards := Shards.at(path, file):
        return shards if _has_shards(str(file)) else None
    arrays = _member_names(file)
    if path == file and len(arrays) < 2:
        return None
    if path.parent == file and f"{path.name}.npy" in arrays:
        return AdjustedSource(LocalFolder(str(file)), path.name)
    return ArchiveFolder(str(path), str(file))


def _has_shards(pattern: str) -> bool:
    """Whether ``.npz`` files are shards: several masks each, of different names."""
    arrays = [{*_member_names(Path(path))} - {"spacing.npy"} for path in [*matches(pattern)][:2]]
    is_apart = len(arrays) < 2 or not arrays[0] & arrays[1]
    return "{" in pattern or (is_apart and all(len(names) > 1 for names in arrays))


@dataclass(frozen=True)
class ArchiveFolder(Source):
    """A zip or tar archive, or a folder in one.

    Attributes
    ----------
    root : str
        The archive's path, followed by the folder in it.
    archive : str
        The archive's path.
    """

    root: str
    archive: str

    def find(self) -> dict[str, str]:
        """Mask files by relative path, without a single top folder.

        Raises
        ------
        ValueError
            If the archive does not exist, is corrupt, contains no masks, or contains
            a name twice.
        """
        if not Path(self.archive).is_file():
            msg = f"{self.root}: {no_file_problem(self.archive)}"
            raise ValueError(msg)
        try:
            members = self._members()
        except Exception as error:
            is_of_system = isinstance(error, OSError) and error.errno
            as_archive = f"cannot be read as an archive: {error}"
            text = os_problem(error) if is_of_system else as_archive
            msg = f"{self.root}: {IS_A_POINTER if is_pointer(self.archive) else text}"
            raise ValueError(msg) from error
        folder = self.root[len(self.archive) :].strip("/")
        inner = f"{folder}/" if folder else ""
        below = [name for name in members if name.startswith(inner)]
        inside = masks_among(below)
        if not inside or any(name.lower().endswith(VOLUME_SUFFIXES) for name in inside):
            inside += _headers(below, members)
        if doubled := [name for name in inside if len(members[name]) > 1]:
            msg = f"{self.root}: contains {min(doubled)!r} more than once; keep one"
            raise ValueError(msg)
        if folder and not inside:
            raise unknown_part(self.root, "part", folder, _parts(members))
        check_found(inside, self.root, members)
        relative = relative_names([_name_of_mask(name[len(inner) :]) for name in inside])
        return {
            short: f"{self.archive}/{name}"
            for short, name in sorted(zip(relative, inside, strict=True))
        }

    def stamp(self, path: str) -> Stamp:
        """Size and checksum of a zip member; size and archive time of a tar member.

        Parameters
        ----------
        path : str
            The file.
        """
        try:
            stamp = self._member(path)[0]
            data = data_of(path, self._has)
            return stamp if data is None else stamp.joined(self._member(data)[0])
        except Exception:  # noqa: BLE001 - an unknown stamp only causes another read
            return Stamp(None, None)

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of a member.

        Parameters
        ----------
        path : str
            The file.

        Raises
        ------
        MaskError
            If it is corrupt, encrypted or too large, or if the archive is changing.
        """
        return read_whole(path, self._read, self._has)

    def _read(self, path: str) -> tuple[bytes, Stamp]:
        """The content of one member, and its stamp."""
        with damage(path, "cannot be read from the archive", MemoryError):
            stamp, read = self._member(path)
            if (size := stamp.size or 0) > MOST_MEMBER_BYTES:
                problem = (
                    f"declares {size} bytes, above the limit for archives; extract the archive"
                )
                raise MaskError(path, problem)
            return read(), stamp

    def _has(self, path: str) -> bool:
        return path.removeprefix(f"{self.archive}/") in self._members()

    def _member(self, path: str) -> _Member:
        return self._members()[path.removeprefix(f"{self.archive}/")][-1]

    def _members(self) -> dict[str, list[_Member]]:
        return _members(self.archive, version_of(self.archive))


def _name_of_mask(name: str) -> str:
    """The name of a member; an array of an ``.npz`` file may be named after another file."""
    short = name.removesuffix(".npy")
    return short if is_mask(short) else name


def _headers(names: Iterable[str], members: Mapping[str, list[_Member]]) -> list[str]:
    """Headers of volumes whose data are other members; none if none is of a volume."""
    headers = [name for name in names if is_mask(name, HEADER_SUFFIXES)]
    are_volumes = any(begins_as_volume(members[name][-1][1]()) for name in headers)
    return headers if are_volumes else []


def _member_names(file: Path) -> list[str]:
    """Names of the files in a zip archive; none if it cannot be read."""
    try:
        if not file.is_file():  # opening a pipe would wait for a writer
            return []
        with zipfile.ZipFile(file) as archive:
            return archive.namelist()
    except Exception:  # noqa: BLE001 - reading it reports the problem
        return []


def _parts(members: Iterable[str]) -> set[str]:
    """Folders of masks in an archive, and arrays of an ``.npz`` file."""
    masks = masks_among(members)
    folders = {str(parent) for name in masks for parent in PurePosixPath(name).parents} - {"."}
    return folders | {name.removesuffix(".npy") for name in masks if "/" not in name}


def relative_names(names: list[str]) -> list[str]:
    """Names without their single common top folder, if there is one.

    >>> relative_names(["gt/x/a.png", "gt/y/b.png"]), relative_names(["a.png", "gt/b.png"])
    (['x/a.png', 'y/b.png'], ['a.png', 'gt/b.png'])
    """
    tops = {name.partition("/")[0] if "/" in name.strip("/") else "" for name in names}
    top = tops.pop() if len(tops) == 1 else ""
    return [name[len(top) + 1 :] for name in names] if top else list(names)


@lru_cache(maxsize=8)
def _members(archive: str, version: tuple[int, ...]) -> dict[str, list[_Member]]:
    """The regular files in this version of an archive."""
    members: dict[str, list[_Member]] = {}
    # zipfile.is_zipfile would accept a tar whose last member is an .npz.
    with Path(archive).open("rb") as file:
        begins_as_zip = file.read(2) == b"PK"
    if not (begins_as_zip or archive.lower().endswith(".zip")):
        tar, modified = _Tar(archive, version), stamp_of(archive).version
        for member in tar.members:
            stamp, name = Stamp(member.size, modified), member.name.removeprefix("./")
            members.setdefault(name, []).append((stamp, partial(tar.read, member)))
        return members
    opened = zipfile.ZipFile(archive)
    # Some programs on Windows write backslashes in place of slashes.
    has_slashes = any("/" in name for name in opened.namelist())
    for info in opened.infolist():
        name = info.filename if has_slashes else info.filename.replace("\\", "/")
        name = name.removeprefix("./")
        # The upper half of external_attr is the Unix mode; links are skipped.
        if not name.endswith("/") and (info.external_attr >> 28) & 0xF in (0, 0o10):
            stamp = Stamp(info.file_size, f"crc32:{info.CRC:08x}")
            members.setdefault(name, []).append((stamp, partial(zip_member, opened, info)))
    return members


class _Tar:
    def __init__(self, archive: str, version: tuple[int, ...]) -> None:
        self._archive, self._version = archive, version
        self._file = _plain_tar(archive)
        self._lockable = Lockable()
        with tarfile.open(fileobj=self._file, mode="r:") as tar:
            self.members = [member for member in tar if member.isreg() and not member.issparse()]
            self._check_end(tar.offset)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def _check_end(self, at: int) -> None:
        """ValueError for bytes behind the members, where tarfile stops without an error."""
        self._file.seek(at)
        header = self._file.read(tarfile.BLOCKSIZE)
        if 0 < len(header) < tarfile.BLOCKSIZE:
            raise ValueError("unexpected end of data")
        if any(header):
            msg = f"the header at byte {at} is corrupt"
            raise ValueError(msg)
        while chunk := self._file.read(_CHUNK):
            if any(chunk):
                msg = "contains data after its end; if it is several archives, pass each of them"
                raise ValueError(msg)

    def read(self, member: tarfile.TarInfo) -> bytes:
        with self._lockable.lock:
            self._file.seek(member.offset_data)
            data = self._file.read(member.size)
        path = f"{self._archive}/{member.name}"
        if len(data) != member.size:
            raise MaskError(path, "its archive is truncated")
        if version_of(self._archive) != self._version:
            problem = "its archive changed while being read; wait until it is fully written"
            raise MaskError(path, problem)
        return data


_OPENERS: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}


def _plain_tar(archive: str) -> IO[bytes]:
    """The archive as a seekable file, decompressed once if necessary."""
    with Path(archive).open("rb") as file:
        magic = file.read(6)
    opener = next((o for begin, o in _OPENERS.items() if magic.startswith(begin)), None)
    if opener is None:
        return Path(archive).open("rb")
    bound = max(LEAST_BOUND, MOST_RATIO * Path(archive).stat().st_size)
    # An unnamed file, which disappears however the process ends.
    plain = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its owner
    try:
        with opener(archive, "rb") as compressed:
            while chunk := compressed.read(_CHUNK):
                if plain.tell() + len(chunk) > bound:
                    msg = (
                        f"decompresses to more than {bound} bytes; if this is intended, extract it"
                    )
                    raise ValueError(msg)
                plain.write(chunk)
        plain.seek(0)
    except BaseException:
        plain.close()
        raise
    return plain
