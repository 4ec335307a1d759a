"""The C function of the PNG reader, and what happens without it or without zlib-ng."""

from __future__ import annotations

import zlib

import pytest

from segiou.masks import png as reader
from segiou.masks.png import read_png

needs_extension = pytest.mark.skipif(
    not reader.EXTENSION_BUILT, reason="the C extension of the PNG reader is not built"
)

SAMPLES = [[0, 1, 1], [2, 2, 1]]


@needs_extension
def test_the_standard_zlib_gives_the_same(png, blobs, monkeypatch):
    monkeypatch.setattr(reader, "inflater", zlib)
    data = png.write(blobs(20, 30, 5), filters=(4, 1))
    assert png.agrees(data)
    short = png.stream(SAMPLES)[:-1]
    chunks = [(b"IHDR", png.header(3, 2)[8:-4]), (b"IDAT", short), (b"IEND", b"")]
    assert read_png(png.join(chunks)) is None


def test_without_the_extension_all_is_left_to_pillow(png, monkeypatch):
    monkeypatch.setattr(reader, "EXTENSION_BUILT", False)
    assert read_png(png.write(SAMPLES)) is None


@needs_extension
def test_the_c_function_checks_what_it_is_given():
    from segiou.masks._png import unfilter

    good = (bytes(8), bytearray(6), bytearray(3), 3, 8, 1)
    assert unfilter(*good) is True
    wrong = [(0, bytes(7)), (0, bytes(4)), (1, bytearray(5)), (1, bytearray(3)), (2, bytearray(4))]
    wrong += [(3, 0), (3, -3), (3, 2**62), (4, 3), (4, 4), (5, 0), (5, 256)]
    for place, value in wrong:
        arguments = [value if i == place else good[i] for i in range(6)]
        with pytest.raises(ValueError, match="do not fit"):
            unfilter(*arguments)
    with pytest.raises(TypeError):
        unfilter(bytes(8), bytes(6), *good[2:])
    assert unfilter(b"\5" + bytes(7), *good[1:]) is False


@needs_extension
def test_the_c_function_goes_on_from_the_row_above():
    from segiou.masks._png import unfilter

    for depth, width, packed in ((8, 2, b"\1\2"), (4, 4, b"\x12\x34")):
        above, out = bytearray(packed), bytearray(width)
        assert unfilter(b"\2\1\1", out, above, width, depth, 1) is True
        assert bytes(above) == bytes(byte + 1 for byte in packed)
        assert out == (above if depth == 8 else b"\1\3\3\5")
