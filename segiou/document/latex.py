"""Parts of a document as LaTeX: tables of booktabs, sentences as comments or prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from segiou._support.files import printable
from segiou.document.parts import TIE, Cell, Column, Facts, Line, Part, Section, Table

_SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    # After the end of a row, LaTeX would read these as its arguments.
    **{sign: f"{{{sign}}}" for sign in "[]*"},
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    "–": "--",
    "−": "$-$",
    "±": "$\\pm$",
    "·": "$\\cdot$",
    "×": "$\\times$",
    "Δ": "$\\Delta$",
    "∞": "$\\infty$",
    "≥": "$\\geq$",
    "≤": "$\\leq$",
    "²": "$^2$",
    "³": "$^3$",
    "\N{NO-BREAK SPACE}": "~",
    TIE: "\\,",
}
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))
#: Numbers in per cent, of which the header has the sign.
_PERCENT = re.compile(r"(.*) %$")
_RULE = "    \\midrule"


class _Cells(NamedTuple):
    """A column in LaTeX."""

    head: str
    cells: Sequence[str]
    is_text: bool


def latex_of(parts: Iterable[Part], *, transposed: bool = False) -> str:
    """Parts as LaTeX that needs the package booktabs; ``transposed`` puts rows into columns."""
    return "\n".join(["% needs \\usepackage{booktabs}", *_lines(parts, transposed)]) + "\n"


def _lines(parts: Iterable[Part], transposed: bool) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Line) and part.text:
            shown = part.lead + part.text
            yield from ["", latex_text(shown)] if part.is_prose else [_comment(shown)]
        elif isinstance(part, Facts):
            yield from (_comment(f"{name} {value} {about}") for name, value, about in part.rows)
        elif isinstance(part, Table):
            yield from _tabular(part, transposed)
            yield from map(_comment, filter(None, part.notes))
        elif isinstance(part, Section) and not part.only_notebook:
            inside = [*_lines(part.parts, transposed)]
            yield from ["", _comment(part.title), *inside] if inside else []


def _comment(text: str) -> str:
    return f"% {printable(' '.join(text.split()))}"


def latex_text(text: str) -> str:
    r"""Text with LaTeX's special characters escaped.

    >>> latex_text("a_b: 50 % −1")
    'a\\_b: 50\\,\\% $-$1'
    """
    shown = printable(" ".join(text.split(" ")), blanks=True).strip()
    return _SIGN.sub(lambda sign: _SIGNS[sign[0]], shown).replace(" \\%", "\\,\\%")


def _tabular(part: Table, transposed: bool) -> Iterator[str]:
    columns = _merged_columns([c for c in part.filled if c.head])
    if not columns:
        return
    rows = [[c.head for c in columns], *map(list, zip(*(c.cells for c in columns), strict=True))]
    rules = {1, 1 + part.first, len(rows) - part.last} if not transposed else {1}
    aligned = "".join("l" if c.is_text else "r" for c in columns)
    if transposed:
        rows = [*map(list, zip(*rows, strict=True))]
        aligned = "l" + "r" * (len(rows[0]) - 1)
    yield f"\\begin{{tabular}}{{{aligned}}}"
    yield "    \\toprule"
    for number, row in enumerate(rows):
        if number in rules:
            yield _RULE
        yield f"    {' & '.join(row)} \\\\"
    yield from ("    \\bottomrule", "\\end{tabular}")


def _latex_column(column: Column) -> _Cells:
    """A column, with the per cent sign in its header if all numbers have one."""
    known = [cell.text for cell in column.texts if cell.text.strip() not in ("", "–")]
    head, cells = latex_text(column.head), column.texts
    if not column.is_text and known and all(map(_PERCENT.match, known)):
        head = f"{head} (\\%)"
        cells = [cell._replace(text=_PERCENT.sub(r"\1", cell.text)) for cell in cells]
    return _Cells(head, [*map(_cell, cells)], column.is_text)


def _cell(cell: Cell) -> str:
    text = latex_text(cell.text)
    return f"\\textbf{{{text}}}" if cell.tone == "bold" and text else text


def _merged_columns(columns: Sequence[Column]) -> list[_Cells]:
    """The columns, with the intervals of a score in brackets after its values."""
    by_score: dict[str | int, list[Column]] = {}
    for place, column in enumerate(columns):
        by_score.setdefault(column.score or place, []).append(column)
    return [_merged(*several) for several in by_score.values()]


def _merged(values: Column, intervals: Column | None = None) -> _Cells:
    shown = _latex_column(values)
    if intervals is None:
        return shown
    both = zip(shown.cells, _latex_column(intervals).cells, strict=True)
    cells = [value if limits in ("", "--") else f"{value} ({limits})" for value, limits in both]
    method = latex_text(intervals.head).removeprefix(latex_text(values.head))
    return _Cells(f"{shown.head}{method}", cells, is_text=False)
