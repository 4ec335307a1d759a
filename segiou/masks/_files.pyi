from collections.abc import Sequence
from typing import Any

def read_small(
    paths: Sequence[str], tick: int, pixels: Any = ..., /
) -> list[tuple[bytes | tuple[int, int, int, str], int, int] | None]: ...
