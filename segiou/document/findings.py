"""Findings with parts of a document: rendered in every format, and as rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from segiou._support.csv_text import csv_of
from segiou._support.optional import import_extra
from segiou.document.parts import Part
from segiou.document.renderers import rendered

if TYPE_CHECKING:
    import pandas


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
