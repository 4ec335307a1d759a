from typing import Any

from numpy.typing import NDArray

def count_pairs(
    truth: NDArray[Any],
    truth_size: int,
    truth_is_signed: bool,
    pred: NDArray[Any],
    pred_size: int,
    pred_is_signed: bool,
    loops: str | None = None,
    /,
) -> tuple[bytes, bool] | tuple[int, int] | None: ...
def count_overlaps(
    truth_starts: NDArray[Any],
    truth_ids: NDArray[Any],
    pred_starts: NDArray[Any],
    pred_ids: NDArray[Any],
    length: int,
    /,
) -> tuple[bytes, bool]: ...
