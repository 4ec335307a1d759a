"""Images as their formats define them: samples of PGM and PPM, 16 bits, and missing rows."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import warnings
import zlib

import numpy as np
import pytest
from mask_files import required
from PIL import Image, PngImagePlugin

from segiou import MaskError, load_labels
from segiou.masks import LocalFolder, open_mask, open_source
from segiou.masks.colors import packed
from segiou.masks.formats.image_files import Scratch
from segiou.masks.read import from_bytes


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


@pytest.mark.parametrize(
    ("kind", "options"),
    [("png", {}), ("png", {"bits": 1}), ("jpeg", {}), ("webp", {"lossless": True})],
)
def test_an_image_that_programs_turn_is_refused_like_a_tiff(tmp_path, kind, options):
    path = tmp_path / f"mask.{kind}"
    image = Image.new("RGB" if kind == "webp" else "P" if options else "L", (6, 4))
    for orientation in (1, 3, 6):
        exif = Image.Exif()
        exif[274] = orientation
        image.save(path, exif=exif, **options)
        if orientation == 1:
            assert open_mask(path).values.shape[:2] == (4, 6)
            assert LocalFolder(str(tmp_path)).read(str(path))
            continue
        with pytest.raises(MaskError, match=rf"has the Orientation tag {orientation}, which"):
            open_mask(path)
    os.utime(path, (1e9, 1e9))  # a file that just changed is read with more care
    small = LocalFolder(str(tmp_path)).read_small(str(path), Scratch())
    assert small is None or isinstance(small[0], bytes)


def test_an_orientation_in_xmp_counts_and_a_corrupt_exif_does_not(tmp_path):
    xmp = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf tiff:Orientation="8"/></x:xmpmeta>'
    info = PngImagePlugin.PngInfo()
    info.add_itxt("XML:com.adobe.xmp", xmp)
    Image.new("L", (6, 4)).save(tmp_path / "xmp.png", pnginfo=info)
    with pytest.raises(MaskError, match="has the Orientation tag 8"):
        open_mask(tmp_path / "xmp.png")
    info = PngImagePlugin.PngInfo()
    info.add(b"eXIf", b"anything")
    Image.new("L", (6, 4), 3).save(tmp_path / "other.png", pnginfo=info)
    assert (open_mask(tmp_path / "other.png").values == 3).all()


def bmp(indices, bits, palette):
    """A BMP of 1, 4 or 8 bits, as the specification has it."""
    height, width = indices.shape
    samples = (indices[..., None] >> np.arange(bits - 1, -1, -1)) & 1
    rows = np.packbits(samples.reshape(height, -1).astype(np.uint8), axis=1)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))[::-1].tobytes()
    colors = b"".join(struct.pack("4B", *color[::-1], 0) for color in palette)
    start = 54 + len(colors)
    head = struct.pack("<2sIHHI", b"BM", start + len(rows), 0, 0, start)
    info = (40, width, height, 1, bits, 0, len(rows), 0, 0, len(palette), 0)
    return head + struct.pack("<IiiHHIIiiII", *info) + colors + rows


@pytest.mark.parametrize("bits", [1, 4, 8])
@pytest.mark.parametrize("colors", [2, 3, 16, 200])
@pytest.mark.parametrize("kind", ["grey", "black and white", "colour"])
def test_a_bmp_gives_its_indices_whatever_its_palette(tmp_path, bits, colors, kind):
    colors = min(colors, 1 << bits)
    palette = {
        "grey": [(i, i, i) for i in range(colors)],
        "black and white": [(255 * (i % 2),) * 3 for i in range(colors)],
        "colour": [(i, 7, 255 - i) for i in range(colors)],
    }[kind]
    indices = np.random.default_rng(bits).integers(0, colors, (7, 13))
    data = bmp(indices, bits, palette)
    (tmp_path / "a.bmp").write_bytes(data)
    np.testing.assert_array_equal(open_mask(tmp_path / "a.bmp").values, indices)
    (tmp_path / "a.bmp").write_bytes(data[:-9])
    with pytest.raises(MaskError, match="is corrupt"):
        open_mask(tmp_path / "a.bmp")


def test_a_palette_of_two_greys_written_by_pillow(tmp_path):
    image = Image.fromarray(np.uint8([[0, 1, 1], [1, 0, 0]]), "P")
    image.putpalette([0, 0, 0, 255, 255, 255])
    image.save(tmp_path / "a.bmp")
    assert open_mask(tmp_path / "a.bmp").values.tolist() == [[0, 1, 1], [1, 0, 0]]


def test_images_without_a_decoder_are_not_called_corrupt(tmp_path):
    """HDF5 has no loader in Pillow, although it knows the format."""
    path = tmp_path / "a.xyz"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    with pytest.raises(MaskError, match=r"cannot be read by Pillow \(cannot find loader"):
        open_mask(path)


FIRST_OF_TWO_THREADS = """
import sys, threading
from PIL import Image
from segiou import read_mask

