"""The compiled kernel equals NumPy and SciPy, and refuses what does not fit."""

import itertools

import numpy as np
import pytest
from instruction_sets import loops_here

from segiou.measures.boundary import BoundaryOptions, image as boundary_image
from segiou.regions import surface_points
from segiou.regions.surface_points import SurfacePair

kernel = pytest.importorskip(
    "segiou.measures.boundary._kernel", reason="the kernel is not built here"
)


def count_one_pixel(loops):
    codes, counts = np.zeros((1, 1), dtype=np.uint8), [np.zeros((1, n), int) for n in (3, 3, 2)]
    kernel.count_bands(codes, codes, 1, 1, 1, 1, 1, 0, *counts, loops)


LOOPS = loops_here(count_one_pixel)
SHAPES = [(1, 1), (1, 40), (40, 1), (7, 9), (33, 64), (20, 131)]


def noisy(masks, seed, shape, num_classes):
    """Codes with ignored and unassigned pixels."""
    rng = np.random.default_rng(seed)
    truth = masks.blobs(seed, shape=shape, num_classes=num_classes, smooth=1.0)
    pred = rng.integers(0, num_classes, shape).astype(np.uint8)
    pred = np.where(rng.random(shape) < 0.7, truth, pred)
    pred[rng.random(shape) < 0.05] = 254
    ignored = masks.blobs(seed + 5, shape=shape, smooth=1.0) == 1
    return (np.where(ignored, 255, x).astype(np.uint8) for x in (truth, pred))


@pytest.mark.few(9)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [1, 2, 7, 8, 64, 1000])
def test_bands_equal_numpy(masks, shape, width):
    for seed, borders in enumerate([(True, False), (False, True), (True, None)]):
        truth, pred = noisy(masks, seed, shape, 5)
        got = boundary_image.count_bands(truth, pred, 5, width, *borders)
        expected = boundary_image.reference_bands(truth, pred, 5, width, *borders)
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("loops", LOOPS)
@pytest.mark.parametrize("num_classes", [5, 60])
def test_all_loops_count_the_same(masks, loops, num_classes):
    for seed, shape in enumerate([(40, 130), (70, 64), (3, 65), (90, 5)]):
        truth, pred = noisy(masks, seed, shape, num_classes)
        for width in (2, 33, 70):
            counts = [np.zeros((num_classes, n), dtype=np.int64) for n in (3, 3, 2)]
            kernel.count_bands(truth, pred, *shape, num_classes, width, 1, 0, *counts, loops)
            expected = boundary_image.reference_bands(truth, pred, num_classes, width, True, False)
            for ours, theirs in zip(counts, expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_unknown_loops_are_refused():
    assert "c" in LOOPS
    codes, counts = np.zeros((4, 5), dtype=np.uint8), [np.zeros((2, n), int) for n in (3, 3, 2)]
    with pytest.raises(ValueError, match="no such loops"):
        kernel.count_bands(codes, codes, 4, 5, 2, 1, 1, 0, *counts, "abacus")


@pytest.mark.parametrize("shape", [(1, 300), (30, 50), (30, 2), (9, 1)])
def test_what_differs_across_ignored_columns_is_near(shape):
    # A gap that takes whole windows' heights, narrower and wider than the reach.
    rng = np.random.default_rng(0)
    for width in (1, 3, 10, 40):
        truth = rng.integers(0, 3, shape).astype(np.uint8)
        for gap in range(1, 25, 3):
            at = rng.integers(0, shape[1])
            truth[:, at : at + gap] = 255
            pred = np.where(truth == 255, truth, 1).astype(np.uint8)
            got = boundary_image.count_bands(truth, pred, 3, width, False, False)
            expected = boundary_image.reference_bands(truth, pred, 3, width, False, False)
            for ours, theirs in zip(got, expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("shape", [(300, 70), (260, 3), (600, 40)])
def test_windows_higher_than_a_byte_counts(masks, shape):
    truth, pred = noisy(masks, 1, shape, 5)
    truth[100:230] = pred[100:230] = 255
    for width in (126, 127, 128, 200, 700):
        got = boundary_image.count_bands(truth, pred, 5, width, True, False)
        expected = boundary_image.reference_bands(truth, pred, 5, width, True, False)
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_windows_higher_than_two_bytes_count():
    truth = np.zeros((70_000, 1), dtype=np.uint8)
    truth[-1] = 1
    for width, near in ((32_767, 32_767), (32_768, 32_768), (80_000, 69_999)):
        inner, _, outer = boundary_image.count_bands(truth, truth, 2, width, False, False)
        assert inner.tolist() == [[near] * 3, [1] * 3]
        assert outer.tolist() == [[0, 1], [0, near]]


def test_a_class_in_few_rows_is_not_near_the_next_row_of_others():
    # Class 0 is everywhere, and its bits are still there when those of class 1 are spread.
    truth = np.zeros((173, 187), dtype=np.uint8)
    truth[60:75, 20:50] = 1
    for width in (33, 45, 63):
        got = boundary_image.count_bands(truth, truth, 2, width, True, False)
        expected = boundary_image.reference_bands(truth, truth, 2, width, True, False)
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_long_runs_are_counted_whole():
    # Runs are added up in bytes, which must be emptied in time.
    truth = np.zeros((70, 200), dtype=np.uint8)
    truth[:, 100:] = 1
    for width in (60, 300):
        got = boundary_image.count_bands(truth, truth, 2, width, True, True)
        expected = boundary_image.reference_bands(truth, truth, 2, width, True, True)
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.few(6)
@pytest.mark.skipif(surface_points._kernel is None, reason="the kernel is not built here")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("border", [True, False])
@pytest.mark.parametrize("kind", ["voxels", "elements"])
def test_surfaces_of_images_equal_scipy(masks, monkeypatch, shape, border, kind):
    truth, pred = noisy(masks, 3, shape, 4)
    structures = {"0": (0,), "1": (1,), "others": (2, 3), "without a class": (254,)}
    for spacing, ignore in itertools.product([(1.0, 1.0), (0.3, 2.0)], [(), (255,), (0, 255)]):
        pair = SurfacePair(
            *(truth, pred, spacing, kind, frozenset(ignore)), of_each=True, border=border
        )
        with monkeypatch.context() as patch:
            patch.setattr(surface_points, "_kernel", None)
            patch.setattr(surface_points, "warn_missing", lambda module: None)
            expected = dict(pair.distances(structures))
        found = dict(pair.distances(structures))
        assert found.keys() == expected.keys()
        for name, both in found.items():
            for ours, theirs in zip(both, expected[name], strict=True):
                np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-12)
                np.testing.assert_array_equal(ours.weights, theirs.weights)
                assert ours.size == theirs.size


@pytest.mark.skipif(surface_points._kernel is None, reason="the kernel is not built here")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["voxels", "elements"])
def test_points_of_images_equal_numpy(masks, monkeypatch, shape, kind):
    truth, _ = noisy(masks, 3, shape, 4)
    # Code 0 is also the outside, so the border is ignored if 0 is.
    for ignored in (-1, 255, 0):
        found = surface_points.find_points(truth, [1, 2, 3], kind, ignored)
        with monkeypatch.context() as patch:
            patch.setattr(surface_points, "_kernel", None)
            patch.setattr(surface_points, "warn_missing", lambda module: None)
            expected = surface_points.find_points(truth, [1, 2, 3], kind, ignored)
        assert found.keys() == expected.keys()
        for label, points in found.items():
            np.testing.assert_array_equal(points, expected[label])


