"""Metadata of images: tables, mappings and patterns, matched with the ids of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_kind, compiled, read_several
from segiou._support.numbers import number_in
from segiou._support.table_files import (
    Row,
    cell_text,
    check_columns,
    file_rows,
    rows_of,
    table_place,
)
from segiou._support.text import composed, listed, plural
from segiou.metrics.ratio import Floats

#: More values are not slices.
MOST_VALUES = 50
#: Numeric columns with more values are divided into quantiles.
_FEW_NUMBERS = 8
_QUANTILES = 4
#: Names of columns of ids, the likeliest first; they decide between columns that match as well.
_KEYS = (
    *("id", "image_id", "image", "name", "file", "filename", "file_name", "path", "case"),
    *("case_id", "patient", "patient_id", "participant_id", "subject", "subject_id"),
)
#: Rows that show whether a column may have ids.
_FIRST = 100
_EMPTY = frozenset({"", "na", "n/a", "nan", "none", "null", "undefined", "unknown", "nat", "-"})
#: Suffixes of files, such as .png and .nii.gz, but not numbers of frames.
_SUFFIXES = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,5}){1,2}$")
_DAY = 86400
_PARTED = re.compile(r"[./\\]")


@dataclass(frozen=True, eq=False)
class MetadataColumn:
    """Values of images.

    Attributes
    ----------
    name : str
    values : tuple of str
        Numbers in their order, then text by alphabet.
    codes : ndarray of int, shape (N,)
        Position of the first value of each image; −1 if it has none.
    numbers : ndarray of float, shape (N,), or None
        Numbers that were divided into quantiles; of dates, seconds.
    more : mapping of int to ndarray of bool
        Images that have a value besides their first, by its position.
    is_date : bool
        Whether the numbers are seconds since 1970.
    """

    name: str
    values: tuple[str, ...]
    codes: NDArray[np.intp]
    numbers: Floats | None = None
    more: Mapping[int, NDArray[np.bool_]] = field(default_factory=dict)
    is_date: bool = False

    def inside(self, code: int) -> NDArray[np.bool_]:
        """Images with a value."""
        also = self.more.get(code, np.zeros(len(self.codes), bool))
        return np.asarray((self.codes == code) | also)


@dataclass(frozen=True, eq=False)
class Metadata:
    """Columns, the images without a value in each, and why other columns have no slices."""

    columns: tuple[MetadataColumn, ...]
    missing: Mapping[str, int]
    skipped: Mapping[str, str]
    key: str = ""
    """The column that has the ids, if it was looked for."""
    ids: Sequence[str] = ()


def metadata_of(
    by: Any,
    ids: Sequence[str],
    columns: Sequence[str] | None = None,
    *,
    key: str | None = None,
    bins: Mapping[str, Any] | None = None,
) -> Metadata:
    """Read metadata and match it with ids.

    Parameters
    ----------
    by : str, Path, mapping, sequence of mappings or DataFrame
        A CSV, TSV, JSON, JSON Lines or Parquet file with one row per image, patient or sequence
        (``FILE`` or ``FILE:COLUMN,COLUMN``); a regular expression with named groups for the ids;
        a mapping from id to a value or to a row; rows; or a DataFrame.
    ids : sequence of str
        Ids of the images.
    columns : sequence of str, optional
        By default, all columns with 2 to 50 values.
    key : str, optional
        Regular expression whose match in an id is the key of its row, such as the patient.
    bins : mapping of str to int or sequence of float, optional
        Number of quantiles, or ascending edges, of columns of numbers or ISO dates.

    Examples
    --------
    >>> found = metadata_of({"a": "day", "b": "night", "c": "day"}, ["a", "b", "c", "d"])
    >>> found.columns[0].values, found.columns[0].codes, found.missing
    (('day', 'night'), array([ 0,  1,  0, -1]), {'slice': 1})
    """
    where = "the metadata"
    check_kind("bins", bins, (Mapping, type(None)), "a mapping from columns to bins")
    check_kind("key", key, (str, type(None)), "a regular expression")
    names = None if columns is None else read_several("columns", columns, "a sequence of names")
    for name in names or ():
        check_kind("a name of columns", name, str, "text")
    if isinstance(by, (str, Path)):
        if (place := table_place(str(by))) is None:
            if key is not None:
                msg = f"key={key!r} applies to tables, but {str(by)!r} is a pattern; omit key"
                raise ValueError(msg)
            return _metadata(str(by), ids, _pattern_rows(str(by), ids), bins or {}, names)
        path, heads = place
        if names is None and heads:
            names = [name.strip() for name in heads.split(",")]
        where, rows = str(path), file_rows(path)
    else:
        rows = rows_of(by, where)
    head, matched = _Match(where, ids, rows, key, names).rows()
    return _metadata(where, ids, matched, bins or {}, names, head)


def column_of(source: str, ids: Sequence[str]) -> tuple[str, ...] | None:
    """The value of each id in ``FILE:COLUMN``; None if it is not a file. No ids check the file."""
    if (place := table_place(source)) is None:
        return None
    path, name = place
    if not name:
        msg = f"{source}: name the column of groups: {source}:COLUMN"
        raise ValueError(msg)
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    return _column(path, name, changed, tuple(ids))


@lru_cache(maxsize=1)  # every score of a run has the same groups
def _column(path: Path, name: str, _changed: int, ids: tuple[str, ...]) -> tuple[str, ...]:
    where, rows = str(path), file_rows(path)
    check_columns(where, [name], [*dict.fromkeys(chain(*rows))])
    if not ids:
        return ()
    known: dict[Any, list[str]] = {}
    match = _Match(where, ids, rows, None, [name], ("--group-by", "groups"))
    cells = [_texts(row.get(name), known) for row in match.rows()[1]]
    if missing := [id for id, texts in zip(ids, cells, strict=True) if not texts]:
        msg = f"{where}: no {name} of {listed(missing, 3)}; every id needs one"
        raise ValueError(msg)
    return tuple(", ".join(texts) for texts in cells)


def _pattern_rows(pattern: str, ids: Sequence[str]) -> list[Row]:
    """Named groups of a regular expression in ids."""
    refusal = f"{pattern!r} is neither a metadata file nor a regular expression"
    searched = compiled(pattern, refusal)
    if not searched.groupindex:
        msg = (
            f"{pattern!r} is not a metadata file (CSV, TSV, JSON, JSON Lines, Parquet), and as a "
            "regular expression it needs named groups, such as (?P<city>[^_]+)"
        )
        raise ValueError(msg)
    matches = [searched.search(id) for id in ids]
    if not any(matches):
        msg = f"{pattern!r} matches no id, such as {ids[0]}"
        raise ValueError(msg)
    return [match.groupdict() if match else {} for match in matches]


def _forms(name: str) -> list[str]:
    """A name, without suffix, without folders, and without both: the most exact first."""
    if not _PARTED.search(name):
        return [composed(name)] if name else []
    name = composed(name).replace("\\", "/")
    last = name.rpartition("/")[2]
    forms = (name, _SUFFIXES.sub("", name), last, _SUFFIXES.sub("", last))
    return [*dict.fromkeys(filter(None, forms))]


def _key_place(head: str) -> int:
    """The place of a column among the usual names of ids."""
    low = head.lower()
    return _KEYS.index(low) if low in _KEYS else len(_KEYS)


def _texts_of(rows: Iterable[Row], head: str) -> list[str]:
    return [cell_text(row.get(head)) for row in rows]


@dataclass(frozen=True, eq=False)
class _Match:
    """Rows to be matched with ids."""

    where: str
    ids: Sequence[str]
    table: list[Row]
    key: str | None
    columns: Sequence[str] | None
    option: tuple[str, str] = ("--slices-key", "key")
    """Option and argument of the pattern for part of the id."""

    def rows(self) -> tuple[str, list[Row]]:
        """The column of ids, and the row of each id; empty if it has none."""
        names = [self._key_of(id) for id in self.ids]
        if (exact := self._exact(names)) is not None:
            head, first, more = exact
            return head, [self._row(head, [first[name], *more.get(name, ())]) for name in names]
        keys = [*map(_forms, names)]
        head = self._head({*chain(*keys)})
        places: dict[str, list[int]] = {}
        for i, row in enumerate(self.table):
            for form in _forms(cell_text(row.get(head))):
                places.setdefault(form, []).append(i)
        matches = (next((places[form] for form in forms if form in places), []) for forms in keys)
        return head, [self._row(head, match) for match in matches]

    def _exact(
        self, names: Sequence[str]
    ) -> tuple[str, dict[str, int], dict[str, list[int]]] | None:
        """A column with every name as it is, its first row and others; most tables have one."""
        wanted = {*names}
        for head in sorted(self._heads, key=_key_place):
            if "" in wanted or wanted.isdisjoint(_texts_of(self.table[:_FIRST], head)):
                continue
            first: dict[str, int] = {}
            more: dict[str, list[int]] = {}  # a list for each text would fill the memory
            for i, text in enumerate(_texts_of(self.table, head)):
                if first.setdefault(text, i) != i:
                    more.setdefault(text, []).append(i)
            if wanted <= first.keys():
                return head, first, more
        return None

    @property
    def _heads(self) -> list[str]:
        return [*dict.fromkeys(chain.from_iterable(self.table))]

    def _key_of(self, id: str) -> str:
        if self.key is None:
            return id
        match = compiled(self.key, f"the key {self.key!r} is not a regular expression").search(id)
        if match is None:
            return ""
        return str((match[1] if match.re.groups else match[0]) or "")

    def _head(self, wanted: set[str]) -> str:
        """The column that has most of the keys."""
        heads = self._heads

        def matches(head: str) -> int:
            known = {*_texts_of(self.table, head)}
            return len(wanted.intersection(chain.from_iterable(map(_forms, known))))

        matched = {head: matches(head) for head in heads}
        best = min(heads, key=lambda head: (-matched[head], _key_place(head)))
        if matched[best]:
            return best
        row, id = self.table[0], self.ids[0]
        first = listed([f"{head} {cell_text(row.get(head)):.40}" for head in heads], 3)
        msg = (
            f"{self.where}: no column has the ids of the run, such as {id}; the first row has "
            f"{first}. Add a column of ids. If rows are patients or sequences, pass the part of "
            f"the id that names one: {self.option[0]} {self._likely_key(heads, id)} (Python: "
            f"{self.option[1]}=…)"
        )
        raise ValueError(msg)

    def _likely_key(self, heads: Sequence[str], id: str) -> str:
        """The pattern of a key that the id begins with, such as a subject of BIDS."""
        for head in heads:
            texts = {cell_text(row.get(head)) for row in self.table} - {""}
            for text in sorted(texts, key=len, reverse=True):
                after = id[len(text) :][:1]
                if id.startswith(text) and after in tuple("/_.-"):
                    return f"'^([^{after}]+)' finds {text} of {head}"
        return "REGEX"

    def _row(self, head: str, places: list[int]) -> Row:
        """The row at some places, which must agree."""
        if not places:
            return {}
        first = self.table[places[0]]
        for i in places[1:]:
            other = self.table[i]
            for name in self.columns or first:
                if name != head and cell_text(first.get(name)) != cell_text(other.get(name)):
                    msg = (
                        f"{self.where}: {head} {first[head]} has two rows with different {name}: "
                        f"{first.get(name)} (row {places[0] + 1}) and {other.get(name)} (row "
                        f"{i + 1}); keep one row, or in JSON, write a list of both values"
                    )
                    raise ValueError(msg)
        return first


def _metadata(
    where: str,
    ids: Sequence[str],
    rows: list[Row],
    bins: Mapping[str, Any],
    columns: Sequence[str] | None,
    key: str | None = None,
) -> Metadata:
    """The columns with slices, from a row for every id."""
    # A column without a name is an index, as pandas writes it.
    heads = [head for head in dict.fromkeys(chain(*rows)) if head not in (key, "")]
    check_columns(where, (*(columns or ()), *bins), heads)
    kept: list[MetadataColumn] = []
    skipped: dict[str, str] = {}
    for name in dict.fromkeys(columns or heads):
        column = _column_of(name, rows, bins.get(name))
        if isinstance(column, MetadataColumn):
            kept.append(column)
        elif name in bins or (
            columns is not None and not column.startswith(("has one value", "is empty"))
        ):
            msg = f"{where}: column {name!r} {column}"
            raise ValueError(msg)
        else:
            skipped[name] = column
    if not kept:
        why = "; ".join(f"{name} {reason}" for name, reason in skipped.items())
        msg = f"{where}: no column divides the {plural(len(ids), 'id')} ({why or 'no columns'})"
        raise ValueError(msg)
    missing = {kind.name: lost for kind in kept if (lost := int((kind.codes < 0).sum()))}
    named = "" if key is None else key or "without a name"
    return Metadata(tuple(kept), missing, skipped, named, ids)


def _column_of(name: str, rows: list[Row], bins: Any) -> MetadataColumn | str:
    """A column, or why it has no slices."""
    known: dict[Any, list[str]] = {}
    cells = [_texts(row.get(name), known) for row in rows]
    values = set(chain(*cells))
    if not values:
        return "is empty"
    if len(values) == 1:
        return f"has one value ({next(iter(values))})"
    if (bins is not None or len(values) > _FEW_NUMBERS) and (numbers := _numbers(cells)):
        return _binned(name, numbers, bins)
    if bins is not None:
        return f"has text ({min(values)}), which cannot be divided into bins"
    if len(values) > MOST_VALUES:
        return f"has {len(values)} values (at most {MOST_VALUES}); name a coarser column"
    return _coded(name, cells, sorted(values, key=_natural))


def _coded(name: str, cells: list[list[str]], values: list[str]) -> MetadataColumn:
    place = {value: i for i, value in enumerate(values)}
    codes = np.array([place[texts[0]] if texts else -1 for texts in cells], np.intp)
    more: dict[int, NDArray[np.bool_]] = {}
    for i, texts in enumerate(cells):
        for text in texts[1:]:
            more.setdefault(place[text], np.zeros(len(cells), bool))[i] = True
    return MetadataColumn(name, tuple(values), codes, None, more)


def _texts(cell: Any, known: dict[Any, list[str]]) -> list[str]:
    """The values of a cell, of which a list has several; those of text are known by it."""
    if isinstance(cell, str):
        if cell not in known:
            text = cell.strip()
            known[cell] = [] if text.lower() in _EMPTY else [text]
        return known[cell]
    several = cell if isinstance(cell, (list, tuple)) else [cell]
    texts = (cell_text(cell) for cell in several if not isinstance(cell, (Mapping, list)))
    return [*dict.fromkeys(text for text in texts if text.lower() not in _EMPTY)]


class _Numbers(NamedTuple):
    """Numbers, or ISO dates as seconds, and how they are read."""

    values: Floats
    read: Callable[[Any], float]
    are_dates: bool


def _numbers(cells: list[list[str]]) -> _Numbers | None:
    """Numbers or dates; None for other text, and for lists."""
    if any(len(texts) > 1 for texts in cells):
        return None
    for read in (number_in, _seconds):
        try:
            known = {text: read(text) for text in dict.fromkeys(chain(*cells))}
            values = np.array([known[texts[0]] if texts else np.nan for texts in cells])
        except ValueError:
            continue
        return None if np.isinf(values).any() else _Numbers(values, read, read is _seconds)
    return None


def _seconds(text: str) -> float:
    """Seconds since 1970 of an ISO date, which is in UTC if it has no offset."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def told_apart(numbers: Sequence[float], *, are_dates: bool = False) -> list[str]:
    """Different numbers or dates with six digits or minutes, and with more if they need them.

    >>> told_apart([0.1234567, 40.0, 1e7]), told_apart([1.23456789, 1.2345679])
    (['0.123457', '40', '10000000'], ['1.23456789', '1.2345679'])
    >>> told_apart([0.0, 86400.0, 90000.0], are_dates=True)
    ['1970-01-01', '1970-01-02', '1970-01-02 01:00']
    """
    forms: list[Callable[[float], str]] = [partial(_rounded, digits=n) for n in range(6, 18)]
    if are_dates:
        forms = [partial(_date, finer=part) for part in ("minutes", "seconds", "microseconds")]
    several = [[*map(form, numbers)] for form in forms]
    return next((texts for texts in several if len({*texts}) == len({*numbers})), several[-1])


