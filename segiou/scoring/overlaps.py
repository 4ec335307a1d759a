"""Overlaps of the classes of a run: whether they fit, or another numbering could fit better."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.runs.run import Run

#: More distinct values are those of objects or photographs.
MOST_VALUES = 1024
#: Factor and gain if all values are declared, below and above chance.
_DECLARED, _GAINS = 2.0, (0.1, 0.2)
#: With fewer pixels for each pair of classes, overlaps are those of chance.
_LEAST_PIXELS = 16


def ious(both: Any, truth: Any, pred: Any) -> NDArray[np.float64]:
    """IoU from pixels in both, in the truth and in the prediction; NaN if there are none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(both / (truth + pred - both), float)


def mean_iou(matrix: NDArray[Any], truth: NDArray[Any], kept: NDArray[np.bool_]) -> float:
    """Mean IoU over the classes that are kept and occur."""
    of_classes = ious(np.diagonal(matrix), truth, matrix.sum(0))[kept]
    return float(np.nanmean(of_classes)) if not np.isnan(of_classes).all() else float("nan")


def least_mean(run: Run) -> float | None:
    """The mean IoU that a different numbering must exceed; None if that is impossible."""
    options = run.options
    if not 1 < options.num_classes <= MOST_VALUES or not len(run):
        return None
    table = run._tally.table
    matrix, truth, kept = table[:, :-1], table.sum(1), options.include
    pred, total = matrix.sum(0), max(1, int(truth.sum()))
    mean = np.nan_to_num(mean_iou(matrix, truth, kept))
    chance = mean_iou(np.outer(truth, pred) / total, truth, kept)
    occurs = kept & (truth + pred > 0)
    best = np.nan_to_num(ious(matrix, truth[:, None], pred))[occurs].max(1, initial=0)
    are_missed = bool(2 * table[:, -1].sum() > total)
    least = max(_DECLARED * mean, mean + _GAINS[bool(mean >= chance and not are_missed)])
    if total < _LEAST_PIXELS * len(best) ** 2 or not len(best):
        return None
    return float(least) if are_missed or best.mean() > least else None
