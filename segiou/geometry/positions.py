"""Interval IoU, and exact differences of positions, shared by intervals and boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_flag
from segiou.counting.arrays import as_array

Numbers = NDArray[Any]
Floats = NDArray[np.float64]

#: float64 represents every integer up to this one.
_EXACT = 2**53
#: Smaller areas have fewer digits.
_LEAST_AREA = 1e-290


def quotient(part: ArrayLike, whole: ArrayLike) -> Floats:
    """Divide; 0/0 is NaN without a warning."""
    # A part never exceeds the whole, so 0/0 is the only division by zero.
    with np.errstate(invalid="ignore"):
        quotient: Floats = np.true_divide(part, whole, dtype=np.float64)
    return quotient


def generalised_iou(shared: Floats, union: Floats, hull: Floats) -> Floats:
    """IoU minus the share of the hull outside the union."""
    # Rounding can make the union an ulp larger than its hull.
    return quotient(shared, union) - quotient(np.maximum(hull - union, 0.0), hull)


def as_numbers(values: ArrayLike, width: int, kind: str) -> Numbers:
    """The values as a finite (..., width) array of int64 or float64; ``kind`` is for errors."""
    array = as_array(values, f"each {kind}")
    if array.shape == (0,):
        array = array.reshape(0, width)
    if array.dtype.kind not in "iuf":
        msg = f"each {kind} must consist of integers or floats, got dtype {array.dtype}"
        raise TypeError(msg)
    if array.ndim == 0 or array.shape[-1] != width:
        msg = f"each {kind} must have {width} numbers on the last axis, got shape {array.shape}"
        raise ValueError(msg)
    if array.dtype.kind == "f":
        array = array.astype(np.float64, copy=False)
        refuse_any(~np.isfinite(array).all(axis=-1), array, kind, "is not finite")
        return array
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        refuse_any((array > np.iinfo(np.int64).max).any(axis=-1), array, kind, "is beyond int64")
    return array.astype(np.int64, copy=False)


def refuse_any(bad: NDArray[np.bool_] | np.bool_, items: Numbers, kind: str, reason: str) -> None:
    """Reject bad items; the error names the index and values of the first one."""
    count = int(np.count_nonzero(bad))
    if not count:
        return
    index = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(bad)))
    values = items[index].tolist() if bad.ndim else items.tolist()
    label = "" if not bad.ndim else f" {index[0]}" if bad.ndim == 1 else f" {index}"
    more = f" (and {count - 1} more)" if count > 1 else ""
    msg = f"{kind}{label} {reason}: {values}{more}"
    raise ValueError(msg)


def check_shapes(
    truth: tuple[int, ...], pred: tuple[int, ...], elementwise: bool, kind: str
) -> None:
    """Reject leading shapes that do not suit an elementwise or pairwise comparison."""
    check_flag("elementwise", elementwise)
    if not elementwise:
        if len(truth) == len(pred) == 1:
            return
        msg = (
            f"comparing all pairs requires one list of {kind} per side, got leading shapes "
            f"{truth} and {pred}; pass elementwise=True to compare elementwise"
        )
        raise ValueError(msg)
    try:
        np.broadcast_shapes(truth, pred)
    except ValueError as error:
        msg = (
            f"{kind} of leading shapes {truth} and {pred} do not broadcast; omit elementwise to "
            "compare all pairs"
        )
        raise ValueError(msg) from error


def comparable(first: Numbers, second: Numbers, kind: str) -> tuple[Numbers, Numbers]:
    """Convert the starts and ends of two sides to one dtype in which differences are exact."""
    arrays = first, second
    if any(array.dtype.kind == "f" for array in arrays):
        first, second = (array.astype(np.float64, copy=False) for array in arrays)
    else:
        lowest = min((int(array.min()) for array in arrays if array.size), default=0)
        highest = max((int(array.max()) for array in arrays if array.size), default=0)
        if lowest >= -_EXACT and highest <= _EXACT:
            first, second = (array.astype(np.float64) for array in arrays)
        else:
            # Offsets from the lowest position: the difference modulo 2**64 is exact, because it is
            # below 2**64.
            first, second = (array.view(np.uint64) - np.uint64(lowest % 2**64) for array in arrays)
    extent, axes = 2.0, first.shape[-1] // 2
    for axis in range(axes):
        ends = np.concatenate([side[..., axis::axes].ravel() for side in (first, second)])
        extent *= float(ends.max()) - float(ends.min()) if ends.size else 0.0
    if not np.isfinite(extent):
        msg = f"the {kind} are so far apart that float64 overflows; scale the coordinates down"
        raise ValueError(msg)
    for side in (first, second) if axes > 1 and first.dtype.kind == "f" else ():
        lengths = side[..., axes:] - side[..., :axes]
        if ((lengths > 0).all(-1) & (lengths.prod(-1) < _LEAST_AREA)).any():
            msg = f"the {kind} are so small that float64 underflows; scale the coordinates up"
            raise ValueError(msg)
    return first, second


def signed_length(start: Numbers, end: Numbers) -> Floats:
    """End - start as float64, negative if the end comes first."""
    if start.dtype.kind == "f":
        return np.subtract(end, start)
    # Unsigned differences are never negative, so the sign is applied afterwards.
    length = (np.maximum(start, end) - np.minimum(start, end)).astype(np.float64)
    return np.where(end >= start, length, -length)


def interval_iou(truth: ArrayLike, pred: ArrayLike, *, elementwise: bool = False) -> Floats:
    """Intersection over union of intervals, for all pairs or elementwise.

    Parameters
    ----------
    truth : array_like, shape (N, 2)
        Starts and ends, integers or floats in the same unit. With `elementwise`, any shape
        (..., 2).
    pred : array_like, shape (M, 2)
        Intervals to compare with them. With `elementwise`, a shape that broadcasts.
    elementwise : bool
        Compare `truth[i]` with `pred[i]` instead of all pairs.

    Returns
    -------
    ndarray of float64
        Shape (N, M); with `elementwise`, the broadcast shape. 0 if intervals touch or are
        disjoint, NaN if both have no length.

    Raises
    ------
    TypeError
        If the numbers are neither integers nor floats.
    ValueError
        If an interval ends before it starts or is not finite, or shapes do not match.

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
    ours, theirs = comparable(ours, theirs, "intervals")
    starts = np.maximum(ours[..., 0], theirs[..., 0])
    ends = np.minimum(ours[..., 1], theirs[..., 1])
    shared = np.maximum(signed_length(starts, ends), 0.0)
    lengths = [signed_length(spans[..., 0], spans[..., 1]) for spans in (ours, theirs)]
    return quotient(shared, lengths[0] + lengths[1] - shared)


