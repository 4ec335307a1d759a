"""Console output (text, notes, progress) and Ctrl-C handling."""

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
EXIT_DEFECT = 70
EXIT_INTERRUPTED = 130
#: Seconds after which measures of other packages are not waited for any more.
_PATIENCE = 30.0
#: Minimum terminal width for a progress bar next to the text.
_WITH_BAR = 90


@contextmanager
def interruptible(*, kept: bool, foreign: str = "") -> Iterator[Callable[[], bool]]:
    """A function that returns whether Ctrl-C was pressed; ``kept`` if a run file stores pairs.

    Measures of other packages (``foreign``) may hang, so they are not waited for without end.
    """
    import signal
    import threading

    interrupt = _Interrupt(kept)
    # A shell starts background commands with SIGINT ignored; that is left as it is.
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if is_ignored or threading.current_thread() is not threading.main_thread():
        yield lambda: interrupt.requested
        return
    before = signal.signal(signal.SIGINT, interrupt.handle_signal)
    if foreign:
        threading.Thread(target=interrupt.watch, args=(foreign,), daemon=True).start()
    try:
        yield lambda: interrupt.requested
    finally:
        interrupt.ended = True
        signal.signal(signal.SIGINT, before)


class _Interrupt:
    """The state of an interruption: requested by Ctrl-C, and enforced by another one."""

    def __init__(self, kept: bool) -> None:
        self._kept = kept
        # Not an Event: a signal during its set() would wait for its lock forever.
        self.requested = self.ended = False

    def handle_signal(self, *_: object) -> None:
        """Ask for an end; the second time, end at once."""
        if self.requested:
            _end_now()
        self.requested = True
        what = "; the run can be resumed" if self._kept else ""
        with suppress(RuntimeError):  # the progress bar may be in the middle of a write
            note(f"finishing pairs in progress{what}. Press Ctrl-C again to stop immediately")

    def watch(self, foreign: str) -> None:
        """End the process if the pairs in progress do not finish, because of ``foreign``."""
        import time

        pressed: float | None = None
        while not self.ended:
            time.sleep(0.1)
            pressed = time.monotonic() if self.requested and pressed is None else pressed
            if pressed is not None and time.monotonic() - pressed > _PATIENCE:
                note(f"pairs in progress did not finish, probably because of {foreign}; stopped")
                _end_now()


def _end_now() -> None:
    """End the process and its workers."""
    # A run file is consistent at every moment; nothing else needs an orderly end.
    if processes := sys.modules.get("multiprocessing"):
        for child in processes.active_children():
            child.kill()
    os._exit(EXIT_INTERRUPTED)


#: Replacements for characters that an encoding lacks.
_PLAIN = str.maketrans(
    {"█": "#", **dict.fromkeys("▏▎▍", ""), **dict.fromkeys("▌▋▊▉", "#")}
    | {
        "\N{NARROW NO-BREAK SPACE}": " ",
        **dict.fromkeys("─–−", "-"),
        "━": "=",
        "×": "x",
        "·": "*",
        "…": "...",
        "’": "'",
        "■": "#",
    }
)

#: Matches two blanks before it, so that columns stay aligned.
_INFINITE = re.compile("(?:(?<= ) {2})?∞")


def stdout_width() -> int:
    """Width of the terminal, or ``COLUMNS``; 100 if the output is piped."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    with suppress(OSError):
        return (os.get_terminal_size(1).columns if stdout_is_terminal() else 0) or 100
    return 100


def wants_color() -> bool:
    """Whether to colour stdout, as NO_COLOR, FORCE_COLOR and TERM ask."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stdout_is_terminal() or bool(os.environ.get("FORCE_COLOR"))


def stdout_is_terminal() -> bool:
    """Whether a person reads stdout."""
    return sys.stdout is not None and sys.stdout.isatty()


def note(text: str) -> None:
    """Write a note to stderr, with control characters escaped."""
    say(harmless(f"segiou: {text}\n"))


def _wrap(text: str) -> str:
    """Text wrapped to the width of stderr, if that is a terminal."""
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return text
    from segiou._support.text import wrapped

    lines = text.split("\n")
    return "\n".join(line if len(line) <= width else wrapped(line, width) for line in lines)


def harmless(text: str) -> str:
    """Text with control characters except line ends escaped."""
    from segiou._support.files import printable

    return "\n".join(map(printable, text.split("\n")))


def say(text: str) -> None:
    """Write to stderr; a closed stderr is not an error."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(_wrap(text))
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)


def write(text: str) -> None:
    """Write data to stdout in any encoding; OSError if it is closed or full, but not on EPIPE."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "is closed", "stdout")
    encoding = sys.stdout.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        from segiou._support.text import encodable

        # Names that are not Unicode become escapes, which are also valid in JSON.
        text = _INFINITE.sub("inf", encodable(text)).translate(_PLAIN)
        text = text.encode(encoding, "replace").decode(encoding)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has exited, as in `segiou … | head`; files are still to be written.
        _silence(sys.stdout)
    except OSError as error:
        # The rest of the buffer would fail again when the process ends.
        _silence(sys.stdout)
        raise OSError(error.errno, error.strerror, "stdout") from error


def _silence(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def noted_warnings(*, quiet: bool) -> Iterator[None]:
    """Show each warning of the library once, as a note without its location in the code."""
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
    """Progress on stderr if that is a terminal; yields functions for progress and problems."""
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
    """Progress as text: ``12 of 174 pairs, 35 per second, 5 s left, 1 problem``."""
    parts = [f"{task.completed:.0f} of {'?' if task.total is None else int(task.total)} {unit}"]
    if task.speed:
        parts.append(f"{task.speed:.{0 if task.speed >= 10 else 1}f} per second")
    if task.time_remaining is not None and not task.finished:
        minutes, seconds = divmod(int(task.time_remaining), 60)
        hours, minutes = divmod(minutes, 60)
        left = f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
        parts.append(f"{left if hours or minutes else f'{seconds} s'} left")
    if problems := task.fields["problems"]:
        parts.append("1 problem" if problems == 1 else f"{problems} problems")
    return ", ".join(parts)
