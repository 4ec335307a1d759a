"""Files that are none of the reader's business, or not in order, are left to Pillow."""

from __future__ import annotations

import io
import struct
import zlib

import pytest
from PIL import Image

from segiou.masks.formats import image_files as reader
from segiou.masks.formats.image_files import read_png

needs_extension = pytest.mark.skipif(
    not reader.EXTENSION_BUILT, reason="the C extension of the PNG reader is not built"
)

SAMPLES = [[0, 1, 1], [2, 2, 1]]


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, "PNG", **options)
    return file.getvalue()


# Kinds of images


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_other_modes_are_left_to_pillow(mode):
    assert read_png(saved(Image.new(mode, (3, 2)))) is None


def test_animations_are_left_to_pillow():
    frames = [Image.new("L", (3, 2), value) for value in (1, 2)]
    data = saved(frames[0], save_all=True, append_images=frames[1:])
    assert b"acTL" in data
    assert read_png(data) is None


def test_interlaced_files_are_left_to_pillow(png):
    data = png.write(SAMPLES)
    interlaced = png.SIGNATURE + png.header(3, 2, interlace=1) + data[33:]
    assert read_png(interlaced) is None


def test_without_the_extension_all_is_left_to_pillow(png, monkeypatch):
    monkeypatch.setattr(reader, "EXTENSION_BUILT", False)
    assert read_png(png.write(SAMPLES)) is None


def test_very_large_images_are_left_to_pillow(png, monkeypatch):
    data = png.write(SAMPLES)
    monkeypatch.setattr(reader, "MAX_PIXELS", 5)
    assert read_png(data) is None
    monkeypatch.setattr(reader, "MAX_PIXELS", 6)
    assert (read_png(data) is not None) == reader.EXTENSION_BUILT


def test_the_limit_is_where_pillow_begins_to_warn():
    assert Image.MAX_IMAGE_PIXELS == reader.MAX_PIXELS


def test_forged_size_allocates_nothing(png, monkeypatch):
    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(reader.Scratch, "take", fail)
    body = png.stream(SAMPLES)
    forged = png.SIGNATURE + png.header(8000, 8000) + png.chunk(b"IDAT", body) + png.chunk(b"IEND")
    assert read_png(forged) is None


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\0" * 100])
def test_what_is_no_png(data):
    assert read_png(data) is None


# Damage


def test_truncation_at_every_byte(png):
    data = png.write(SAMPLES, color=3, palette=bytes(9), cut=[3])
    assert png.agrees(data) or not reader.EXTENSION_BUILT
    assert [stop for stop in range(len(data)) if read_png(data[:stop]) is not None] == []


def test_any_wrong_byte(png):
    data = png.write(SAMPLES, color=3, palette=bytes(9), before=[png.chunk(b"gAMA", bytes(4))])
    assert png.agrees(data) or not reader.EXTENSION_BUILT
    for position in range(len(data)):
        for flip in (0x01, 0x20, 0x80):
            damaged = bytearray(data)
            damaged[position] ^= flip
            assert read_png(damaged) is None, position


@pytest.mark.parametrize("extra", [b"\0", b"\n", bytes(12), b"trailing"])
def test_bytes_behind_the_end(png, extra):
    assert read_png(png.write(SAMPLES) + extra) is None


