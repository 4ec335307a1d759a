"""The tables of classes and of groups, with all scores that have values of rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from segiou._support.arguments import check_kind, read_several
from segiou._support.numbers import with_unit
from segiou._support.text import Json, did_you_mean
from segiou.counting.counts import Counts
from segiou.measures.registry import MissingMeasureError, measure_of_score
from segiou.measures.score_names import ScoreName, not_measured, read_name
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.measures.spellings import ALIASES
from segiou.metrics.pixel_scores import CASE_SCORES, OF_CLASSES, PIXEL_SCORES, ClassMetric
from segiou.metrics.ratio import ratio

if TYPE_CHECKING:
    from segiou.inference.intervals import Intervals
    from segiou.measures.plan import Plan
    from segiou.report.report_numbers import ReportNumbers

#: Columns of the class table: name and heading.
ClassColumns = dict[str, str]


#: Numbers of a class that are not scores.
_COUNTS = {
    name: ClassMetric(name, attrgetter(name), name.upper(), name.upper(), definition, rank=2)
    for name, definition in {
        "tp": "True positives: {unit} of the class that were predicted as the class.",
        "fp": "False positives: {unit} predicted as the class whose truth is another class.",
        "fn": "False negatives: {unit} of the class that were not predicted as the class.",
    }.items()
}
_SHARE = ClassMetric(
    "share",
    lambda counts: ratio(counts.truth, counts.total),
    "share",
    "(TP + FN) / all {unit}",
    "How common the class is: its share of the truth, ignored {unit} excluded.",
    rank=6,
)
_NUMBERS = {**_COUNTS, _SHARE.name: _SHARE}
#: Headings of the counts.
COUNTS = {name: number.title for name, number in _COUNTS.items()}
_USUAL = ("iou", "dice", "precision", "recall", "share")
_SETS = {
    "map": ("users_accuracy", "producers_accuracy", "f1", "share"),
    "medical": ("dice", "iou", "precision", "recall", "share"),
}
#: Columns of pixels, in the order of JSON and CSV.
OF_PIXELS = tuple(dict.fromkeys((*_USUAL[:-1], *_NUMBERS, *OF_CLASSES)))


@dataclass(frozen=True)
class ClassRow:
    """One class of a report, with its scores as attributes.

    Attributes
    ----------
    name : str
        Name of the class.
    values : mapping of str to number
        Scores, NaN if undefined, ``tp``, ``fp`` and ``fn`` (pixels), and ``share``, the class's
        share of the truth.
    """

    name: str
    values: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            msg = f"a class has no score {name!r}"
            raise AttributeError(msg) from None

    @property
    def status(self) -> str:
        """Absent, never predicted, not in truth, or empty."""
        if self.tp + self.fp + self.fn == 0:
            return "absent"
        if self.tp + self.fn == 0:
            return "not in truth"
        return "never predicted" if self.tp + self.fp == 0 else ""

    def to_dict(self) -> dict[str, Json]:
        """The name and the numbers of pixels."""
        return {"name": self.name, **{name: self.values[name] for name in OF_PIXELS}}


def class_table(report: ReportNumbers) -> ScoreTable:
    """Every score that has a value of classes."""
    names, scores = report.class_names, report.scores_by_name.values()
    return _table("class", names, report.counts, [*_columns(scores, names, report)])


def _columns(
    scores: Iterable[ScoreValues], names: Sequence[str], report: ReportNumbers
) -> Iterator[ScoreValues]:
    """The scores with a value of any of the rows."""
    for score in scores:
        if not score.rows.keys().isdisjoint(names):
            rows = {name: score.rows.get(name, math.nan) for name in names}
            intervals = _intervals_of(score.name, report)
            yield replace(score, rows=rows, means=(score.value,), intervals=intervals)


def _intervals_of(name: str, report: ReportNumbers) -> Intervals | None:
    """The intervals of a column; of pixels, only those that were given."""
    given = (report.intervals, *report.more_intervals)
    is_given = any(one is not None and one.metric == name for one in given)
    return report.intervals_of(name) if is_given or name not in PIXEL_SCORES else None


def group_table(report: ReportNumbers) -> ScoreTable | None:
    """The scores of each group against the rest; None without groups."""
    counts = report.group_counts
    if counts is None:
        return None
    names, scores = [name for name, _ in report.groups], report.scores_by_name.values()
    return _table("group", names, counts, [*_columns(scores, names, report)])


def _table(
    kind: str, names: Sequence[str], counts: Counts, columns: list[ScoreValues]
) -> ScoreTable:
    numbers = [
        ScoreValues.of_counts(name, number.title, names, number.function(counts))
        for name, number in _COUNTS.items()
    ]
    shares = _SHARE.function(counts).tolist()
    share = ScoreValues(_SHARE.name, _SHARE.title, dict(zip(names, shares, strict=True)))
    by_name = {column.name: column for column in (*columns, *numbers, share)}
    ordered = [by_name[name] for name in dict.fromkeys((*OF_PIXELS, *by_name))]
    return ScoreTable(kind, "", "", tuple(names), tuple(ordered), of=kind)


def rows_of(table: ScoreTable) -> tuple[ClassRow, ...]:
    """The rows of a table, each with its numbers by name."""
    names = [column.name for column in table.columns]
    lines = zip(*(column.values for column in table.columns), strict=True)
    pairs = zip(table.rows, lines, strict=True)
    return tuple(ClassRow(row, dict(zip(names, line, strict=True))) for row, line in pairs)


def row_order(table: ScoreTable, key: str = "order", *, reverse: bool = False) -> list[int]:
    """Places of the rows by ``"order"`` or a column; undefined values come last."""
    places = [*range(len(table.rows))]
    check_kind("the column to sort by", key, str, "the name of a column")
    if key in ("order", "name"):
        values: Sequence[Any] = places if key == "order" else table.rows
    else:
        values = column_of(table, sort_key(key, [column.name for column in table.columns])).values
    missing = [i for i in places if values[i] != values[i]]
    present = [i for i in places if values[i] == values[i]]
    return [*sorted(present, key=values.__getitem__, reverse=reverse), *missing]


def column_named(table: ScoreTable, name: str) -> ScoreValues:
    """The column of a score by any of its names; ValueError if the table has none."""
    return column_of(table, _read_column(name, [column.name for column in table.columns])[0])


def column_of(table: ScoreTable, name: str) -> ScoreValues:
    """The column of a score; ValueError if the table has none."""
    for column in table.columns:
        if column.name == name:
            return column
    raise _missing(name)


def _missing(name: str) -> ValueError:
    if name not in CASE_SCORES and measure_of_score(name) is None:
        return ValueError(f"{name} has no values of classes")
    return not_measured(ScoreName(name))


def check_columns(columns: str | None, sort: str, plans: Sequence[Plan]) -> None:
    """ValueError for columns of the class table that a report with these plans will not have."""
    measured = {name for plan in plans for name in plan.scores}
    known = {*OF_PIXELS, "order", "name", *measured, *CASE_SCORES}
    for key in (*class_columns(columns, measured), sort_key(sort, measured)):
        if key not in known:
            raise _missing(key)


def sort_key(key: str, others: Collection[str] = ()) -> str:
    """The column to sort by, or ``"order"``, by any name; ValueError if it is unknown."""
    if key in ("order", "name"):
        return key
    try:
        return _read_column(key, others)[0]
    except MissingMeasureError:
        raise
    except ValueError:
        msg = f"cannot sort by {key!r}; sort by order, name, {', '.join(OF_PIXELS)}"
        raise ValueError(msg) from None


def _read_column(name: str, others: Collection[str]) -> tuple[str, str]:
    """The column by any name of its score, and its heading; empty for the score's own heading."""
    if name in _NUMBERS:
        return name, _NUMBERS[name].title
    score_name, alias = _named(name, others), ALIASES.get(name.lower())
    pixels = PIXEL_SCORES.get(score_name.score)
    if score_name.row or (pixels is not None and not pixels.per_class):
        msg = f"{name!r} has no column in the table of classes; choose from {', '.join(OF_CLASSES)}"
        raise ValueError(msg)
    if alias and not name.lower().startswith("m"):
        return score_name.score, alias.title
    return score_name.score, "" if pixels is None else pixels.title


