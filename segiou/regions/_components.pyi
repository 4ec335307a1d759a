from typing import Any

from numpy.typing import NDArray

def find_components(
    values: NDArray[Any], size: int, shape: tuple[int, ...], rank: int, /
) -> tuple[bytes, bytes, bytes]: ...
