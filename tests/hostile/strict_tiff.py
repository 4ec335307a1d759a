"""A second opinion on TIFF: small, strict, and by the book (TIFF 6.0, BigTIFF)."""

from __future__ import annotations

import struct
import zlib

import numpy as np

#: Tags are of these kinds, signed ones too; others count as absent.
SIZES = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 13: "I", 16: "Q", 17: "q", 18: "Q"}


def strict_tiff(data: bytes) -> np.ndarray:
    """One page of grey values; raises whatever comes where anything is odd."""
    order = {b"II": "<", b"MM": ">"}[data[:2]]
    (version,) = struct.unpack_from(order + "H", data, 2)
    if version == 43:
        word, inline, count_kind = "Q", 8, "Q"
        assert struct.unpack_from(order + "HH", data, 4) == (8, 0)
        (at,) = struct.unpack_from(order + "Q", data, 8)
    else:
        assert version == 42
        word, inline, count_kind = "I", 4, "H"
        (at,) = struct.unpack_from(order + "I", data, 4)
    (entries,) = struct.unpack_from(order + count_kind, data, at)
    at += struct.calcsize(count_kind)
    head = 4 + struct.calcsize(word)
    tags = {}
    for i in range(entries):
        start = at + i * (head + inline)
        tag, kind = struct.unpack_from(order + "HH", data, start)
        (count,) = struct.unpack_from(order + word, data, start + 4)
        if kind not in SIZES:
            continue
        size = count * struct.calcsize(SIZES[kind])
        where = start + head
        if size > inline:
            (where,) = struct.unpack_from(order + word, data, where)
        if where + size > len(data):
            # A tag that is out of reach counts as absent, and defaults apply.
            continue
        # Of two entries the first counts.
        if tag in tags:
            continue
        tags[tag] = struct.unpack_from(f"{order}{count}{SIZES[kind]}", data, where)
    return pixels(data, tags, order)


def pixels(data: bytes, tags: dict, order: str) -> np.ndarray:
    width, height = tags[256][0], tags[257][0]
    assert tags.get(277, (1,))[0] not in (3, 4)
    bits = tags.get(258, (1,))[0]
    packed = bits == 1
    bits = 8 if packed else bits
    dtype = np.dtype({8: "u1", 16: "u2", 32: "u4"}[bits]).newbyteorder(order)
    compression = tags.get(259, (1,))[0]
    tiled = 322 in tags
    wide, tall = (tags[322][0], tags[323][0]) if tiled else (width, tags.get(278, (height,))[0])
    tall = min(tall, height) if not tiled else tall
    offsets, counts = (tags[324], tags[325]) if tiled else (tags[273], tags[279])
    across, down = -(-width // wide), -(-height // tall)
    assert len(offsets) == len(counts) == across * down
    assert width * height < 1 << 24
    out = np.zeros((down * tall, across * wide), dtype)
    for i, (offset, count) in enumerate(zip(offsets, counts, strict=True)):
        assert offset > 0 and count > 0 and offset + count <= len(data)
        part = data[offset : offset + count]
        if compression == 8:
            part = zlib.decompress(part)
        else:
            assert compression == 1
        top = i // across * tall
        rows = tall if tiled else min(tall, height - top)
        line = -(-wide // 8) if packed else wide * dtype.itemsize
        size = rows * line
        assert len(part) >= size
        left = i % across * wide
        if packed:
            lines = np.frombuffer(part[:size], np.uint8).reshape(rows, line)
            values = np.unpackbits(lines, axis=1)[:, :wide]
        else:
            values = np.frombuffer(part[:size], dtype).reshape(rows, wide)
        out[top : top + rows, left : left + wide] = values
    return out[:height, :width]
