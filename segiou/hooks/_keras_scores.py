"""Scores in float32, inside compiled Keras steps."""

from __future__ import annotations

from typing import Any

from keras import ops

from segiou.counting.counts import Counts
from segiou.histograms.compiled_counts import CompiledScores
from segiou.histograms.score_bins import SCORE_UNIT
from segiou.hooks._scoring import HistogramScoring, MatrixScoring


def scores_of_sums(sums: Any, bad: Any, tables: Any, scoring: Any) -> dict[str, Any]:
    """Scores by name, of the sums of all batches in float32; NaN if bad values were counted."""
    scores = _of_histograms if isinstance(scoring, HistogramScoring) else _of_matrix
    found, more = scores(sums, tables, scoring)
    nan_if_bad = ops.where(bad + more > 0, float("nan"), 0.0)
    return {name: value + nan_if_bad for name, value in found.items()}


def _of_matrix(sums: Any, _tables: Any, scoring: MatrixScoring) -> tuple[dict[str, Any], Any]:
    """Scores of a confusion matrix, and the number of bad values."""
    classes = scoring.options.num_classes
    whole = ops.reshape(sums[:-1], (classes + 2, classes + 1))
    table, bad = whole[:classes], sums[-1] + ops.sum(whole[-1])
    if scoring.options.unassigned == "error":
        bad = bad + ops.sum(table[:, -1])
    tp, truth = ops.diagonal(table), ops.sum(table, axis=1)
    pred = ops.sum(table[:, :-1], axis=0)
    counts = Counts.trusted(tp, pred - tp, truth - tp, ops.sum(truth) - truth - pred + tp)
    return scoring.values_of(counts, xp=ops), bad


def _of_histograms(
    sums: Any, tables: CompiledScores, scoring: HistogramScoring
) -> tuple[dict[str, Any], Any]:
    """Scores of histograms, and the number of bad values."""
    counts, top, top_sums = tables.parts(sums, ops)
    values, best_sums = tables.bins.values, top_sums * SCORE_UNIT
    include = ops.convert_to_tensor(scoring.options.include)
    found = {}
    for name in scoring.names:
        if name in ("ece", "mce", "ace"):
            found[name] = _calibration(name, top, best_sums, values, scoring.rows)
        elif name == "brier":
            found[name] = ops.sum(_brier(counts, values))
        else:
            found[name] = _mean(_OF_CLASSES[name](counts), include)
    return found, ops.sum(sums[-3:])


def _passing(counts: Any) -> tuple[Any, Any, Any, Any]:
    """As :func:`segiou.histograms.threshold_curves.passing`."""
    above = ops.flip(ops.cumsum(ops.flip(counts, axis=-2), axis=-2), axis=-2)
    return above[..., 0], above[..., 1], above[..., :1, 1], above[..., :1, 0]


def _average_precision(counts: Any) -> Any:
    fp, tp, positive, _ = _passing(counts)
    precision = tp / ops.maximum(tp + fp, 1.0)
    return ops.sum(counts[..., 1] * precision, axis=-1) / positive[..., 0]


def _roc_auc(counts: Any) -> Any:
    _, tp, positive, negative = _passing(counts)
    share = (tp - 0.5 * counts[..., 1]) / positive
    return ops.sum(counts[..., 0] * share, axis=-1) / negative[..., 0]


def _best_iou(counts: Any) -> Any:
    fp, tp, positive, _ = _passing(counts)
    best = ops.max(tp / ops.maximum(positive + fp, 1.0), axis=-1)
    return ops.where(positive[..., 0] > 0, best, float("nan"))


def _fpr95(counts: Any) -> Any:
    fp, tp, positive, negative = _passing(counts)
    reached = tp / positive >= 0.95
    least = ops.min(ops.where(reached, fp, float("inf")), axis=-1)
    return ops.where(positive[..., 0] > 0, least, float("nan")) / negative[..., 0]


_OF_CLASSES = {
    "average_precision": _average_precision,
    "roc_auc": _roc_auc,
    "best_iou": _best_iou,
    "fpr95": _fpr95,
}


def _mean(each: Any, include: Any) -> Any:
    known = include & ~ops.isnan(each)
    total = ops.sum(ops.where(known, each, ops.zeros_like(each)))
    return total / ops.sum(ops.cast(known, each.dtype))


def _brier(counts: Any, values: Any) -> Any:
    errors = counts[..., 0] * values**2 + counts[..., 1] * (1 - values) ** 2
    return ops.sum(errors, axis=-1) / ops.sum(counts, axis=(-2, -1))


def _calibration(name: str, top: Any, top_sums: Any, values: Any, rows: int) -> Any:
    """ECE, MCE or ACE of the highest scores."""
    row = ops.convert_to_tensor((values * rows).clip(max=rows - 1).astype("int32"))
    parts = ops.stack([ops.sum(top, axis=-1), top_sums, top[..., 1]], axis=-1)
    pixels, scores, right = ops.unstack(ops.segment_sum(parts, row, num_segments=rows), axis=-1)
    gap = ops.abs(scores - right)  # times the pixels of the row
    if name == "ece":
        return ops.sum(gap) / ops.sum(pixels)
    filled = ops.cast(pixels > 0, gap.dtype)
    each = gap / ops.maximum(pixels, 1.0)
    nan_if_empty = ops.where(ops.sum(filled) > 0, 0.0, float("nan"))
    found = ops.max(each) if name == "mce" else ops.sum(each) / ops.sum(filled)
    return found + nan_if_empty
