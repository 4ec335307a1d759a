"""Second opinions on PGM and on the length of PNG pixels, by the book."""

from __future__ import annotations

import struct
import zlib

import numpy as np


def strict_pgm(data: bytes) -> np.ndarray:
    """The samples of a PGM; raises whatever comes where anything is odd."""
    assert data[:2] in (b"P2", b"P5")
    at, fields = 2, []
    while len(fields) < 3:
        assert data[at : at + 1].isspace() or data[at : at + 1] == b"#"
        while data[at : at + 1].isspace() or data[at : at + 1] == b"#":
            at += 1
            if data[at - 1 : at] == b"#":
                while data[at : at + 1] not in (b"\n", b"\r"):
                    assert at < len(data)
                    at += 1
        start = at
        while data[at : at + 1].isdigit():
            at += 1
        fields.append(int(data[start:at]))
    width, height, most = fields
    assert 0 < most < 65536
    assert data[at : at + 1].isspace()
    body = data[at + 1 :]
    if data[:2] == b"P2":
        lines = body.replace(b"\r", b"\n").split(b"\n")
        values = [int(word) for line in lines for word in line.partition(b"#")[0].split()]
        found = np.array(values)
    else:
        found = np.frombuffer(
            body[: width * height * (1 + (most > 255))], (">u2", "u1")[most < 256]
        )
    assert found.size == width * height
    assert found.max() <= most
    return found.reshape(height, width)


def has_all_rows(data: bytes) -> bool:
    """Whether the pixels of a PNG, which is otherwise sound, are all there."""
    width, height, depth, color, interlaced = struct.unpack(">IIBBxxB", data[16:29])
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    expected = 0
    passes = ["0 0 8 8", "4 0 8 8", "0 4 4 8", "2 0 4 4", "0 2 2 4", "1 0 2 2", "0 1 1 2"]
    for one in passes if interlaced else ["0 0 1 1"]:
        x, y, across, down = map(int, one.split())
        columns, rows = len(range(x, width, across)), len(range(y, height, down))
        expected += rows * (1 + (columns * bits + 7) // 8) if columns else 0
    stream, at = b"", 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        stream += data[at + 8 : at + 8 + length] if data[at + 4 : at + 8] == b"IDAT" else b""
        at += 12 + length
    return len(zlib.decompressobj().decompress(stream)) >= expected
