"""Boundary IoU and trimaps."""

import numpy as np
import pytest

from segiou.measures.boundary import (
    BoundaryOptions,
    boundary_counts,
    boundary_iou,
    class_trimap_accuracy,
    class_trimap_iou,
    trimap_accuracy,
    trimap_iou,
)
from segiou.metrics import iou

pytestmark = pytest.mark.usefixtures("backend")


def bands(**kwargs):
    return BoundaryOptions(**kwargs)


def test_square_counted_by_hand(masks):
    # Side 8: the inner band of width 1 has 8² − 6² = 28 pixels. One pixel aside, the two
    # outlines share 2 rows of 7 and the 2 × 6 pixels of no column: 14.
    truth = masks.square()
    counts = boundary_counts(truth, np.roll(truth, 1, axis=1), 2, options=bands(widths=1))
    of_square = counts.band_counts()[0, 1]
    assert (of_square.tp, of_square.fn, of_square.fp) == (14, 14, 14)
    assert boundary_iou(counts)[0, 1] == pytest.approx(14 / 42)


def test_width_counts_whole_squares(masks):
    truth = masks.square()
    for width, left in ((1, 6), (2, 4), (3, 2), (4, 0), (9, 0)):
        counts = boundary_counts(truth, truth, 2, options=bands(widths=width))
        assert counts.band_counts().tp[0, 1] == 64 - left**2


def test_trimap_counted_by_hand():
    # Columns 0 0 0 1 1 1; predicted 0 0 1 1 1 1: near the edge are columns 2 and 3.
    truth = np.array([[0, 0, 0, 1, 1, 1]] * 4, dtype=np.uint8)
    pred = np.array([[0, 0, 1, 1, 1, 1]] * 4, dtype=np.uint8)
    counts = boundary_counts(truth, pred, 2, options=bands(widths=1))
    assert trimap_accuracy(counts) == pytest.approx([0.5])
    assert trimap_iou(counts)[0] == pytest.approx([0.0, 0.5])
    assert class_trimap_iou(counts)[0] == pytest.approx([0.0, 0.5])
    assert class_trimap_accuracy(counts)[0] == pytest.approx([0.5, 0.5])
    assert counts.trimap_counts().total.tolist() == [[8, 8]]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("width", [1, 2, 5, 30, 200])
def test_equals_iterated_erosion(masks, by_hand, seed, width):
    truth, pred = masks.pair_of_blobs(seed)
    values = boundary_iou(boundary_counts(truth, pred, 3, options=bands(widths=width)))[0]
    for c in range(3):
        t, p = (by_hand.iterated_erosion(x == c, width) for x in (truth, pred))
        assert values[c] == (t & p).sum() / (t | p).sum()


@pytest.mark.parametrize("border", ["boundary", "none"])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_definition_with_ignored_pixels(masks, by_hand, seed, border):
    truth, pred = masks.pair_of_blobs(seed, shape=(23, 31), num_classes=4)
    valid = masks.blobs(seed + 50, shape=truth.shape, smooth=1.5) != 0
    options = bands(widths=(1, 3), border=border)
    counts = boundary_counts(truth, pred, 4, mask=valid, options=options)
    for k, width in enumerate((1, 3)):
        expected = by_hand.naive(truth, pred, valid, 4, width, border == "boundary")
        np.testing.assert_array_equal(counts.part("band")[k], expected)
        if border == "none":
            np.testing.assert_array_equal(counts.part("trimap")[k, :, 0], expected[:, 0])


@pytest.mark.parametrize("seed", range(3))
def test_class_trimap_is_the_band_on_both_sides(masks, seed):
    truth, pred = masks.pair_of_blobs(seed)
    own = boundary_counts(truth, pred, 3, options=bands(widths=3)).class_trimap_counts()[0]
    window = np.ones((7, 7))
    for c in range(3):
        t, p = truth == c, pred == c
        from scipy.ndimage import binary_dilation

        near = np.where(t, binary_dilation(~t, window), binary_dilation(t, window))
        assert own.tp[c] == (near & t & p).sum()
        assert own.fp[c] == (near & ~t & p).sum()
        assert own.fn[c] == (near & t & ~p).sum()
        assert own.tn[c] == (near & ~t & ~p).sum()


