"""Boundary precision, recall and F1, surface Dice, and distances."""

import numpy as np
import pytest

from segiou.boundary.boundary_image import boundary_counts, measure_boundaries
from segiou.boundary.boundary_options import BoundaryOptions
from segiou.boundary.boundary_scores import (
    average_surface_distance,
    boundary_f1,
    boundary_precision,
    boundary_recall,
    hausdorff_distance,
    surface_dice,
)

pytestmark = pytest.mark.usefixtures("backend")
TOLERANCES = (0.0, 1.0, 2.5)


def outlines(**kwargs):
    kwargs = {"contours": ("pixels", "elements"), "tolerances": TOLERANCES, **kwargs}
    return BoundaryOptions((), trimaps=False, **kwargs)


def test_square_counted_by_hand(masks):
    truth = masks.square()
    counts = boundary_counts(truth, np.roll(truth, 1, 1), 2, options=outlines())
    total = counts.part("pixels.total")[:, 1, 0]
    matched = counts.part("pixels.matched")[:, :, 1, 0]
    assert total.tolist() == [28, 28]
    assert matched.tolist() == [[14, 14], [28, 28], [28, 28]]
    assert boundary_f1(counts)[:, 1].tolist() == [0.5, 1.0, 1.0]
    assert surface_dice(counts)[0, 1] == 0.5


def test_surface_elements_counted_by_hand(masks):
    # Between pixels: 4 corners cut off by half a diagonal, 7 pieces along each side.
    counts = boundary_counts(masks.square(), masks.square(), 2, options=outlines(spacing=(3, 4)))
    assert counts.part("elements.total")[0, 1].tolist() == [14, 14, 4]
    one = np.zeros((3, 3), dtype=np.uint8)
    one[1, 1] = 1
    touching = np.array([[1, 0], [0, 1]], dtype=np.uint8)
    for mask, expected in ((one, [0, 0, 4]), (touching, [0, 0, 8])):
        counts = boundary_counts(mask, mask, 2, options=outlines())
        assert counts.part("elements.total")[0, 1].tolist() == expected


def test_csurka_by_hand():
    # A line of 6 predicted as its first 3 pixels and 1 far off.
    truth, pred = np.zeros((2, 9, 20), dtype=np.uint8)
    truth[4, 2:8] = pred[4, 2:5] = pred[4, 18] = 1
    counts = boundary_counts(truth, pred, 2, options=outlines())
    assert boundary_precision(counts)[:, 1].tolist() == [0.75, 0.75, 0.75]
    assert boundary_recall(counts)[:, 1].tolist() == [3 / 6, 4 / 6, 5 / 6]
    expected = [2 * 0.75 * r / (0.75 + r) for r in (3 / 6, 4 / 6, 5 / 6)]
    assert boundary_f1(counts)[:, 1] == pytest.approx(expected)


def test_distances_by_hand():
    truth, pred = np.zeros((2, 9, 20), dtype=np.uint8)
    truth[4, 3] = pred[2, 3] = pred[4, 7] = 1
    result = measure_boundaries(truth, pred, 2, options=outlines(spacing=(1.5, 1.0)))
    exact = result.distances["pixels"]
    assert exact.average()[:, 1].tolist() == [3.0, 3.5]
    assert exact.symmetric_average()[1] == pytest.approx(10 / 3)
    assert exact.hausdorff()[1] == 4.0
    assert exact.hausdorff(50)[1] == 3.0
    assert exact.hausdorff(50, "linear")[1] == 3.5
    assert average_surface_distance(result.counts)[1] == pytest.approx(10 / 3)
    assert hausdorff_distance(result.counts, 100)[1] == 4.0
    for direction, expected in (("truth_to_pred", 3.0), ("pred_to_truth", 3.5)):
        got = average_surface_distance(result.counts, direction=direction)[1]
        assert got == pytest.approx(expected)


def test_definitions_differ_where_the_documentation_says(masks):
    # Pixels of two squares side by side are 1 apart, the elements between them are not.
    truth, pred = np.zeros((2, 8, 12), dtype=np.uint8)
    truth[2:6, 2:6] = pred[2:6, 6:10] = 1
    result = measure_boundaries(truth, pred, 2, options=outlines(tolerances=0))
    assert surface_dice(result.counts, "pixels")[0, 1] == 0
    assert surface_dice(result.counts, "elements")[0, 1] > 0


def test_tolerance_is_monotone(masks):
    truth, pred = masks.pair_of_blobs(1)
    options = outlines(tolerances=[0, 0.5, 1, 1.4, 1.5, 3, "5%", 100])
    counts = boundary_counts(truth, pred, 3, options=options)
    for contour in ("pixels", "elements"):
        for measure in (surface_dice, boundary_f1, boundary_precision, boundary_recall):
            values = measure(counts, contour)
            assert (np.diff(values, axis=0) >= 0).all()
            assert (values[-1] == 1).all()


def test_tolerance_of_the_diagonal_scales_with_the_spacing():
    truth, pred = np.zeros((2, 30, 40), dtype=np.uint8)
    truth[10, 10] = pred[10, 12] = 1
    for spacing in ((1, 1), (5, 5)):
        options = outlines(tolerances=["3.9%", "4%"], spacing=spacing)
        counts = boundary_counts(truth, pred, 2, options=options)
        assert surface_dice(counts)[:, 1].tolist() == [0, 1]


