"""The one division of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "ratio"]

Floats = NDArray[np.float64]

#: Up to here float64 holds every integer, so one division rounds once.
_FLOAT_HOLDS = 1 << 53


def ratio(numerator: Any, denominator: Any) -> Floats:
    """Divide; 0/0 is NaN, silently, and nothing else can have a zero denominator.

    The quotient of integers is the float64 nearest to the true quotient, also
    where they are past 2^53 and float64 could not hold them.
    """
    top, bottom = np.asarray(numerator), np.asarray(denominator)
    if _is_large(top) or _is_large(bottom):
        return _ratio_of_large(top, bottom)
    out = np.full(np.broadcast_shapes(top.shape, bottom.shape), np.nan)
    np.divide(top, bottom, out=out, where=bottom != 0)
    return out


def _is_large(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iu" and values.size > 0 and int(values.max()) > _FLOAT_HOLDS


def _ratio_of_large(top: NDArray[Any], bottom: NDArray[Any]) -> Floats:
    # Python divides integers of any size with one rounding.
    tops, bottoms = np.broadcast_arrays(top, bottom)
    quotients = [
        t / b if b else np.nan
        for t, b in zip(tops.ravel().tolist(), bottoms.ravel().tolist(), strict=True)
    ]
    return np.array(quotients, dtype=np.float64).reshape(tops.shape)
