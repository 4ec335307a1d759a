"""Texts and profiles inside PNG files: read past where they are harmless, else refused."""

from __future__ import annotations

import zlib

import pytest

from segiou.masks.formats import image_files as reader
from segiou.masks.formats.image_files import read_png

needs_extension = pytest.mark.skipif(
    not reader.EXTENSION_BUILT, reason="the C extension of the PNG reader is not built"
)

SAMPLES = [[0, 1, 1], [2, 2, 1]]

DEFLATED = zlib.compress(b"hello")
BOMB = zlib.compress(bytes(1 << 21))


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (b"tEXt", b"Software\0segiou"),
        (b"tEXt", b"date:create\x002026"),
        (b"zTXt", b"Comment\0\0" + DEFLATED),
        (b"iCCP", b"ICC profile\0\0" + DEFLATED),
        (b"iTXt", b"Title\0\0\0en\0\0plain"),
        (b"iTXt", b"Title\0\1\0en\0\0" + DEFLATED),
        (b"iTXt", b"Title\0\0\0en\0\0\xff not UTF-8"),
        (b"tIME", bytes(7)),
    ],
)
@needs_extension
def test_texts_do_no_harm(png, name, body):
    assert png.agrees(png.write(SAMPLES, before=[png.chunk(name, body)]))
    assert png.agrees(png.write(SAMPLES, after=[png.chunk(name, body)]))


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (b"tEXt", b"interlace\0yes"),  # Pillow then reads seven passes
        (b"tEXt", b"bbox\0yes"),
        (b"tEXt", b"transparency\0yes"),
        (b"tEXt", b"no separator"),
        (b"tEXt", b"\0no keyword"),
        (b"tEXt", b"Long\0" + bytes(1 << 17)),
        (b"zTXt", b"interlace\0\0" + DEFLATED),
        (b"zTXt", b"Method\0\1" + DEFLATED),
        (b"zTXt", b"Bomb\0\0" + BOMB),
        (b"zTXt", b"Damaged\0\0" + DEFLATED[:-1]),
        (b"iCCP", b"Method\0\1" + DEFLATED),
        (b"iCCP", b"Bomb\0\0" + BOMB),
        (b"iCCP", b"nothing"),
        (b"iTXt", b"interlace\0\0\0\0\0yes"),
        (b"iTXt", b"Bomb\0\1\0\0\0" + BOMB),
        (b"iTXt", b"Flag\0\2\0\0\0" + DEFLATED),
        (b"iTXt", b"Method\0\1\1\0\0" + DEFLATED),
        (b"iTXt", b"Parts\0\0\0en"),
        (b"eXIf", b"anything"),  # could turn the image
        (b"tEXt", b"Raw profile type exif\0anything"),
        (b"zTXt", b"Raw profile type exif\0\0" + DEFLATED),
        (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0anything"),
    ],
)
def test_texts_that_could_do_harm(png, name, body):
    assert read_png(png.write(SAMPLES, before=[png.chunk(name, body)])) is None


def test_too_many_texts(png):
    text = png.chunk(b"tEXt", b"Comment\0x")
    assert read_png(png.write(SAMPLES, before=[text] * 257)) is None
