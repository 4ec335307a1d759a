"""Exact counts in two 32-bit integers each, for compilers that have no 64 bits.

A count is ``high · 2^20 + low``. What is added at once stays below 2^30, so
the low part never overflows, and the low parts of up to 1024 devices can be
summed before they are carried.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

BASE = 1 << 20


def check_pixels(shape: tuple[int, ...]) -> None:
    """Refuse a batch whose counts could overflow; shapes are known when it is traced."""
    if (pixels := math.prod(shape)) >= 1 << 30:
        msg = f"a batch of shape {shape} has {pixels} pixels; count fewer than 2^30 at once"
        raise ValueError(msg)


def carry(low: Any, high: Any) -> tuple[Any, Any]:
    """The same counts with the low parts below 2^20."""
    return low % BASE, high + low // BASE


def as_int64(low: Any, high: Any) -> NDArray[np.int64]:
    """The counts in 64 bits."""
    return np.asarray(high).astype(np.int64) * BASE + np.asarray(low).astype(np.int64)
