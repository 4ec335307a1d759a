"""Scores of measures, of a run and as tables of text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from segiou._support.document import Cell, Column as DocumentColumn, Table
from segiou._support.text import infinite_as_text, unit_text
from segiou.measures.measure import Counted
from segiou.measures.score_table import Column, ScoreTable
from segiou.report.case_means import case_means_table
from segiou.report.score_values import ScoreValues, of_plans
from segiou.report.wording import cell, range_text

if TYPE_CHECKING:
    from segiou.analysis.intervals import Intervals
    from segiou.report.class_rows import ClassRow
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
    scored = of_plans(run.plans, run.measured, intervals)
    tables = tuple(_with_coverage(table, scored) for table in tables)
    if run.provenance.get("masks") == "volumes" and (cases := case_means_table(run)) is not None:
        tables = (cases, *tables)
    return {"tables": tables, "measured_scores": scored}


def _with_coverage(table: ScoreTable, scored: Sequence[ScoreValues]) -> ScoreTable:
    """The table, with a note on means that do not cover all rows."""
    if not table.means or "classes" in table.means:  # which says it in a row
        return table
    number, columns = len(table.rows), {one.name for one in table.columns if one.title}
    of = {one.title: one.classes for one in scored if one.name in columns and one.classes}
    fewer = {title: classes for title, classes in of.items() if classes < number}
    rows = {"class": "classes", "name": "classes"}.get(table.of, f"{table.of}s")
    if not fewer:
        return table
    if len(fewer) == len(of) and len(set(fewer.values())) == 1:
        text = f"means cover {next(iter(fewer.values()))} of {number} {rows}"
    else:
        each = ", ".join(f"{title} {classes}" for title, classes in fewer.items())
        text = f"means cover fewer than the {number} {rows}: {each}"
    return replace(table, note="; ".join(filter(None, (table.note, text))))


def cells_by_row(report: Report, rows: Sequence[ClassRow]) -> list[dict[str, Any]]:
    """Classes, groups and structures with all their scores; infinite distances are ``inf``."""
    found = {row.name: asdict(row) for row in (*rows, *report.group_rows)}
    for table in report.tables:
        for at, name in enumerate(table.rows):
            line = found.setdefault(name, {"name": name})
            cells = [cell for column in table.columns for cell in column.cells(at)]
            line |= {head: infinite_as_text(value) for head, value in cells}
    for one in report.scores_by_name.values():
        for name, value in one.rows.items():
            found[name].setdefault(one.name, infinite_as_text(value))
    return [*found.values(), *_means(report, found)]


def _means(report: Report, rows: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """A line of the means, if intervals were given, which are added to the lines of all rows."""
    scores, usual = report.scores_by_name.values(), report.intervals is None
    means: dict[str, Any] = {one.name: infinite_as_text(one.value) for one in scores}
    shown = [
        one
        for one in scores
        if one.intervals is not None and not (usual and one.name in report.pixel_intervals)
    ]
    for one in shown:
        for line, ends in ((means, one.intervals.overall), *_by_row(one, rows)):
            line[f"{one.name}_low"] = infinite_as_text(ends.low)
            line[f"{one.name}_high"] = infinite_as_text(ends.high)
    return [{"name": "mean", **means}] if shown else []


def _by_row(one: ScoreValues, rows: Mapping[str, dict[str, Any]]) -> list[tuple[Any, Any]]:
    return [(rows[own.name], own) for own in one.intervals.classes if own.name in rows]


def score_part(table: ScoreTable) -> Table:
    """The table of any measure, without rows that have no value."""
    number, places = len(table.rows), range(len(table.rows) + len(table.means))
    columns = [(table.of if table.of != "name" else "class", [*table.rows, *table.means])]
    for column in (one for one in table.columns if one.title):
        head = ", ".join(filter(None, (column.title, unit_text(column.unit))))
        columns.append((head, [_shown(table, column, i) for i in places]))
        if column.limits:
            ends = [_range(column, limits) for limits in column.limits]
            columns.append((f"{head}, {100 * column.level:g} % interval", ends))
    kept = [i for i in places if i >= number or any(c[i] != "–" for _, c in columns[1:])]
    tones = [*[""] * number, "bold", "dim", "dim"]
    parts = (
        DocumentColumn(head, [Cell(cells[i], tones[i]) for i in kept], -k, is_text=not k)
        for k, (head, cells) in enumerate(columns)
    )
    return Table([*parts], [table.note], last=len(table.means), split=True)


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
