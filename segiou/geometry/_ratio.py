"""The division of this room, one pass over the memory: boxes are divided by the million."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def ratio(part: ArrayLike, whole: ArrayLike) -> NDArray[np.float64]:
    """Divide; 0/0 is NaN, without a warning."""
    # part <= whole everywhere in this room, so 0/0 is the only division by zero there is.
    with np.errstate(invalid="ignore"):
        quotient: NDArray[np.float64] = np.true_divide(part, whole, dtype=np.float64)
    return quotient
