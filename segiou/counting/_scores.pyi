from typing import Any

from numpy.typing import NDArray

def argmax_into(
    scores: NDArray[Any], kind: str, labels: NDArray[Any], portable: bool = False, /
) -> bool: ...
def above_into(
    scores: NDArray[Any],
    kind: str,
    threshold_bits: int,
    labels: NDArray[Any],
    portable: bool = False,
    /,
) -> bool: ...
