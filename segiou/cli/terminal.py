"""What the person at the terminal sees: width, colours, progress, notes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["note", "progress_bar", "stdout_width", "wants_color", "write"]


#: What stands for characters of tables where an encoding lacks them.
_PLAIN = str.maketrans(
    {"█": "#", **dict.fromkeys("▏▎▍", ""), **dict.fromkeys("▌▋▊▉", "#")}
    | {**dict.fromkeys("─–−", "-"), "━": "=", "×": "x", "·": "*", "…": "...", "’": "'", "■": "#"}
)


def stdout_width() -> int:
    """Columns of the terminal; 100 where the output is piped."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return 100
    return shutil.get_terminal_size((100, 24)).columns


def wants_color() -> bool:
    """Whether stdout takes colours (NO_COLOR and dumb terminals do not)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def note(text: str) -> None:
    """Say something beside the data."""
    try:
        print(f"segiou: {text}", file=sys.stderr, flush=True)
    except BrokenPipeError:
        _silence(sys.stderr)


def write(text: str) -> None:
    """Write data to stdout, also where its encoding lacks a character."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_PLAIN).encode(encoding, "replace").decode(encoding)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, as `segiou … | head` does; files and gates are still to come.
        _silence(sys.stdout)


def _silence(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr while something takes long, if somebody can see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
