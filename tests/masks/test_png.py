"""Which PNG files are read, and that what is read is what Pillow reads."""

from __future__ import annotations

import io
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from segiou.masks.formats import image_files as reader
from segiou.masks.formats.image_files import Scratch, read_png

pytestmark = pytest.mark.skipif(
    not reader.EXTENSION_BUILT, reason="the C extension of the PNG reader is not built"
)

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
DEPTHS = (1, 2, 4, 8)
KINDS = [(depth, color) for color in (0, 3) for depth in DEPTHS] + [(16, 0)]


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, "PNG", **options)
    return file.getvalue()


# Values


def test_grey_of_two_bits_is_spread_over_the_byte(png):
    mask = read_png(png.write([[0, 1, 2, 3, 1]], depth=2))
    assert mask.values.tolist() == [[0, 85, 170, 255, 85]]
    assert mask.mode == "L"


def test_grey_of_four_bits_is_spread_over_the_byte(png):
    assert read_png(png.write([[0, 1, 15]], depth=4)).values.tolist() == [[0, 17, 255]]


def test_one_bit_gives_zero_and_one(png):
    mask = read_png(png.write([[1, 0, 1], [0, 0, 1]], depth=1))
    assert (mask.mode, mask.values.tolist()) == ("1", [[1, 0, 1], [0, 0, 1]])


def test_samples_of_16_bits_have_their_high_byte_first(png):
    mask = read_png(png.write([[258, 65535, 1]], depth=16))
    assert (mask.mode, mask.values.tolist()) == ("I;16", [[258, 65535, 1]])


def test_palette_indices_are_kept_even_beyond_the_palette(png):
    mask = read_png(png.write([[0, 1, 200]], color=3, palette=b"\1\2\3\4\5\6"))
    assert (mask.mode, mask.values.tolist()) == ("P", [[0, 1, 200]])


def test_a_paeth_row_worked_out_by_hand(png):
    # 10 + 1; then left 11, above 20, corner 10 guess 21, nearest is above: 20 + 0; then
    # left 20, above 30, corner 20 guess 30, nearest is above: 30 + 5.
    raw = bytes([0, 10, 20, 30, 4, 1, 0, 5])
    data = png.SIGNATURE + png.header(3, 2) + png.chunk(b"IDAT", zlib.compress(raw))
    assert read_png(data + png.chunk(b"IEND")).values.tolist() == [[10, 20, 30], [11, 20, 35]]


@pytest.mark.parametrize("filters", [(0,), (1,), (2,), (3,), (4,), (4, 3, 2, 1, 0), (2, 4)])
@pytest.mark.parametrize("color", [0, pytest.param(3, marks=pytest.mark.gate)])
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.gate
def test_every_filter_depth_and_width(png, blobs, depth, color, filters):
    rng = np.random.default_rng(depth)
    for width in (1, 2, 3, 7, 8, 9, 15, 16, 17, 18, 31, 33, 64, 131):
        for height in (1, 7):
            noise = rng.integers(0, 2**depth, (height, width), np.uint8)
            for samples in (blobs(height, width, 2**depth), noise):
                data = png.write(samples, depth, color, filters)
                assert png.agrees(data)
                scale = 255 // (2**depth - 1) if color == 0 and depth > 1 else 1
                np.testing.assert_array_equal(read_png(data).values, samples * scale)


@given(data=st.data())
def test_round_trip_through_the_forced_filters(png, data):
    depth, color = data.draw(st.sampled_from(KINDS))
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=40))
    samples = data.draw(hnp.arrays(np.uint16, shape, elements=st.integers(0, 2**depth - 1)))
    filters = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    assert png.agrees(png.write(samples, depth, color, filters))


@given(
    values=hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=40)),
    mode=st.sampled_from(["L", "P", "1"]),
    level=st.integers(0, 9),
)
def test_round_trip_through_pillow(png, values, mode, level):
    image = Image.fromarray(values) if mode == "L" else Image.fromarray(values).convert(mode)
    assert png.agrees(saved(image, compress_level=level))


def test_a_larger_mask_of_each_filter(png, blobs):
    samples = blobs(200, 501, 19)
    for kind in range(5):
        assert png.agrees(png.write(samples, filters=(kind,)))


@pytest.mark.parametrize("folder", ["camvid", "davis", "ade20k_sample"])
@pytest.mark.gate
def test_every_real_mask(png, folder):
    if not SHARED.is_dir():
        pytest.skip("the shared data are not here")
    paths = [path for path in SHARED.glob(f"{folder}/**/*.png") if "images" not in path.parts]
    assert len(paths) >= 6
    assert [path.name for path in paths if not png.agrees(path.read_bytes())] == []


@pytest.mark.parametrize(
    "fields",
    [
        {"width": 0},
        {"height": 0},
        {"width": 1 << 31},
        {"width": 1 << 16, "height": 1 << 16},
        {"depth": 3},
        {"depth": 16},
        {"depth": 16, "color": 3},
        {"color": 1},
        {"color": 2},
        {"compression": 1},
        {"filtering": 1},
        {"interlace": 1},
        {"interlace": 2},
    ],
)
def test_a_header_that_is_not_plain_is_left_to_pillow(png, fields):
    data = png.write([[1, 2], [3, 4]])
    assert read_png(png.SIGNATURE + png.header(2, 2) + data[33:]) is not None
    header = png.header(**({"width": 2, "height": 2} | fields))
    assert read_png(png.SIGNATURE + header + data[33:]) is None


def test_values_are_the_callers_own(png):
    data = png.write([[1, 2]])
    first, second = read_png(data), read_png(data)
    first.values[:] = 9
    assert second.values.tolist() == [[1, 2]]


def test_scratch_memory_is_used_again_and_grows(png):
    scratch = Scratch()
    small = read_png(png.write([[1, 2]]), scratch=scratch).values
    large = read_png(png.write([[1, 2], [3, 4]]), scratch=scratch).values
    assert (small.tolist(), large.tolist()) == ([[1, 2]], [[1, 2], [3, 4]])
    again = read_png(png.write([[5, 6, 7]]), scratch=scratch).values
    assert np.shares_memory(large, again)
    assert (again.tolist(), large.ravel()[:3].tolist()) == ([[5, 6, 7]], [5, 6, 7])


def test_scratch_memory_does_not_keep_what_is_huge():
    scratch = Scratch()
    assert not np.shares_memory(scratch.take(1 << 27), scratch.take(4))


def test_threads_read_the_same(png, blobs):
    files = [png.write(blobs(90, 120, 9, seed), filters=(seed % 5,)) for seed in range(8)] * 4
    alone = [read_png(data).values for data in files]
    with ThreadPoolExecutor(4) as pool:
        together = [mask.values for mask in pool.map(read_png, files)]
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
