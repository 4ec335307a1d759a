"""Dice over the cases of volumes, beside the Dice of all cases pooled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from segiou._support.text import plural
from segiou.counting.counts import Counts
from segiou.inference.scored_runs import of_volumes, structure_score
from segiou.measures.score_table import Column, ScoreTable
from segiou.metrics.pixel_scores import CASE_SCORES
from segiou.report.score_values import ScoreValues

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from segiou.inference.intervals import Intervals
    from segiou.runs.run import Run

_ABOUT = (
    "Dice of each case, averaged over the cases whose truth or prediction contains the structure, "
    "as nnU-Net reports it; and Dice of the voxels of all cases pooled."
)


def case_scores(
    run: Run, intervals: Mapping[str, Intervals]
) -> tuple[ScoreTable | None, tuple[ScoreValues, ...]]:
    """The table of a run of volumes and its scores; neither without cases or structures."""
    structures = run.options.structures
    if not of_volumes(run.provenance) or not structures or not len(run):
        return None, ()
    members = [*structures.values()]
    cases = run.structure_counts(members)
    scores = [structure_score(name, [*structures]) for name in CASE_SCORES]
    values = tuple(
        ScoreValues.of(one, cases, one.values(cases), intervals.get(one.name)) for one in scores
    )
    return _table(cases, values), values


def _table(cases: Counts, values: Sequence[ScoreValues]) -> ScoreTable:
    there = cases.truth + cases.pred > 0
    dice, iou, pooled = (_column(one) for one in values)
    columns = (
        dice,
        pooled,
        iou,
        Column.of_counts("dice_case_count", "cases", there.sum(0), [there.any(1).sum()]),
    )
    note = f"Dice over {plural(len(there), 'case')}; cases without the structure are skipped"
    return ScoreTable(
        "case_means",
        "Dice over cases",
        _ABOUT,
        tuple(values[0].rows),
        columns,
        ("mean",),
        note,
        of="structure",
        empty=(*(not number for number in np.count_nonzero(there, axis=0)), False),
    )


def _column(one: ScoreValues) -> Column:
    title = one.title.replace(" over", ", mean over")
    column = Column(one.name, title, tuple(one.rows.values()), (one.value,))
    return column if one.intervals is None else column.with_limits(one.intervals, [*one.rows])
