"""The console that text is rendered with."""

from __future__ import annotations

import io

from rich.console import Console

__all__ = ["console_of", "text_of"]

#: Narrower than this nothing can be read.
NARROWEST = 24


def console_of(width: int, *, color: bool) -> Console:
    """A console of ``width`` columns that keeps what is printed."""
    return Console(
        file=io.StringIO(),
        width=max(width, NARROWEST),
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def text_of(console: Console) -> str:
    """What was printed, without blanks at the ends of lines."""
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"
