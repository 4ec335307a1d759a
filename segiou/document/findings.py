"""Findings with parts of a document: rendered in every format, and as rows of numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from segiou._support.arguments import check_flag
from segiou._support.csv_text import csv_of
from segiou._support.optional import import_extra
from segiou.document.parts import Line, Part
from segiou.document.renderers import rendered

if TYPE_CHECKING:
    import pandas


class Finding:
    """A finding: sentences and tables in every format, and rows of unrounded numbers."""

    __slots__ = ()
    #: Columns that index the data frame.
    _index: ClassVar[Sequence[str]] = ()

    def _parts(self) -> Iterable[Part]:
        raise NotImplementedError

    def _python_parts(self) -> Iterable[Part]:
        """The parts with arguments in place of options of the command line."""
        return self._parts()

    def rows(self) -> Iterable[dict[str, Any]]:
        """Rows of :meth:`to_csv`, each by column."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Plain values, unrounded; None if undefined."""
        raise NotImplementedError

    def to_json(self, *, indent: int | None = 2) -> str:
        """The plain values as strict JSON.

        Parameters
        ----------
        indent : int, optional
            Blanks per level; None for one line.
        """
        from segiou._support.arguments import check_indent

        check_indent(indent)
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

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
        check_flag("transposed", transposed)
        return rendered(self._parts(), "latex", transposed=transposed)

    def to_html(self) -> str:
        """Render as a page: the tables of :meth:`_repr_html_`, for a browser or an e-mail."""
        from segiou.document.notebook import page_of

        return page_of(self._python_parts(), type(self).__name__)

    def __repr__(self) -> str:
        first = next((part.text for part in self._parts() if isinstance(part, Line)), "")
        return f"<{type(self).__name__}{first and ': '}{first}>"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from segiou.document.notebook import notebook_of

        return notebook_of(self._python_parts(), type(self).__name__.lower())