def test_codes_of_two_bytes_and_of_any_order_are_counted(masks):
    truth, pred = noisy(masks, 3, (33, 64), 4)
    options = BoundaryOptions([2, 5])
    expected = boundary_image.count_codes(truth, pred, 4, options)
    turned = (np.asfortranarray(side) for side in (truth, pred))
    assert boundary_image.count_codes(*turned, 4, options) == expected
    wide = (np.where(x >= 254, x + np.uint16(65280), x).astype(np.uint16) for x in (truth, pred))
    found = boundary_image.count_codes(*wide, 300, options)
    assert found.pixels == expected.pixels == np.count_nonzero(truth != 255)
    for name in ("band", "trimap", "outer"):
        part = found.part(name)
        np.testing.assert_array_equal(part[:, :4], expected.part(name))
        assert not part[:, 4:].any()


def test_sizes_that_do_not_fit_are_refused():
    codes, counts = np.zeros((4, 5), dtype=np.uint8), [np.zeros((2, n), int) for n in (3, 3, 2)]

    def call(truth=codes, height=4, width=5, num_classes=2, reach=1, out=counts):
        kernel.count_bands(truth, codes, height, width, num_classes, reach, 1, 0, *out)

    call()
    for wrong in (
        {"truth": codes[1:]},
        {"height": 5},
        {"height": -4, "width": -5},
        {"num_classes": 3},
        {"num_classes": 0},
        {"reach": 0},
        {"out": counts[::-1]},
    ):
        with pytest.raises(ValueError, match="do not suit each other"):
            call(**wrong)
    with pytest.raises((TypeError, ValueError, BufferError)):
        call(truth=codes[:, ::2])


def test_encoding_what_does_not_fit_is_refused():
    codes, out = np.zeros(5, dtype=np.uint8), np.empty((2, 5), dtype=np.uint8)
    assert kernel.encode(codes, codes + 3, 0, 2, *out) == (0, 0)
    assert kernel.encode(codes, codes + 3, -1, 2, *out) == (0, 1)
    assert kernel.encode(codes + 3, codes, -1, 2, *out) == (1, 0)
    for wrong in (
        (codes[1:], codes, 0, 2, *out),
        (codes, codes[1:], 0, 2, *out),
        (codes, codes, -2, 2, *out),
        (codes, codes, 256, 2, *out),
        (codes, codes, 0, 254, *out),
        (codes, codes, 0, 2, out[0], out),
    ):
        with pytest.raises(ValueError, match="do not suit each other"):
            kernel.encode(*wrong)
