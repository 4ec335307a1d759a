"""What follows from histograms, against scikit-learn, torchmetrics, MONAI and published figures."""

from __future__ import annotations

import numpy as np
import pytest

from segiou import ScoreHistogram

RNG = np.random.default_rng(11)
TRUTH = RNG.integers(0, 3, (2, 30, 40))
LOGITS = RNG.normal(size=(2, 3, 30, 40)) * 2 + 2 * np.moveaxis(np.eye(3)[TRUTH], -1, 1)
SCORES = (np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)).astype(np.float16)
EXACT = ScoreHistogram(3, bins="float16").update(TRUTH, SCORES)

#: SN 2.24 of Metrics Reloaded, as its tests have them.
SECOND = np.array([0.22, 0.48, 0.49, 0.96, 0.55, 0.64, 0.78, 0.82, 0.34, 0.87])
REFERENCE = np.array([0, 1, 0, 0, 1, 1, 1, 1, 1, 0])


def one(c):
    return (c == TRUTH).ravel(), SCORES[:, c].ravel().astype(np.float64)


@pytest.mark.parametrize("c", range(3))
class TestScikitLearn:
    """The same numbers on scores that the bins hold exactly."""

    def test_areas(self, c):
        metrics = pytest.importorskip("sklearn.metrics")
        ours = EXACT.average_precision()[c], EXACT.roc_auc()[c], EXACT.brier()[c]
        named = metrics.average_precision_score, metrics.roc_auc_score, metrics.brier_score_loss
        assert ours == pytest.approx([f(*one(c)) for f in named], rel=0, abs=4e-16)

    def test_curves(self, c):
        metrics = pytest.importorskip("sklearn.metrics")
        precision, recall, thresholds = metrics.precision_recall_curve(*one(c))
        found = EXACT.pr_curve(c)
        np.testing.assert_array_equal(found.y, precision)
        np.testing.assert_array_equal(found.x, recall)
        np.testing.assert_array_equal(found.thresholds[:-1], thresholds)
        fpr, tpr, thresholds = metrics.roc_curve(*one(c), drop_intermediate=False)
        found = EXACT.roc_curve(str(c))
        np.testing.assert_array_equal(found.x, fpr)
        np.testing.assert_array_equal(found.y, tpr)
        np.testing.assert_array_equal(found.thresholds, thresholds)
        reached = tpr >= 0.95
        assert EXACT.fpr_at_tpr()[c] == fpr[reached][0]

    def test_thresholds(self, c):
        metrics = pytest.importorskip("sklearn.metrics")
        truth, scores = one(c)
        named = {"iou": metrics.jaccard_score, "dice": metrics.f1_score}
        table = EXACT.at_thresholds()
        for by, function in named.items():
            best = EXACT.best_threshold(by)
            values = [function(truth, scores >= t) for t in np.unique(scores)[::160]]
            assert best.scores[c] >= max(values)
            assert best.scores[c] == np.nanmax(getattr(table, by)[c])
            assert function(truth, scores >= best.thresholds[c]) == best.scores[c]
            at = np.searchsorted(table.thresholds, 0.5)
            assert getattr(table, by)[c, at] == pytest.approx(function(truth, scores >= 0.5))
        best = EXACT.best_threshold("fbeta", beta=2)
        found = metrics.fbeta_score(truth, scores >= best.thresholds[c], beta=2)
        assert best.scores[c] == pytest.approx(found)


