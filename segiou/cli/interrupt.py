"""Ctrl-C: once to finish what is under way, twice to stop at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from segiou.cli.terminal import note

__all__ = ["EXIT_INTERRUPTED", "interruptible"]

EXIT_INTERRUPTED = 130


@contextmanager
def interruptible(*, kept: bool) -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether somebody has asked to stop.

    Parameters
    ----------
    kept : bool
        Whether finished pairs are kept in a run file, for what is said.
    """
    asked = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            # A run file is whole at every moment; nothing else needs an orderly end.
            sys.stderr.flush()
            os._exit(EXIT_INTERRUPTED)
        asked.set()
        what = "; then the run file can be gone on with" if kept else ""
        note(f"finishing what is under way{what}. Ctrl-C again stops at once")

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
