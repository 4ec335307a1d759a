"""Quantiles of values that occur several times and may be infinite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.metrics.ratio import Floats


def quantile(ascending: Floats, share: float, times: NDArray[Any] | None = None) -> Floats:
    """Interpolate linearly between the neighbours; infinite if either is, NaN without values.

    ``times`` (..., N) is how often each of the N values occurs, once by default; the result
    has the shape (...).

    R. J. Hyndman and Y. Fan, Amer. Statist. 50 (1996), 361-365, definition 7.
    """
    times = np.ones(len(ascending), np.int64) if times is None else times
    total = times.sum(-1)[..., None]
    if not len(ascending):
        return np.full(total.shape[:-1], np.nan)
    position = (total - 1) * share
    up_to = np.cumsum(times, axis=-1)
    low = ascending[(up_to > np.floor(position)).argmax(-1)]
    high = ascending[(up_to > np.ceil(position)).argmax(-1)]
    above = (position % 1)[..., 0]
    with np.errstate(invalid="ignore"):  # 0 times infinity, where both neighbours are equal
        between = low * (1 - above) + high * above
    return np.where(total[..., 0] > 0, np.where(low == high, low, between), np.nan)
