"""Whether calls of C code let other threads run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable


def others_run_during(work: Callable[[], object], tries: int = 20) -> bool:
    """Whether this thread runs while another one is inside ``work``."""
    interval = sys.getswitchinterval()
    # Threads keep the interpreter lock unless a call releases it.
    sys.setswitchinterval(1000)
    try:
        return any(_runs_during(work) for _ in range(tries))
    finally:
        sys.setswitchinterval(interval)


def _runs_during(work: Callable[[], object]) -> bool:
    ticks, passed = 0, 0
    done = threading.Event()

    def run() -> None:
        nonlocal passed
        before = ticks
        try:
            work()
            passed = ticks - before
        finally:
            done.set()

    worker = threading.Thread(target=run)
    worker.start()
    while not done.wait(1e-4):
        ticks += 1
    worker.join()
    return passed > 0
