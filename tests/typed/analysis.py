"""Uncertainty, comparison and plots, as a user would write them."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes

import segiou
from segiou.analysis import influence
from segiou.inference import Intervals, group_by_pattern
from segiou.metrics import iou, mean_iou


def intervals(run: segiou.Run) -> tuple[float, float]:
    found: Intervals = segiou.bootstrap(run, "iou", groups=r"^[^_]+", seed=1)
    groups = group_by_pattern(list(run.ids), r"^[^_]+")
    assert len(groups) == len(run)
    return found.overall.low, found.overall.high


def compare(run: segiou.Run, others: list[segiou.Run]) -> str:
    comparison = segiou.compare(run, *others, metric="mean_iou", permutations=100)
    lines = [f"{row.name}: {row.delta:.3f}" for row in comparison.pairs[0].classes]
    strongest = influence(run.counts, ids=run.ids).strongest(3)
    return "\n".join([*lines, *comparison.sentences(), *map(str, strongest[0])])


def explain(matrix: segiou.ConfusionMatrix) -> float:
    said = segiou.explain(matrix)
    gap: float = said.gap
    per_class = iou(matrix.counts)
    assert mean_iou(matrix.counts) and per_class is not None
    return gap


def plot(report: segiou.Report) -> Axes:
    return segiou.plots.class_bars(report, metric="dice")


def pairs(folder: Path) -> segiou.Run:
    try:
        return segiou.score_folder(folder / "truth", folder / "pred", labels="camvid", workers=1)
    except segiou.DataError as error:
        raise SystemExit("\n".join(str(problem) for problem in error.problems)) from error
