from collections.abc import Sequence

from typing_extensions import Buffer

def read_small(
    paths: Sequence[str], tick: int, pixels: Buffer, /
) -> list[tuple[bytes | tuple[int, int, int, str], int, int] | None]: ...
