"""Averages over images and classes, worst cases, and what an image does to the score."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from segiou import Counts, metrics, metrics as fg
from segiou.analysis import influence
from segiou.counting import ConfusionCounts, count_pairs

# Three images, three classes. Image 2 lacks class 1 and has it predicted; nobody has class 2.
TABLES = np.array(
    [
        [[8, 1, 0], [1, 2, 0], [0, 0, 0]],
        [[2, 2, 0], [4, 4, 0], [0, 0, 0]],
        [[9, 3, 0], [0, 0, 0], [0, 0, 0]],
    ]
)
PER_IMAGE = ConfusionCounts.of_matrix(TABLES, np.zeros((3, 3), int), np.zeros(3, int)).counts
IOU = np.array([[8 / 10, 2 / 4, np.nan], [2 / 8, 4 / 10, np.nan], [9 / 12, np.nan, np.nan]])

tables = hnp.arrays(
    np.int64, st.tuples(st.integers(1, 12), st.just(4), st.just(5)), elements=st.integers(0, 4)
)


def per_image_counts(table):
    """Random counts with classes that are now and then missing."""
    table = table * (table.sum(-1, keepdims=True) > 6)
    return ConfusionCounts(table, np.zeros(len(table), int)).counts


def wang(per_image, q=None):
    """I and C, and their worst cases, as the authors' JDTLosses computes them, in loops.

    Inactive classes of an image are those without a truth pixel. For I they add 0 to the
    sum over classes, which is divided by the number of active ones; for C they sort behind
    everything. The number of worst values is int(q / 100 · n), at least 1.
    """
    num_images, num_classes = per_image.tp.shape
    images, classes = [], []
    union = per_image.tp + per_image.fp + per_image.fn
    for i in range(num_images):
        active = [c for c in range(num_classes) if per_image.truth[i, c] > 0]
        if active:
            images.append(sum(per_image.tp[i, c] / union[i, c] for c in active) / len(active))
    for c in range(num_classes):
        values = sorted(
            per_image.tp[i, c] / union[i, c] for i in range(num_images) if per_image.truth[i, c] > 0
        )
        if values:
            kept = values if q is None else values[: max(1, int(q / 100 * len(values)))]
            classes.append(sum(kept) / len(kept))
    images.sort()
    if q is not None:
        images = images[: max(1, int(q / 100 * len(images)))]
    both = (images, classes)
    return tuple(sum(x) / len(x) if x else float("nan") for x in both)


def test_by_hand():
    scores = fg.image_level_means(PER_IMAGE)
    assert scores.dataset == pytest.approx((19 / 30 + 6 / 17) / 2)
    assert scores.image == pytest.approx((0.65 + 0.325 + 0.75) / 3)
    assert scores.class_mean == pytest.approx(((0.8 + 0.25 + 0.75) / 3 + (0.5 + 0.4) / 2) / 2)
    assert scores.false_positive_images.tolist() == [0, 1, 0]
    assert (scores.images, scores.classes) == (3, 2)
    # The lowest one of three images; of class 0's three, and of class 1's two images.
    assert scores.worst_image[50] == pytest.approx(0.325)
    assert scores.worst_class[50] == pytest.approx((0.25 + 0.4) / 2)
    assert scores.worst_image[70] == pytest.approx((0.325 + 0.65) / 2)
    assert scores.worst_class[100] == scores.class_mean
    by_q = [0.325] * 6 + [0.4875] * 3 + [scores.image]
    assert list(scores.worst_image.values()) == pytest.approx(by_q)
    assert scores.worst_image_mean == pytest.approx(sum(by_q) / 10)


def test_values_of_images_and_classes():
    np.testing.assert_array_equal(fg.image_values(PER_IMAGE), IOU)
    np.testing.assert_allclose(fg.image_means(PER_IMAGE), [0.65, 0.325, 0.75])
    np.testing.assert_allclose(fg.class_means(PER_IMAGE), [0.6, 0.45, np.nan])
    only = [True, False, True]
    np.testing.assert_array_equal(fg.image_means(PER_IMAGE, include=only), IOU[:, 0])
    assert fg.image_level_means(PER_IMAGE, include=only).dataset == 19 / 30


@given(tables)
def test_the_authors_formulas(table):
    per_image = per_image_counts(table)
    scores = fg.image_level_means(per_image)
    expected = wang(per_image)
    np.testing.assert_allclose((scores.image, scores.class_mean), expected, rtol=1e-12)
    worst = [wang(per_image, q) for q in fg.QUANTILES]
    np.testing.assert_allclose(list(scores.worst_image.values()), [w[0] for w in worst], rtol=1e-12)
    np.testing.assert_allclose(list(scores.worst_class.values()), [w[1] for w in worst], rtol=1e-12)
    np.testing.assert_allclose(scores.worst_image_mean, np.mean([w[0] for w in worst]))
    np.testing.assert_allclose(scores.worst_class_mean, np.mean([w[1] for w in worst]))


@given(tables)
def test_worse_cases_are_worse_and_all_of_them_are_the_mean(table):
    per_image = per_image_counts(table)
    scores = fg.image_level_means(per_image)
    for worst, whole in (
        (scores.worst_image, scores.image),
        (scores.worst_class, scores.class_mean),
    ):
        values = list(worst.values())
        if np.isnan(whole):
            assert np.isnan(values).all()
            continue
        assert all(a <= b + 1e-12 for a, b in pairwise(values))
        assert values[-1] == whole


@given(tables, st.booleans())
def test_one_order_serves_all_percentages(table, weighted):
    per_image = per_image_counts(table)
    weights = np.arange(1.0, len(table) + 1) if weighted else None
    scores = fg.image_level_means(per_image, weights=weights)
    values = fg.image_values(per_image)
    for q in fg.QUANTILES:
        alone = fg.worst_mean(metrics.mean(values), q, weights)
        np.testing.assert_array_equal(scores.worst_image[q], alone)
        by_class = metrics.mean(fg.worst_mean(values, q, weights))
        np.testing.assert_array_equal(scores.worst_class[q], by_class)


def test_numbers_of_images_are_whole_numbers_and_not_rounded_floats():
    # 0.7 * 90 is 62.99999999999999 in float64, and the authors' int() makes it 62.
    assert int(70 / 100 * 90) == 62
    values = np.arange(90.0)
    assert fg.worst_mean(values, 70) == np.arange(63).mean()


def test_a_class_in_no_image_is_left_out():
    # In the authors' code its sentinel of 1e6 gets into C_q, and its C is 0/0.
    scores = fg.image_level_means(PER_IMAGE)
    assert scores.classes == 2
    assert max(scores.worst_class.values()) <= 1


@pytest.mark.parametrize("metric", [metrics.dice, metrics.recall])
def test_other_metrics(metric):
    scores = fg.image_level_means(PER_IMAGE, metric)
    values = np.where(PER_IMAGE.truth > 0, metric(PER_IMAGE), np.nan)
    assert scores.image == pytest.approx(np.nanmean([np.nanmean(row) for row in values]))
    assert scores.dataset == pytest.approx(np.nanmean(metric(PER_IMAGE.summed())))


# -- weights ---------------------------------------------------------------------------------


def test_equal_weights_change_nothing():
    plain, weighted = (
        fg.image_level_means(PER_IMAGE),
        fg.image_level_means(PER_IMAGE, weights=[2, 2, 2]),
    )
    for name in ("dataset", "image", "class_mean", "worst_image_mean", "worst_class_mean"):
        assert getattr(weighted, name) == pytest.approx(getattr(plain, name))


def test_weights_by_hand():
    scores = fg.image_level_means(PER_IMAGE, weights=[1, 0, 3])
    assert scores.image == pytest.approx((0.65 + 3 * 0.75) / 4)
    assert scores.class_mean == pytest.approx(((0.8 + 3 * 0.75) / 4 + 0.5) / 2)
    # The worst image is still image 1; its weight of 0 leaves nothing to divide.
    assert np.isnan(scores.worst_image[10])
    assert scores.dataset == fg.image_level_means(PER_IMAGE).dataset
    np.testing.assert_allclose(fg.class_means(PER_IMAGE, weights=[1, 1, 0]), [0.525, 0.45, np.nan])


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ([1, 2], r"weights must have shape \(3,\), one per image, got \(2,\)"),
        ([1, -1, 1], "finite and at least 0"),
        ([1, np.nan, 1], "finite and at least 0"),
    ],
)
def test_bad_weights_are_refused(weights, text):
    with pytest.raises(ValueError, match=text):
        fg.image_level_means(PER_IMAGE, weights=weights)


@pytest.mark.parametrize("q", [0, 101, -10, 12.5])
def test_bad_percentages_are_refused(q):
    with pytest.raises(ValueError, match="quantile must be a whole percentage"):
        fg.image_level_means(PER_IMAGE, quantiles=[q])
    with pytest.raises(ValueError, match="quantile must be a whole percentage"):
        fg.worst_mean([1.0], q)


# -- images ----------------------------------------------------------------------------------


@given(tables)
def test_influence_is_what_recounting_without_the_image_takes_away(table):
    per_image = per_image_counts(table)
    effect = fg.image_influence(per_image)
    whole = metrics.mean_iou(per_image.summed())
    for i in range(len(effect)):
        others = np.arange(len(effect)) != i
        without = metrics.mean_iou(per_image[others].summed())
        np.testing.assert_array_equal(effect[i], whole - without)


def test_influence_is_that_of_the_jackknife():
    expected = influence(PER_IMAGE).effect[:, 0]
    np.testing.assert_array_equal(fg.image_influence(PER_IMAGE), expected)
    part = fg.image_influence(PER_IMAGE[1:], PER_IMAGE.summed())
    np.testing.assert_array_equal(part, expected[1:])


def test_classes_that_the_truth_of_an_image_lacks():
    assert fg.false_positive_classes(PER_IMAGE).tolist() == [0, 0, 1]


def test_counts_must_be_per_image():
    for function in (
        fg.image_level_means,
        fg.image_influence,
        fg.false_positive_classes,
        fg.image_means,
    ):
        with pytest.raises(ValueError, match=r"must have shape \(N, C\), got \(3,\)"):
            function(PER_IMAGE[0])


def test_no_images_and_no_classes_give_nan():
    nothing = Counts(*np.zeros((4, 0, 3), int))
    scores = fg.image_level_means(nothing)
    assert np.isnan([scores.dataset, scores.image, scores.class_mean]).all()
    assert scores.images == scores.classes == 0
    plain = fg.image_level_means(PER_IMAGE).to_dict()
    assert plain["false_positive_images"] == [0, 1, 0]
    assert plain["worst_image"]["10"] == pytest.approx(0.325)


# -- real masks ------------------------------------------------------------------------------

CAMVID = Path(__file__).parents[2].parent / "shared" / "data" / "camvid"


@pytest.mark.skipif(not CAMVID.is_dir(), reason="the CamVid masks are not there")
def test_real_masks():
    from PIL import Image

    tables = []
    for path in sorted((CAMVID / "truth").glob("*.png"))[::6]:
        truth, pred = (
            np.asarray(Image.open(d / path.name)) for d in (path.parent, CAMVID / "base")
        )
        tables.append(count_pairs(truth, pred, 11, ignore=11))
    per_image = ConfusionCounts(np.array(tables), np.zeros(len(tables), int)).counts
    scores = fg.image_level_means(per_image)
    np.testing.assert_allclose((scores.image, scores.class_mean), wang(per_image), rtol=1e-12)
    np.testing.assert_allclose(
        (scores.worst_image[30], scores.worst_class[30]), wang(per_image, 30), rtol=1e-12
    )
    assert scores.worst_class[10] < scores.class_mean < 1
    assert scores.false_positive_images.sum() > 0
