"""Metrics of one class against the rest."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from segiou import Counts, metrics
from segiou.counting import ConfusionCounts
from segiou.metrics.ratio import ratio

# TP, FP, FN, TN of four classes: ordinary, only predicted, never predicted, absent.
COUNTS = Counts(tp=[6, 0, 0, 0], fp=[2, 4, 0, 0], fn=[4, 0, 2, 0], tn=[8, 16, 18, 20])
NAN = float("nan")

BY_HAND = {
    "iou": [6 / 12, 0, 0, NAN],
    "dice": [12 / 18, 0, 0, NAN],
    "precision": [6 / 8, 0, NAN, NAN],
    "recall": [6 / 10, NAN, 0, NAN],
    "specificity": [8 / 10, 16 / 20, 1, 1],
    "balanced_accuracy": [0.7, NAN, 0.5, NAN],
    "volumetric_similarity": [16 / 18, 0, 0, NAN],
    "prevalence": [10 / 12, 0, 2 / 12, 0],
}

cells = st.integers(0, 50)
counts_strategy = st.builds(lambda a: Counts(*a), hnp.arrays(np.int64, (4, 3, 5), elements=cells))


@pytest.mark.parametrize(("name", "expected"), BY_HAND.items())
def test_values_by_hand(name, expected):
    np.testing.assert_array_equal(getattr(metrics, name)(COUNTS), expected)


@pytest.mark.parametrize("name", sorted({*metrics.METRICS, "prevalence"}))
def test_leading_axes_are_independent(name):
    rng = np.random.default_rng(3)
    counts = Counts(*rng.integers(0, 9, (4, 2, 3, 5)))
    whole = getattr(metrics, name)(counts)
    assert whole.shape == (2, 3, 5)
    assert whole.dtype == np.float64
    for i, j in np.ndindex(2, 3):
        np.testing.assert_array_equal(whole[i, j], getattr(metrics, name)(counts[i, j]))


@given(counts_strategy)
def test_identities(counts):
    iou = metrics.iou(counts)
    np.testing.assert_allclose(metrics.dice(counts), 2 * iou / (1 + iou), rtol=1e-15)
    np.testing.assert_array_equal(metrics.tversky(counts, 1, 1), iou)
    np.testing.assert_array_equal(metrics.tversky(counts, 0.5, 0.5), metrics.dice(counts))
    np.testing.assert_array_equal(metrics.f_beta(counts, 1), metrics.dice(counts))
    np.testing.assert_array_equal(metrics.f_beta(counts, 0), metrics.precision(counts))
    np.testing.assert_array_equal(metrics.tversky(counts, 1, 0), metrics.precision(counts))
    np.testing.assert_array_equal(metrics.tversky(counts, 0, 1), metrics.recall(counts))
    swapped = Counts(counts.tp, counts.fn, counts.fp, counts.tn)
    np.testing.assert_array_equal(metrics.iou(swapped), iou)
    np.testing.assert_array_equal(metrics.precision(swapped), metrics.recall(counts))
    for name in metrics.METRICS:
        values = metrics.METRICS[name](counts)
        assert ((values >= 0) & (values <= 1) | np.isnan(values)).all()


@given(counts_strategy, st.sampled_from([0.5, 2.0, 3.0]))
def test_f_beta_is_the_weighted_harmonic_mean(counts, beta):
    precision, recall = metrics.precision(counts), metrics.recall(counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        textbook = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    defined = ~np.isnan(textbook)
    np.testing.assert_allclose(metrics.f_beta(counts, beta)[defined], textbook[defined])


def test_f_beta_of_an_always_missed_class_is_zero_and_not_dropped():
    # mmsegmentation's mFscore divides 0 by 0 here, drops the class and reports the mean of the
    # rest; its mDice, the same quantity, keeps it.
    counts = Counts(tp=[8, 0], fp=[1, 1], fn=[1, 1], tn=[1, 9])
    np.testing.assert_array_equal(metrics.f_beta(counts, 1.0), [16 / 18, 0.0])
    assert metrics.mean(metrics.f_beta(counts, 1.0)) == metrics.mean_dice(counts) == 8 / 18


@pytest.mark.parametrize(
    ("beta", "wanted"),
    [(-1.0, "at least 0"), (float("nan"), "a number"), (float("inf"), "at most 1e")],
)
def test_weights_must_be_finite_and_not_negative(beta, wanted):
    with pytest.raises(ValueError, match=f"beta must be {wanted}"):
        metrics.f_beta(COUNTS, beta)
    with pytest.raises(ValueError, match=f"alpha must be {wanted}"):
        metrics.tversky(COUNTS, beta, 1)
    with pytest.raises(ValueError, match=f"beta must be {wanted}"):
        metrics.tversky(COUNTS, 1, beta)


# -- exactness -----------------------------------------------------------------------------

BIG = 2**53


@given(*[st.integers(0, 2**61 - 1)] * 3)
def test_a_ratio_is_the_float_nearest_to_the_true_quotient(tp, fp, fn):
    counts = Counts(tp=[tp], fp=[fp], fn=[fn], tn=[0])
    if tp + fp + fn:
        assert metrics.iou(counts)[0] == float(Fraction(tp, tp + fp + fn))
        assert metrics.dice(counts)[0] == float(Fraction(2 * tp, 2 * tp + fp + fn))
    if tp + fn:
        assert metrics.recall(counts)[0] == float(Fraction(tp, tp + fn))


def test_counts_past_2_to_the_53_do_not_round():
    # In float64 2^53 + 1 is 2^53: the false positive would vanish.
    one_more = Counts(tp=[BIG], fp=[1], fn=[0], tn=[0])
    assert int((one_more.tp + one_more.fp)[0]) == BIG + 1
    assert metrics.iou(one_more)[0] == float(Fraction(BIG, BIG + 1)) < 1
    # Rounding both operands before dividing is off by one unit in the last place here.
    tp, fp = BIG + 1, 1
    assert float(tp) / float(tp + fp) != float(Fraction(tp, tp + fp))
    assert metrics.precision(Counts([tp], [fp], [0], [0]))[0] == float(Fraction(tp, tp + fp))


def test_merging_past_2_to_the_53_stays_exact():
    # 2^53 pixels are 4.3 billion Cityscapes frames; merged states get there one way or another.
    part = ConfusionCounts.of_matrix(np.array([[BIG, 1], [3, BIG]]), np.zeros(2, np.int64), 0)
    whole = Counts(
        *(
            np.stack([x] * 9)
            for x in (part.counts.tp, part.counts.fp, part.counts.fn, part.counts.tn)
        )
    ).summed()
    assert whole.tp.tolist() == [9 * BIG, 9 * BIG]
    assert whole.fp.tolist() == [27, 9]
    assert whole.total.tolist() == [18 * BIG + 36] * 2
    assert metrics.pixel_accuracy(whole) == float(Fraction(18 * BIG, 18 * BIG + 36))


def test_ratio_broadcasts_and_mixes_small_and_large():
    out = ratio(np.array([[1, 0, BIG + 1]]), np.array([[3], [0], [BIG + 3]]))
    assert out.shape == (3, 3)
    assert np.isnan(out[1]).all()
    assert out[2, 2] == float(Fraction(BIG + 1, BIG + 3))
    assert out[0, 0] == 1 / 3


def test_weights_of_small_types_do_not_overflow():
    for kind in (np.int8, np.float16):
        expected = metrics.f_beta(COUNTS, 100.0)
        np.testing.assert_array_equal(metrics.f_beta(COUNTS, kind(100)), expected)
    np.testing.assert_array_equal(
        metrics.tversky(COUNTS, np.int8(100), 1), metrics.tversky(COUNTS, 100.0, 1.0)
    )


@pytest.mark.parametrize("weight", [1e101, 1e308, 2**400])
def test_weights_are_at_most_1e100(weight):
    for function in (metrics.f_beta, lambda counts, one: metrics.tversky(counts, 1, one)):
        with pytest.raises(ValueError, match="beta must be at most 1e"):
            function(COUNTS, weight)
