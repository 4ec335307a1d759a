"""Scores in float32, inside compiled Keras steps."""

from __future__ import annotations

from typing import Any

from keras import ops

from segiou.accumulators.histograms.compiled_counts import CompiledScores
from segiou.counting.counts import Counts
from segiou.hooks._compiled import CompiledChannels
from segiou.hooks._scoring import Scoring


def scores_of_sums(sums: Any, refused: Any, tables: Any, scoring: Scoring) -> dict[str, Any]:
    """Scores by name, of the sums of all batches in float32; NaN if bad values were counted."""
    if isinstance(tables, CompiledScores):
        counts, bad = tables.cells_of(sums, ops), ops.sum(sums[-3:])
    elif isinstance(tables, CompiledChannels):
        counts, bad = tables.counts_of(sums, ops)
    else:
        counts, bad = _of_matrix(sums, scoring)
    nan_if_bad = ops.where(refused + bad > 0, float("nan"), 0.0)
    values = scoring.values_of(counts, xp=ops)
    return {name: value + nan_if_bad for name, value in values.items()}


def _of_matrix(sums: Any, scoring: Scoring) -> tuple[Counts, Any]:
    """Counts of the classes, and the number of bad values."""
    classes = scoring.options.num_classes
    whole = ops.reshape(sums[:-1], (classes + 2, classes + 1))
    table, bad = whole[:classes], sums[-1] + ops.sum(whole[-1])
    if scoring.options.unassigned == "error":
        bad = bad + ops.sum(table[:, -1])
    tp, truth = ops.diagonal(table), ops.sum(table, axis=1)
    pred = ops.sum(table[:, :-1], axis=0)
    return Counts.trusted(tp, pred - tp, truth - tp, ops.sum(truth) - truth - pred + tp), bad
