"""The files of a zarr store, checked before zarr reads or decompresses them."""

from __future__ import annotations

import bz2
import lzma
import math
import stat
import struct
from contextlib import suppress
from typing import Any

from zarr.storage import LocalStore  # type: ignore[import-not-found, unused-ignore]

from segiou.masks.finding import ZARR_FILES
from segiou.masks.formats.decompression import inflater, size_within
from segiou.masks.raw_mask import MaskError

#: Chunks may be larger than their array, but not much larger than this.
_MOST_BYTES = 1 << 26
#: Size limit of chunks, which are decompressed whole.
_MOST_CHUNK_BYTES = 1 << 30
#: Most chunks of a mask: each is a file.
_MOST_CHUNKS = 1 << 22
#: Upper bound of bytes that compression adds to incompressible data, or blocks have in excess.
_OVERHEAD = 1 << 18
#: Beginnings of compressed data, and what decompresses them in parts.
_ENGINES: dict[bytes, Any] = {
    b"\x1f\x8b": lambda: inflater.decompressobj(31),
    b"\x78\x01": inflater.decompressobj,
    b"\x78\x5e": inflater.decompressobj,
    b"\x78\x9c": inflater.decompressobj,
    b"\x78\xda": inflater.decompressobj,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lzma.LZMADecompressor,
}
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK = 1 << 17


class CheckedStore(LocalStore):  # type: ignore[misc, unused-ignore]
    """A local zarr store that opens regular files only, of no more bytes than its arrays need."""

    #: Bytes of the largest chunk that may be read.
    chunk_bytes: int = _MOST_BYTES
    #: Place of the index of chunks in each shard, if there are shards.
    shard_index: slice | None = None

    def expect(self, array: Any, path: str) -> None:
        """Read this array's chunks next; MaskError if they are too many or too large."""
        self.chunk_bytes = chunk_bytes(array, path)
        self.shard_index = _shard_index(array) if getattr(array, "shards", None) else None

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """The content of a file, or a part of it; None if there is none."""
        path = self.root / key
        most = _MOST_BYTES if path.name in ZARR_FILES else self.chunk_bytes + _OVERHEAD
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise MaskError(path, "is not a regular file")
        if status.st_size > most and stat.S_ISREG(status.st_mode):
            problem = f"has {status.st_size} bytes, more than {most}; the store is corrupt"
            raise MaskError(path, problem)
        content = await super().get(key, prototype, byte_range)
        if content is not None and path.name not in ZARR_FILES:
            data = content.to_bytes()
            parts = [data]
            if self.shard_index and byte_range is None:
                index = data[self.shard_index]
                places = struct.iter_unpack("<QQ", index[: len(index) // 16 * 16])
                parts += [data[start : start + length] for start, length in places]
            if (size := max(unpacked_size(part, most) for part in parts)) > most:
                least = "more than " * (size == most + 1)
                problem = f"decompresses to {least}{size} bytes, its chunk has {self.chunk_bytes}"
                raise MaskError(path, problem)
        return content


def chunk_bytes(array: Any, path: str) -> int:
    """Bytes of a chunk of an array; MaskError if they are too many, or too large for the array."""
    shape = getattr(array, "shards", None) or array.chunks
    number = math.prod(-(-a // b) for a, b in zip(array.shape[-2:], shape[-2:], strict=True))
    if number > _MOST_CHUNKS:
        problem = f"has {number} chunks of {shape[-2:]}; save it in larger chunks"
        raise MaskError(path, problem)
    size = int(math.prod(shape) * array.dtype.itemsize)
    whole = math.prod(array.shape) * array.dtype.itemsize
    if size > _MOST_CHUNK_BYTES or size > max(_MOST_BYTES, 4 * whole):
        problem = f"has chunks of {size} bytes for an array of {whole}; save it in smaller chunks"
        raise MaskError(path, problem)
    return size


def unpacked_size(data: bytes, most: int) -> int:
    """Decompressed size in bytes, if the format states it; ``most`` + 1 if larger.

    Data that are not compressed, or in an unknown format, have their own size.
    """
    if data.startswith(_ZSTD):
        return _zstd_size(data)
    if len(data) >= 16 and data[0] == 2 and struct.unpack_from("<I", data, 12)[0] == len(data):
        return int(struct.unpack_from("<I", data, 4)[0])  # Blosc
    engine = next((make for magic, make in _ENGINES.items() if data.startswith(magic)), None)
    if engine is None:
        return len(data)
    with suppress(inflater.error, OSError, lzma.LZMAError):  # zarr reports it
        return size_within(engine(), data, most + 1)
    return 0


def _shard_index(array: Any) -> slice:
    """Place of a shard's index, which has offset and length of each chunk as 64-bit integers.

    Source: the ``sharding_indexed`` codec of zarr format 3.
    """
    (codec,) = array.metadata.codecs
    size = 16 * math.prod(array.shards) // math.prod(array.chunks)
    if codec.index_location.value == "start":
        return slice(0, size)
    checksum = 4 * (len(codec.index_codecs) - 1)
    return slice(-size - checksum, -checksum or None)


def _zstd_size(data: bytes) -> int:
    """Size of the first frame, as declared, or at most what its blocks can hold."""
    if len(data) < 5:
        return len(data)
    flags = data[4]
    is_single, has_dictionary = bool(flags & 0x20), flags & 3
    at = 5 + (not is_single) + (0, 1, 2, 4)[has_dictionary]
    width = (1 if is_single else 0, 2, 4, 8)[flags >> 6]
    if width:
        declared = int.from_bytes(data[at : at + width], "little")
        return declared + 256 * (width == 2)
    total, is_last = 0, False
    while not is_last and at + 3 <= len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        is_last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
        total += size if kind < 2 else _ZSTD_BLOCK
        at += 3 + (1 if kind == 1 else size)
    return total
