from typing import Any

INTERFACE: int

def count_scores(
    scores: Any,
    kind: str,
    codes: Any,
    cells: Any,
    limit: int,
    is_half: bool,
    activation: int,
    loops: str | None = None,
    /,
) -> tuple[int, int]: ...
