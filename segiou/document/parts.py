"""Findings as a list of parts: written once, shown in terminals, Markdown and notebooks.

``terminal.py``, ``notebook.py`` and ``latex.py`` are the other renderers. They escape control
characters, so that parts hold names as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from segiou._support.text import capital

#: A blank at which lines are not broken.
TIE = "\N{NARROW NO-BREAK SPACE}"


class Cell(NamedTuple):
    """A text with its tone (a style of rich); with a share it is a bar in notebooks."""

    text: str
    tone: str = ""
    share: float | None = None


class Column(NamedTuple):
    """A column of numbers or of text that may wrap; narrow terminals hide the lowest rank first.

    The page on reports states the order, which its test compares with the columns.
    """

    head: str
    cells: Sequence[str | Cell]
    rank: int
    is_text: bool = False
    #: Printed at the end where the column is hidden.
    otherwise: str = ""
    #: Names the score of a column of values, and of the column of its intervals.
    score: str = ""
    #: Terminals show or hide columns of the same group together.
    group: str = ""
    #: Whether terminals cut long texts in what all share, so that numbers beside them have room.
    is_id: bool = False

    @property
    def texts(self) -> list[Cell]:
        """The cells with their tones."""
        return [Cell(cell) if isinstance(cell, str) else cell for cell in self.cells]


class Line(NamedTuple):
    """A paragraph; its style is empty, title, lead, bold, dim, yellow or red.

    In LaTeX it is a comment, unless it is prose of a paper.
    """

    text: str
    style: str = ""
    lead: str = ""
    is_prose: bool = False


class Facts(NamedTuple):
    """Names, values and explanations: aligned in terminals, joined in a line elsewhere."""

    rows: Sequence[tuple[str, str, str]]

    @property
    def line(self) -> str:
        """The facts in a line."""
        facts = (f"{n.strip()} {value}{f' ({why})' if why else ''}" for n, value, why in self.rows)
        return capital(" · ".join(facts))


class Table(NamedTuple):
    """Columns; the first and last rows may be separate. Columns without a text are skipped."""

    columns: Sequence[Column]
    notes: Sequence[str] = ()
    first: int = 0
    last: int = 0
    #: Whether columns without room get a table of their own instead of being hidden.
    split: bool = False

    @property
    def filled(self) -> list[Column]:
        """The columns that have a text."""
        return [c for c in self.columns if any(cell.text for cell in c.texts)]

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        """The rows of these columns."""
        return [*zip(*(column.texts for column in self.filled), strict=True)]


class Section(NamedTuple):
    """Parts under a heading; notebooks and Markdown collapse them unless ``shown``."""

    title: str
    parts: Sequence[Part]
    shown: bool = False
    #: Whether terminals print the heading; whether only notebooks have the section.
    headed: bool = True
    only_notebook: bool = False


class Html(NamedTuple):
    """HTML, for notebooks alone."""

    text: str


Part: TypeAlias = "Line | Facts | Table | Section | Html"
#: An empty line in terminals.
GAP = Line("")
