"""A task that worker processes must be able to import."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from segiou._support.files import Problem


class Deadly:
    """Ends its worker at some pairs: always, or the first time only."""

    def __init__(self, pairs: dict[str, Path | None]) -> None:
        self._pairs = pairs

    def __call__(self, batch):
        for pair in batch:
            if pair.id in self._pairs:
                once = self._pairs[pair.id]
                if once is None or not once.exists():
                    if once is not None:
                        once.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
        return [[Problem(pair.id, "done")] for pair in batch], 0.01
