"""Images as their formats define them: samples of PGM and PPM, 16 bits, and missing rows."""

from __future__ import annotations

import io
import struct
import warnings
import zlib

import numpy as np
import pytest
from mask_files import required

from segiou.masks.read import MaskError, from_bytes


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, depth, color, rows, interlaced=0):
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


NETPBM = {
    b"P5 2 1 18\n\1\22": [[1, 18]],
    b"P5\n# a comment\n2 1\n255\n\1\22": [[1, 18]],
    b"P5 2 1 300\n\0\1\1\0": [[1, 256]],
    b"P5 2 1 65535\n\0\1\1\0": [[1, 256]],
    b"P2 2 1 18\n1 18\n": [[1, 18]],
    b"P2 2 1 9999\n1 # a comment\n 256": [[1, 256]],
    b"P6 1 1 9\n\1\2\3": [[[1, 2, 3]]],
    b"P6 1 1 65535\n\1\1\2\2\3\3": [[[1, 2, 3]]],
    b"P3 1 1 9\n1 2 3": [[[1, 2, 3]]],
}


@pytest.mark.parametrize("data", NETPBM)
def test_samples_of_pgm_and_ppm_are_not_rescaled(data):
    assert from_bytes(data, "a.pgm").values.tolist() == NETPBM[data]


@pytest.mark.parametrize("most", [1, 18, 255, 300, 4095, 65535])
def test_samples_of_pgm_are_those_of_gdal(tmp_path, most):
    rasterio = required("rasterio", "SEGIOU_REQUIRE_EXTRAS")
    values = np.random.default_rng(0).integers(0, most + 1, (5, 7))
    body = values.astype(np.uint8 if most < 256 else ">u2").tobytes()
    (tmp_path / "a.pgm").write_bytes(b"P5\n7 5\n%d\n" % most + body)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rasterio.open(tmp_path / "a.pgm") as file:
            expected = file.read(1)
    found = from_bytes((tmp_path / "a.pgm").read_bytes(), "a.pgm").values
    np.testing.assert_array_equal(found, values)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"P5 2 1 18\n\1\23", "sample 19 above its maximum 18"),
        (b"P5 2 1 18\n\1", "1 samples, expected 2"),
        (b"P2 2 1 18\n1", "1 samples, expected 2"),
        (b"P2 2 1 18\n1 -2", "not numbers"),
        (b"P5 2 1 18\n\1\2\3", "data after its pixels"),
        (b"P5 2 1 18", "invalid PGM or PPM header"),
        (b"P5 0 1 18\n", "invalid size 0 × 1"),
        (b"P5 1 1 70000\n\1\1", "maximum 70000"),
        (b"P5 999999999 999999999 9\n\1", "invalid size"),
        (b"P6 1 1 65535\n\1\1\2\2\3\4", "16 bits per channel"),
    ],
)
def test_faulty_pgm_and_ppm_are_refused(data, message):
    with pytest.raises(MaskError, match=message):
        from_bytes(data, "a.pgm")


@pytest.mark.parametrize("alpha", [b"", b"\xff\xff"])
def test_colours_of_16_bits_need_equal_bytes(alpha):
    kind = 6 if alpha else 2
    even = png(2, 1, 16, kind, b"\0" + (b"\1\1\2\2\3\3" + alpha) * 2)
    assert from_bytes(even, "a.png").values.tolist() == [[[1, 2, 3], [1, 2, 3]]]
    odd = png(2, 1, 16, kind, b"\0" + (b"\1\1\2\2\3\3" + alpha) + (b"\1\1\2\2\3\4" + alpha))
    with pytest.raises(MaskError, match="16 bits per channel"):
        from_bytes(odd, "a.png")


def test_grey_of_16_bits_with_alpha_is_refused():
    with pytest.raises(MaskError, match="16 bits and an alpha channel"):
        from_bytes(png(1, 1, 16, 4, b"\0\1\1\xff\xff"), "a.png")


@pytest.mark.parametrize(("depth", "color"), [(8, 0), (8, 2), (8, 3), (16, 0), (16, 2), (4, 0)])
def test_missing_rows_of_a_png_are_not_zeros(depth, color):
    bits = depth * (3 if color == 2 else 1)
    row = b"\0" + bytes(-(-4 * bits // 8))
    assert from_bytes(png(4, 6, depth, 0, 6 * (b"\0" + bytes(-(-4 * depth // 8)))), "a.png")
    with pytest.raises(MaskError, match="truncated"):
        from_bytes(png(4, 6, depth, color, 5 * row), "a.png")


def test_missing_rows_of_an_interlaced_png_are_not_zeros():
    from PIL import Image

    # 2 × 2: the first pass has one pixel, the sixth one, the seventh two.
    rows = b"\0\1" + b"\0\2" + b"\0\3\4"
    data = png(2, 2, 8, 0, rows, interlaced=1)
    assert from_bytes(data, "a.png").values.tolist() == [[1, 2], [3, 4]]
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data))), [[1, 2], [3, 4]])
    with pytest.raises(MaskError, match="truncated"):
        from_bytes(png(2, 2, 8, 0, rows[:-1], interlaced=1), "a.png")


def test_a_size_that_the_data_cannot_fill_gets_no_memory():
    with pytest.raises(MaskError, match="declares a size that its data cannot fill"):
        from_bytes(png(9000, 9000, 8, 2, bytes(100)), "a.png")
