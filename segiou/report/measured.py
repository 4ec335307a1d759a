"""Scores of measures, of a run and as tables of text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from segiou._support.files import printable
from segiou.measures.measure import Counted
from segiou.measures.score_table import Column, RowCurves, ScoreTable
from segiou.report.case_means import case_means_table
from segiou.report.wording import cell, range_text

if TYPE_CHECKING:
    from segiou.analysis.intervals import Intervals
    from segiou.report.report import Report
    from segiou.runs.run import Run


def measured_parts(run: Run, intervals: Mapping[str, Intervals]) -> dict[str, Any]:
    """Tables of a run's measures and the scales of their scores; intervals by score."""
    tables = tuple(
        plan.table(
            Counted(run.measured[plan.key], run._tally, len(run), intervals, lambda: run.ids)
        )
        for plan in run.plans
    )
    scores = (score for plan in run.plans for score in plan.scores.values())
    if run.provenance.get("masks") == "volumes" and (cases := case_means_table(run)) is not None:
        tables = (cases, *tables)
    return {"tables": tables, "scales": {one.name: (one.unit, one.better) for one in scores}}


def measured_cells(report: Report, class_name: str) -> dict[str, Any]:
    """Scores of a class by column; infinite distances are ``inf``."""
    cells: dict[str, Any] = {}
    for table in report.tables:
        if class_name in table.rows:
            cells |= _cells_of(table, table.rows.index(class_name))
        elif any(name in table.rows for name in report.class_names):
            cells |= dict.fromkeys((column.name for column in table.columns), math.nan)
    return cells


def structure_cells(report: Report) -> dict[str, dict[str, Any]]:
    """The same of structures that are not classes, such as regions."""
    found: dict[str, dict[str, Any]] = {}
    for table in report.tables:
        for at, name in enumerate(table.rows):
            if name not in report.class_names:
                found.setdefault(name, {}).update(_cells_of(table, at))
    return found


def _cells_of(table: ScoreTable, at: int) -> dict[str, Any]:
    cells = (cell for column in table.columns for cell in column.cells(at))
    return {name: "inf" if math.isinf(value) else value for name, value in cells}


class MeasuredTable(NamedTuple):
    """A score table as text."""

    name: str
    title: str
    about: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    summary: list[tuple[str, ...]]
    note: str
    curves: tuple[RowCurves, ...] = ()

    @property
    def filled(self) -> list[tuple[str, ...]]:
        """The rows of the classes that have a value."""
        return [row for row in self.rows if any(value != "–" for value in row[1:])]


def measured_tables(report: Report) -> list[MeasuredTable]:
    """The score tables of a report as text."""
    return [_text_table(table) for table in report.tables]


def _text_table(table: ScoreTable) -> MeasuredTable:
    """The table of any measure as text."""
    heads, columns = [table.of if table.of != "name" else "class"], []
    for column in (one for one in table.columns if one.title):
        heads.append(", ".join(filter(None, (column.title, column.unit))))
        places = range(len(table.rows) + len(table.means))
        columns.append([_shown(table, column, i) for i in places])
        if column.limits:
            heads.append(f"{100 * column.level:g} % interval")
            columns.append([_range(column, limits) for limits in column.limits])
    names = [*map(printable, table.rows), *table.means]
    lines = [*zip(names, *columns, strict=True)]
    rows, means = lines[: len(table.rows)], lines[len(table.rows) :]
    head = (table.key, table.title, table.about)
    return MeasuredTable(*head, tuple(heads), rows, means, table.note)


def _shown(table: ScoreTable, column: Column, at: int) -> str:
    value = column.at(at)
    if any(column.texts[at : at + 1]):
        return column.texts[at]
    if column.kind == "count":
        return "–" if table.empty and table.empty[at] else str(value)
    if at > len(table.rows):  # of how many classes a mean is
        return cell(value) if isinstance(value, float) else str(value)
    return distance_text(value, column.digits) if column.kind == "distance" else cell(value)


def _range(column: Column, limits: tuple[float, float] | None) -> str:
    if column.kind != "distance" or limits is None or math.isnan(limits[0]):
        return range_text(limits)
    return " to ".join(distance_text(end, column.digits) for end in limits)


def distance_text(value: float, digits: int = 2) -> str:
    """A distance without its unit."""
    if math.isnan(value):
        return cell(value)
    return "∞" if math.isinf(value) else f"{value:.{digits}f}".replace("-", "−")
