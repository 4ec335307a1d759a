"""The compiled kernels of boundaries; NumPy and SciPy where they were not built."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from segiou._support.compiled import load_part, warn_missing
from segiou.boundary import reference_distances
from segiou.boundary.codes import Codes, ignored_code

__all__ = [
    "BACKEND",
    "count_bands",
    "count_valid",
    "nearest",
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
    """Count the pixels near boundaries; as ``reference_distances.count_bands``."""
    borders = (band_border, trimap_border)
    if _kernel is None:
        warn_missing("segiou.boundary._kernel")
        return reference_distances.count_bands(truth, pred, num_classes, width, *borders)
    if truth.dtype == np.uint8:
        return _kernel_bands(truth, pred, num_classes, width, *borders)
    present = np.union1d(truth, pred)
    present = present[present < num_classes]
    if len(present) > 253:
        return reference_distances.count_bands(truth, pred, num_classes, width, *borders)
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
    """Find the nearest points; see :func:`segiou.boundary.reference_distances.nearest`."""
    if _kernel is None:
        warn_missing("segiou.boundary._kernel")
        return reference_distances.nearest(query, query_starts, target, target_starts, spacing)
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
