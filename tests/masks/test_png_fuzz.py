"""Damaged and forged files: what is read has to be what Pillow reads, and nothing may crash.

The inputs are drawn from a fixed seed. ``SEGIOU_FUZZ_INPUTS=20000`` asks for a longer run,
``SEGIOU_FUZZ_SEED`` for another one.
"""

from __future__ import annotations

import io
import os
import random
import struct
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from segiou.masks.formats import image_files as reader

pytestmark = pytest.mark.skipif(
    not reader.EXTENSION_BUILT, reason="the C extension of the PNG reader is not built"
)

INPUTS = int(os.environ.get("SEGIOU_FUZZ_INPUTS", "1500"))
SEED = int(os.environ.get("SEGIOU_FUZZ_SEED", "0"))
SHARED = Path(__file__).parents[2].parent / "shared" / "data"
NAMES = [b"tEXt", b"zTXt", b"iTXt", b"iCCP", b"gAMA", b"pHYs", b"tRNS", b"PLTE", b"acTL", b"fcTL"]
NAMES += [b"IDAT", b"fdAT", b"sRGB", b"cHRM", b"eXIf", b"bKGD", b"IEND", b"prVt", b"CRIT", b"DDAT"]
WORDS = [b"interlace\0yes", b"bbox\0" + bytes(16), b"Title\0\0" + zlib.compress(b"x"), b"\0", b""]
WORDS += [b"Title\0\1\0en\0\0" + zlib.compress(b"x"), bytes(4), bytes(9), bytes(32), b"\xff\0"]


def flip_bits(data, rng):
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def cut_or_extend(data, rng):
    if rng.random() < 0.3:
        return data + rng.randbytes(rng.randrange(1, 20))
    return data[: rng.randrange(len(data))]


def forge_length(data, rng):
    """Another length for one chunk, with the CRC put where that length then has it."""
    starts = [8]
    while starts[-1] < len(data):
        starts.append(starts[-1] + 12 + int.from_bytes(data[starts[-1] : starts[-1] + 4], "big"))
    start = rng.choice(starts[:-1])
    length = rng.choice((0, 1, 13, rng.randrange(len(data)), 0x7FFFFFFF, 0xFFFFFFFF))
    forged = bytearray(data)
    forged[start : start + 4] = struct.pack(">I", length)
    stop = start + 8 + length
    if stop + 4 <= len(forged):
        forged[stop : stop + 4] = struct.pack(">I", zlib.crc32(forged[start + 4 : stop]))
    return bytes(forged)


def join_pixels(chunks):
    """Places of the deflated pixels, and all of them."""
    places = [i for i, (name, _) in enumerate(chunks) if name == b"IDAT"]
    return places, b"".join(chunks[i][1] for i in places)


def damage_stream(chunks, rng):
    """Bits of the deflated pixels flipped under the right checksums of whatever they now mean."""
    places, stream = join_pixels(chunks)
    damaged = stream[:2] + flip_bits(stream[2:-4], rng) + stream[-4:]
    engine = zlib.decompressobj(-15)
    try:
        pixels = engine.decompress(damaged[2:], 1 << 20)
    except zlib.error:
        pass
    else:
        if engine.eof:
            used = len(damaged) - len(engine.unused_data)
            damaged = damaged[:used] + struct.pack(">I", zlib.adler32(pixels))
    chunks[places[0] : places[-1] + 1] = [(b"IDAT", damaged)]


def damage_body(chunks, rng):
    """Bits of one chunk flipped under a right CRC: mostly the deflate stream."""
    place = rng.randrange(len(chunks))
    name, body = chunks[place]
    if body:
        chunks[place] = (name, flip_bits(body, rng))


def forge_header(chunks, rng):
    fields = list(struct.unpack(">IIBBBBB", chunks[0][1]))
    place = rng.randrange(7)
    sizes = [0, 1, fields[0] + 1, fields[0] - 1, fields[0] * 2, 8 * fields[0], 1 << 16, 1 << 31]
    depths = [0, 1, 2, 3, 4, 5, 8, 16, 255]
    choices = [sizes, sizes, depths, [0, 1, 2, 3, 4, 6, 7], [0, 1], [0, 1], [0, 1, 2]]
    fields[place] = max(0, rng.choice(choices[place]))
    chunks[0] = (b"IHDR", struct.pack(">IIBBBBB", *fields))


def shuffle_chunks(chunks, rng):
    place = rng.randrange(len(chunks))
    action = rng.randrange(4)
    if action == 0:
        del chunks[place]
    elif action == 1:
        chunks.insert(rng.randrange(len(chunks) + 1), chunks[place])
    elif action == 2:
        other = rng.randrange(len(chunks))
        chunks[place], chunks[other] = chunks[other], chunks[place]
    else:
        body = rng.choice([*WORDS, rng.randbytes(rng.randrange(40))])
        chunks.insert(rng.randrange(1, len(chunks) + 1), (rng.choice(NAMES), body))


def deflate(data, rng):
    """A zlib stream of any level, strategy and window, in one or several blocks."""
    strategies = [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY]
    strategies += [zlib.Z_RLE, zlib.Z_FIXED]
    level, memory = rng.choice((0, 1, 6, 9)), rng.choice((1, 8, 9))
    engine = zlib.compressobj(level, 8, rng.choice((9, 12, 15)), memory, rng.choice(strategies))
    stop = rng.randrange(len(data) + 1)
    flush = rng.choice((zlib.Z_NO_FLUSH, zlib.Z_PARTIAL_FLUSH, zlib.Z_SYNC_FLUSH))
    first = engine.compress(data[:stop]) + engine.flush(flush)
    return first + engine.compress(data[stop:]) + engine.flush()