def _named(name: str, others: Collection[str]) -> ScoreName:
    try:
        return read_name(name, others)
    except MissingMeasureError:
        raise
    except ValueError as error:
        known = [*_SETS, *OF_CLASSES, _SHARE.name, *_COUNTS]
        of_classes = [name for name, alias in ALIASES.items() if alias.score in OF_CLASSES]
        hint = did_you_mean(name, [*known, *of_classes])
        msg = f"unknown column {name!r}; choose from {', '.join(known)}{hint}"
        raise ValueError(msg) from error


def class_columns(
    choice: str | Sequence[str] | None = None, others: Collection[str] = ()
) -> ClassColumns:
    """The columns of a field, or of a list of scores; ``others`` are those of measures.

    >>> class_columns("medical")["dice"], [*class_columns("recall,iou")]
    ('Dice', ['recall', 'iou'])
    """
    if choice is None:
        choice = _USUAL
    if isinstance(choice, str):
        choice = _SETS.get(choice) or choice.split(",")
    titles: ClassColumns = {}
    for name in read_several("columns", choice, "names of scores, or 'map' or 'medical'"):
        key, title = _read_column(str(name), others)
        if key in titles:
            msg = (
                f"columns {titles[key] or key!r} and {title or key!r} are the same score; keep one"
            )
            raise ValueError(msg)
        titles[key] = title
    return titles


def titled(table: ScoreTable, columns: ClassColumns) -> list[tuple[str, ScoreValues]]:
    """Those of the columns that a table has, with their headings."""
    by_name = {column.name: column for column in table.columns if column.name in columns}
    chosen = [(title, by_name[name]) for name, title in columns.items() if name in by_name]
    return [(with_unit(title or column.title, column.unit), column) for title, column in chosen]


def rank_of(name: str) -> int:
    """Columns with a lower rank are hidden first."""
    metric = (_NUMBERS | PIXEL_SCORES).get(name)
    return 7 if metric is None else metric.rank


def terms_of(
    columns: ClassColumns, scores: Mapping[str, ScoreValues], unit: str
) -> Iterator[tuple[str, str, str]]:
    """Columns that a page explains, each with its formula and definition."""
    for name in columns:
        if name in OF_PIXELS:
            metric = (_NUMBERS | PIXEL_SCORES)[name]
            formula = metric.formula.replace("{unit}", unit)
            yield name, formula, metric.definition.replace("{unit}", unit)
        elif name in scores and scores[name].about:
            yield name, "", scores[name].about


def is_map(columns: ClassColumns) -> bool:
    """Whether the columns are named as in remote sensing."""
    return columns.get("precision") == ALIASES["users_accuracy"].title
