"""Counts in two 32-bit integers, for compilers without 64-bit integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A count is ``high · BASE + low``. Each batch adds less than 2^30, so the low part never
#: overflows, and the low parts of up to 1024 devices can be summed before they are carried.
BASE = 1 << 20


def check_pixels(shape: tuple[int, ...], limit: int = 1 << 30) -> None:
    """Raise a ValueError for a batch whose counts could overflow."""
    if (pixels := math.prod(shape)) >= limit:
        power = limit.bit_length() - 1
        msg = f"a batch must have fewer than 2^{power} pixels, got {pixels} in shape {shape}"
        raise ValueError(msg)


def carry(low: Any, high: Any) -> tuple[Any, Any]:
    """The same counts with the low parts below 2^20."""
    return low % BASE, high + low // BASE


def as_int64(low: Any, high: Any) -> NDArray[np.int64]:
    """The counts in 64 bits."""
    return np.asarray(high).astype(np.int64) * BASE + np.asarray(low).astype(np.int64)
