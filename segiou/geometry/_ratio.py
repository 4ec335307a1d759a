"""The one division of this room."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def ratio(part: ArrayLike, whole: ArrayLike) -> NDArray[np.float64]:
    """Divide; 0/0 is NaN, without a warning."""
    # part <= whole everywhere in this room, so 0/0 is the only division by zero there is.
    with np.errstate(invalid="ignore"):
        quotient: NDArray[np.float64] = np.true_divide(part, whole, dtype=np.float64)
    return quotient


def defined_mean(values: NDArray[Any], axis: int | None = None) -> NDArray[np.float64]:
    """Mean over the values that are not NaN; NaN where there are none."""
    defined = ~np.isnan(values)
    return ratio(np.sum(values, axis=axis, where=defined), np.sum(defined, axis=axis))
