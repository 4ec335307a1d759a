from typing import Any

import numpy as np
from numpy.typing import NDArray

BACKENDS: tuple[str, ...]

def count_coded(
    truth: NDArray[Any],
    pred: NDArray[Any],
    truth_low: int,
    truth_codes: NDArray[np.uint16],
    pred_low: int,
    pred_codes: NDArray[np.uint16],
    table: NDArray[np.int64],
    backend: str = ...,
    /,
) -> bool | None: ...
