"""Pairs from a table, for files whose names have no key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from segiou._support.files import Problem
from segiou._support.table_files import check_columns, read_rows
from segiou._support.text import composed
from segiou.masks.finding import split_ending
from segiou.masks.sources.pairing import Pair, Pairing

#: Columns of the prediction.
_PRED = ("prediction", "pred")


def pairs_of_table(
    table: str | Path, truth: Mapping[str, str], pred: Mapping[str, str]
) -> tuple[Pairing, list[Problem]]:
    """The pairs that a table names, and the problems of its rows.

    Parameters
    ----------
    table : str or Path
        CSV, TSV, JSON, JSON Lines or Parquet with the columns ``truth`` and
        ``prediction`` (or ``pred``), and optionally ``id``. A path is relative to
        the table, or to the folder of its masks.
    truth, pred : mapping of str to str
        The files of both places, by relative path.

    Raises
    ------
    ValueError
        If the table cannot be read, or lacks a column.
    """
    path = Path(table).expanduser()
    rows = read_rows(path, ["truth"])
    column = next((name for name in _PRED if name in rows[0]), _PRED[0])
    check_columns(str(path), [column], [*rows[0]])
    by_id: dict[str, Pair] = {}
    problems: list[Problem] = []
    known = [_files_by_path(files) for files in (truth, pred)]
    for number, row in enumerate(rows, 1):
        names = row["truth"], row[column]
        files = [_file(name, files, path.parent) for name, files in zip(names, known, strict=True)]
        id = composed(row.get("id") or split_ending(names[0].replace("\\", "/"))[0])
        for side, name, file in zip(("truth", "prediction"), names, files, strict=True):
            if file is None:
                text = f"row {number}: {name or 'an empty cell'} is not a file of the {side}"
                problems.append(Problem(str(path), f"{text}; fix the table"))
        if id in by_id:
            fix = "add a column id with a name for each pair"
            problems.append(
                Problem(str(path), f"row {number}: two pairs have the id {id!r}; {fix}")
            )
        elif files[0] is not None and files[1] is not None:
            by_id[id] = Pair(id, files[0], files[1])
    pairs = tuple(by_id[id] for id in sorted(by_id))
    return Pairing(pairs, (), (), (), f"the rows of {path.name}"), problems


def _files_by_path(files: Mapping[str, str]) -> dict[str, str]:
    """Files by relative path and by absolute path."""
    by_name = {composed(name): path for name, path in files.items()}
    return by_name | {_absolute(path): path for path in files.values()}


def _file(name: str, files: Mapping[str, str], folder: Path) -> str | None:
    """The file of a cell, relative to the table or to the folder of masks."""
    name = composed(name.strip().replace("\\", "/"))
    if not name:
        return None
    return files.get(_absolute(folder / name)) or files.get(name)


def _absolute(path: str | Path) -> str:
    """The absolute path without dots, in one form; links are kept."""
    return composed(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links