def test_camvid_equals_iterated_erosion(masks, by_hand):
    for truth, pred in masks.camvid_pairs(every=30):
        filled = np.where(truth == 11, 3, truth)
        values = boundary_iou(boundary_counts(filled, pred, 11, options=bands()))[0]
        for c in range(11):
            t, p = (by_hand.iterated_erosion(x == c, 12) for x in (filled, pred))
            union = (t | p).sum()
            expected = (t & p).sum() / union if union else np.nan
            assert values[c] == pytest.approx(expected, abs=0, nan_ok=True)


def test_label_numbers_are_never_subtracted(masks):
    # Eroding a label map and subtracting turns classes 3 and 5 into 0, 2 and 3.
    truth = np.where(masks.square() == 1, 5, 3)
    counts = boundary_counts(truth, np.roll(truth, 1, 0), 6, options=bands(widths=2))
    values = boundary_iou(counts)[0]
    assert np.flatnonzero(~np.isnan(values)).tolist() == [3, 5]
    two = boundary_counts(truth == 5, np.roll(truth == 5, 1, 0), 2, options=bands(widths=2))
    np.testing.assert_array_equal(values[[3, 5]], boundary_iou(two)[0])


def test_shift_costs_boundaries_more_than_regions(masks):
    truth = masks.square((80, 80), 20, 20, 40)
    pred = np.roll(truth, 2, axis=1)
    counts = boundary_counts(truth, pred, 2, options=bands(widths=3))
    region = (truth & pred).sum() / (truth | pred).sum()
    assert region == pytest.approx(38 / 42)
    assert boundary_iou(counts)[0, 1] < region - 0.3
    assert class_trimap_iou(counts)[0, 1] < region


def test_border_is_a_choice():
    whole = np.zeros((6, 7), dtype=np.uint8)
    for border, expected in (("reference", 22), ("boundary", 22), ("none", 0)):
        counts = boundary_counts(whole, whole, 1, options=bands(widths=1, border=border))
        assert counts.band_counts().tp[0, 0] == expected
        assert counts.trimap_counts().tp[0, 0] == (22 if border == "boundary" else 0)


def test_fraction_of_the_diagonal_is_rounded_as_the_reference_does(masks):
    truth, pred = masks.pair_of_blobs(3, shape=(60, 80))
    values = [
        boundary_iou(boundary_counts(truth, pred, 3, options=bands(widths=w)))
        for w in ("2%", 2, "0.1%", 1)
    ]
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[2], values[3])


def test_empty_sides(masks):
    some = masks.square()
    both = boundary_counts(some * 0, some * 0, 2, options=bands(widths=1))
    one = boundary_counts(some, some * 0, 2, options=bands(widths=1))
    assert np.isnan(boundary_iou(both)[0, 1])
    assert boundary_iou(one)[0, 1] == 0
    assert np.isnan(trimap_accuracy(both)[0])


@pytest.mark.parametrize("turn", [np.flipud, np.fliplr, np.rot90, np.transpose])
def test_orientation_does_not_matter(masks, turn):
    truth, pred = masks.pair_of_blobs(7)
    counts = boundary_counts(truth, pred, 3, options=bands(widths=(1, 4)))
    turned = boundary_counts(turn(truth), turn(pred), 3, options=bands(widths=(1, 4)))
    assert counts == turned


def test_swapping_the_sides_leaves_boundary_iou(masks):
    truth, pred = masks.pair_of_blobs(8)
    there = boundary_counts(truth, pred, 3, options=bands(widths=2))
    back = boundary_counts(pred, truth, 3, options=bands(widths=2))
    np.testing.assert_array_equal(boundary_iou(there), boundary_iou(back))


def test_everything_is_band_at_last(masks):
    truth, pred = masks.pair_of_blobs(9)
    counts = boundary_counts(truth, pred, 3, options=bands(widths=100))
    from segiou.counting import ConfusionCounts, count_pairs

    regions = ConfusionCounts(count_pairs(truth, pred, 3)).counts
    np.testing.assert_array_equal(boundary_iou(counts)[0], iou(regions))
    np.testing.assert_array_equal(trimap_iou(counts)[0], iou(regions))
