"""Small PNG files, read and decoded by compiled code that inflates by itself.

Every file that the other tests of PNG make is read this way, too, by ``png.agrees``.
"""

from __future__ import annotations

import os
import random
import zlib

import numpy as np
import pytest
from meanwhile import others_run_during

from segiou import read_mask
from segiou.masks import LocalFolder, RawMask
from segiou.masks.formats.image_files import Scratch, _png

INPUTS = int(os.environ.get("SEGIOU_FUZZ_INPUTS", "300"))

pytestmark = pytest.mark.skipif(
    not hasattr(_png, "read_small"),
    reason="small files are decoded by an extension that was not built",
)


def contents(rng, most=70_000):
    """Bytes that deflate well or badly, by short or long matches."""
    size = min(most, rng.choice([1, 2, 5, 40, 300, 5000, 70_000]))
    kind = rng.randrange(5)
    if kind == 0:
        return rng.randbytes(size)
    if kind == 1:
        return bytes(rng.choices((0, 0, 0, 1, 7), k=size))
    if kind == 2:
        return bytes(size)
    if kind == 3:
        return (bytes(range(256)) * (size // 256 + 1))[:size]
    # Letters of very different numbers: the longest codes.
    return bytes(rng.choices(range(30), [1.7**-i for i in range(30)], k=size))


def deflated(content, rng):
    """A stream by any settings of zlib, sometimes in several blocks or flushed between."""
    engine = zlib.compressobj(
        rng.randrange(10),
        zlib.DEFLATED,
        rng.choice([9, 12, 15]),
        rng.choice([1, 8, 9]),
        rng.randrange(5),
    )
    half = len(content) // 2 if rng.random() < 0.3 else 0
    flush = rng.choice([zlib.Z_FULL_FLUSH, zlib.Z_SYNC_FLUSH])
    start = engine.compress(content[:half]) + engine.flush(flush) if half else b""
    return start + engine.compress(content[half:]) + engine.flush()


def file_of(stream, size, png):
    """A file of one row, whose bytes the stream gives behind the filter byte 0."""
    return png.join([png_header(size, png), (b"IDAT", stream), (b"IEND", b"")])


def png_header(width, png):
    return b"IHDR", png.header(width, 1)[8:-4]


@pytest.mark.gate
def test_every_stream_of_zlib_is_inflated(png):
    rng = random.Random(1)
    for _ in range(INPUTS):
        content = contents(rng)
        file = file_of(deflated(b"\0" + content, rng), len(content), png)
        if len(file) <= 1 << 18:
            assert png.decoded_from_file(file).values.tobytes() == content


@pytest.mark.gate
def test_a_damaged_stream_gives_what_zlib_gives_or_nothing(png):
    rng = random.Random(2)
    accepted = 0
    for _ in range(INPUTS * 5):
        content = b"\0" + contents(rng, 5000)
        stream = bytearray(deflated(content, rng))
        for _ in range(rng.choice((1, 1, 2, 4))):
            stream[rng.randrange(len(stream))] ^= 1 << rng.randrange(8)
        # With the right checksum, so that it is not only that which refuses.
        try:
            content = zlib.decompressobj(-15).decompress(bytes(stream[2:-4]))
            stream[-4:] = zlib.adler32(content).to_bytes(4, "big")
        except zlib.error:
            pass
        if len(content) < 2:
            continue
        found = png.decoded_from_file(file_of(bytes(stream), len(content) - 1, png))
        if found is not None:
            accepted += 1
            engine = zlib.decompressobj()
            assert engine.decompress(bytes(stream)) == content
            assert engine.eof and not engine.unused_data and content[0] < 5
            if content[0] == 0:
                assert found.values.tobytes() == content[1:]
    assert accepted > INPUTS // 3


def test_files_share_the_memory_one_after_another(png, blobs, tmp_path):
    masks, scratch = [blobs(40, 50 + i, 7, i) for i in range(6)], Scratch()
    for i, mask in enumerate(masks):
        path = tmp_path / f"{i}.png"
        path.write_bytes(b"no PNG" if i == 2 else png.write(mask, filters=(4, 2)))
        os.utime(path, (1e9, 1e9))
        content, stamp = LocalFolder("").read_small(str(path), scratch)
        assert stamp.size == path.stat().st_size
        if i == 2:
            assert content == b"no PNG"
        else:
            np.testing.assert_array_equal(content.values, mask)
            np.testing.assert_array_equal(read_mask(path), mask)
    assert LocalFolder("").read_small(str(tmp_path / "none"), scratch) is None


def test_other_threads_run_while_a_file_is_decoded(png, tmp_path):
    noise = np.random.default_rng(0).integers(0, 200, (500, 500), dtype=np.uint8)
    path = tmp_path / "noise.png"
    path.write_bytes(png.write(noise, filters=(3,)))
    os.utime(path, (1e9, 1e9))
    pixels = np.empty(noise.size + 64, np.uint8)

    def read():
        for _ in range(150):
            assert _png.read_small(str(path), 0, pixels)[0][:3] == (500, 500, "L")

    assert others_run_during(read)
    np.testing.assert_array_equal(pixels[:-64].reshape(500, 500), noise)


def test_what_has_no_room_comes_as_it_lies(png, blobs, tmp_path):
    path, mask = tmp_path / "mask", blobs(20, 10, 3)
    path.write_bytes(png.write(mask))
    os.utime(path, (1e9, 1e9))
    assert _png.read_small(str(path), 0, bytearray(263))[0] == png.write(mask)
    assert _png.read_small(str(path), 0, bytearray(264))[0][:3] == (20, 10, "L")


@pytest.mark.parametrize(
    ("before", "is_decoded"),
    [
        ([(b"gAMA", bytes(4)), (b"pHYs", bytes(9))], True),
        ([(b"gAMA", bytes(5))], False),
        ([(b"tRNS", bytes(2))], True),
        ([(b"tEXt", b"Title\0mask")], True),
        ([(b"tEXt", b"interlace\0yes")], False),
        ([(b"PLTE", bytes(3))], False),
    ],
)
def test_only_harmless_chunks(png, before, is_decoded):
    data = png.write([[0, 1]], before=[png.chunk(*part) for part in before])
    assert isinstance(png.decoded_from_file(data), RawMask) is is_decoded


def test_pieces_of_the_stream_and_a_palette(png, blobs):
    mask = blobs(60, 70, 16)
    data = png.write(mask, depth=4, color=3, filters=(1, 4), cut=(3, 20, 1))
    found = png.decoded_from_file(data)
    assert found.mode == "P"
    np.testing.assert_array_equal(found.values, mask)
    assert png.decoded_from_file(png.write(mask, depth=4, color=3, palette=bytes(49))) is None
