from typing import Any

import numpy as np
from numpy.typing import NDArray

def count_bytes(
    truth: NDArray[Any],
    pred: NDArray[Any],
    outer: int,
    channels: int,
    inner: int,
    totals: NDArray[np.int64],
    /,
) -> bool: ...
