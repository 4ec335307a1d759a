"""Deflated TIFF: the values as written, whole and in windows, and damage that is named."""

from __future__ import annotations

import zlib
from itertools import product

import numpy as np
import pytest
import tifffile

from segiou.masks.formats.tiff import open_tiff, read_tiff
from segiou.masks.raw_mask import MaskError

SHAPE = (37, 50)
LABELS = np.random.default_rng(0).integers(0, 9, SHAPE).repeat(2, axis=1)[:, :50]
LAYOUTS = [{}, {"rowsperstrip": 8}, {"tile": (16, 32)}]


@pytest.fixture
def written(tmp_path):
    """A file, and the place and size of its first tile or strip."""

    def write(dtype="uint8", order="<", predictor=False, **layout):
        path = tmp_path / "a.tif"
        options = {"compression": "zlib", "photometric": "minisblack", "byteorder": order}
        tifffile.imwrite(path, LABELS.astype(dtype), predictor=predictor, **options, **layout)
        with tifffile.TiffFile(path) as file:
            page = file.pages.first
            return path, page.dataoffsets[0], page.databytecounts[0]

    return write


@pytest.mark.parametrize("layout", LAYOUTS, ids=["whole", "strips", "tiles"])
@pytest.mark.parametrize("predictor", [False, True])
def test_values_are_those_that_were_written(written, layout, predictor):
    for dtype, order in product(("uint8", "int8", "uint16", "int16", "uint32", "int32"), "<>"):
        path, _, _ = written(dtype, order, predictor, **layout)
        found = read_tiff(path.read_bytes(), path)
        assert found.values.dtype == dtype
        np.testing.assert_array_equal(found.values, LABELS)
        with open_tiff(path, least=1).values as windows:
            np.testing.assert_array_equal(windows[5:30, 7:49], LABELS[5:30, 7:49])


@pytest.mark.parametrize("layout", LAYOUTS, ids=["whole", "strips", "tiles"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_areas_of_one_label_are_those_that_were_written(tmp_path, dtype, layout):
    ends = np.iinfo(dtype)
    labels = np.random.default_rng(1).choice([0, 7, ends.min, ends.max], (40, 5)).astype(dtype)
    labels = labels.repeat(60, axis=1)
    labels[9], labels[11, 123:125] = 0, 3
    tifffile.imwrite(tmp_path / "a.tif", labels, compression="zlib", predictor=True, **layout)
    found = read_tiff((tmp_path / "a.tif").read_bytes(), tmp_path / "a.tif")
    np.testing.assert_array_equal(found.values, labels)


@pytest.mark.few(1)
@pytest.mark.parametrize("layout", LAYOUTS, ids=["whole", "strips", "tiles"])
def test_no_flipped_bit_changes_labels(written, layout):
    path, at, size = written(predictor=True, **layout)
    data, rejected = path.read_bytes(), 0
    for bit in range(0, 8 * size, 7):
        damaged = bytearray(data)
        damaged[at + bit // 8] ^= 1 << bit % 8
        try:
            found = read_tiff(bytes(damaged), path)
        except MaskError as error:
            assert "is a corrupt TIFF" in str(error)
            rejected += 1
        else:
            np.testing.assert_array_equal(found.values, LABELS)
    assert rejected > size


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (zlib.compress(bytes(LABELS.size - 1)), "strip 0 is too short"),
        (zlib.compress(bytes(1 << 20)), "strip 0 is too large"),
        (zlib.compress(LABELS.astype("u1").tobytes(), 0)[:-4], "strip 0 is too short"),
    ],
    ids=["fewer rows", "bomb", "no checksum"],
)
def test_other_sizes_than_those_of_the_pixels_are_corrupt(written, content, problem):
    path, *_ = written()
    data = bytearray(path.read_bytes())
    with tifffile.TiffFile(path) as file:
        count, offset = (file.pages.first.tags[code] for code in (279, 273))
        places = count.valueoffset, offset.valueoffset
    data[places[0] : places[0] + 4] = len(content).to_bytes(4, "little")
    data[places[1] : places[1] + 4] = len(data).to_bytes(4, "little")
    path.write_bytes(data + content)
    with pytest.raises(MaskError, match=problem):
        read_tiff(path.read_bytes(), path)
    with open_tiff(path, least=1).values as windows, pytest.raises(MaskError, match=problem):
        _ = windows[:, :]
