"""Curves for pages: few thresholds, among them the best one, with exact values."""

import numpy as np
import pytest

import segiou
from segiou.measures.scores.plan import page_curves


def test_values_at_every_threshold_of_few_bins():
    truth, scores = np.array([[0, 0, 0, 1, 1]]), np.array([[0.1, 0.3, 0.6, 0.6, 0.9]])
    histogram = segiou.ScoreHistogram(["other", "cell"], bins=4).update(truth, scores, axis=None)
    _, cell = page_curves(histogram, 4)
    # TP 2 2 2 1, FP 3 2 1 0.
    assert cell.series == {
        "threshold": (0, 0.25, 0.5, 0.75),
        "IoU": (0.4, 0.5, 0.6667, 0.5),
        "precision": (0.4, 0.5, 0.6667, 1),
        "recall": (1, 1, 1, 0.5),
    }
    assert (cell.row, cell.best) == ("cell", 2)
    assert cell.charts[2].points == ((0.125, 0), (0.375, 0), (0.625, 0.5), (0.875, 1))


@pytest.mark.parametrize("bins", [4096, "float16"])
def test_saturated_scores_keep_their_curve_in_at_most_101_thresholds(bins):
    rng = np.random.default_rng(0)
    truth = rng.random((64, 64)) < 0.1
    scores = 1 / (1 + np.exp(-4 * rng.normal(size=truth.shape) - 8 * truth + 12))
    histogram = segiou.ScoreHistogram(2, bins=bins).update(truth, scores, axis=None)
    (_, found), best = page_curves(histogram, 15), histogram.best_threshold()
    assert len(found.series["threshold"]) <= 101
    assert found.series["threshold"][found.best] == pytest.approx(best.thresholds[1], rel=1e-4)
    assert found.series["IoU"][found.best] == pytest.approx(best.scores[1], abs=5e-5)
    recall = np.array(found.series["recall"])
    assert (np.diff(recall) <= 0).all()
    exact = histogram.pr_curve(1).x
    reachable = -np.diff(exact).min()  # no step is much longer than those of the histogram
    assert -np.diff(recall).min() <= max(0.05, 1.5 * reachable)


def test_absent_classes_have_no_curves_and_only_exact_values_are_0_or_1():
    truth = np.zeros((200, 200), int)
    truth[0, 0] = 1
    scores = np.zeros((3, 200, 200))
    scores[0], scores[:, 0, 1] = 1, [0, 1, 0]
    histogram = segiou.ScoreHistogram(3, bins=4).update(truth, scores, axis=0)
    first, second = page_curves(histogram, 4)
    assert (first.row, second.row) == ("0", "1")
    assert first.series["recall"][-1] == 0.99997  # 39 998 of 39 999
    assert 0 < second.series["IoU"][0] < 1e-4  # 1 of 40 000
