"""Rows as CSV, safe for any name and free of spreadsheet formulas."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from itertools import chain
from types import SimpleNamespace
from typing import Any

from segiou._support.files import printable
from segiou._support.text import plain

#: Spreadsheets treat a cell that begins with one of these as a formula.
_FORMULA = tuple("=+-@\t\r\n")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    r"""Write rows as CSV, safe for any name and free of spreadsheet formulas.

    Text that begins with =, +, -, @, a tab or a line end is prefixed with an
    apostrophe, which :func:`csv_name` removes. Numbers stay numbers.

    >>> csv_text([["a\rb", "=1+1", -0.5, None]])
    '"a\rb",\'=1+1,-0.5,\n'
    """
    lines: list[str] = []
    # The writer quotes cells that contain either character of its line end; lines end in \n here.
    file = SimpleNamespace(write=lambda line: lines.append(f"{line[:-2]}\n"))
    writer = csv.writer(file, lineterminator="\r\n")
    for row in rows:
        writer.writerow(map(_csv_cell, row))
    return "".join(lines)


def csv_of(rows: Iterable[Mapping[str, Any]]) -> str:
    r"""Write rows by column as CSV; cells that a row lacks and undefined numbers are empty.

    >>> csv_of([{"name": "road", "iou": 0.5}, {"name": "night", "gap": float("nan")}])
    'name,iou,gap\nroad,0.5,\nnight,,\n'
    """
    several = [*rows]
    heads = [*dict.fromkeys(chain.from_iterable(several))]
    return csv_text([heads, *(plain([row.get(head) for head in heads]) for row in several)])


def _csv_cell(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    shown = printable(cell, blanks=True)
    return f"'{shown}" if cell.startswith(_FORMULA) and cell != "-inf" else shown


def csv_name(cell: str) -> str:
    """Read a name back from a cell of :func:`csv_text`.

    >>> csv_name("'=1+1"), csv_name("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell
