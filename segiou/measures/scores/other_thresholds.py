"""Counts of each image at the thresholds that are best on the other images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.histograms.threshold_curves import passing
from segiou.counting.counts import Counts
from segiou.measures.plan import Alternative
from segiou.metrics.ratio import Floats, ratio

Ints = NDArray[np.int64]

#: Candidate thresholds. They are fixed, because thresholds from the data would favour the data.
_LOW = (0.001, 0.002, 0.005)
_CHOICES = (*_LOW, *(k / 100 for k in range(1, 100)), *(1 - x for x in _LOW[::-1]))


def other_thresholds(
    cells: Any, edges: Floats, counts: Counts, units: Ints, include: NDArray[np.bool_]
) -> Alternative:
    """The counts of each image at the thresholds with the best IoU of all other units.

    ``cells`` is the sparse table (N, F) of histograms, and ``counts`` (N, C) those of the
    predictions. A threshold decides both of two classes.
    """
    starts = np.unique(np.searchsorted(edges, np.array(_CHOICES).clip(max=edges[-1])))
    is_binary = counts.tp.shape[1] == 2
    new = [np.array(counted) for counted in (counts.tp, counts.fp, counts.fn, counts.tn)]
    thresholds = np.full(counts.tp.shape[1], np.nan)
    for c in [1] if is_binary else np.flatnonzero(include & (counts.truth > 0).any(0)).tolist():
        each = _passing_per_image(cells, c, starts, len(edges))
        weights = include[::-1] if is_binary else np.array([True, False])
        total = np.zeros((int(units.max(initial=0)) + 1, *each.shape[1:]), np.int64)
        np.add.at(total, units, each)
        whole = total.sum(0)
        chosen = _mean_iou(whole - total, weights).argmax(-1)
        thresholds[c] = edges[starts[_mean_iou(whole, weights).argmax(-1)]]
        outcomes = each[np.arange(len(each)), chosen[units]]
        for counted, column in zip(new, outcomes.T, strict=True):
            counted[:, c] = column
        if is_binary:
            for counted, column in zip(new, outcomes[:, ::-1].T, strict=True):
                counted[:, 0] = column
    return Alternative(thresholds, Counts.trusted(*new), is_binary)


def _passing_per_image(cells: Any, c: int, starts: NDArray[np.intp], bins: int) -> Ints:
    """TP, FP, FN and TN of each image for a class at the thresholds, (N, K, 4)."""
    counts = cells[:, 2 * bins * c : 2 * bins * (c + 1)].tocsr()
    image = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    at, hit = np.divmod(counts.indices.astype(np.int64), 2)
    width = len(starts) + 1
    cell = (image * width + np.searchsorted(starts, at, side="right")) * 2 + hit
    table = np.zeros((counts.shape[0], width, 2), np.int64)
    np.add.at(table.reshape(-1), cell, counts.data)
    fp, tp, positive, negative = (part[:, -len(starts) :] for part in passing(table))
    return np.stack([tp, fp, positive - tp, negative - fp], axis=-1)


def _mean_iou(numbers: Ints, weights: NDArray[np.bool_]) -> Floats:
    """Mean IoU of a class and of the others (..., K) by TP, FP, FN and TN (..., K, 4)."""
    tp, fp, fn, tn = np.moveaxis(numbers, -1, 0)
    ious = np.stack([ratio(tp, tp + fp + fn), ratio(tn, tn + fp + fn)], axis=-1)
    return np.asarray(np.nan_to_num(ious[..., weights]).sum(-1))
