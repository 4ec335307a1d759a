"""Plots by name, and saving all plots that apply to a run or a comparison."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from segiou._support.arguments import check_choice, check_integer, check_path
from segiou._support.output_folder import OutputFolder
from segiou.accumulators.histograms.score_counts import ScoreHistogram
from segiou.plots.class_plots import accuracy_vs_iou, boundary_vs_iou, class_bars, prevalence_curve
from segiou.plots.confusion_plot import confusion_matrix
from segiou.plots.distribution_plots import (
    bland_altman,
    class_boxes,
    distance_boxes,
    image_distribution,
)
from segiou.plots.model_plots import (
    case_boxes,
    comparison_forest,
    model_bars,
    rank_stability,
    slices,
)
from segiou.plots.score_plots import pr_curve, reliability, roc_curve, thresholds
from segiou.plots.style import NothingToDraw, no_pyplot, report_of, require, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from segiou.inference.intervals import Intervals

#: File extensions, with metadata removed so that files are reproducible.
FORMATS: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "ModDate": None},
}

Kinds = dict[str, Callable[..., Any]]


def _kinds_by_name(*kinds: Callable[..., Any]) -> Kinds:
    return {kind.__name__: kind for kind in kinds}


_OF_REPORTS = _kinds_by_name(
    *(confusion_matrix, class_bars, accuracy_vs_iou, boundary_vs_iou, prevalence_curve),
    *(image_distribution, class_boxes, distance_boxes, bland_altman),
)
_OF_SCORES = _kinds_by_name(pr_curve, roc_curve, reliability, thresholds)
_OF_COMPARISONS = _kinds_by_name(comparison_forest, model_bars)
_OF_SLICES = _kinds_by_name(slices)
_OF_RANKINGS = _kinds_by_name(rank_stability, case_boxes)


def _kinds_of(source: Any) -> Kinds:
    if isinstance(source, ScoreHistogram):
        return _OF_SCORES
    if hasattr(source, "trends"):
        return _OF_SLICES
    if hasattr(source, "tau"):
        return _OF_RANKINGS
    if hasattr(source, "ranking"):
        return _OF_COMPARISONS | (_OF_RANKINGS if source.stability else {})
    return _OF_REPORTS | _OF_SCORES


def plot(source: Any, kind: str, **options: Any) -> Axes:
    """Draw a plot by name.

    Parameters
    ----------
    source : Report, Run, ConfusionMatrix, ScoreHistogram, Comparison, Ranking or Slices
        Source of the scores.
    kind : str
        For a comparison ``"comparison_forest"`` or ``"model_bars"``; for a
        ranking, or a comparison of three or more models,
        ``"rank_stability"`` or ``"case_boxes"``; for slices ``"slices"``; otherwise
        ``"confusion_matrix"``, ``"class_bars"``, ``"accuracy_vs_iou"``,
        ``"boundary_vs_iou"``, ``"prevalence_curve"``,
        ``"image_distribution"``, ``"class_boxes"``, ``"distance_boxes"`` or
        ``"bland_altman"``; with the measure ``scores`` and for a score histogram ``"pr_curve"``,
        ``"roc_curve"``, ``"reliability"`` or ``"thresholds"``.
    **options
        Options of the function with this name, such as ``title``.

    Returns
    -------
    Axes
        Axes of a new pyplot figure, which notebooks show and ``pyplot.savefig("plot.pdf")``
        saves; or the axes given as ``ax``.

    Raises
    ------
    ValueError
        If the kind is unknown, or there is nothing to draw.
    """
    kinds = _kinds_of(source)
    check_choice("kind", kind, list(kinds))
    axes: Axes = kinds[kind](source, **options)
    return axes


def save_plots(
    source: Any,
    directory: str | Path,
    *,
    intervals: Intervals | None = None,
    dpi: int = 300,
    overwrite: bool = False,
) -> list[Path]:
    """Save every applicable plot as PNG, SVG and PDF.

    Parameters
    ----------
    source : Report, Run, ConfusionMatrix, ScoreHistogram, Comparison or Ranking
        Source of the scores. A comparison gives the forest plot of each pair of
        models and their bars, and of three or more models those of the ranking.
    directory : str or path
        Created if missing.
    intervals : Intervals, optional
        Intervals of the class IoU.
    dpi : int
        Resolution of the PNG files.
    overwrite : bool
        Whether to replace files that segiou did not write there.

    Returns
    -------
    list of Path
        The files in the order they were written.

    Raises
    ------
    FileExistsError
        If a file exists that segiou did not write there, or a link.
    """
    check_path("directory", directory)
    check_integer("dpi", dpi, 20, 10_000)
    folder = OutputFolder(directory, overwrite=overwrite)
    kinds = _kinds_of(source)
    if kinds is not _OF_SCORES and "class_bars" in kinds:
        source = report_of(source)
    files = []
    require("matplotlib")
    with no_pyplot():
        for name, axes in _figures(source, kinds, intervals):
            for ending in FORMATS:
                picture = saved(cast("Figure", axes.figure), ending, dpi)
                files.append(folder.write(f"{name}.{ending}", picture))
    return files


def saved(figure: Figure, ending: str, dpi: int = 300) -> bytes:
    """A figure as a file of a format, reproducible."""
    out = BytesIO()
    figure.savefig(out, format=ending, dpi=dpi, metadata=FORMATS[ending])
    return out.getvalue()


def _figures(source: Any, kinds: Kinds, intervals: Intervals | None) -> Iterator[tuple[str, Axes]]:
    """The plots that apply, by the names of their files."""
    for kind, draw in kinds.items():
        with suppress(NothingToDraw):
            if draw is class_bars:
                yield kind, draw(source, intervals=intervals)
            elif draw is comparison_forest:
                for place, name in enumerate(_names_of_pairs(source)):
                    yield f"{kind}{name}", draw(source, pair=place)
            else:
                yield kind, draw(source)


def _names_of_pairs(comparison: Any) -> list[str]:
    """Suffixes of file names that tell the pairs of several models apart."""
    if len(comparison.pairs) == 1:
        return [""]
    pairs = [f"_{short_name(pair.b, 14)}_vs_{short_name(pair.a, 14)}" for pair in comparison.pairs]
    plain = [re.sub(r"[^\w.-]+", "_", name) for name in pairs]
    # Names that differ in other characters alone are numbered.
    return [f"{n}_{i + 1}" if plain.count(n) > 1 else n for i, n in enumerate(plain)]
