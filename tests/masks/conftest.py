"""A small PNG writer that can force every filter and every irregularity, and the oracle."""

from __future__ import annotations

import io
import itertools
import os
import struct
import zlib
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from segiou.masks import LocalFolder, RawMask
from segiou.masks.formats.image_files import Scratch, read_png

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(name, body=b""):
    """A chunk with its length and its right CRC."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def header(width, height, depth=8, color=0, compression=0, filtering=0, interlace=0):
    fields = (width, height, depth, color, compression, filtering, interlace)
    return chunk(b"IHDR", struct.pack(">IIBBBBB", *fields))


def pack(samples, depth):
    """Rows of samples as rows of bytes, the first sample in the high bits."""
    if samples.ndim == 3:
        return samples.reshape(len(samples), -1)
    if depth == 16:
        return samples.astype(">u2").view(np.uint8)
    bits = (samples[..., None] >> np.arange(depth - 1, -1, -1)) & 1
    return np.packbits(bits.reshape(len(samples), -1), axis=1)


def filter_rows(rows, filters, channels=1):
    """Filtered rows, each behind its filter byte; filters are repeated as needed."""
    above = np.zeros(rows.shape[1], int)
    lines = []
    for y, row in enumerate(rows.astype(int)):
        kind = filters[y % len(filters)]
        left = np.concatenate([[0] * channels, row[:-channels]])
        corner = np.concatenate([[0] * channels, above[:-channels]])
        guess = left + above - corner
        distances = np.abs(np.stack([left, above, corner]) - guess)
        nearest = np.stack([left, above, corner])[distances.argmin(0), np.arange(len(row))]
        predictions = [0 * row, left, above, (left + above) // 2, nearest]
        lines.append(bytes([kind]) + ((row - predictions[kind]) & 255).astype(np.uint8).tobytes())
        above = row
    return b"".join(lines)


def stream(samples, depth=8, filters=(0,), level=6, strategy=zlib.Z_DEFAULT_STRATEGY):
    """The zlib stream of the samples."""
    samples = np.asarray(samples, np.uint16 if depth == 16 else np.uint8)
    rows = filter_rows(pack(samples, depth), filters, 3 if samples.ndim == 3 else -(-depth // 8))
    engine = zlib.compressobj(level, strategy=strategy)
    return engine.compress(rows) + engine.flush()


def write(
    samples, depth=8, color=0, filters=(0,), palette=None, before=(), after=(), cut=None, **how
):
    """A whole file; before and after are chunks around IDAT, cut the sizes of its pieces."""
    samples = np.asarray(samples)
    color = 2 if samples.ndim == 3 else color
    data = stream(samples, depth, filters, **how)
    stops = np.cumsum([0, *(cut or ())]).tolist()
    pieces = [data[i:j] for i, j in itertools.pairwise(stops)] + [data[stops[-1] :]]
    if color == 3 and palette is None:
        palette = bytes(range(3 * 2**depth)) if depth < 8 else bytes(768)
    return b"".join(
        [
            SIGNATURE,
            header(samples.shape[1], samples.shape[0], depth, color),
            b"" if palette is None else chunk(b"PLTE", palette),
            *before,
            *(chunk(b"IDAT", piece) for piece in pieces),
            *after,
            chunk(b"IEND"),
        ]
    )


def split(data):
    """Name and body of every chunk of a file."""
    chunks, position = [], len(SIGNATURE)
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        body = data[position + 8 : position + 8 + length]
        chunks.append((data[position + 4 : position + 8], body))
        position += length + 12
    return chunks


def join(chunks):
    return SIGNATURE + b"".join(chunk(name, body) for name, body in chunks)


def pillow(data):
    """Pillow's values and mode; it raises what it has to say."""
    with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
        image.load()
        return np.asarray(image), image.mode


def decoded_from_file(data):
    """The mask as small files are decoded; None where that is left to Python."""
    with NamedTemporaryFile(delete=False) as file:
        file.write(data)
    os.utime(file.name, (1e9, 1e9))  # a file that just changed is read with more care
    try:
        found = LocalFolder("").read_small(file.name, Scratch())
    finally:
        Path(file.name).unlink()
    # None: large, or nothing is compiled
    return found[0] if found and isinstance(found[0], RawMask) else None


def agrees(data):
    """Whether the file is accepted; where it is, Pillow has to say the same of it."""
    mask, ahead = read_png(data), decoded_from_file(data)
    if ahead is not None:
        assert mask is not None
        assert ahead.mode == mask.mode
        np.testing.assert_array_equal(ahead.values, mask.values)
    if mask is None:
        return False
    values, mode = pillow(data)
    assert mask.mode == mode
    assert mask.values.dtype == {"RGB": np.uint32, "I;16": np.uint16}.get(mode, np.uint8)
    assert mask.values.flags.c_contiguous
    if mode == "RGB":
        values = values @ np.array([1, 1 << 8, 1 << 16])
    np.testing.assert_array_equal(mask.values, values)
    return True


@pytest.fixture(scope="session")
def png():
    """Writer, oracle and comparison, under one name."""
    return SimpleNamespace(
        SIGNATURE=SIGNATURE,
        chunk=chunk,
        header=header,
        stream=stream,
        write=write,
        split=split,
        join=join,
        pillow=pillow,
        agrees=agrees,
        decoded_from_file=decoded_from_file,
    )


@pytest.fixture(scope="session")
def blobs():
    """A function of (height, width, classes, seed) that draws a mask of filled boxes."""

    def draw(height, width, classes, seed=0):
        rng = np.random.default_rng(seed)
        mask = np.zeros((height, width), np.uint8)
        for _ in range(12):
            y, x = rng.integers(height), rng.integers(width)
            tall, wide = rng.integers(1, height + 1), rng.integers(1, width + 1)
            mask[y : y + tall, x : x + wide] = rng.integers(classes)
        return mask

    return draw
