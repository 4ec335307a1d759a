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
    from typing import Any, TextIO

EXIT_THRESHOLD = 1
EXIT_USAGE = 2
EXIT_DATA = 3
EXIT_INTERRUPTED = 130
#: From this width on, progress has a bar beside its words.
_WITH_BAR = 90


@contextmanager
def interruptible(*, kept: bool) -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed; ``kept`` where a run file keeps pairs."""
    import signal
    import threading

    asked = threading.Event()

    def on_signal(*_: object) -> None:
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
    say(harmless(f"segiou: {text}\n"))


def _at_words(text: str) -> str:
    """Text for stderr: on a terminal its lines are broken at words, and indented alike."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return text
    from segiou._support.text import wrapped

    lines = text.split("\n")
    return "\n".join(line if len(line) <= width else wrapped(line, width) for line in lines)


_LINE_END = re.compile(r"(\n)")
_LINE_END_OR_COLOR = re.compile(r"(\n|\x1b\[[0-9;]*m)")


def harmless(text: str, *, color: bool = False) -> str:
    """Text with escapes for whatever could move the cursor; with ``color`` colours stay."""
    from segiou._support.files import printable

    parts = (_LINE_END_OR_COLOR if color else _LINE_END).split(text)
    parts[::2] = map(printable, parts[::2])
    return "".join(parts)


def say(text: str) -> None:
    """Write to stderr; not an error where it is closed."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(_at_words(text))
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
        from segiou._support.text import encodable

        # Names that are no Unicode as escapes, which are right in JSON too.
        text = _INFINITE.sub("inf", encodable(text)).translate(_PLAIN)
        text = text.encode(encoding, "replace").decode(encoding)
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
def progress_bar(
    what: str, *, quiet: bool, unit: str = "pairs"
) -> Iterator[tuple[Callable[[int, int], None], Callable[[object], None]]]:
    """Progress on stderr, where that is a terminal: called with done and total, and a problem."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield (lambda done, total: None), (lambda problem: None)
        return
    from itertools import count

    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task
    from rich.text import Text

    class Facts(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(progress_text(task, unit))

    console, problems = Console(stderr=True), count(1)
    bar = [BarColumn(bar_width=20)] if console.width >= _WITH_BAR else []
    with Progress("{task.description}", *bar, Facts(), console=console, transient=True) as shown:
        task = shown.add_task(what, total=None, problems=0)
        yield (
            lambda done, total: shown.update(task, completed=done, total=total),
            lambda problem: shown.update(task, problems=next(problems)),
        )


def progress_text(task: Any, unit: str) -> str:
    """How far a task is, in words: ``12 of 174 pairs, 35 a second, 5 s left, 1 problem``."""
    parts = [f"{task.completed:.0f} of {'?' if task.total is None else int(task.total)} {unit}"]
    if task.speed:
        parts.append(f"{task.speed:.{0 if task.speed >= 10 else 1}f} a second")
    if task.time_remaining is not None and not task.finished:
        minutes, seconds = divmod(int(task.time_remaining), 60)
        hours, minutes = divmod(minutes, 60)
        left = f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
        parts.append(f"{left if hours or minutes else f'{seconds} s'} left")
    if problems := task.fields["problems"]:
        parts.append("1 problem" if problems == 1 else f"{problems} problems")
    return ", ".join(parts)