def _rounded(number: float, digits: int) -> str:
    is_whole = number == round(number) and abs(number) < 1e16
    return f"{number + 0.0:.0f}" if is_whole else f"{number:.{digits}g}"


def _date(seconds: float, finer: str) -> str:
    """An ISO date, with the time unless it is midnight."""
    moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return moment.isoformat(" ", finer) if seconds % _DAY else f"{moment:%Y-%m-%d}"


def _natural(value: str) -> tuple[int, float, str, str]:
    try:
        return 0, number_in(value), "", value
    except ValueError:
        return 1, 0.0, value.lower(), value


def _binned(name: str, numbers: _Numbers, bins: Any) -> MetadataColumn:
    """Quantiles or given edges; only quantiles are tested as a trend."""
    known = numbers.values[~np.isnan(numbers.values)]
    is_number = bins is None or isinstance(bins, (int, np.integer, bool))
    if is_number:
        several = _QUANTILES if bins is None else bins
        number = check_integer(f"bins of {name}", several, 2, MOST_VALUES)
        edges = np.quantile(known, np.linspace(0, 1, number + 1))[1:-1]
        if numbers.are_dates and not (known % _DAY).any():
            edges = np.ceil(edges / _DAY) * _DAY  # the same bins
        edges = np.unique(edges)
    else:
        edges = _edges(name, numbers, bins)
    above = np.searchsorted(edges, numbers.values, side="right")
    codes = np.where(np.isnan(numbers.values), -1, above).astype(np.intp)
    ends = told_apart(edges.tolist(), are_dates=numbers.are_dates)
    inner = [f"{a} to {b}" for a, b in pairwise(ends)]
    values = (f"< {ends[0]}", *inner, f"≥ {ends[-1]}")
    tested = numbers.values if is_number else None
    return MetadataColumn(name, values, codes, tested, is_date=numbers.are_dates)


def _edges(name: str, numbers: _Numbers, bins: Any) -> Floats:
    several = read_several(f"bins of {name}", bins, "a number of quantiles, or edges")
    try:
        edges = np.array([numbers.read(edge) for edge in several], float)
    except (TypeError, ValueError):
        edges = np.empty(0)
    if not len(edges) or (np.diff(edges) <= 0).any() or np.isnan(edges).any():
        kind = "dates" if numbers.are_dates else "edges"
        msg = f"bins of {name} must be a number of quantiles or ascending {kind}, got {bins!r}"
        raise ValueError(msg)
    return edges
