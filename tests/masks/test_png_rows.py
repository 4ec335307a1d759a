"""The compiled row filters of PNG against filters undone pixel by pixel.

Every buffer is as large as it has to be and no larger, so that the address sanitizer, under which
these tests run as well, sees a byte too many.
"""

from __future__ import annotations

import numpy as np
import pytest

unfilter = pytest.importorskip(
    "segiou.masks._png", reason="the C extension of the PNG reader is not built"
).unfilter


def paeth(left, above, corner):
    guess = left + above - corner
    return min((left, above, corner), key=lambda neighbour: abs(guess - neighbour))


def plain_row(kind, residuals, above):
    row, left, corner = [], 0, 0
    for residual, up in zip(residuals.tolist(), above, strict=True):
        guess = (0, left, up, (left + up) // 2, paeth(left, up, corner))[kind]
        left, corner = (residual + guess) % 256, up
        row.append(left)
    return row


def plain_rows(raw, width, depth, scale):
    """Rows of filter bytes and residuals as pixels; None where a row names no filter."""
    above, pixels = [0] * (raw.shape[1] - 1), []
    for line in raw:
        if line[0] > 4:
            return None
        above = plain_row(line[0], line[1:], above)
        bits = np.unpackbits(np.array(above, np.uint8)).reshape(-1, depth)
        pixels.append(np.packbits(bits, axis=1)[:width, 0] >> (8 - depth))
    return np.array(pixels) * scale


def unfiltered(raw, width, depth, scale):
    """The same by the extension, in two parts, as a stream that is inflated in steps."""
    out, above = np.empty((len(raw), width), np.uint8), np.zeros(raw.shape[1] - 1, np.uint8)
    cut = len(raw) // 2
    for part in (slice(cut), slice(cut, None)):
        rows = np.empty_like(out[part])
        if not unfilter(raw[part].copy(), rows, above, width, depth, scale):
            return None
        out[part] = rows
    return out


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_every_filter_and_width(depth):
    rng = np.random.default_rng(depth)
    scales = {1: 255, 2: 85, 4: 17, 8: 1}
    for width in [*range(1, 70), 130, 257] * 5:
        size = -(-width * depth // 8)
        # Mostly runs, or texture.
        is_residual = rng.random((8, size + 1)) < rng.choice([0.03, 0.2, 1.0])
        raw = np.where(is_residual, rng.integers(0, 256, (8, size + 1)), 0).astype(np.uint8)
        raw[:, 0] = rng.integers(0, 5, 8)
        scale = int(rng.choice([1, scales[depth]]))
        found = unfiltered(raw, width, depth, scale)
        np.testing.assert_array_equal(found, plain_rows(raw, width, depth, scale))


@pytest.mark.parametrize("depth", [1, 8])
def test_a_filter_that_does_not_exist(depth):
    raw = np.zeros((4, 1 + 2 * depth), np.uint8)
    raw[3, 0] = 5
    assert unfiltered(raw, 16, depth, 1) is plain_rows(raw, 16, depth, 1) is None
