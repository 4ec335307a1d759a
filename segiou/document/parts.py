"""Findings as a list of parts: written once, shown in terminals, Markdown and notebooks.

``terminal.py``, ``notebook.py`` and ``latex.py`` are the other renderers. They escape control
characters, so that parts hold names as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from segiou._support.files import printable
from segiou._support.optional import import_extra
from segiou._support.text import capital, csv_of
from segiou.document.renderers import rendered

if TYPE_CHECKING:
    import pandas

#: A blank at which lines are not broken.
TIE = "\N{NARROW NO-BREAK SPACE}"


class Cell(NamedTuple):
    """A text with its tone (a style of rich); with a share it is a bar in notebooks."""

    text: str
    tone: str = ""
    share: float | None = None


class Column(NamedTuple):
    """A column of numbers or of text that may wrap; narrow terminals hide the lowest rank first."""

    head: str
    cells: Sequence[str | Cell]
    rank: int
    is_text: bool = False
    #: Printed at the end where the column is hidden.
    otherwise: str = ""
    #: Names the score of a column of values, and of the column of its intervals.
    score: str = ""

    @property
    def texts(self) -> list[Cell]:
        """The cells with their tones."""
        return [Cell(cell) if isinstance(cell, str) else cell for cell in self.cells]


class Line(NamedTuple):
    """A paragraph; its style is empty, title, lead, bold, dim, yellow or red."""

    text: str
    style: str = ""
    lead: str = ""


class Facts(NamedTuple):
    """Names, values and explanations: aligned in terminals, joined in a line elsewhere."""

    rows: Sequence[tuple[str, str, str]]

    @property
    def line(self) -> str:
        """The facts in a line."""
        ones = (f"{n.strip()} {value}{f' ({why})' if why else ''}" for n, value, why in self.rows)
        return capital(" · ".join(ones))


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
#: Starts of automatic links on GitHub, which a backslash before the next sign prevents.
_ADDRESS = re.compile(r"(?:https?|ftp)(?=://)|www(?=\.)", re.IGNORECASE)
#: An empty line in terminals.
GAP = Line("")


def markdown_of(parts: Iterable[Part]) -> str:
    """Parts as GitHub's Markdown."""
    return "\n\n".join(_in_markdown(parts)) + "\n"


def _in_markdown(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Line) and part.text:
            bold = "**" if part.style in ("title", "lead", "bold") else ""
            yield f"{bold}{part.lead}{_escaped(part.text)}{bold}"
        elif isinstance(part, Facts):
            yield _escaped(part.line)
        elif isinstance(part, Table):
            columns = [c for c in part.filled if c.head]
            lines = [[_escaped(column.head) for column in columns]]
            lines += [[":--" if column.is_text else "--:" for column in columns]]
            lines += [[*map(_of_cell, row)] for row in Table(columns).rows]
            if columns:
                yield "\n".join(f"| {' | '.join(line)} |" for line in lines)
            yield from map(_escaped, filter(None, part.notes))
        elif isinstance(part, Section) and not part.only_notebook:
            fold = () if part.shown else (f"<details><summary>{_escaped(part.title)}</summary>",)
            yield from (*fold, *_in_markdown(part.parts), *["</details>"][: len(fold)])


def _of_cell(cell: Cell) -> str:
    text = _escaped(cell.text)
    return f"**{text}**" if cell.tone == "bold" and text else text


def _escaped(text: str) -> str:
    text = re.sub(r"[\\|\[\]`*]", r"\\\g<0>", printable(" ".join(text.split())))
    return _ADDRESS.sub(r"\g<0>\\", text).replace("<", "&lt;")


class Shown:
    """Findings with parts: rendered as text, Markdown, LaTeX and in notebooks."""

    __slots__ = ()

    def _parts(self) -> Iterable[Part]:
        raise NotImplementedError

    def to_text(self, width: int = 100, *, color: bool = False) -> str:
        """Render for a terminal.

        Parameters
        ----------
        width : int
            Columns to fill; narrow tables have fewer columns.
        color : bool
            Whether to use ANSI colours.
        """
        from segiou._support.arguments import check_integer

        room = check_integer("width", width, 1)
        return rendered(self._parts(), "table", width=room, color=color)

    def to_markdown(self) -> str:
        """Render as GitHub's Markdown."""
        return rendered(self._parts(), "markdown")

    def to_latex(self, *, transposed: bool = False) -> str:
        """Render tables for LaTeX with the package booktabs, and sentences as comments.

        Parameters
        ----------
        transposed : bool
            Whether classes are in columns.
        """
        return rendered(self._parts(), "latex", transposed=transposed)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from segiou.document.notebook import notebook_of

        return notebook_of(self._parts(), type(self).__name__.lower())


class Tabular(Shown):
    """Findings that are also rows of unrounded numbers, as CSV and data frames."""

    __slots__ = ()
    #: Columns that index the data frame.
    _index: ClassVar[Sequence[str]] = ()

    def rows(self) -> Iterable[dict[str, Any]]:
        """Rows of :meth:`to_csv`, each by column."""
        raise NotImplementedError

    def to_csv(self) -> str:
        """The rows as CSV; cells of undefined numbers are empty."""
        return csv_of(self.rows())

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a :class:`pandas.DataFrame`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = import_extra("pandas", "to_pandas needs pandas", "pandas")
        table: pandas.DataFrame = pd.DataFrame([*self.rows()])
        return table.set_index([*self._index]) if self._index else table
