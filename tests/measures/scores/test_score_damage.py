"""Score files with missing parts, or that would take more memory than the truth's shape needs."""

from __future__ import annotations

import io
import resource
import struct
import zipfile
import zlib

import numpy as np
import pytest
import tifffile

from segiou import MaskError
from segiou.masks.formats.numpy_files import npz_mask
from segiou.masks.read import from_bytes
from segiou.measures.scores.files import ScoreShape, read_scores

SCORES = np.random.default_rng(0).random((2, 32, 48)).astype(np.float32)
WANTED = ScoreShape((32, 48), 2, "first")
LAYOUTS = {
    "strips": {"rowsperstrip": 8},
    "tiles": {"tile": (16, 16)},
    "deflated strips": {"rowsperstrip": 8, "compression": "zlib"},
    "deflated tiles": {"tile": (16, 16), "compression": "zlib", "predictor": 3},
    "planes": {"planarconfig": "separate", "rowsperstrip": 8},
}


def tiff(array=SCORES, **options):
    file = io.BytesIO()
    tifffile.imwrite(file, array, photometric="minisblack", **options)
    return file.getvalue()


def places(data, tag):
    """Where the values of a tag lie in a TIFF, for every page."""
    found = []
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        for page in file.pages:
            one = page.tags[tag]
            size = {3: 2, 4: 4, 16: 8}[int(one.dtype)]
            found += [(one.valueoffset + i * size, size) for i in range(one.count)]
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sound_files_are_read(layout):
    options = dict(LAYOUTS[layout])
    options.pop("predictor", None)
    found, _ = read_scores(tiff(**options), "a.tif", WANTED)
    assert np.array_equal(found, SCORES)


@pytest.mark.few(5)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tags", [(273, 279), (273,), (279,)], ids=["both", "offset", "count"])
def test_missing_strips_and_tiles_are_no_zeros(layout, tags):
    options = dict(LAYOUTS[layout])
    options.pop("predictor", None)
    whole = tiff(**options)
    names = {273: 324, 279: 325} if "tile" in options else {273: 273, 279: 279}
    number = len(places(whole, names[279]))
    for part in range(number):
        data = bytearray(whole)
        for tag in tags:
            at, size = places(whole, names[tag])[part]
            data[at : at + size] = bytes(size)
        with pytest.raises(MaskError, match="tile or strip"):
            read_scores(bytes(data), "a.tif", WANTED)


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_missing_pages(compression):
    whole = tiff(compression=compression)
    with tifffile.TiffFile(io.BytesIO(whole)) as file:
        first, second = file.pages[0].offset, file.pages[1].offset
    data = bytearray(whole)
    entries = struct.unpack_from("<H", data, first)[0]
    assert struct.unpack_from("<I", data, first + 2 + 12 * entries)[0] == second
    struct.pack_into("<I", data, first + 2 + 12 * entries, 0)
    if compression is None:  # its planes follow each other, and are there
        assert np.array_equal(read_scores(bytes(data), "a.tif", WANTED)[0], SCORES)
        return
    with pytest.raises(MaskError, match="planes are missing"):
        read_scores(bytes(data), "a.tif", WANTED)


def test_truncated_files():
    whole = tiff(**LAYOUTS["strips"])
    with tifffile.TiffFile(io.BytesIO(whole)) as file:
        last = max(
            o + n for p in file.pages for o, n in zip(p.dataoffsets, p.databytecounts, strict=True)
        )
    with pytest.raises(MaskError):
        read_scores(whole[: last - 100], "a.tif", WANTED)


def test_two_images_in_a_file():
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as writer:
        writer.write(SCORES, photometric="minisblack")
        writer.write(SCORES[0], photometric="minisblack")
    with pytest.raises(MaskError, match="contains 2 images"):
        read_scores(file.getvalue(), "a.tif", WANTED)


def in_little_memory(function):
    """Runs a function, and returns by how many MB it raised the peak of this process."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    function()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def bomb(size=1 << 28):
    """A zlib stream of that many zeros."""
    engine = zlib.compressobj(1)
    piece = bytes(1 << 20)
    return b"".join(engine.compress(piece) for _ in range(size >> 20)) + engine.flush()


def with_strip(data, strip):
    """A TIFF of a page whose only strip is another one."""
    (at, size), (count, width) = places(data, 273)[0], places(data, 279)[0]
    found = bytearray(data)
    found[at : at + size] = len(data).to_bytes(size, "little")
    found[count : count + width] = len(strip).to_bytes(width, "little")
    return bytes(found) + strip


@pytest.mark.gate
def test_a_strip_that_would_unpack_to_256_megabytes():
    data = with_strip(tiff(SCORES[0], compression="zlib"), bomb())

    def refused():
        with pytest.raises(MaskError, match="too many bytes"):
            read_scores(data, "a.tif", ScoreShape((32, 48), 2))

    assert in_little_memory(refused) < 100


@pytest.mark.parametrize("shape", [(1 << 15, 1 << 15), (2, 1 << 14, 1 << 15)])
def test_shapes_are_compared_first(shape):
    """A declared size takes no memory, whatever follows."""
    header = io.BytesIO()
    about = {"shape": shape, "fortran_order": False, "descr": "|u1"}
    np.lib.format.write_array_header_1_0(header, about)
    content = header.getvalue() + bytes(1 << 10)
    with pytest.raises(MaskError, match="has shape"):
        read_scores(content, "a.npy", WANTED)


def zeros_npz(kind, size=1 << 27):
    """An .npz of an array of zeros, (size,)."""
    header, file = io.BytesIO(), io.BytesIO()
    about = {"shape": (1, size), "fortran_order": False, "descr": "|u1"}
    np.lib.format.write_array_header_1_0(header, about)
    with zipfile.ZipFile(file, "w", kind) as archive, archive.open("a.npy", "w") as member:
        member.write(header.getvalue())
        for _ in range(size >> 20):
            member.write(bytes(1 << 20))
    return file.getvalue()


KINDS = [zipfile.ZIP_DEFLATED, *(pytest.param(k, marks=pytest.mark.gate) for k in (12, 14))]


@pytest.mark.parametrize("kind", KINDS, ids=["deflate", "bzip2", "lzma"])
@pytest.mark.gate
def test_zeros_in_an_npz_are_not_unpacked(kind):
    data = zeros_npz(kind)

    def refused():
        with pytest.raises(MaskError, match="has shape"):
            read_scores(data, "a.npz", WANTED)

    assert in_little_memory(refused) < 50


@pytest.mark.parametrize("kind", [0, zipfile.ZIP_DEFLATED, 12, 14])
@pytest.mark.gate
def test_every_compression_of_npz_is_read(kind):
    coarse = np.random.default_rng(0).integers(0, 9, (70, 200)).astype(np.uint8)
    values = np.kron(coarse, np.ones((10, 10), np.uint8))
    for array in (values, np.asfortranarray(values), values[:1, :0], values * 0):
        npy, file = io.BytesIO(), io.BytesIO()
        np.save(npy, array)
        with zipfile.ZipFile(file, "w", kind) as archive:
            archive.writestr("a.npy", npy.getvalue())
        data = file.getvalue()
        assert np.array_equal(npz_mask(data, "a.npz", "", None)[0], array)
        assert np.array_equal(from_bytes(data, "a.npz").values, array)
        damaged = bytearray(data)
        damaged[len(data) // 3] ^= 64
        if kind and array.any():
            with pytest.raises(MaskError):
                npz_mask(bytes(damaged), "a.npz", "", None)
