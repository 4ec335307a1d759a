"""The compiled row filters of PNG against filters undone pixel by pixel.

Every buffer is as large as it has to be and no larger, so that the address sanitizer, under which
these tests run as well, sees a byte too many.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

read_png = pytest.importorskip(
    "segiou.masks.formats._png", reason="the C extension of the PNG reader is not built"
).read_png


def paeth(left, above, corner):
    guess = left + above - corner
    return min((left, above, corner), key=lambda neighbour: abs(guess - neighbour))


GUESSES = (
    lambda left, up, corner: 0,
    lambda left, up, corner: left,
    lambda left, up, corner: up,
    lambda left, up, corner: (left + up) // 2,
    paeth,
)


def plain_row(kind, residuals, above, channels):
    row, guess = [0] * channels, GUESSES[kind]
    for residual, up, corner in zip(
        residuals.tolist(), above, row + above[:-channels], strict=True
    ):
        row.append((residual + guess(row[-channels], up, corner)) % 256)
    return row[channels:]


def plain_rows(raw, width, depth, scale, channels=1):
    """Rows of filter bytes and residuals as pixels; None where a row names no filter."""
    above, pixels = [0] * (raw.shape[1] - 1), []
    for line in raw:
        if line[0] > 4:
            return None
        above = plain_row(line[0], line[1:], above, channels)
        if channels > 1:
            lanes = [1 << 8, 1] if channels == 2 else [1, 1 << 8, 1 << 16]
            pixels.append(np.reshape(above, (width, channels)) @ lanes)
            continue
        bits = np.unpackbits(np.array(above, np.uint8)).reshape(-1, depth)
        pixels.append(np.packbits(bits, axis=1)[:width, 0] >> (8 - depth))
    return np.array(pixels) * scale


def unfiltered(png, raw, width, depth, color):
    """The same by the extension."""
    palette = [png.chunk(b"PLTE", bytes(3))] if color == 3 else []
    chunks = [png.header(width, len(raw), depth, color), *palette]
    chunks += [png.chunk(b"IDAT", zlib.compress(raw.tobytes())), png.chunk(b"IEND")]
    file = png.SIGNATURE + b"".join(chunks)
    dtype = np.dtype(np.uint32 if color == 2 else np.uint16 if depth == 16 else np.uint8)
    size = len(raw) * width * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    assert read_png(file, memory[:-1]) is None  # too small by one byte
    if read_png(file, memory) is None:
        return None
    return memory[:size].view(dtype).reshape(len(raw), width)


@pytest.mark.few(2)
@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_every_filter_and_width(png, depth):
    rng = np.random.default_rng(depth)
    scales = {1: 1, 2: 85, 4: 17, 8: 1}
    for width in [*range(1, 70), 130, 257] * 5:
        size = -(-width * depth // 8)
        # Mostly runs, or texture.
        is_residual = rng.random((8, size + 1)) < rng.choice([0.03, 0.2, 1.0])
        raw = np.where(is_residual, rng.integers(0, 256, (8, size + 1)), 0).astype(np.uint8)
        raw[:, 0] = rng.integers(0, 5, 8)
        color = int(rng.choice([0, 3]))
        found = unfiltered(png, raw, width, depth, color)
        scale = 1 if color else scales[depth]
        np.testing.assert_array_equal(found, plain_rows(raw, width, depth, scale))


@pytest.mark.parametrize(("channels", "depth", "color"), [(2, 16, 0), (3, 8, 2)])
def test_every_filter_and_width_of_several_bytes(png, channels, depth, color):
    rng = np.random.default_rng(3)
    for width in [*range(1, 36), 130] * 5:
        is_residual = rng.random((8, channels * width + 1)) < rng.choice([0.01, 0.1, 1.0])
        raw = np.where(is_residual, rng.integers(0, 256, is_residual.shape), 0).astype(np.uint8)
        raw[:, 0] = rng.integers(0, 5, 8)
        found = unfiltered(png, raw, width, depth, color)
        np.testing.assert_array_equal(found, plain_rows(raw, width, depth, 1, channels))


@pytest.mark.parametrize(("pixel", "depth", "mode"), [(0, 16, "I;16"), ((0, 0, 0), 8, "RGB")])
def test_memory_that_is_not_aligned(png, pixel, depth, mode):
    file = png.write([[pixel] * 3] * 2, depth)
    memory = np.empty(1 + 2 * 3 * 4 + 64, np.uint8)
    assert read_png(file, memory[1:]) is None
    assert read_png(file, memory)[:3] == (2, 3, mode)


@pytest.mark.parametrize("depth", [1, 8, 16])
def test_a_filter_that_does_not_exist(png, depth):
    raw = np.zeros((4, 1 + 2 * depth), np.uint8)
    raw[3, 0] = 5
    assert unfiltered(png, raw, 16, depth, 0) is None
