import numpy as np
import pytest

from segiou.analysis import at_prevalence, prevalence_curve
from segiou.counting import ConfusionCounts
from segiou.metrics import iou, mean_accuracy, mean_iou, pixel_accuracy

TALLY = ConfusionCounts.of_matrix(
    np.array([[70, 5, 0], [4, 10, 1], [0, 1, 3]]), np.array([5, 0, 1]), np.int64(9)
)
OWN = np.array([80, 15, 5])


def test_own_shares_change_nothing():
    found = at_prevalence(TALLY, OWN)
    counts = TALLY.counts
    assert found.iou == pytest.approx(iou(counts))
    assert found.pixel_accuracy == pytest.approx(float(pixel_accuracy(counts)))
    assert found.mean_iou == pytest.approx(float(mean_iou(counts)))
    assert found.matrix.sum() == pytest.approx(1.0)


def test_other_shares_are_other_counts_with_the_same_rates():
    repeats = np.array([1, 4, 3])
    more = ConfusionCounts.of_matrix(
        TALLY.matrix * repeats[:, None], TALLY.unassigned * repeats, np.int64(0)
    )
    found = at_prevalence(TALLY, OWN * repeats)
    assert found.iou == pytest.approx(iou(more.counts))
    assert found.pixel_accuracy == pytest.approx(float(pixel_accuracy(more.counts)))


def test_balanced_accuracy_is_mean_accuracy():
    found = at_prevalence(TALLY, "balanced")
    expected = float(mean_accuracy(TALLY.counts))
    assert found.pixel_accuracy == pytest.approx(expected)
    assert found.mean_accuracy == pytest.approx(expected)


def test_include_limits_the_means():
    found = at_prevalence(TALLY, OWN, include=[False, True, True])
    assert found.mean_iou_classes == 2
    assert found.mean_iou == pytest.approx(iou(TALLY.counts)[1:].mean())


def test_curve_agrees_with_single_points_and_falls():
    curve = prevalence_curve(TALLY, 2, [0.5, 0.05, 1e-4])
    for share, right, value, average in zip(
        curve.shares, curve.pixel_accuracy, curve.iou, curve.mean_iou, strict=True
    ):
        rest = (1 - share) / 95
        found = at_prevalence(TALLY, [80 * rest, 15 * rest, share])
        assert (right, value, average) == pytest.approx(
            (found.pixel_accuracy, found.iou[2], found.mean_iou)
        )
    # recall 3/5, false positive rate of the others 1/95
    assert curve.iou == pytest.approx([s * 0.6 / (s + (1 - s) / 95) for s in (0.5, 0.05, 1e-4)])
    assert curve.iou[-1] < 0.01


def test_absent_class_has_no_rates():
    tally = ConfusionCounts.of_matrix(
        np.array([[5, 1], [0, 0]]), np.zeros(2, np.int64), np.int64(0)
    )
    assert np.isnan(at_prevalence(tally, [1, 0]).recall[1])
    assert at_prevalence(tally, "balanced").shares.tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="class cat does not occur in the truth"):
        at_prevalence(tally, [0.5, 0.5], class_names=["road", "cat"])
    with pytest.raises(ValueError, match="class 1 is not in the truth"):
        prevalence_curve(tally, 1)
    with pytest.raises(ValueError, match="only one in the truth"):
        prevalence_curve(tally, 0)


@pytest.mark.parametrize("shares", [[1, 2], [-1, 1, 1], [0, 0, 0], [np.nan, 1, 1], "even"])
def test_bad_shares(shares):
    with pytest.raises(ValueError, match="shares"):
        at_prevalence(TALLY, shares)


def test_bad_curve_shares():
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        prevalence_curve(TALLY, 0, [0.5, 1.5])


def test_to_dict_is_plain():
    found = prevalence_curve(TALLY, 0).to_dict()
    assert len(found["iou"]) == 61
    assert type(found["iou"][0]) is float
    assert at_prevalence(TALLY, "balanced").to_dict()["mean_iou_classes"] == 3
