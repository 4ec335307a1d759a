from typing import Any

from numpy.typing import NDArray

def decide_into(
    scores: NDArray[Any],
    kind: str,
    threshold_bits: int | None,
    labels: NDArray[Any],
    loops: str | None = None,
    /,
) -> bool: ...
