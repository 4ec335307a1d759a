"""Means of per-class metrics over the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from segiou._arguments import check_callable, check_choice
from segiou.counts import Counts, check_counts
from segiou.metrics._include import included
from segiou.metrics._ratio import Floats, ratio

__all__ = ["average", "mean"]


def mean(values: Floats, include: Any = None) -> Floats:
    """Mean over the classes (last axis) that have a value; NaN where none has.

    Parameters
    ----------
    values : ndarray of float, shape (..., C)
    include : array_like of bool, shape (C,) or (..., C), optional
        Classes that may take part.

    Returns
    -------
    ndarray of float64, shape (...)

    Examples
    --------
    >>> float(mean(np.array([0.5, np.nan, 1.0])))
    0.75
    """
    taken = ~np.isnan(values)
    if include is not None:
        taken = taken & included(include, values.shape[-1])
    return ratio(np.where(taken, values, 0.0).sum(-1), taken.sum(-1))


def average(
    metric: Callable[[Counts], Floats],
    counts: Counts,
    how: Literal["macro", "micro", "weighted", "none"] = "macro",
    *,
    include: Any = None,
) -> Floats:
    """Average a per-class metric over the classes.

    Parameters
    ----------
    metric : callable
        A per-class metric of this module.
    counts : Counts of shape (..., C)
    how : {"macro", "micro", "weighted", "none"}
        Mean of the defined values; metric of the summed counts; mean weighted
        by truth pixels; or the values themselves.
    include : array_like of bool, shape (C,), optional
        Classes that take part.

    Returns
    -------
    ndarray of float64, shape (...), or (..., C) for "none"

    Raises
    ------
    ValueError
        If ``how`` is none of the four.

    Examples
    --------
    >>> from segiou.metrics import iou
    >>> counts = Counts(tp=[9, 0], fp=[1, 0], fn=[0, 1], tn=[0, 9])
    >>> round(float(average(iou, counts)), 4), round(float(average(iou, counts, "micro")), 4)
    (0.45, 0.8182)
    """
    check_counts(counts)
    check_callable("metric", metric, "a function of Counts, such as segiou.metrics.iou")
    check_choice("average", how, ("macro", "micro", "weighted", "none"))
    taken = included(include, counts.tp.shape[-1])
    if how == "macro":
        return mean(metric(counts), taken)
    if how == "micro":
        return metric(counts[..., taken].pooled())[..., 0]
    if how == "weighted":
        values, weights = metric(counts), np.where(taken, counts.truth, 0)
        weights = np.where(np.isnan(values), 0, weights)
        return ratio((np.nan_to_num(values) * weights).sum(-1), weights.sum(-1))
    return metric(counts)
