"""Dice over the cases of volumes, beside the Dice of all cases pooled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from segiou._support.text import plural
from segiou.counting.counts import Counts
from segiou.inference.scored_runs import has_volumes, structure_score
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.metrics.pixel_scores import CASE_SCORES

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
    if not has_volumes(run.provenance) or not structures or not len(run):
        return None, ()
    members = [*structures.values()]
    cases = run.structure_counts(members)
    scores = [structure_score(name, [*structures]) for name in CASE_SCORES]
    values = tuple(
        ScoreValues.of_score(score, cases, score.values(cases), intervals.get(score.name))
        for score in scores
    )
    return _table(cases, values), values


def _table(cases: Counts, values: Sequence[ScoreValues]) -> ScoreTable:
    there = cases.truth + cases.pred > 0
    dice, iou, pooled = (
        replace(score, title=score.title.replace(" over", ", mean over")) for score in values
    )
    names, means = tuple(dice.rows), [there.any(1).sum()]
    number = ScoreValues.of_counts("dice_case_count", "cases", names, there.sum(0), means)
    note = f"Dice over {plural(len(there), 'case')}; cases without the structure are skipped"
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
