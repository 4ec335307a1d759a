"""Dice over the cases of volumes, beside the Dice of all cases pooled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from segiou import metrics
from segiou.counting.counts import Counts
from segiou.measures.score_table import Column, ScoreTable
from segiou.metrics.ratio import Floats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from segiou.runs.run import Run

_ABOUT = (
    "Dice of each case, averaged over the cases whose truth or prediction contains the structure, "
    "as nnU-Net reports it; and Dice of the voxels of all cases pooled."
)


def structures_of(run: Run) -> dict[str, tuple[int, ...]]:
    """Groups of the label set, or else its included classes other than value 0."""
    if run.options.groups:
        return dict(run.options.groups)
    values = run.labels.class_values
    kept = [c for c in np.flatnonzero(run.include).tolist() if values[c] != (0,)]
    return {run.class_names[c]: (c,) for c in kept}


def case_means_table(run: Run) -> ScoreTable | None:
    """The table of a run of volumes; None if there is nothing to average."""
    structures = structures_of(run)
    if not structures or not len(run):
        return None
    members = [*structures.values()]
    cases = case_counts(run, members)
    pooled = run._tally.group_counts(members)
    there = cases.truth + cases.pred > 0
    columns = (
        _column("dice_cases", "Dice, mean over cases", metrics.mean(metrics.dice(cases).T)),
        _column("dice_pooled", "pooled Dice", metrics.dice(pooled)),
        _column("iou_cases", "IoU, mean over cases", metrics.mean(metrics.iou(cases).T)),
        Column.of_counts("dice_case_count", "cases", there.sum(0), [there.any(1).sum()]),
    )
    note = f"Dice over cases: {len(run)} cases; cases without the structure are skipped"
    return ScoreTable(
        "case_means",
        "Dice over cases",
        _ABOUT,
        tuple(structures),
        columns,
        ("mean",),
        note,
        of="structure",
        empty=(*(not number for number in np.count_nonzero(there, axis=0)), False),
    )


def case_counts(run: Run, members: Sequence[tuple[int, ...]]) -> Counts:
    """Counts (N, K) of the structures in each case."""
    if all(len(several) == 1 for several in members):
        return run.counts[:, [several[0] for several in members]]
    found = [run.tally(i).group_counts(members) for i in range(len(run))]
    tp, fp, fn, tn = (
        np.stack([getattr(one, name) for one in found]) for name in ("tp", "fp", "fn", "tn")
    )
    return Counts.trusted(tp, fp, fn, tn)


def _column(name: str, title: str, values: Floats) -> Column:
    mean = float(metrics.mean(values))
    return Column(name, title, tuple(values.tolist()), (mean,))