def test_stream_of_the_wrong_size(png):
    good = zlib.decompress(png.stream(SAMPLES))
    for raw in (good[:-1], good + b"\0", b"", good * 2):
        chunks = [(b"IHDR", png.header(3, 2)[8:-4]), (b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
        assert read_png(png.join(chunks)) is None


def test_stream_that_is_damaged_or_goes_on(png):
    good = png.stream(SAMPLES)
    raw_deflate = good[2:-4]
    for body in (good + b"\0", good[:-1], good[:-1] + b"\0", raw_deflate, b"", good + good):
        chunks = [(b"IHDR", png.header(3, 2)[8:-4]), (b"IDAT", body), (b"IEND", b"")]
        assert read_png(png.join(chunks)) is None


@pytest.mark.parametrize("filters", [(5,), (0, 255)])
@needs_extension
def test_a_filter_that_does_not_exist(png, filters):
    raw = b"".join(bytes([filters[y % len(filters)]]) + bytes(3) for y in range(2))
    chunks = [(b"IHDR", png.header(3, 2)[8:-4]), (b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    assert read_png(png.join(chunks)) is None
    chunks[1] = (b"IDAT", zlib.compress(bytes(8)))
    assert read_png(png.join(chunks)) is not None


class Bits:
    """A deflate stream, bit by bit."""

    def __init__(self):
        self.bits = []

    def number(self, value, size):
        self.bits += [value >> place & 1 for place in range(size)]

    def symbol(self, value):
        base, size = (0x30, 8) if value < 144 else (0xC0 - 280, 8) if value >= 280 else (-256, 7)
        self.bits += [(base + value) >> place & 1 for place in reversed(range(size))]

    def zlib(self, content):
        bits = self.bits + [0] * (-len(self.bits) % 8)
        octets = [
            sum(bit << i for i, bit in enumerate(bits[j : j + 8])) for j in range(0, len(bits), 8)
        ]
        return b"\x78\x9c" + bytes(octets) + struct.pack(">I", zlib.adler32(content))


def test_length_codes_that_deflate_reserves(png):
    # RFC 1951, 3.2.6: symbols 286 and 287 never occur. Some inflaters take 286 for a length of
    # 258, and the checksum below is right for that reading.
    bits = Bits()
    bits.number(0b011, 3)
    bits.symbol(0)
    bits.symbol(286)
    bits.number(0, 5)
    bits.symbol(256)
    body = bits.zlib(bytes(259))
    data = png.join([(b"IHDR", png.header(258, 1)[8:-4]), (b"IDAT", body), (b"IEND", b"")])
    assert read_png(data) is None


# Order and number of chunks


IHDR = struct.pack(">IIBBBBB", 3, 2, 8, 3, 0, 0, 0)
GREY = struct.pack(">IIBBBBB", 3, 2, 8, 0, 0, 0, 0)


def chunks_of(*names, png):
    bodies = {"IHDR": IHDR, "grey": GREY, "PLTE": bytes(9), "IDAT": png.stream(SAMPLES)}
    bodies |= {"tRNS": b"\0\0", "IEND": b"", "gAMA": bytes(4), "half": bodies["IDAT"][:5]}
    bodies |= {"rest": bodies["IDAT"][5:], "none": b""}
    real = {"grey": "IHDR", "half": "IDAT", "rest": "IDAT", "none": "IDAT"}
    return png.join([(real.get(name, name).encode(), bodies.get(name, b"")) for name in names])


@pytest.mark.parametrize(
    "names",
    [
        "IHDR PLTE IDAT IEND",
        "grey IDAT IEND",
        "IHDR PLTE half rest IEND",
        "IHDR PLTE none half none rest none IEND",
        "IHDR PLTE tRNS IDAT IEND",
        "grey tRNS IDAT IEND",
        "IHDR gAMA PLTE gAMA IDAT gAMA IEND",
        "grey prVt IDAT vpAg IEND",
    ],
)
@needs_extension
def test_lawful_orders_are_read(png, names):
    assert png.agrees(chunks_of(*names.split(), png=png))


@pytest.mark.parametrize(
    "names",
    [
        "IHDR IDAT IEND",
        "IHDR PLTE PLTE IDAT IEND",
        "IHDR IDAT PLTE IEND",
        "grey PLTE IDAT IEND",
        "IHDR IHDR PLTE IDAT IEND",
        "IHDR PLTE IDAT IHDR IEND",
        "PLTE IHDR IDAT IEND",
        "IHDR tRNS PLTE IDAT IEND",
        "IHDR PLTE tRNS tRNS IDAT IEND",
        "grey IDAT tRNS IEND",
        "grey half gAMA rest IEND",
        "grey IEND IDAT IEND",
        "grey IDAT",
        "grey IEND",
        "grey IDAT IEND IEND",
        "grey CRIT IDAT IEND",
        "grey DDAT IDAT IEND",
        "grey prvt IDAT IEND",
        "grey ab1d IDAT IEND",
        "grey acTL IDAT IEND",
        "grey fcTL IDAT IEND",
        "grey IDAT fdAT IEND",
    ],
)
def test_unlawful_orders_are_left_to_pillow(png, names):
    assert read_png(chunks_of(*names.split(), png=png)) is None


@pytest.mark.parametrize("size", [0, 2, 4, 769, 771])
def test_palettes_of_unlawful_length(png, size):
    assert read_png(png.write(SAMPLES, color=3, palette=bytes(size))) is None


@pytest.mark.parametrize(("color", "size"), [(0, 0), (0, 1), (0, 3), (3, 0), (3, 4)])
def test_transparency_of_unlawful_length(png, color, size):
    trns = png.chunk(b"tRNS", bytes(size))
    palette = bytes(9) if color == 3 else None
    assert read_png(png.write(SAMPLES, 8, color, palette=palette, before=[trns])) is None


@pytest.mark.parametrize("name", [b"gAMA", b"cHRM", b"sRGB", b"pHYs"])
@pytest.mark.parametrize("change", [-1, 1])
def test_facts_of_unlawful_length(png, name, change):
    right = {b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"pHYs": 9}[name]
    assert png.agrees(png.write(SAMPLES, before=[png.chunk(name, bytes(right))])) or (
        not reader.EXTENSION_BUILT
    )
    assert read_png(png.write(SAMPLES, before=[png.chunk(name, bytes(right + change))])) is None
