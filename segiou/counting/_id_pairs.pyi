from typing import Any

from numpy.typing import NDArray

def count_pairs(
    truth: NDArray[Any], truth_size: int, pred: NDArray[Any], pred_size: int, /
) -> bytes: ...
