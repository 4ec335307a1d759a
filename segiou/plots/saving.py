"""Every plot of a run or a comparison, saved as files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from segiou._support.arguments import check_path
from segiou._support.files import write_whole
from segiou.plots.class_plots import (
    accuracy_against_iou,
    boundary_against_iou,
    class_bars,
    comparison_forest,
    image_distribution,
    prevalence_curve,
)
from segiou.plots.matrix import confusion_matrix
from segiou.plots.style import report_of, saving

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from segiou.analysis.bootstrapping import Intervals
    from segiou.analysis.comparison import Comparison
    from segiou.report.report import Report

#: File endings written, with the metadata that would make each run's file another one.
FORMATS: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None, "ModDate": None},
}

Figures = Iterator[tuple[str, Callable[[], "Axes"]]]


def save_plots(
    source: Any, directory: str | Path, *, intervals: Intervals | None = None, dpi: int = 300
) -> list[Path]:
    """Write every figure that applies as PNG, SVG and PDF.

    Parameters
    ----------
    source : Report, Run, ConfusionMatrix or Comparison
        Of a comparison, the forest plot of each pair of models.
    directory : str or path
        Made where it is missing; files of the same names are replaced.
    intervals : Intervals, optional
        Bootstrap intervals of the classes' IoU.
    dpi : int
        Of the PNG.

    Returns
    -------
    list of Path
        The files, in the order in which they were written.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    check_path("directory", directory)
    folder = Path(directory).expanduser()
    figures = (
        _of_comparison(source)
        if hasattr(source, "pairs") and hasattr(source, "ranking")
        else _of_report(report_of(source), intervals)
    )
    written = []
    with saving():
        folder.mkdir(parents=True, exist_ok=True)
        for name, draw in figures:
            figure = cast("Figure", draw().figure)
            for ending, metadata in FORMATS.items():
                out = BytesIO()
                figure.savefig(out, format=ending, dpi=dpi, metadata=metadata)
                written.append(write_whole(folder / f"{name}.{ending}", out.getvalue()))
    return written


def _of_report(report: Report, intervals: Intervals | None) -> Figures:
    if report.matrix.size:
        yield "confusion_matrix", lambda: confusion_matrix(report)
    if any(row.iou == row.iou for row in report.classes):
        yield "class_iou", lambda: class_bars(report, intervals=intervals)
    in_truth = [row for row in report.classes if row.tp + row.fn]
    if in_truth:
        yield "accuracy_against_iou", lambda: accuracy_against_iou(report)
    if report.boundary:
        yield "boundary_against_iou", lambda: boundary_against_iou(report)
    rarest = min(in_truth, key=lambda row: row.share, default=None)
    if rarest is not None and len(in_truth) > 1 and report.matrix.size:
        yield "prevalence_curve", lambda: prevalence_curve(report, rarest.name)
    if report.per_image is not None and report.per_image.tp.sum() + report.per_image.fn.sum():
        yield "image_distribution", lambda: image_distribution(report)


def _of_comparison(comparison: Comparison) -> Figures:
    several = len(comparison.pairs) > 1
    for index in range(len(comparison.pairs)):
        name = f"comparison_{index + 1}" if several else "comparison"
        yield name, partial(comparison_forest, comparison, pair=index)