def rewrite_pixels(chunks, rng):
    """Filtered rows changed, cut or lengthened before they are deflated, and cut up anew."""
    places, stream = join_pixels(chunks)
    raw = bytearray(zlib.decompress(stream))
    (height,) = struct.unpack_from(">I", chunks[0][1], 4)
    size = len(raw) // height
    for y in rng.sample(range(height), min(height, 4)):
        raw[y * size] = rng.choice((0, 1, 2, 3, 4, 4, 4, 4, rng.choice((0, 4, 5, 255))))
    for _ in range(rng.randrange(30)):
        raw[rng.randrange(len(raw))] = rng.choice((0, 1, 2, 3, 4, rng.randrange(256)))
    if rng.random() < 0.1:
        change = rng.choice((1, size, rng.randrange(1, len(raw) + 1)))
        raw = raw[:-change] if rng.random() < 0.5 else raw + bytes(change)
    stream = deflate(bytes(raw), rng)
    cut = sorted(rng.randrange(len(stream) + 1) for _ in range(rng.randrange(4)))
    pieces = [stream[i:j] for i, j in zip([0, *cut], [*cut, len(stream)], strict=True)]
    chunks[places[0] : places[-1] + 1] = [(b"IDAT", piece) for piece in pieces]


ON_BYTES = (flip_bits, cut_or_extend, forge_length)
ON_CHUNKS = (damage_body, damage_stream, forge_header, shuffle_chunks)
ON_CHUNKS += (rewrite_pixels, rewrite_pixels)


@pytest.fixture(scope="module")
def seeds(png, blobs):
    """Sound files to begin with, of every depth, with every filter; real ones where they are."""
    files = [
        png.write(blobs(height, width, 2**depth), depth, color, (4, 1, 2, 3, 0), before=text)
        for depth in (1, 2, 4, 8)
        for color in (0, 3)
        for height, width in ((1, 1), (5, 7), (12, 40), (9, 65))
        for text in ([], [png.chunk(b"tEXt", b"Title\0mask"), png.chunk(b"gAMA", bytes(4))])
    ]
    files += [
        png.write(np.stack([blobs(*size, 5, seed) for seed in range(3)], axis=-1), filters=filters)
        for size in ((1, 1), (5, 7), (9, 65))
        for filters in ((4, 1, 2, 3, 0), (4,), (1, 2))
    ]
    files += [
        png.write(257 * blobs(*size, 200).astype(int) + 5, 16, filters=filters)
        for size in ((1, 1), (5, 7), (9, 65))
        for filters in ((4, 1, 2, 3, 0), (4,), (1, 2))
    ]
    paths = sorted(SHARED.glob("davis/*/*.png"))[:3] + sorted(SHARED.glob("camvid/*/*.png"))[:3]
    for path in paths:
        file = io.BytesIO()
        with Image.open(path) as image:
            if image.mode in ("L", "P"):
                image.crop((100, 100, 220, 180)).save(file, "PNG")
                files.append(file.getvalue())
    # More bytes than are inflated at once.
    files.append(png.write(blobs(400, 300, 8), filters=(4, 1, 2, 3, 0)))
    files.append(png.write(np.stack([blobs(130, 300, 8)] * 3, axis=-1), filters=(4, 1, 2, 0)))
    assert all(png.agrees(file) for file in files)
    # Left to Pillow: alpha.
    for mode in ("LA", "RGBA"):
        file = io.BytesIO()
        Image.new(mode, (20, 9)).save(file, "PNG")
        assert not png.agrees(file.getvalue())
        files.append(file.getvalue())
    return files


def mutate(data, png, rng):
    kind = rng.choice(ON_BYTES + ON_CHUNKS)
    if kind in ON_BYTES:
        return kind.__name__, kind(data, rng)
    chunks = png.split(data)
    kind(chunks, rng)
    if rng.random() < 0.3 and chunks and chunks[0][0] == b"IHDR":
        damage_body(chunks, rng)
    return kind.__name__, png.join(chunks)


@pytest.mark.gate
def test_what_is_read_is_what_pillow_reads(png, seeds):
    rng = random.Random(SEED)
    read = Counter()
    for _ in range(INPUTS):
        kind, data = mutate(rng.choice(seeds), png, rng)
        read[kind] += png.agrees(data)
    assert read["rewrite_pixels"] > INPUTS // 20
    assert read["shuffle_chunks"] > INPUTS // 200
    assert 0 < read.total() < INPUTS // 2


def test_pixels_of_any_kind_come_back(png):
    rng = np.random.default_rng(SEED)
    for _ in range(INPUTS // 10):
        height, width = rng.integers(1, 6), rng.integers(1, 80)
        steps = rng.random((height, width)) < rng.choice([0.02, 0.2, 0.9])
        samples = np.cumsum(steps * rng.integers(0, 256, steps.shape), axis=rng.integers(2)) & 255
        filters = rng.integers(0, 5, height).tolist()
        data = png.write(samples, filters=filters)
        assert png.agrees(data)
        np.testing.assert_array_equal(reader.read_png(data).values, samples)
