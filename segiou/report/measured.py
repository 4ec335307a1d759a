"""Scores of measures and of cases, of a run and as tables of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.numbers import COUNT, cell, cell_range, interval_name, with_unit
from segiou._support.text import plural
from segiou.counting.counts import Counts
from segiou.document.parts import Cell, Column, Table
from segiou.inference.scored_runs import has_volumes, structure_score
from segiou.measures.plan import Counted
from segiou.measures.score import MEAN
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.metrics.pixel_scores import CASE_SCORES, PIXEL_SCORES
from segiou.report.class_table import rows_of

if TYPE_CHECKING:
    from segiou.inference.intervals import Intervals
    from segiou.report.report import Report
    from segiou.report.report_numbers import ReportNumbers
    from segiou.runs.run import Run


def measured_parts(run: Run, intervals: Mapping[str, Intervals]) -> dict[str, Any]:
    """Tables of a run's measures and the scales of their scores; intervals by score."""
    tables, scored = [], []
    for plan in run.plans:
        counted = Counted(run.measured[plan.key], run._tally, len(run), intervals, lambda: run.ids)
        table = plan.table(counted)
        values = map(counted.values_of, plan.scores.values())
        scored += [replace(score, about=table.about) for score in values]
        tables.append(_note_coverage(table))
    cases, of_cases = case_scores(run, intervals)
    return {
        "tables": (*filter(None, [cases]), *tables),
        "measured_scores": (*scored, *of_cases),
    }


def _note_coverage(table: ScoreTable) -> ScoreTable:
    """The table, with a note on means that do not cover all rows."""
    if not table.means or "classes" in table.means:  # which says it in a row
        return table
    number = len(table.rows)
    covered = {c.title: c.classes for c in table.columns if c.title and c.classes}
    fewer = {title: classes for title, classes in covered.items() if classes < number}
    rows = {"class": "classes", "name": "classes"}.get(table.of, f"{table.of}s")
    if not fewer:
        return table
    if len(fewer) == len(covered) and len(set(fewer.values())) == 1:
        text = f"means cover {next(iter(fewer.values()))} of {number} {rows}"
    else:
        each = ", ".join(f"{title} {classes}" for title, classes in fewer.items())
        text = f"means cover fewer than the {number} {rows}: {each}"
    return replace(table, note="; ".join(filter(None, (table.note, text))))


def cells_by_row(report: Report, classes: ScoreTable) -> list[dict[str, Any]]:
    """Classes, groups and structures with all their scores; infinite distances are ``inf``."""
    lines: dict[str, dict[str, Any]] = {}
    for table in filter(None, (classes, report.group_table)):
        for row in rows_of(table):  # a class may be a group of its own
            lines.setdefault(row.name, row.to_dict())
    for table in report.tables:
        for at, name in enumerate(table.rows):
            line = lines.setdefault(name, {"name": name})
            cells = [cell for column in table.columns for cell in column.cells(at)]
            line |= dict(cells)
    for score in report.scores_by_name.values():
        for name, value in score.rows.items():
            lines[name].setdefault(score.name, value)
    return [*lines.values(), *_means(report, lines)]


def _means(report: ReportNumbers, rows: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of the overall values, if there are intervals, which all lines get."""
    scores, usual = report.scores_by_name.values(), report.intervals is None
    means: dict[str, dict[str, Any]] = {MEAN: {"name": MEAN}}
    for score in scores:
        means.setdefault(score.overall, {"name": score.overall})[score.name] = score.value
    names = [score.name for score in scores if not (usual and score.name in PIXEL_SCORES)]
    intervals = {name: of_score for name in names if (of_score := report.intervals_of(name))}
    for name, of_score in intervals.items():
        lines = [(rows[ends.name], ends) for ends in of_score.classes if ends.name in rows]
        whole = means[report.scores_by_name[name].overall]
        for line, ends in ((whole, of_score.overall), *lines):
            line[f"{name}_low"] = ends.low
            line[f"{name}_high"] = ends.high
    return [*means.values()] if intervals else []


def score_part(table: ScoreTable) -> Table:
    """The table of any measure, without rows that have no value."""
    number, places = len(table.rows), range(len(table.rows) + len(table.means))
    columns = [(table.of if table.of != "name" else "class", [*table.rows, *table.means], "")]
    for column in (each for each in table.columns if each.title):
        head = with_unit(column.title, column.unit)
        columns.append((head, [shown(table, column, i) for i in places], column.name))
        if column.limits:
            ends = [cell_range(ends, column.unit, column.digits) for ends in column.limits]
            columns.append((f"{head}, {interval_name(column.level)}", ends, column.name))
    kept = [i for i in places if i >= number or any(c[i] != "–" for _, c, _ in columns[1:])]
    tones = [*[""] * number, "bold", "dim", "dim"]
    parts = (
        Column(head, [Cell(cells[i], tones[i]) for i in kept], -k, not k, score=score)
        for k, (head, cells, score) in enumerate(columns)
    )
    return Table([*parts], [table.note], last=len(table.means), split=True)


def shown(table: ScoreTable, column: ScoreValues, at: int) -> str:
    """A cell of a table as text: of its rows, then of its mean rows."""
    if at >= len(table.rows) and not column.means:
        return ""
    value = column.at(at)
    if at < len(table.rows) and (text := column.texts.get(table.rows[at])):
        return text
    if column.unit == COUNT and table.empty and table.empty[at]:
        return "–"
    if at > len(table.rows) and column.unit != COUNT:  # of how many classes a mean is
        return cell(value) if isinstance(value, float) else str(value)
    return cell(value, column.unit, column.digits)


_ABOUT = (
    "Dice of each case, averaged over the cases whose truth or prediction contains the structure, "
    "as nnU-Net reports it; and Dice of the voxels of all cases pooled."
)


def case_scores(
    run: Run, intervals: Mapping[str, Intervals]
) -> tuple[ScoreTable | None, tuple[ScoreValues, ...]]:
    """The table of a run of volumes and its scores; neither without cases or structures."""
    structures = run.options.structures
    if not has_volumes(run.provenance) or not structures or not len(run):
        return None, ()
    members = [*structures.values()]
    cases = run.structure_counts(members)
    scores = [structure_score(name, [*structures]) for name in CASE_SCORES]
    values = tuple(
        ScoreValues.of_score(score, cases, score.values(cases), intervals.get(score.name))
        for score in scores
    )
    return _case_table(cases, values), values


def _case_table(cases: Counts, values: Sequence[ScoreValues]) -> ScoreTable:
    there = cases.truth + cases.pred > 0
    dice, iou, pooled = (
        replace(score, title=score.title.replace(" over", ", mean over")) for score in values
    )
    names, means = tuple(dice.rows), [there.any(1).sum()]
    number = ScoreValues.of_counts("dice_case_count", "cases", names, there.sum(0), means)
    skipped = "cases without the structure in truth and prediction are skipped"
    note = f"Dice over {plural(len(there), 'case')}; {skipped}"
    return ScoreTable(
        key="case_means",
        title="Dice over cases",
        about=_ABOUT,
        rows=names,
        columns=(dice, pooled, iou, number),
        means=("mean",),
        note=note,
        of="structure",
        empty=(*(not number for number in np.count_nonzero(there, axis=0)), False),
    )
