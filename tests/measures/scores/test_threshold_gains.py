"""What another threshold gains, on images that it was not chosen on."""

from __future__ import annotations

import json

import numpy as np
import pytest

import segiou
from segiou.measures.scores import ScoreOptions


def run_of(truth, scores, labels, **how):
    decision = {"threshold": 0.5} if labels == 2 else {"argmax": 1}
    return segiou.score(
        truth, scores, labels=labels, measures=[ScoreOptions(bins=100)], **decision, **how
    )


def shifted(images=12, seed=0, move=0.3):
    """Scores of class 1 whose best threshold is below 0.5 by `move`."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (images, 8, 8))
    scores = np.clip(0.5 + 0.3 * (truth - 0.5) + rng.normal(0, 0.1, truth.shape) - move, 0, 1)
    return truth, scores


def chosen_by_hand(truth, scores):
    """The counts of leave-one-out thresholds, one image after the other."""
    choices = np.arange(1, 100) / 100

    def counts(t, s, at):
        pred = np.floor(s * 100) >= np.rint(at * 100)
        both = np.array([[(t == i) & (pred == j) for j in (0, 1)] for i in (0, 1)])
        return both.sum((2, 3)) if t.ndim == 2 else both.sum((2, 3, 4))

    def mean_iou(m):
        hits = np.diag(m)
        return (hits / (m.sum(0) + m.sum(1) - hits)).mean()

    total = np.zeros((2, 2), int)
    for i in range(len(truth)):
        rest = np.arange(len(truth)) != i
        values = [mean_iou(counts(truth[rest], scores[rest], at)) for at in choices]
        total += counts(truth[i], scores[i], choices[int(np.argmax(values))])
    return mean_iou(total)


def test_the_gain_of_two_classes_is_that_of_leave_one_out():
    truth, scores = shifted()
    report = run_of(truth, scores, 2).report()
    (gain,) = report.threshold_gains
    assert (gain.score, gain.name) == ("mean_iou", "1")
    assert gain.gain == pytest.approx(chosen_by_hand(truth, scores) - report.mean_iou, abs=1e-12)
    assert 0 < gain.low < gain.gain < gain.high
    assert gain.threshold == pytest.approx(0.2, abs=0.03)
    assert f"A threshold of {gain.threshold:.3g} would raise mean IoU by" in report.verdict
    assert json.loads(report.to_json())["threshold_gains"] == [gain.to_dict()]
    for text in (report.to_text(width=400), report.to_markdown(), report.to_html()):
        assert "would raise mean IoU by" in " ".join(text.split())


def test_no_claim_without_evidence():
    for truth, scores in (shifted(move=0.0), shifted(images=2)):
        report = run_of(truth, scores, 2).report()
        assert report.threshold_gains == ()
        assert "threshold" not in report.verdict


@pytest.mark.gate
def test_thresholds_that_are_right_are_rarely_called_better():
    # Thresholds chosen on all images would be called better for half of the seeds.
    runs = [run_of(*shifted(seed=seed, move=0.0), 2) for seed in range(30)]
    assert sum(bool(run.report().threshold_gains) for run in runs) <= 3


def test_classes_that_lose_pixels_to_another():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, (12, 10, 10))
    logits = 2 * np.moveaxis(np.eye(3)[truth], -1, 1) + rng.normal(0, 0.5, (12, 3, 10, 10))
    logits[:, 2] -= 1.6  # never wins, although it ranks well
    scores = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    report = run_of(truth, scores, ["a", "b", "c"]).report()
    best = report.threshold_gains[0]
    assert (best.score, best.name) == ("iou", "c")
    table = segiou.ScoreHistogram(3, bins=100).update(truth, scores).at_thresholds()
    in_sample = np.nanmax(table.iou[2]) - report.classes[2].iou
    assert 0 < best.gain <= in_sample
    assert "Class thresholds would raise IoU: c at" in report.verdict
    excluded = run_of(truth, scores, ["a", "b", "c"], exclude="c").report()
    assert "c" not in [gain.name for gain in excluded.threshold_gains]


def test_units_are_left_out_whole():
    """A drive repeated under several names tells nothing about its own threshold."""
    truth, scores = shifted(images=3, seed=2)
    ids = [f"drive{i}_{k}" for k in range(4) for i in range(3)]
    truth, scores = np.tile(truth, (4, 1, 1)), np.tile(scores, (4, 1, 1))
    run = run_of(truth, scores, 2, ids=ids)
    (plan,) = run.plans
    drives = np.array([int(i.split("_")[0][-1]) for i in run.ids])
    other = plan.alternative(run.measured["scores"], run.counts, drives)
    tp = other.counts.tp[:, 1]
    for drive in range(3):
        assert len({*tp[drives == drive].tolist()}) == 1
