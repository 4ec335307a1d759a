"""Which files are pairs: options that travel as one object, and lists of ids."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from segiou._support.arguments import check_choice, check_kind, read_several
from segiou._support.files import read_text
from segiou._support.options import Options, option
from segiou._support.table_files import read_rows, table_place
from segiou._support.text import encodable

#: Options that a table of the pairs replaces.
_REPLACED = ("truth_suffix", "pred_suffix", "key", "ids")


@dataclass(frozen=True, kw_only=True)
class PairOptions(Options):
    """Which files are pairs; :func:`segiou.score_folder` documents the options."""

    truth_suffix: str | None = option(None, check_kind, str, "text")
    pred_suffix: str | None = option(None, check_kind, str, "text")
    key: str | None = option(None, check_kind, str, "text")
    ids: str | Path | tuple[str, ...] | None = None
    pairs: str | Path | None = option(None, check_kind, (str, os.PathLike), "a path or a URL")
    missing: str = option("error", check_choice, ("error", "skip"))
    extra: str = option("error", check_choice, ("error", "skip"))
    on_error: str = option("stop", check_choice, ("stop", "skip"))

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.listed
        if given := [name for name in _REPLACED if getattr(self, name) is not None]:
            self.check_beside(given[0])

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The options among arguments, with ids of an iterable as a tuple."""
        ids: Any = given.get("ids")
        is_path = ids is None or isinstance(ids, (str, Path))
        return super().of({**given, "ids": ids if is_path else ids_of(ids)})

    def check_beside(self, name: str) -> None:
        """ValueError if a table of the pairs replaces a given option."""
        if self.pairs is not None:
            msg = f"pairs names the pairs, so {name} would have no effect; omit one of them"
            raise ValueError(msg)

    @property
    def has_rule(self) -> bool:
        """Whether an option decides which files are pairs."""
        return any((self.truth_suffix, self.pred_suffix, self.key, self.pairs))

    @cached_property
    def listed(self) -> tuple[str, ...] | None:
        """The ids to score; None for all."""
        return None if self.ids is None else ids_of(self.ids)

    @property
    def recorded(self) -> dict[str, Any]:
        """Options that differ from their defaults, as runs record them: ids by their file."""
        chosen = {
            name: value for name, value in self.chosen.items() if not isinstance(value, tuple)
        }
        return {name: encodable(str(value)) for name, value in chosen.items()}


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
