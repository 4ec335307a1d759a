"""Decompression to a bounded size."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

# zlib-ng is several times faster and equally strict; faster libraries accept codes that
# RFC 1951 forbids.
inflater: Any
try:
    from zlib_ng import zlib_ng as inflater
except ImportError:
    inflater = zlib

#: The largest ratio of a deflate stream: 258 bytes from two bits.
MAX_RATIO = 1032
#: Bytes that are decompressed at once.
_PIECE_BYTES = 1 << 20


def pieces(engine: Any, packed: bytes, most: int) -> Iterator[bytes]:
    """At most the first ``most`` bytes that a decompressor of Python makes of a stream."""
    # In parts, because zlib copies what it has not read with every piece.
    for at in range(0, len(packed), _PIECE_BYTES):
        part, piece = packed[at : at + _PIECE_BYTES], b""
        while most and (part or piece):
            piece = engine.decompress(part, min(_PIECE_BYTES, most))
            yield piece
            most -= len(piece)
            if engine.eof or not most:
                return
            # bz2 and lzma keep unread bytes, zlib returns them.
            part = getattr(engine, "unconsumed_tail", b"")


def size_within(engine: Any, packed: bytes, most: int) -> int:
    """Decompressed size, or ``most`` if it is larger."""
    return sum(map(len, pieces(engine, packed, most)))
