"""What the command writes to stdout and stderr: text, notes, progress; and Ctrl-C."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any, TextIO

__all__ = [
    "EXIT_DATA",
    "EXIT_INTERRUPTED",
    "EXIT_THRESHOLD",
    "EXIT_USAGE",
    "harmless",
    "interruptible",
    "note",
    "noted_warnings",
    "progress_bar",
    "say",
    "stdout_width",
    "wants_color",
    "write",
]

EXIT_THRESHOLD = 1
EXIT_USAGE = 2
EXIT_DATA = 3
EXIT_INTERRUPTED = 130


@contextmanager
def interruptible(*, kept: bool) -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed; ``kept`` where a run file keeps pairs."""
    import signal
    import threading

    asked = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            # A run file is whole at every moment; nothing else needs an orderly end.
            sys.stderr.flush()
            os._exit(EXIT_INTERRUPTED)
        asked.set()
        what = "; the run file can be continued" if kept else ""
        with suppress(RuntimeError):  # the progress bar may be writing at this moment
            note(f"finishing the pairs that are being counted{what}. Ctrl-C again stops at once")

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


#: Replacements for characters of tables, where an encoding lacks them.
_PLAIN = str.maketrans(
    {"█": "#", **dict.fromkeys("▏▎▍", ""), **dict.fromkeys("▌▋▊▉", "#")}
    | {**dict.fromkeys("─–−", "-"), "━": "=", "×": "x", "·": "*", "…": "...", "’": "'", "■": "#"}
)

#: With two of the blanks before it, so that columns stay aligned.
_INFINITE = re.compile("(?:(?<= ) {2})?∞")


def stdout_width() -> int:
    """Columns of the terminal, or as ``COLUMNS`` says; 100 where the output is piped."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    with suppress(OSError):
        return (os.get_terminal_size(1).columns if _stdout_is_terminal() else 0) or 100
    return 100


def wants_color() -> bool:
    """Whether stdout takes colours (NO_COLOR and dumb terminals do not)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return _stdout_is_terminal() or bool(os.environ.get("FORCE_COLOR"))


def _stdout_is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def note(text: str) -> None:
    """Write a note to stderr, with nothing in it that could move the cursor."""
    say(harmless(f"segiou: {text}\n", color=False))


_COLOR = re.compile(r"(\x1b\[[0-9;]*m)")


def harmless(text: str, *, color: bool) -> str:
    """Text with escapes for whatever could move the cursor; with ``color`` colours stay."""
    from segiou._support.files import printable

    if not color:
        return "\n".join(map(printable, text.split("\n")))
    parts = _COLOR.split(text)
    parts[::2] = [harmless(part, color=False) for part in parts[::2]]
    return "".join(parts)


def say(text: str) -> None:
    """Write to stderr; not an error where it is closed."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)


def write(text: str) -> None:
    """Write data to stdout, also where its encoding lacks a character.

    A closed or full stdout is an OSError; a reader that has gone is not.
    """
    if sys.stdout is None:
        raise OSError(errno.EBADF, "is closed", "stdout")
    encoding = sys.stdout.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        # Names that are no Unicode as escapes, which are right in JSON too.
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
        text = (
            _INFINITE.sub("inf", text)
            .translate(_PLAIN)
            .encode(encoding, "replace")
            .decode(encoding)
        )
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, as `segiou … | head` does; files and thresholds are still to come.
        _silence(sys.stdout)
    except OSError as error:
        # What is left in the buffer would fail again at the end of the process.
        _silence(sys.stdout)
        raise OSError(error.errno, error.strerror, "stdout") from error


def _silence(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def noted_warnings(*, quiet: bool) -> Iterator[None]:
    """Show each warning of the library once, as a note without its place in the code."""
    shown = set()

    def show(message: Warning | str, *_: Any) -> None:
        text = str(message)
        if text not in shown and not quiet:
            note(text)
        shown.add(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr, where that is a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
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
