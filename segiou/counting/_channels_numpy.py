"""Sums over binary channels in NumPy: what the compiled routine does, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_bytes"]

#: So many bytes of 0 or 1 add up in a byte.
_BYTE_ROWS = 255


def count_bytes(
    truth: NDArray[Any],
    pred: NDArray[Any],
    outer: int,
    channels: int,
    inner: int,
    totals: NDArray[np.int64],
) -> bool:
    """Add the sums of ``truth & pred``, ``truth`` and ``pred`` to the (3, channels) totals.

    The bytes, in the order (outer, channels, inner), must be 0 or 1, or the
    answer is False and the totals are garbage.
    """
    t, p = (x.view(np.uint8).reshape(outer, channels, inner) for x in (truth, pred))
    if any(x.size and x.max() > 1 for x in (t, p)):
        return False
    for row, bits in zip(totals, (t & p, t, p), strict=True):
        row += _columns(bits[:, :, 0]) if inner == 1 else _planes(bits)
    return True


def _columns(bits: NDArray[np.uint8]) -> NDArray[np.int64]:
    whole = len(bits) // _BYTE_ROWS * _BYTE_ROWS
    blocks = bits[:whole].reshape(-1, _BYTE_ROWS, bits.shape[1])
    sums = np.add.reduce(blocks, axis=1, dtype=np.uint8).sum(0, dtype=np.int64)
    return np.asarray(sums + bits[whole:].sum(0, dtype=np.int64))


def _planes(bits: NDArray[np.uint8]) -> NDArray[np.int64]:
    # count_nonzero is fast on a contiguous run of bool and slow along an axis.
    runs = bits.view(np.bool_)
    sums = [[np.count_nonzero(run) for run in image] for image in runs]
    per_image: NDArray[np.int64] = np.asarray(sums, dtype=np.int64).reshape(runs.shape[:2])
    return np.asarray(per_image.sum(0))