@pytest.mark.parametrize("turn", [np.flipud, np.fliplr, np.rot90, np.transpose])
def test_orientation_does_not_matter(masks, turn):
    truth, pred = masks.pair_of_blobs(7)
    one = boundary_counts(truth, pred, 3, options=outlines())
    other = boundary_counts(turn(truth), turn(pred), 3, options=outlines())
    for contour in ("pixels", "elements"):
        np.testing.assert_allclose(surface_dice(one, contour), surface_dice(other, contour))
        np.testing.assert_array_equal(
            hausdorff_distance(one, 95, contour), hausdorff_distance(other, 95, contour)
        )
    np.testing.assert_array_equal(one.part("pixels.matched"), other.part("pixels.matched"))


def test_swapping_the_sides(masks):
    truth, pred = masks.pair_of_blobs(8)
    there = boundary_counts(truth, pred, 3, options=outlines())
    back = boundary_counts(pred, truth, 3, options=outlines())
    np.testing.assert_array_equal(boundary_precision(there), boundary_recall(back))
    for measure in (surface_dice, boundary_f1, average_surface_distance, hausdorff_distance):
        np.testing.assert_allclose(measure(there), measure(back), rtol=1e-14)


def test_empty_sides(masks):
    some = masks.square()
    both = measure_boundaries(some * 0, some * 0, 2, options=outlines())
    for truth, pred in ((some, some * 0), (some * 0, some)):
        one = measure_boundaries(truth, pred, 2, options=outlines())
        for contour in ("pixels", "elements"):
            for measure in (surface_dice, boundary_f1, boundary_precision, boundary_recall):
                assert (measure(one.counts, contour)[:, 1] == 0).all()
                assert np.isnan(measure(both.counts, contour)[:, 1]).all()
            assert hausdorff_distance(one.counts, 95, contour)[1] == np.inf
            assert np.isnan(hausdorff_distance(both.counts, 95, contour)[1])
            for direction in ("both", "truth_to_pred", "pred_to_truth"):
                ways = {"contour": contour, "direction": direction}
                assert average_surface_distance(one.counts, **ways)[1] == np.inf
                assert np.isnan(average_surface_distance(both.counts, **ways)[1])
            skipped = average_surface_distance(one.counts, contour, lone="skip")
            assert np.isnan(skipped[1])
            exact = one.distances[contour]
            assert (exact.average()[:, 1] == np.inf).all()
            assert exact.symmetric_average()[1] == exact.hausdorff()[1] == np.inf
            assert np.isnan(both.distances[contour].hausdorff()[1])


def test_one_lone_image_does_not_hide_the_others(masks):
    some = masks.square()
    pairs = [(some, np.roll(some, 2, 0)), (some, some * 0)]
    counts = sum(boundary_counts(t, p, 2, options=outlines()) for t, p in pairs)
    alone = boundary_counts(*pairs[0], 2, options=outlines())
    assert average_surface_distance(counts)[1] == np.inf
    assert average_surface_distance(counts, lone="skip")[1] == average_surface_distance(alone)[1]
    assert hausdorff_distance(counts, 50)[1] == 2.0
    assert hausdorff_distance(counts, 95)[1] == np.inf


def test_border_is_a_choice():
    # Class 1 fills the right half: with the image border it has an outline, without a column.
    half = np.repeat(np.array([[0, 0, 0, 1, 1, 1]], dtype=np.uint8), 5, axis=0)
    for border, pixels, elements in (
        ("reference", 12, [4, 8, 4]),
        ("boundary", 12, [4, 8, 4]),
        ("none", 5, [0, 4, 0]),
    ):
        counts = boundary_counts(half, half, 2, options=outlines(border=border))
        assert counts.part("pixels.total")[0, 1].tolist() == [pixels]
        assert counts.part("elements.total")[0, 1].tolist() == elements


@pytest.mark.parametrize("percentile", [0, 50, 95, 100])
def test_percentiles_over_images_are_those_of_all_distances(masks, percentile):
    pairs = [masks.pair_of_blobs(s) for s in range(3)]
    results = [measure_boundaries(t, p, 3, options=outlines()) for t, p in pairs]
    total = sum(r.counts for r in results)
    for contour in ("pixels", "elements"):
        got = hausdorff_distance(total, percentile, contour)
        for c in range(3):
            sides = []
            for side in ("truth", "pred"):
                lengths, distances = [], []
                for r in results:
                    d = r.distances[contour]
                    points = getattr(d, side)
                    part = slice(*points.starts[c : c + 2])
                    way = d.truth_to_pred if side == "truth" else d.pred_to_truth
                    distances.append(way[part])
                    weights = [1.0] if contour == "pixels" else [1.0, 1.0, 0.5**0.5]
                    lengths.append(np.array(weights)[points.kinds[part]] * points.multiples[part])
                d, w = np.concatenate(distances), np.concatenate(lengths)
                order = np.argsort(d)
                reached = np.cumsum(w[order])
                place = np.searchsorted(reached, reached[-1] * percentile / 100 * (1 - 1e-12))
                sides.append(d[order][place])
            assert got[c] == pytest.approx(max(sides), abs=0.125, rel=1 / 64)
