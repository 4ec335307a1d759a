from typing import Any

import numpy as np
from numpy.typing import NDArray

def find_components(
    values: NDArray[Any], size: int, shape: tuple[int, ...], rank: int, /
) -> tuple[bytes, bytes, bytes]: ...
def find_differences(
    truth: NDArray[Any],
    pred: NDArray[Any],
    size: int,
    shape: tuple[int, ...],
    truth_codes: tuple[int, NDArray[np.uint16]],
    pred_codes: tuple[int, NDArray[np.uint16]],
    classes: int,
    least: int,
    most: int,
    with_runs: bool,
    /,
) -> tuple[bytes, bytes]: ...
