"""NIfTI volumes in two files: a header (``.hdr``) and its data (``.img``), each also as ``.gz``.

Both become the bytes of a volume in one file, so one reader checks and reads them.
"""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from segiou._support.files import Stamp
from segiou.masks.finding import HEADER_SUFFIXES
from segiou.masks.formats.decompression import inflater
from segiou.masks.raw_mask import MaskError, damage

_GZIP = b"\x1f\x8b"
#: Bytes of a header, of its place in a single file, and its type and place of the offset of data.
_LAYOUTS = {348: (352, "f", 108), 540: (544, "q", 168)}
#: Most bytes of a header that are decompressed: those of the longer one.
_HEAD = 540


def is_pair_header(path: str | Path) -> bool:
    """Whether a name is that of the header of a volume in two files."""
    return str(path)[-7:].lower().endswith(HEADER_SUFFIXES)


def as_header(path: Path) -> Path:
    """The header of a volume if a path is that of its data; else the path."""
    for header in _partners(path, "img", "hdr"):
        if starts_as_volume(header):
            return Path(header)
    return path


def starts_as_volume(header: str | Path) -> bool:
    """Whether a file begins with the size of a header of NIfTI or Analyze."""
    try:
        if not os.path.isfile(header):  # noqa: PTH113 - opening a pipe would wait for a writer
            return False
        with Path(header).open("rb") as file:
            return begins_as_volume(file.read(4096))
    except OSError:
        return False


def begins_as_volume(first: bytes) -> bool:
    """Whether the first bytes of a file are those of a header of NIfTI or Analyze."""
    try:
        return _order(_head(first)) is not None
    except (EOFError, inflater.error):
        return False


def read_whole(
    path: str,
    read: Callable[[str], tuple[bytes, Stamp]],
    exists: Callable[[str], bool] = os.path.isfile,
) -> tuple[bytes, Stamp]:
    """The content of a file and its stamp; of a header, the volume as the bytes of one file."""
    head, stamp = read(path)
    if not is_pair_header(path):
        return head, stamp
    with damage(path, "is corrupt"):
        head = _head(head)
    if (order := _order(head)) is None:
        raise MaskError(path, header_problem(head))
    size = int.from_bytes(head[:4], "little" if order == "<" else "big")
    if head[344:348] != b"ni1\0" and not head.startswith(b"ni2\0", 4):
        name = Path(path).name.partition(".")[0]
        fix = f"nib-convert {name}.img {name}.nii.gz"
        problem = "is Analyze 7.5, which has no orientation; convert it and check the result"
        raise MaskError(path, f"{problem}: {fix}")
    names = _partners(path, "hdr", "img", exists)
    if not names:
        wanted = Path(path).with_name(_renamed(Path(path).name, "hdr", "img"))
        problem = f"has no data: {wanted.name} is missing; copy both files of the volume"
        raise MaskError(path, problem)
    data, other = read(names[0])
    length, kind, at = _LAYOUTS[size]
    head = head[:size].ljust(length, b"\0")
    (offset,) = struct.unpack_from(order + kind, head, at)
    start: Any = bytearray(head)
    struct.pack_into(order + kind, start, at, length + offset)
    magic = 344 if size == 348 else 4
    start[magic : magic + 3] = b"n+1" if size == 348 else b"n+2"
    # Members of gzip are decompressed one after the other.
    packed = data[:2] == _GZIP and names[0].lower().endswith(".gz")
    start = gzip.compress(start, mtime=0) if packed else bytes(start)
    return start + data, stamp.joined(other)


def header_problem(head: bytes) -> str:
    """Why the first bytes of a header are not those of NIfTI or Analyze."""
    if head.startswith(b"ENVI"):
        return "is the header of another file; pass that file"
    return "is corrupt: it does not begin as a header of NIfTI; copy both files of the volume again"


def data_of(path: str | Path, exists: Callable[[str], bool] = os.path.isfile) -> str | None:
    """The data of a header; None if they are missing."""
    return next(iter(_partners(path, "hdr", "img", exists)), None)


def _head(data: bytes) -> bytes:
    """The first bytes of a header, decompressed."""
    return inflater.decompressobj(31).decompress(data, _HEAD) if data[:2] == _GZIP else data[:_HEAD]


def _order(head: bytes) -> str | None:
    """The byte order of a header; None for other files."""
    sizes = {"<": int.from_bytes(head[:4], "little"), ">": int.from_bytes(head[:4], "big")}
    return next((o for o, n in sizes.items() if n in _LAYOUTS and len(head) >= n), None)


def _renamed(name: str, old: str, new: str) -> str:
    """A name with another extension, in the same case."""
    stem, _, packed = name.rpartition(".")
    if packed.lower() == "gz":
        return f"{_renamed(stem, old, new)}.{packed}" if stem else name
    return f"{stem}.{new.upper() if packed.isupper() else new}" if packed.lower() == old else name


def _partners(
    path: str | Path, old: str, new: str, exists: Callable[[str], bool] = os.path.isfile
) -> list[str]:
    """The other file of a volume, also if only one of the two is compressed."""
    name = Path(path).name
    if (other := _renamed(name, old, new)) == name:
        return []
    # Paths in archives are texts, in which "./" has a meaning.
    start = str(path)[: len(str(path)) - len(name)]
    packed = other[:-3] if other.lower().endswith(".gz") else f"{other}.gz"
    return [path for path in (f"{start}{other}", f"{start}{packed}") if exists(path)]