def merge_intervals(intervals: ArrayLike) -> NDArray[np.int64] | Floats:
    """Merge overlapping and touching intervals.

    Parameters
    ----------
    intervals : array_like, shape (N, 2)
        Starts and ends, in any order.

    Returns
    -------
    ndarray of int64 or float64, shape (K, 2)
        Disjoint intervals with the same union, sorted. Intervals without length are dropped.

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
        msg = f"intervals must have shape (N, 2), got {spans.shape}"
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

    The intervals of each set are merged first, so overlapping parts count once.

    Parameters
    ----------
    truth, pred
        As for `interval_iou`.

    Returns
    -------
    float
        In [0, 1]; NaN if neither set has any length.

    Raises
    ------
    TypeError, ValueError
        As for `interval_iou`.

    Examples
    --------
    >>> interval_set_iou([[0, 4], [2, 6]], [[3, 8]])
    0.375
    """
    ours, theirs = comparable(merge_intervals(truth), merge_intervals(pred), "intervals")
    # Between two cuts, each set covers either everything or nothing.
    cuts = np.unique(np.concatenate([ours.ravel(), theirs.ravel()]))
    lengths = signed_length(cuts[:-1], cuts[1:])
    in_truth, in_pred = _covers(ours, cuts[:-1]), _covers(theirs, cuts[:-1])
    shared = lengths[in_truth & in_pred].sum()
    # The symmetric difference keeps the ratio within [0, 1] despite rounding.
    return float(quotient(shared, shared + lengths[in_truth ^ in_pred].sum()))


def _read(values: ArrayLike, kind: str) -> Numbers:
    intervals = as_numbers(values, 2, kind)
    refuse_any(intervals[..., 1] < intervals[..., 0], intervals, kind, "ends before it starts")
    return intervals


def _covers(spans: Numbers, points: Numbers) -> NDArray[np.bool_]:
    """Whether each point is in one of the sorted, disjoint, half-open intervals."""
    # The flattened ends ascend, so a point is inside if an odd number of them precede it.
    inside: NDArray[np.bool_] = np.searchsorted(spans.ravel(), points, side="right") % 2 == 1
    return inside
