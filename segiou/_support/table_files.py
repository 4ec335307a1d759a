"""Tables in common formats: CSV, TSV, JSON, JSON Lines, Parquet, mappings, rows, DataFrames."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

from segiou._support.arguments import is_several, refuse_kind
from segiou._support.csv_text import csv_name
from segiou._support.files import check_exists, read_json, read_text, unique_keys
from segiou._support.optional import import_extra
from segiou._support.text import did_you_mean

Row = dict[str, Any]

#: A file, and columns after a colon.
_PLACE = re.compile(r"(.+?\.(?:csv|tsv|txt|jsonl?|parquet|xls[xm]?|ods))(?::(.+))?", re.IGNORECASE)

#: Text of floats that are not a number, and of missing values and dates of pandas.
_NOT_GIVEN = ("nan", "<NA>", "NaT")
#: Extensions of spreadsheet programs.
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")
_DECIMAL = re.compile(r"^(\s*-?[0-9]+),([0-9]+\s*)$")


def table_place(text: str) -> tuple[Path, str] | None:
    """The file and the columns of ``FILE`` or ``FILE:COLUMNS``; None if it is not a table."""
    match = _PLACE.fullmatch(text)
    return match and (Path(match[1]).expanduser(), match[2] or "")


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a file, as text; ValueError if it cannot be read or lacks a column."""
    rows = file_rows(path)
    check_columns(str(path), columns, [*dict.fromkeys(chain(*rows))])
    return [{name: cell_text(cell) for name, cell in row.items()} for row in rows]


def check_columns(where: str, columns: Iterable[str], known: Sequence[str]) -> None:
    """ValueError if a table lacks a column."""
    for name in columns:
        if name not in known:
            hint = did_you_mean(name, known)
            msg = f"{where}: has no column {name!r}; columns: {', '.join(known) or 'none'}{hint}"
            raise ValueError(msg)


def file_rows(path: Path) -> list[Row]:
    """Rows of a file; ValueError if it cannot be read, or has none."""
    try:
        return rows_of(_read(path), str(path))
    except TypeError as error:
        msg = f"{path}: {error}"
        raise ValueError(msg) from None


def _read(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        check_exists(path)
        need = f"{path} needs pyarrow"
        return import_extra("pyarrow.parquet", need, "parquet").read_table(path).to_pylist()
    if suffix == ".json":
        return read_json(path)
    if suffix == ".jsonl":
        # Lines end at line feeds alone: other separators of Unicode may stand in strings.
        lines = enumerate(read_text(path).split("\n"), 1)
        return [_json_line(path, number, line) for number, line in lines if line.strip()]
    if suffix in _WORKBOOKS:
        msg = f"{path}: is a workbook, which is not read; save the sheet as CSV"
        raise ValueError(msg)
    return _separated(path)


def _json_line(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line, object_pairs_hook=unique_keys)
    except ValueError as error:
        msg = f"{path}: line {number} is not JSON: {error}"
        raise ValueError(msg) from None


def _delimited(text: str) -> tuple[str, str]:
    """The delimiter of a CSV file, and its text without Excel's line that declares it."""
    first, _, others = text.partition("\n")
    if first.startswith("sep=") and len(first.strip()) == 5:
        return first[4], others
    return max(",;\t", key=first.count), text


def _separated(path: Path) -> list[Row]:
    """Rows of a CSV file, separated by commas, semicolons or tabs."""
    delimiter, text = _delimited(read_text(path))
    if path.suffix.lower() == ".tsv":
        delimiter = "\t"
    reader = csv.reader(StringIO(text), delimiter=delimiter, strict=True)
    try:
        heads = [csv_name(name.strip()) for name in next(reader, ())]
        if twice := sorted({head for head in heads if head and heads.count(head) > 1}):
            msg = f"{path}: duplicate column {twice[0]!r}; rename one"
            raise ValueError(msg)
        rows = []
        for cells in reader:
            if any(cells[len(heads) :]):
                msg = f"{path}: line {reader.line_num} has more than {len(heads)} cells; quote them"
                raise ValueError(msg)
            if cells:
                cells += [""] * (len(heads) - len(cells))
                rows.append(dict(zip(heads, cells, strict=False)))
    except csv.Error as error:
        msg = f"{path}: is not valid CSV: {error}"
        raise ValueError(msg) from error
    if "'" in text:  # which keeps spreadsheets from formulas
        rows = [{head: csv_name(cell) for head, cell in row.items()} for row in rows]
    if delimiter == ";" and "," in text:  # of numbers where the comma is decimal
        rows = [{head: _DECIMAL.sub(r"\1.\2", cell) for head, cell in row.items()} for row in rows]
    return rows


def rows_of(table: Any, where: str) -> list[Row]:
    """Rows of a mapping from ids, a sequence of mappings or a DataFrame; ValueError for none."""
    if hasattr(table, "to_dict") and hasattr(table, "reset_index"):
        unnamed = table.index.name is None and type(table.index).__name__ == "RangeIndex"
        table = table.reset_index(drop=unnamed).to_dict("records")
    if isinstance(table, Mapping):
        table = [
            {**(row if isinstance(row, Mapping) else {"slice": row}), "id": id}
            for id, row in table.items()
        ]
    wanted = "a file, a pattern, a mapping from ids, rows or a DataFrame"
    if not is_several(table):
        raise refuse_kind("the metadata", table, wanted)
    rows = [*table]
    if wrong := [row for row in rows if not isinstance(row, Mapping)]:
        raise refuse_kind("a row of the metadata", wrong[0], "a mapping from columns to values")
    if not any(rows):
        msg = f"{where}: has no rows"
        raise ValueError(msg)
    return [_flat(row) for row in rows]


def _flat(row: Mapping[Any, Any]) -> Row:
    """A row without nesting: BDD100K's attributes are one level down."""
    if not any(issubclass(kind, dict) for kind in {*map(type, row.values())}):
        if isinstance(row, dict) and {*map(type, row)} == {str}:
            return row  # those of many images are not copied
        return {str(name): value for name, value in row.items()}
    flat: Row = {}
    for name, value in row.items():
        flat |= value if isinstance(value, dict) else {str(name): value}
    return flat


def cell_text(cell: Any) -> str:
    """A cell as text: whole numbers as integers, missing values as an empty text.

    >>> cell_text(2.0), cell_text(float("nan")), cell_text(" night ")
    ('2', '', 'night')
    """
    if isinstance(cell, str):
        return cell.strip()
    if hasattr(cell, "is_integer") and not isinstance(cell, int) and cell.is_integer():
        cell = int(cell)
    text = "" if cell is None else str(cell).strip()
    return "" if text in _NOT_GIVEN else text