@pytest.mark.parametrize(("bins", "off"), [(256, 4e-4), (1 << 16, 4e-6), ("float16", 2e-5)])
def test_bins_separate_8_bit_integers_but_round_their_values(bins, off):
    metrics = pytest.importorskip("sklearn.metrics")
    truth, scores = np.arange(512) % 2 == 1, np.arange(512) // 2
    scores = np.where(truth, scores, scores[::-1] // 2).astype(np.uint8)
    found = ScoreHistogram(2, bins=bins).update(truth, np.stack([255 - scores, scores]), axis=0)
    area = metrics.average_precision_score(truth, scores)
    assert found.average_precision()[1] == pytest.approx(area, rel=0, abs=4e-16)
    squared = metrics.brier_score_loss(truth, scores / 255)
    assert 1e-8 < abs(found.brier()[1] - squared) < off


def test_equal_bins_are_close():
    coarse = ScoreHistogram(3).update(TRUTH, SCORES)
    np.testing.assert_allclose(coarse.average_precision(), EXACT.average_precision(), atol=2e-4)
    np.testing.assert_allclose(coarse.roc_auc(), EXACT.roc_auc(), atol=2e-4)
    np.testing.assert_allclose(coarse.brier(), EXACT.brier(), atol=2e-5)
    assert coarse.calibration().ece == pytest.approx(EXACT.calibration().ece, abs=1e-3)


def test_one_threshold_for_all_classes():
    best = EXACT.best_threshold("iou")
    assert best.mean == np.nanmax(EXACT.at_thresholds().iou.mean(0))
    assert best.mean <= best.scores.mean()
    alone = ScoreHistogram(3, bins="float16", exclude=[0, 1]).update(TRUTH, SCORES)
    assert alone.best_threshold().overall == alone.best_threshold().thresholds[2]


class TestMetricsReloaded:
    """The figures that its own tests expect."""

    @pytest.mark.parametrize(
        ("bins", "ece", "mce"), [(2, 0.11, 0.12), (5, 0.32, 0.55), (10, 0.36, 0.96)]
    )
    def test_of_a_class(self, bins, ece, mce):
        found = ScoreHistogram(2, bins=1000).update(REFERENCE, SECOND, axis=None)
        rows = found.calibration(bins, c=1)
        assert (rows.ece, rows.mce) == pytest.approx((ece, mce), abs=0.01)

    def test_brier(self):
        found = ScoreHistogram(2, bins="float16")
        found.update([1, 0], [[0.2, 0.8], [0.4, 0.6]], axis=-1)
        assert found.calibration().brier == pytest.approx(0.4, abs=1e-3)

    def test_class_wise(self):
        scores = [[0.1, 0.8, 0, 0.1], [0.6, 0.1, 0, 0.7], [0.3, 0.1, 1, 0.2]]
        found = ScoreHistogram(3, bins="float16").update([1, 0, 2, 1], np.array(scores), axis=0)
        assert found.classwise_ece(2).mean() == pytest.approx(0.15, abs=1e-3)


def test_torchmetrics():
    torch = pytest.importorskip("torch")
    tm = pytest.importorskip("torchmetrics.functional.classification")
    scores, truth = torch.from_numpy(SCORES).float(), torch.from_numpy(TRUTH)
    how = {"num_classes": 3, "average": None}
    exact = tm.multiclass_average_precision(scores, truth, thresholds=None, **how)
    np.testing.assert_allclose(EXACT.average_precision(), exact, atol=1e-6)
    exact = tm.multiclass_auroc(scores, truth, thresholds=None, **how)
    np.testing.assert_allclose(EXACT.roc_auc(), exact, atol=1e-6)
    # Its binned curves have thresholds at i / 100, which are the edges of 100 bins and 1.
    precision, recall, _ = tm.multiclass_precision_recall_curve(
        scores.double(), truth, num_classes=3, thresholds=torch.arange(100).double() / 100
    )
    found = ScoreHistogram(3, bins=100).update(TRUTH, SCORES).at_thresholds()
    reached = ~np.isnan(found.precision)
    np.testing.assert_allclose(found.precision[reached], precision[:, :-1].numpy()[reached], 1e-6)
    np.testing.assert_allclose(found.recall, recall[:, :-1], rtol=1e-6)
    ece = tm.multiclass_calibration_error(scores, truth, num_classes=3, n_bins=16, norm="l1")
    assert EXACT.calibration(16).ece == pytest.approx(float(ece), abs=1e-6)
    mce = tm.multiclass_calibration_error(scores, truth, num_classes=3, n_bins=16, norm="max")
    assert EXACT.calibration(16).mce == pytest.approx(float(mce), abs=1e-6)


def test_monai():
    torch = pytest.importorskip("torch")
    metrics = pytest.importorskip("monai.metrics")
    for c in range(3):
        truth, scores = one(c)
        area = metrics.compute_roc_auc(torch.from_numpy(scores), torch.from_numpy(truth).int())
        assert EXACT.roc_auc()[c] == pytest.approx(area, abs=1e-6)
        arrays = (torch.from_numpy(x[None, None].astype(np.float32)) for x in (scores, truth))
        # MONAI moves the edges by 1e-7; of 15 bins, no inner edge is a half-precision score.
        filled = metrics.calibration_binning(*arrays, num_bins=15)
        gaps = (filled[0] - filled[1]).abs()
        assert EXACT.calibration(15, c).ace == pytest.approx(float(gaps.nanmean()), abs=1e-6)


def test_undefined_is_nan_with_a_reason():
    found = ScoreHistogram(["a", "b", "c"], ignore=255)
    assert np.isnan(found.average_precision()).all()
    assert np.isnan(found.calibration().ece)
    assert np.isnan(found.calibration().brier)
    found.update([0, 0, 2], [[0.9, 0.8, 0.1], [0.1, 0.1, 0.1], [0, 0.1, 0.8]], axis=0)
    assert found.undefined == {"b": "no pixel of the class"}
    assert np.isnan(found.average_precision()).tolist() == [False, True, False]
    assert np.isnan(found.roc_auc()).tolist() == [False, True, False]
    assert np.isnan(found.best_threshold().thresholds).tolist() == [False, True, False]
    assert found.best_threshold().mean == 1


def test_risk_falls_with_coverage():
    found = ScoreHistogram(2, bins=10)
    found.update([0, 0, 1, 1], [[0.95, 0.85, 0.75, 0.35], [0.05, 0.15, 0.25, 0.65]], axis=0)
    curve = found.risk_coverage()
    assert curve.x.tolist() == [0.25, 0.5, 0.75, 1]
    assert curve.y.tolist() == [0, 0, 1 / 3, 1 / 4]
    rows = found.calibration(2)
    assert rows.pixels.tolist() == [0, 4]
    assert rows.accuracy[1] == 0.75
    assert rows.confidence[1] == pytest.approx(0.8)
    assert rows.ece == pytest.approx(0.05)
    assert rows.to_dict()["accuracy"] == [None, 0.75]


def test_beta_zero_is_precision():
    histogram = ScoreHistogram(2).update([0, 1, 1], [[0.9, 0.4, 0.6], [0.1, 0.6, 0.4]], 0)
    best = histogram.best_threshold("fbeta", beta=0)
    # The lowest bins of 4096 above 0.6 and 0.1: there, precision is 1.
    assert best.scores.tolist() == [1, 1]
    assert best.thresholds.tolist() == [(int(0.6 * 4096) + 1) / 4096, (int(0.1 * 4096) + 1) / 4096]
