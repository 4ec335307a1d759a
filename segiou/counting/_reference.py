"""Counting in NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def _codes(values: Any, low: int, codes: Any, undeclared: int) -> Any:
    out = np.full(values.shape, undeclared, dtype=np.intp)
    v = values.astype(object) if values.dtype == np.uint64 else values.astype(np.int64)
    inside = ((v >= low) & (v < low + len(codes))).astype(bool)
    out[inside] = codes[(v[inside] - low).astype(np.int64)]
    return out


def count_coded(
    truth: NDArray[Any],
    pred: NDArray[Any],
    truth_low: int,
    truth_codes: NDArray[np.uint16],
    pred_low: int,
    pred_codes: NDArray[np.uint16],
    table: NDArray[np.int64],
) -> None:
    """Add the pairs of codes to the table."""
    rows, cols = table.shape
    t = _codes(truth, truth_low, truth_codes, rows - 1)
    p = _codes(pred, pred_low, pred_codes, cols - 1)
    table += np.bincount((t * cols + p).ravel(), minlength=rows * cols).reshape(rows, cols)
