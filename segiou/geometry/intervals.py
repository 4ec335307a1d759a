"""IoU of intervals (temporal IoU), and of sets of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou.geometry.positions import (
    Numbers,
    as_numbers,
    check_shapes,
    comparable,
    quotient,
    refuse_any,
    refuse_overflow,
    signed_length,
)


def interval_iou(
    truth: ArrayLike, pred: ArrayLike, *, elementwise: bool = False
) -> NDArray[np.float64]:
    """Intersection over union of intervals: of all pairs, or element by element.

    Parameters
    ----------
    truth : array_like, shape (N, 2)
        Starts and ends, integers or floats in one unit. With `elementwise`, any shape (..., 2).
    pred : array_like, shape (M, 2)
        Intervals to compare with them. With `elementwise`, a shape that broadcasts.
    elementwise : bool
        Compare `truth[i]` with `pred[i]` instead of all pairs.

    Returns
    -------
    ndarray of float64
        Shape (N, M); with `elementwise`, the broadcast shape. 0 where intervals touch or are
        disjoint, NaN where both have no length.

    Raises
    ------
    TypeError
        If the numbers are neither integers nor floats.
    ValueError
        If an interval ends before it starts or is not finite (the message names the first one),
        or if shapes do not fit.

    Examples
    --------
    >>> interval_iou([[0, 10], [20, 30]], [[5, 15], [20, 30], [30, 40]])
    array([[0.33333333, 0.        , 0.        ],
           [0.        , 1.        , 0.        ]])
    """
    ours, theirs = _read(truth, "truth interval"), _read(pred, "predicted interval")
    check_shapes(ours.shape[:-1], theirs.shape[:-1], elementwise, "intervals")
    if not elementwise:
        ours = ours[:, None, :]
    ours, theirs = comparable(ours, theirs)
    refuse_overflow([(ours, theirs)], "intervals")
    starts = np.maximum(ours[..., 0], theirs[..., 0])
    ends = np.minimum(ours[..., 1], theirs[..., 1])
    shared = np.maximum(signed_length(starts, ends), 0.0)
    lengths = signed_length(ours[..., 0], ours[..., 1]) + signed_length(
        theirs[..., 0], theirs[..., 1]
    )
    return quotient(shared, lengths - shared)


def merge_intervals(intervals: ArrayLike) -> NDArray[Any]:
    """Write a set of intervals as the fewest disjoint ones, in order.

    Parameters
    ----------
    intervals : array_like, shape (N, 2)
        Starts and ends, in any order, overlapping or not.

    Returns
    -------
    ndarray of int64 or float64, shape (K, 2)
        Their union. Intervals that touch are joined; those without length are left out.

    Raises
    ------
    TypeError, ValueError
        As for `interval_iou`.

    Examples
    --------
    >>> merge_intervals([[5, 8], [0, 2], [7, 9], [2, 3]])
    array([[0, 3],
           [5, 9]])
    """
    spans = _read(intervals, "interval")
    if spans.ndim != 2:
        msg = f"a set of intervals has the shape (N, 2), got {spans.shape}"
        raise ValueError(msg)
    spans = spans[spans[:, 1] > spans[:, 0]]
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    if not len(spans):
        return spans
    reach = np.maximum.accumulate(spans[:, 1])
    opens = np.concatenate([[True], spans[1:, 0] > reach[:-1]])
    closes = np.concatenate([opens[1:], [True]])
    return np.stack([spans[opens, 0], reach[closes]], axis=-1)


def interval_set_iou(truth: ArrayLike, pred: ArrayLike) -> float:
    """IoU of two sets of intervals, such as all events of one video.

    The intervals of each set are united first, so a moment that several of them cover counts once.

    Parameters
    ----------
    truth : array_like, shape (N, 2)
        Starts and ends, integers or floats in one unit.
    pred : array_like, shape (M, 2)
        The same of the prediction.

    Returns
    -------
    float
        In [0, 1]; NaN where neither set has any length.

    Raises
    ------
    TypeError, ValueError
        As for `interval_iou`.

    Examples
    --------
    >>> interval_set_iou([[0, 4], [2, 6]], [[3, 8]])
    0.375
    """
    ours, theirs = merge_intervals(truth), merge_intervals(pred)
    ours, theirs = comparable(ours, theirs)
    refuse_overflow([(ours, theirs)], "intervals")
    # Between two cuts every set covers either all or nothing.
    cuts = np.unique(np.concatenate([ours.ravel(), theirs.ravel()]))
    lengths = signed_length(cuts[:-1], cuts[1:])
    in_truth, in_pred = _covers(ours, cuts[:-1]), _covers(theirs, cuts[:-1])
    shared = lengths[in_truth & in_pred].sum()
    # Adding up what is not shared keeps the ratio within [0, 1] whatever is rounded.
    return float(quotient(shared, shared + lengths[in_truth ^ in_pred].sum()))


def _read(values: ArrayLike, kind: str) -> Numbers:
    intervals = as_numbers(values, 2, kind)
    refuse_any(intervals[..., 1] < intervals[..., 0], intervals, kind, "ends before it starts")
    return intervals


def _covers(spans: Numbers, points: Numbers) -> NDArray[np.bool_]:
    """Tell which points lie in one of the sorted, disjoint, half-open intervals."""
    # The flattened ends ascend, so an odd number of them up to a point means inside.
    inside: NDArray[np.bool_] = np.searchsorted(spans.ravel(), points, side="right") % 2 == 1
    return inside
