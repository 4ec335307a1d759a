"""The compiled kernels of boundaries; NumPy and SciPy where they were not built."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.optional import load_part, warn_missing
from segiou.boundary.codes import Codes, ignored_code

__all__ = [
    "BACKEND",
    "count_bands",
    "count_valid",
    "nearest",
    "reference_bands",
    "reference_nearest",
]


_kernel = load_part("segiou.boundary._kernel")
BACKEND = "numpy" if _kernel is None else "c"


Bands = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def count_bands(
    truth: Codes,
    pred: Codes,
    num_classes: int,
    width: int,
    band_border: bool,
    trimap_border: bool | None,
) -> Bands:
    """Count the pixels within ``width`` of a boundary, by the larger of row and column distance.

    Returns
    -------
    band, trimap, outer : ndarray of int64, (C, 3), (C, 3) and (C, 2)
        Pixels of each class in its own inner band in the truth, in the
        prediction, in both at once; truth, prediction and agreement in the
        band of all truth boundaries; pixels outside the class but within
        ``width`` of it: those predicted as it, and all.
    """
    borders = (band_border, trimap_border)
    if _kernel is None:
        warn_missing("segiou.boundary._kernel")
        return reference_bands(truth, pred, num_classes, width, *borders)
    if truth.dtype == np.uint8:
        return _kernel_bands(truth, pred, num_classes, width, *borders)
    present = np.union1d(truth, pred)
    present = present[present < num_classes]
    if len(present) > 253:
        return reference_bands(truth, pred, num_classes, width, *borders)
    # The kernel counts bytes: number the few classes of this image anew.
    small = _kernel_bands(
        _renumbered(truth, present), _renumbered(pred, present), len(present) or 1, width, *borders
    )
    return _scattered(small, present, num_classes)


def count_valid(codes: Codes) -> int:
    """Count the pixels that are not ignored."""
    if _kernel is None or codes.dtype != np.uint8:
        return int(np.count_nonzero(codes != ignored_code(codes.dtype)))
    return int(_kernel.count_valid(np.ascontiguousarray(codes)))


def _kernel_bands(
    truth: Codes,
    pred: Codes,
    num_classes: int,
    width: int,
    band_border: bool,
    trimap_border: bool | None,
) -> Bands:
    band = np.zeros((num_classes, 3), dtype=np.int64)
    trimap = np.zeros((num_classes, 3), dtype=np.int64)
    outer = np.zeros((num_classes, 2), dtype=np.int64)
    _kernel.count_bands(
        np.ascontiguousarray(truth),
        np.ascontiguousarray(pred),
        *truth.shape,
        num_classes,
        width,
        band_border,
        -1 if trimap_border is None else trimap_border,
        band,
        trimap,
        outer,
    )
    return band, trimap, outer


def _renumbered(codes: Codes, present: NDArray[np.uint16]) -> NDArray[np.uint8]:
    table = np.full(1 << 16, 254, dtype=np.uint8)
    table[present] = np.arange(len(present))
    table[ignored_code(codes.dtype)] = 255
    return table[codes]


def _scattered(small: Bands, present: NDArray[np.uint16], num_classes: int) -> Bands:
    band, trimap, outer = (np.zeros((num_classes, x.shape[1]), dtype=np.int64) for x in small)
    for whole, part in zip((band, trimap, outer), small, strict=True):
        whole[present] = part[: len(present)]
    return band, trimap, outer


def nearest(
    query: NDArray[np.int32],
    query_starts: NDArray[np.int64],
    target: NDArray[np.int32],
    target_starts: NDArray[np.int64],
    spacing: tuple[float, float],
) -> NDArray[np.float64]:
    """Squared distance from each query point to the nearest target point of its class.

    Parameters
    ----------
    query, target : ndarray of int32, shape (n, 2)
        Rows and columns, class by class.
    query_starts, target_starts : ndarray of int64, shape (C + 1,)
        Where each class starts.
    spacing : (float, float)
        Height and width of a pixel.

    Returns
    -------
    ndarray of float64, shape (n,)
        Infinite where the class has no target.
    """
    if _kernel is None:
        warn_missing("segiou.boundary._kernel")
        return reference_nearest(query, query_starts, target, target_starts, spacing)
    squared = np.empty(len(query), dtype=np.float64)
    _kernel.nearest(
        np.ascontiguousarray(query),
        query_starts,
        np.ascontiguousarray(target),
        target_starts,
        *spacing,
        squared,
    )
    return squared


def reference_bands(
    truth: Codes,
    pred: Codes,
    num_classes: int,
    width: int,
    band_border: bool,
    trimap_border: bool | None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """:func:`count_bands` in NumPy: what the compiled kernel must equal."""
    inner_truth, inner_pred = _inner_band(truth, width), _inner_band(pred, width)
    valid = truth != ignored_code(truth.dtype)
    frame = _frame(truth.shape, width) & valid
    in_truth, in_pred = (
        (inner_truth | frame, inner_pred | frame)
        if band_border
        else (
            inner_truth,
            inner_pred,
        )
    )
    agreed = truth == pred
    band = _by_class(
        num_classes, truth[in_truth], pred[in_pred], truth[in_truth & in_pred & agreed]
    )
    if trimap_border is None:
        return band, np.zeros_like(band), np.zeros((num_classes, 2), dtype=np.int64)
    near = inner_truth | frame if trimap_border else inner_truth
    trimap = _by_class(num_classes, truth[near], pred[near], truth[near & agreed])
    return band, trimap, _outer_counts(truth, pred, num_classes, width)


def _by_class(num_classes: int, *selected: Any) -> NDArray[np.int64]:
    counts = [np.bincount(codes, minlength=num_classes)[:num_classes] for codes in selected]
    return np.stack(counts, axis=-1).astype(np.int64)


def _inner_band(codes: Codes, width: int) -> NDArray[np.bool_]:
    """Mark valid pixels with a valid pixel of another code in their window."""
    ignored = codes.dtype.type(ignored_code(codes.dtype))
    padded = np.zeros((2, codes.shape[0] + 2 * width, codes.shape[1] + 2 * width), codes.dtype)
    inner = padded[:, width:-width, width:-width]
    # The maximum of the complement is the complement of the minimum.
    inner[0] = np.where(codes == ignored, 0, codes)
    inner[1] = ~codes
    high, low = window_max(padded, 2 * width + 1)
    return np.asarray((high != ~low) & (codes != ignored))


def window_max(padded: NDArray[Any], size: int) -> NDArray[Any]:
    """Maximum over square windows that lie wholly inside the last two axes."""
    for axis in (-2, -1):
        padded = _running_max(padded, size, axis)
    return padded


def _running_max(values: NDArray[Any], size: int, axis: int) -> NDArray[Any]:
    values = np.moveaxis(values, axis, 0)
    reach = 1
    while reach < size:
        step = min(reach, size - reach)
        values = np.maximum(values[:-step], values[step:])
        reach += step
    return np.moveaxis(values, 0, axis)


def _frame(shape: tuple[int, ...], width: int) -> NDArray[np.bool_]:
    frame = np.ones(shape, dtype=np.bool_)
    frame[width:-width, width:-width] = False
    return frame


def _outer_counts(truth: Codes, pred: Codes, num_classes: int, width: int) -> NDArray[np.int64]:
    ignored = ignored_code(truth.dtype)
    counts = np.zeros((num_classes, 2), dtype=np.int64)
    for c in np.unique(truth).tolist():
        if c >= num_classes:
            continue
        rows, cols = _box(truth == c, width)
        t, p = truth[rows, cols], pred[rows, cols]
        near = window_max(np.pad(t == c, width), 2 * width + 1) & (t != c) & (t != ignored)
        counts[c] = np.count_nonzero(near & (p == c)), np.count_nonzero(near)
    return counts


def _box(mask: NDArray[np.bool_], margin: int) -> tuple[slice, slice]:
    spans = []
    for axis in (1, 0):
        found = np.flatnonzero(mask.any(axis))
        spans.append(slice(max(0, int(found[0]) - margin), int(found[-1]) + margin + 1))
    return spans[0], spans[1]


def reference_nearest(
    query: NDArray[np.int32],
    query_starts: NDArray[np.int64],
    target: NDArray[np.int32],
    target_starts: NDArray[np.int64],
    spacing: tuple[float, float],
) -> NDArray[np.float64]:
    """:func:`nearest` by SciPy's trees."""
    from scipy.spatial import cKDTree  # type: ignore[import-untyped]

    squared = np.full(len(query), np.inf)
    for c in range(len(query_starts) - 1):
        asked = slice(*query_starts[c : c + 2])
        known = target[slice(*target_starts[c : c + 2])]
        if len(known) == 0 or asked.start == asked.stop:
            continue
        found = cKDTree(known * spacing).query(query[asked] * spacing)[1]
        # From whole offsets, not from the tree's scaled points: no rounding but one per axis.
        steps = (query[asked] - known[found]) * np.asarray(spacing)
        squared[asked] = (steps * steps).sum(-1)
    return squared
