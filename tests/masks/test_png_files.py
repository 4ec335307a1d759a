"""Small PNG files, read and decoded together by compiled code that inflates by itself.

Every file that the other tests of PNG make is read this way, too, by ``png.agrees``.
"""

from __future__ import annotations

import os
import random
import zlib

import numpy as np
import pytest
from meanwhile import others_run_during

from segiou.masks.image_files import Scratch
from segiou.masks.read import RawMask, read_mask
from segiou.masks.sources import LocalFolder, _files

INPUTS = int(os.environ.get("SEGIOU_FUZZ_INPUTS", "300"))

pytestmark = pytest.mark.skipif(
    os.name == "nt" or _files is None,
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


def test_every_stream_of_zlib_is_inflated(png):
    rng = random.Random(1)
    for _ in range(INPUTS):
        content = contents(rng)
        file = file_of(deflated(b"\0" + content, rng), len(content), png)
        if len(file) <= 1 << 18:
            assert png.decoded_from_file(file).values.tobytes() == content


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


def test_many_files_share_the_memory(png, blobs, tmp_path):
    masks = [blobs(40, 50 + i, 7, i) for i in range(6)]
    paths = []
    for i, mask in enumerate(masks):
        path = tmp_path / f"{i}.png"
        path.write_bytes(png.write(mask, filters=(4, 2)))
        paths.append(str(path))
    (tmp_path / "2.png").write_bytes(b"no PNG")
    for path in paths:
        os.utime(path, (1e9, 1e9))
    found = LocalFolder("").read_small([*paths, str(tmp_path / "none")], Scratch())
    assert found[2][0] == b"no PNG"
    assert found[6] is None
    for i in (0, 1, 3, 4, 5):
        np.testing.assert_array_equal(found[i][0].values, masks[i])
        np.testing.assert_array_equal(read_mask(paths[i]), masks[i])
        assert found[i][1].size == (tmp_path / f"{i}.png").stat().st_size


def test_other_threads_run_while_files_are_decoded(png, tmp_path):
    noise = np.random.default_rng(0).integers(0, 200, (500, 500), dtype=np.uint8)
    path = tmp_path / "noise.png"
    path.write_bytes(png.write(noise, filters=(3,)))
    os.utime(path, (1e9, 1e9))
    pixels = np.empty(151 * noise.size, np.uint8)
    found = []
    assert others_run_during(lambda: found.extend(_files.read_small([str(path)] * 150, 0, pixels)))
    assert found[-1][0] == (149 * noise.size, 500, 500, "L")
    np.testing.assert_array_equal(pixels[149 * noise.size :][: noise.size].reshape(500, 500), noise)


def test_what_has_no_room_comes_as_it_lies(png, blobs, tmp_path):
    first, second = blobs(10, 10, 3), blobs(20, 10, 3)
    for name, mask in (("first", first), ("second", second)):
        (tmp_path / name).write_bytes(png.write(mask))
        os.utime(tmp_path / name, (1e9, 1e9))
    paths = [str(tmp_path / name) for name in ("second", "first")]
    pixels = np.empty(200, np.uint8)
    (content, *_), (decoded, *_) = _files.read_small(paths, 0, pixels)
    assert content == png.write(second)
    assert decoded == (0, 10, 10, "L")
    np.testing.assert_array_equal(pixels[:100].reshape(10, 10), first)


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