searched, loaded = threading.Event(), threading.Event()
masks = []


def trace(frame, event, _):
    if event == "return" and not searched.is_set():  # found nothing among the formats so far
        searched.set()
        assert loaded.wait(60)
    return trace if frame.f_code.co_name == "_open_core" else None


def read():
    sys.settrace(trace)
    masks.append(read_mask("mask.tga"))


thread = threading.Thread(target=read)
thread.start()
assert searched.wait(60)
Image.init()  # as the other thread does once it has found nothing
loaded.set()
thread.join()
assert masks[0].tolist() == [[1, 2]]
"""


@pytest.mark.gate
def test_a_format_that_another_thread_loads_is_found(tmp_path):
    Image.fromarray(np.uint8([[1, 2]])).save(tmp_path / "mask.tga")
    subprocess.run([sys.executable, "-c", FIRST_OF_TWO_THREADS], cwd=tmp_path, check=True)


def test_transparent_values_and_colours_are_kept(tmp_path):
    grey = np.uint8([[0, 1, 2], [2, 1, 0]])
    Image.fromarray(grey).save(tmp_path / "grey.png", transparency=0)
    assert open_mask(tmp_path / "grey.png").values.tolist() == grey.tolist()
    indices = Image.fromarray(grey)
    indices.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0])
    indices.save(tmp_path / "palette.png", transparency=0)
    assert open_mask(tmp_path / "palette.png").values.tolist() == grey.tolist()
    colors = np.stack([grey * 100, grey * 0, grey * 0], axis=-1)
    Image.fromarray(colors).save(tmp_path / "colors.png", transparency=(0, 0, 0))
    found = packed(open_mask(tmp_path / "colors.png").values)  # red + 256 green + 65536 blue
    assert found.tolist() == [[0, 100, 200], [200, 100, 0]]


def test_names_as_long_as_the_system_allows(tmp_path):
    """Names of other files that may be beside them are longer."""
    name = "a" * 251
    values = np.uint8([[0, 1]])
    Image.fromarray(values).save(tmp_path / f"{name}.tif")
    assert open_mask(tmp_path / f"{name}.tif").values.tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="has no classes"):
        load_labels(tmp_path / f"{name}.tif")
    (tmp_path / "yolo").mkdir()
    (tmp_path / "yolo" / f"{name}.txt").write_text("0 0 0 1 0 1 1")
    source = open_source(tmp_path / "yolo")
    (path,) = source.find().values()
    assert source.lacks_size(path)
    segment = {"image_id": 1, "file_name": "a" * 300, "segments_info": []}
    (tmp_path / "p.json").write_text(json.dumps({"annotations": [segment]}))
    source = open_source(tmp_path / "p.json")
    (path,) = source.find().values()
    with pytest.raises(MaskError, match="aaa: does not exist"):
        source.read(path)
