"""Plots by name, and saving all plots that apply to a run or a comparison."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from segiou._support.arguments import check_choice, check_path
from segiou._support.files import write_whole
from segiou.histograms.score_counts import ScoreHistogram
from segiou.histograms.score_plan import HistogramTable
from segiou.plots.class_plots import KINDS
from segiou.plots.model_plots import KINDS as COMPARISON_KINDS
from segiou.plots.rank_plots import KINDS as RANKING_KINDS
from segiou.plots.score_plots import KINDS as SCORE_KINDS
from segiou.plots.style import report_of, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from segiou.analysis.comparison import Comparison
    from segiou.analysis.intervals import Intervals
    from segiou.analysis.ranking import Ranking
    from segiou.report.report import Report

#: File extensions, with metadata removed so that files are reproducible.
FORMATS: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "ModDate": None},
}

_RENAMED = {"accuracy_against_iou": "accuracy_vs_iou", "boundary_against_iou": "boundary_vs_iou"}

Figures = Iterator[tuple[str, "Axes"]]


def plot(source: Any, kind: str, **options: Any) -> Axes:
    """Draw a plot by name.

    Parameters
    ----------
    source : Report, Run, ConfusionMatrix, ScoreHistogram, Comparison or Ranking
        Source of the scores.
    kind : str
        For a comparison ``"comparison_forest"`` or ``"model_bars"``; for a
        ranking, or a comparison of three or more models,
        ``"rank_stability"`` or ``"case_boxes"``; otherwise
        ``"confusion_matrix"``, ``"class_bars"``, ``"accuracy_vs_iou"``,
        ``"boundary_vs_iou"``, ``"prevalence_curve"``,
        ``"image_distribution"``, ``"class_boxes"`` or ``"distance_boxes"``; with
        the measure ``scores`` and for a score histogram ``"pr_curve"``,
        ``"roc_curve"``, ``"reliability"`` or ``"thresholds"``.
    **options
        Options of the function with this name, such as ``title``.

    Returns
    -------
    Axes
        Shown by notebooks; ``axes.figure.savefig("plot.pdf")`` saves the figure.

    Raises
    ------
    ValueError
        If the kind is unknown, or there is nothing to draw.
    """
    if kind in _RENAMED:
        new = _RENAMED[kind]
        msg = f"kind {kind!r} is deprecated and will be removed in 0.4; use {new!r}"
        warnings.warn(msg, DeprecationWarning, stacklevel=2)
        kind = new
    kinds = KINDS | SCORE_KINDS
    if isinstance(source, ScoreHistogram):
        kinds = SCORE_KINDS
    elif _is_ranking(source):
        kinds = RANKING_KINDS
    elif hasattr(source, "ranking"):
        kinds = COMPARISON_KINDS | (RANKING_KINDS if source.stability else {})
    check_choice("kind", kind, list(kinds))
    return kinds[kind](report_of(source) if kind in KINDS else source, **options)


def _is_ranking(source: Any) -> bool:
    return hasattr(source, "tau")


def save_plots(
    source: Any, directory: str | Path, *, intervals: Intervals | None = None, dpi: int = 300
) -> list[Path]:
    """Save every applicable plot as PNG, SVG and PDF.

    Parameters
    ----------
    source : Report, Run, ConfusionMatrix, ScoreHistogram, Comparison or Ranking
        Source of the scores. A comparison gives the forest plot of each pair of
        models and their bars, and of three or more models those of the ranking.
    directory : str or path
        Created if missing; existing files are replaced.
    intervals : Intervals, optional
        Intervals of the class IoU.
    dpi : int
        Resolution of the PNG files.

    Returns
    -------
    list of Path
        The files in the order they were written.
    """
    check_path("directory", directory)
    folder = Path(directory).expanduser()
    if isinstance(source, ScoreHistogram):
        figures = _of_scores(source)
    elif _is_ranking(source):
        figures = _of_ranking(source)
    elif hasattr(source, "ranking"):
        figures = _of_comparison(source)
    else:
        figures = _of_report(report_of(source), intervals)
    files = []
    require("matplotlib")  # before creating the folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, axes in figures:
        figure = cast("Figure", axes.figure)
        for ending, metadata in FORMATS.items():
            out = BytesIO()
            figure.savefig(out, format=ending, dpi=dpi, metadata=metadata)
            files.append(write_whole(folder / f"{name}.{ending}", out.getvalue()))
    return files


def _of_report(report: Report, intervals: Intervals | None) -> Figures:
    in_truth = sum(row.tp + row.fn > 0 for row in report.classes)
    of_images = report.per_image is not None and report.per_image.truth.any()
    surfaces: Any = report.measures.get("surfaces", ())
    applies = {
        "confusion_matrix": report.has_matrix,
        "class_bars": any(row.iou == row.iou for row in report.classes),
        "accuracy_vs_iou": in_truth > 0,
        "boundary_vs_iou": report.measures.get("boundary"),
        "prevalence_curve": in_truth > 1 and report.has_matrix,
        "image_distribution": of_images,
        "class_boxes": of_images,
        "distance_boxes": any(row["found"] for row in surfaces),
    }
    for kind in filter(applies.get, KINDS):
        if kind == "class_bars":
            yield "class_iou", KINDS[kind](report, intervals=intervals)
        else:
            yield kind, KINDS[kind](report)
    for table in report.tables:
        if isinstance(table, HistogramTable):
            yield from _of_scores(table.histogram)


def _of_scores(histogram: ScoreHistogram) -> Figures:
    applies = {
        "pr_curve": not np.isnan(histogram.average_precision()).all(),
        "roc_curve": not np.isnan(histogram.roc_auc()).all(),
        "reliability": histogram.top_counts.any(),
        "thresholds": histogram.counts[..., 1].any(),
    }
    for kind in filter(applies.get, SCORE_KINDS):
        yield kind, SCORE_KINDS[kind](histogram)


def _of_comparison(comparison: Comparison) -> Figures:
    several = len(comparison.pairs) > 1
    for index in range(len(comparison.pairs)):
        name = f"comparison_{index + 1}" if several else "comparison"
        yield name, COMPARISON_KINDS["comparison_forest"](comparison, pair=index)
    if comparison.pairs[0].classes:
        yield "model_bars", COMPARISON_KINDS["model_bars"](comparison)
    if comparison.stability is not None:
        yield from _of_ranking(comparison.stability)


def _of_ranking(ranking: Ranking) -> Figures:
    for kind, draw in RANKING_KINDS.items():
        if kind == "case_boxes" or ranking.resamples:
            yield kind, draw(ranking)
