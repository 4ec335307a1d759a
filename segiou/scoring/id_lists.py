"""Lists of ids: given, of a file with one per line, or of a column of a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from segiou._support.arguments import check_kind, read_several
from segiou._support.files import read_text
from segiou._support.table_files import read_rows, table_place

#: A line with two words, the second of which is a flag or a file.
_TWO_WORDS = re.compile(r"(\S+)\s+(?:[+-]?\d+|\S+\.\w+)")


def ids_of(choice: str | Path | Iterable[str]) -> tuple[str, ...]:
    """Ids given directly, from a file with one id per line, or from a CSV column.

    In a line with two words, as in Pascal VOC's ``ImageSets``, the first is the id. A CSV column
    is given as ``split.csv:image``.
    """
    wanted = "the path of a list, or strings"
    if isinstance(choice, (str, Path)):
        where, ids = str(choice), _read_ids(str(choice))
    else:
        where, ids = "ids", read_several("ids", choice, wanted)
    for id in ids:
        check_kind("ids", id, str, wanted)
    counted = Counter(ids)
    if twice := [id for id, count in counted.items() if count > 1]:
        msg = f"{where}: duplicate id {twice[0]}"
        raise ValueError(msg)
    if not counted:
        msg = f"{where}: no ids found; expected one per line"
        raise ValueError(msg)
    return tuple(counted)


def _read_ids(text: str) -> list[str]:
    path, column = table_place(text) or (Path(text).expanduser(), "")
    if column:
        cells = [row.get(column) for row in read_rows(path, [column])]
        return [cell.replace("\\", "/") for cell in cells if cell]
    suffix = path.suffix.lower()
    lines = [] if suffix == ".parquet" else read_text(path).splitlines()
    is_table = lines and suffix in (".csv", ".tsv") and re.search("[,;\t]", lines[0])
    if is_table or suffix in (".json", ".jsonl", ".parquet"):
        first = f" (first line: {lines[0]:.80})" if is_table else ""
        msg = f"{path}: looks like a table{first}; name the id column: {text}:COLUMN"
        raise ValueError(msg)
    lines = [line.strip() for line in lines if not line.startswith("#")]
    words = [_TWO_WORDS.fullmatch(line) for line in lines]
    ids = [match[1] if match else line for match, line in zip(words, lines, strict=True)]
    return [id.replace("\\", "/") for id in ids if id]
