"""The one division of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "ratio"]

Floats = NDArray[np.float64]


def ratio(numerator: Any, denominator: Any) -> Floats:
    """Divide; 0/0 is NaN, silently, and nothing else can have a zero denominator."""
    top = np.asarray(numerator, dtype=np.float64)
    bottom = np.asarray(denominator, dtype=np.float64)
    out = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    np.divide(top, bottom, out=out, where=bottom != 0)
    return out
