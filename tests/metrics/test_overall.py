"""Metrics over all classes at once, and averages."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as sklearn_metrics

from segiou import Counts, metrics
from segiou.counting import ConfusionCounts

# frames_with_void: a class that is only predicted and one that is nowhere.
MATRIX = np.array(
    [[63, 4, 0, 3, 0], [2, 44, 7, 0, 0], [7, 0, 58, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
)
NONE = np.zeros(5, np.int64)
COUNTS = ConfusionCounts.of_matrix(MATRIX, NONE, 4).counts

tables = st.integers(2, 5).flatmap(
    lambda c: hnp.arrays(np.int64, (c, c + 1), elements=st.integers(0, 12))
)


def labels(table):
    """The pixels of a table; an unassigned prediction is one more label."""
    truth, pred = np.indices(table.shape)
    return np.repeat(truth.ravel(), table.ravel()), np.repeat(pred.ravel(), table.ravel())


def test_values_by_hand():
    iou = [63 / 79, 44 / 57, 58 / 72, 0.0]
    assert metrics.mean_iou(COUNTS) == pytest.approx(sum(iou) / 4, abs=1e-15)
    dice = [126 / 142, 88 / 101, 116 / 130, 0.0]
    assert metrics.mean_dice(COUNTS) == pytest.approx(sum(dice) / 4, abs=1e-15)
    recall = [63 / 70, 44 / 53, 58 / 65]
    assert metrics.mean_accuracy(COUNTS) == pytest.approx(sum(recall) / 3, abs=1e-15)
    assert metrics.mean_accuracy(COUNTS) == pytest.approx(0.8741654572, abs=5e-11)
    assert metrics.pixel_accuracy(COUNTS) == 165 / 188
    assert metrics.frequency_weighted_iou(COUNTS) == pytest.approx(0.7930647693, abs=5e-11)
    assert metrics.cohen_kappa(COUNTS) == pytest.approx(0.816273635, abs=5e-10)


@given(tables)
def test_kappa_and_matthews_are_those_of_scikit_learn(table):
    truth, pred = labels(table)
    counts = ConfusionCounts(table).counts
    kappa, matthews = metrics.cohen_kappa(counts), metrics.matthews_correlation(counts)
    if not truth.size or (np.ptp(truth) == 0 == np.ptp(pred) and truth[0] == pred[0]):
        assert np.isnan(kappa)
    else:
        every = list(range(table.shape[1]))
        theirs = sklearn_metrics.cohen_kappa_score(truth, pred, labels=every)
        assert kappa == pytest.approx(theirs, abs=1e-12)
    if truth.size and np.ptp(truth) and np.ptp(pred):
        theirs = sklearn_metrics.matthews_corrcoef(truth, pred)
        assert matthews == pytest.approx(theirs, abs=1e-12)
    else:
        assert np.isnan(matthews)


@given(tables)
def test_averages_are_those_of_scikit_learn(table):
    truth, pred = labels(table)
    counts = ConfusionCounts(table).counts
    if not truth.size:
        assert np.isnan(metrics.pixel_accuracy(counts))
        return
    assert metrics.pixel_accuracy(counts) == pytest.approx(
        sklearn_metrics.accuracy_score(truth, pred), abs=1e-12
    )
    occurring = np.flatnonzero(counts.truth + counts.pred)
    for how in ("macro", "micro", "weighted"):
        chosen = list(range(len(table))) if how != "macro" else occurring
        theirs = sklearn_metrics.jaccard_score(
            truth, pred, labels=chosen, average=how, zero_division=0
        )
        assert metrics.average(metrics.iou, counts, how) == pytest.approx(theirs, abs=1e-12)
    in_truth = np.flatnonzero(counts.truth)
    theirs = sklearn_metrics.recall_score(truth, pred, labels=in_truth, average="macro")
    assert metrics.mean_accuracy(counts) == pytest.approx(theirs, abs=1e-12)
    weighted = metrics.average(metrics.iou, counts, "weighted")
    assert metrics.frequency_weighted_iou(counts) == pytest.approx(weighted, abs=1e-12)


@given(tables)
def test_micro_iou_says_nothing_that_pixel_accuracy_does_not(table):
    assigned = ConfusionCounts.of_matrix(table[:, :-1]).counts
    accuracy = metrics.pixel_accuracy(assigned)
    micro = metrics.average(metrics.iou, assigned, "micro")
    np.testing.assert_allclose(micro, accuracy / (2 - accuracy), atol=1e-15)


def test_micro_with_unassigned_pixels_is_another_number():
    counts = ConfusionCounts.of_matrix([[2]], [1], 0).counts
    accuracy = metrics.pixel_accuracy(counts)
    assert metrics.average(metrics.iou, counts, "micro") == 2 / 3 != accuracy / (2 - accuracy)


@pytest.mark.parametrize(
    "name",
    [
        "mean_iou",
        "mean_dice",
        "mean_accuracy",
        "pixel_accuracy",
        "frequency_weighted_iou",
        "cohen_kappa",
        "matthews_correlation",
    ],
)
def test_leading_axes_are_independent(name):
    rng = np.random.default_rng(5)
    counts = ConfusionCounts(rng.integers(0, 9, (2, 3, 4, 5)), np.zeros((2, 3), int)).counts
    whole = getattr(metrics, name)(counts)
    assert whole.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        assert whole[i, j] == getattr(metrics, name)(counts[i, j])


def test_kappa_keeps_its_digits_where_one_class_is_nearly_everything():
    # 1 − p_e is 3e-12 here: the textbook form loses twelve of sixteen digits.
    n = 10**12
    counts = ConfusionCounts.of_matrix([[n - 1, 0], [1, 1]], [0, 0], 0).counts
    exact = 2 * (n - 1) / ((n - 1) * 1 + 2 * n)  # Σ (TP·TN − FP·FN) / Σ t (n + 1 − p)
    assert metrics.cohen_kappa(counts) == pytest.approx(exact, rel=1e-15, abs=0)
    agreed, chance = n / (n + 1), ((n - 1) * n + 2) / (n + 1) ** 2
    textbook = (agreed - chance) / (1 - chance)
    assert textbook != pytest.approx(exact, rel=1e-6, abs=0)


def test_nothing_counted_is_nan_everywhere():
    counts = Counts([0, 0], [0, 0], [0, 0], [0, 0])
    for name in ("mean_iou", "mean_accuracy", "pixel_accuracy", "cohen_kappa"):
        assert np.isnan(getattr(metrics, name)(counts))
    assert np.isnan(metrics.matthews_correlation(counts))
    assert np.isnan(metrics.frequency_weighted_iou(counts))


@pytest.mark.parametrize("function", [metrics.cohen_kappa, metrics.matthews_correlation])
def test_agreement_of_part_of_the_classes_is_refused(function):
    with pytest.raises(ValueError, match="needs exactly one class per valid pixel"):
        function(COUNTS[:2])
    one = function(COUNTS.one_vs_rest())
    assert one.shape == (5,)
    assert np.isnan(one[4])


def test_kappa_of_one_class_against_the_rest():
    truth, pred = labels(MATRIX)
    ours = metrics.cohen_kappa(COUNTS.one_vs_rest())
    theirs = [sklearn_metrics.cohen_kappa_score(truth == c, pred == c) for c in range(3)]
    np.testing.assert_allclose(ours[:3], theirs, atol=1e-12)


# -- averages ------------------------------------------------------------------------------


def test_mean_skips_the_undefined_and_the_excluded():
    values = np.array([[0.5, np.nan, 1.0], [np.nan] * 3])
    np.testing.assert_array_equal(metrics.mean(values), [0.75, np.nan])
    np.testing.assert_array_equal(metrics.mean(values, [True, True, False]), [0.5, np.nan])
    assert np.isnan(metrics.mean(values[0], [False, True, False]))


def test_averages_by_hand():
    counts = Counts(tp=[6, 1, 0], fp=[1, 2, 0], fn=[2, 1, 0], tn=[1, 6, 10])
    iou = [6 / 9, 1 / 4, np.nan]
    np.testing.assert_array_equal(metrics.average(metrics.iou, counts, "none"), iou)
    assert metrics.average(metrics.iou, counts) == (iou[0] + iou[1]) / 2
    assert metrics.average(metrics.iou, counts, "micro") == 7 / 13
    weighted = metrics.average(metrics.iou, counts, "weighted")
    assert weighted == pytest.approx((8 * iou[0] + 2 * iou[1]) / 10)
    only = [False, True, True]
    for how in ("macro", "micro", "weighted"):
        assert metrics.average(metrics.iou, counts, how, include=only) == 1 / 4


def test_unknown_average_is_refused():
    with pytest.raises(ValueError, match="'macro', 'micro', 'weighted' or 'none', got 'mean'"):
        metrics.average(metrics.iou, COUNTS, "mean")


def test_majority_predictor_on_ninety_percent_background():
    # Accuracy .90 and no foreground at all.
    counts = ConfusionCounts.of_matrix([[90, 0], [10, 0]], [0, 0], 0).counts
    assert metrics.pixel_accuracy(counts) == 0.9
    assert metrics.iou(counts).tolist() == [0.9, 0.0]
    assert metrics.mean_iou(counts) == 0.45
    assert metrics.cohen_kappa(counts) == 0.0
