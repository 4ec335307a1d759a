"""Plots of classes: bars, accuracy against IoU, prevalence, boundaries, differences of models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou import metrics
from segiou._support.arguments import refuse_kind
from segiou.analysis.statistics import metric_label
from segiou.metrics.per_image import image_means
from segiou.plots.style import (
    IOU,
    MUTED,
    OTHER,
    drawing,
    in_percent,
    legend_above,
    name_rows,
    report_of,
    require,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from segiou.analysis.bootstrapping import Intervals
    from segiou.analysis.comparison import Comparison
    from segiou.report.report import ClassRow, Report

_ROW = 0.165


def _defined(report: Report, metric: str) -> list[ClassRow]:
    rows = [row for row in report.classes if not np.isnan(getattr(row, metric))]
    if not rows:
        msg = f"no class has a defined {metric}, so there is nothing to draw"
        raise ValueError(msg)
    return rows


def _height(rows: int) -> float:
    return 0.75 + _ROW * rows


def class_bars(
    source: Any,
    *,
    metric: str = "iou",
    intervals: Intervals | None = None,
    limit: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Draw a score of each class as a bar, the lowest on top, with intervals where given.

    Parameters
    ----------
    source : Report, Run or ConfusionMatrix
    metric : {"iou", "dice", "precision", "recall"}
    intervals : Intervals, optional
        Bootstrap intervals of the same metric.
    limit : int
        Classes to draw, at most: the lowest.
    ax : Axes, optional

    Returns
    -------
    Axes
        Classes without a value are left out. A dashed line is the mean.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If there is no such metric, no class has a value, or the intervals are
        of another metric.
    """
    report = report_of(source)
    if metric not in ("iou", "dice", "precision", "recall"):
        msg = f"no metric {metric!r} to draw; there are iou, dice, precision, recall"
        raise ValueError(msg)
    if intervals is not None and intervals.metric != metric:
        msg = f"the intervals are of {intervals.metric!r}, not of {metric!r}"
        raise ValueError(msg)
    every = sorted(_defined(report, metric), key=lambda row: float(getattr(row, metric)))
    rows = every[:limit]
    values = np.array([getattr(row, metric) for row in rows])
    label = metric_label(metric)
    with drawing(ax, _height(len(rows))) as axes:
        axes.barh(range(len(rows)), values, height=0.68, color=IOU, label=label)
        if intervals is not None:
            _whiskers(axes, rows, values, intervals)
        values_of_all = np.array([getattr(row, metric) for row in report.classes])
        mean = float(metrics.mean(values_of_all, report.include))
        axes.axvline(mean, color="black", linestyle=(0, (3, 2)), linewidth=0.8, label="mean")
        name_rows(axes, [row.name for row in rows])
        _scale(axes, f"{label}, dashed: mean", len(rows), len(every), "lowest")
    return axes


def _whiskers(axes: Axes, rows: list[ClassRow], values: Any, intervals: Iterable[Any]) -> None:
    ends = {found.name: (found.low, found.high) for found in intervals}
    known = [i for i, row in enumerate(rows) if not np.isnan(ends.get(row.name, (np.nan,))[0])]
    low = np.array([ends[rows[i].name][0] for i in known])
    high = np.array([ends[rows[i].name][1] for i in known])
    middle = values[known]
    # A percentile interval need not hold the value itself.
    lengths = np.maximum(0, [middle - low, high - middle])
    axes.errorbar(
        middle, known, xerr=lengths, fmt="none", ecolor="black", elinewidth=0.8, capsize=1.6
    )


def _scale(axes: Axes, label: str, shown: int, total: int, which: str) -> None:
    axes.set_xlim(0, 1)
    in_percent(axes.xaxis)
    left_out = f" (the {shown} {which} of {total} classes)" if shown < total else ""
    axes.set_xlabel(f"{label}{left_out}")
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)


def accuracy_against_iou(source: Any, *, limit: int = 40, ax: Axes | None = None) -> Axes:
    """Draw accuracy and IoU of each class, the most frequent class on top.

    The accuracy of a class is its recall. The line between the two is what
    false positives cost.

    Parameters
    ----------
    source : Report, Run or ConfusionMatrix
    limit : int
        Classes to draw, at most: those with the longest lines.
    ax : Axes, optional

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If no class is in the truth.
    """
    every = _defined(report_of(source), "recall")
    return dumbbells(
        [(row, row.recall, row.iou) for row in every], ("accuracy", "IoU"), limit=limit, ax=ax
    )


def dumbbells(
    every: list[tuple[ClassRow, float, float]],
    labels: tuple[str, str],
    *,
    limit: int,
    ax: Axes | None,
) -> Axes:
    """Draw two scores of each class and the line between them, the most frequent class on top.

    Raises
    ------
    ValueError
        If there is no class to draw.
    """
    if not every:
        msg = f"no class has both {labels[0]} and {labels[1]}, so there is nothing to draw"
        raise ValueError(msg)
    shown = sorted(every, key=lambda item: item[2] - item[1])[:limit]
    shown.sort(key=lambda item: -item[0].share)
    rows, first, second = (list(column) for column in zip(*shown, strict=True))
    places = range(len(rows))
    with drawing(ax, _height(len(rows)) + 0.2) as axes:
        axes.hlines(places, second, first, color=MUTED, linewidth=1.1, zorder=1)
        axes.scatter(
            first,
            places,
            s=17,
            facecolor="white",
            edgecolor=OTHER,
            linewidth=1.1,
            label=labels[0],
            zorder=2,
            clip_on=False,
        )
        # At 0 and 1 half a dot lies beyond the axes.
        axes.scatter(second, places, s=17, color=IOU, label=labels[1], zorder=3, clip_on=False)
        name_rows(axes, [row.name for row in rows])
        _scale(axes, "score", len(rows), len(every), "widest")
        legend_above(axes, 2, handletextpad=0.2)
    return axes


def prevalence_curve(source: Any, class_name: str, *, ax: Axes | None = None) -> Axes:
    """Draw what the same model would score if one class were rarer or more frequent.

    Confusion rates are held; see :func:`segiou.analysis.prevalence.prevalence_curve`.

    Parameters
    ----------
    source : Report, Run or ConfusionMatrix
    class_name : str
    ax : Axes, optional

    Returns
    -------
    Axes
        The share on a logarithmic axis; a dot at the class's own share.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If there is no such class, it is not in the truth, or the classes are
        channels that overlap.
    """
    from segiou.analysis.prevalence import prevalence_curve as curve_of

    report = report_of(source)
    if class_name not in report.class_names:
        msg = f"no class {class_name!r}; there are {', '.join(report.class_names[:12])}"
        raise ValueError(msg)
    if not report.matrix.size:
        msg = "overlapping channels have no confusion rates to hold while a class gets rarer"
        raise ValueError(msg)
    index = report.class_names.index(class_name)
    row = report.classes[index]
    low = np.log10(min(1e-4, row.share / 2)) if row.share > 0 else -4.0
    shares = np.logspace(low, np.log10(0.5), 81)
    curve = curve_of(report.tally, index, shares, include=report.include)
    with drawing(ax, 2.1) as axes:
        axes.plot(shares, curve.pixel_accuracy, color=OTHER, label="pixel accuracy")
        axes.plot(shares, curve.iou, color=IOU, linewidth=1.8, label="IoU of the class")
        axes.plot(shares, curve.mean_iou, color=MUTED, linestyle=(0, (4, 2)), label="mean IoU")
        axes.plot([row.share], [row.iou], "o", color=IOU, markersize=4.5, markeredgecolor="white")
        axes.set_xscale("log")
        axes.set_ylim(0, 1.02)
        in_percent(axes.xaxis)
        in_percent(axes.yaxis)
        axes.set_xlabel(f"share of {class_name} in the truth, dot: here", parse_math=False)
        axes.set_ylabel("score")
        axes.grid(visible=True, axis="y")
        legend_above(axes, 3, handlelength=1.5, columnspacing=1.0)
    return axes


def image_distribution(source: Any, *, bins: int = 20, ax: Axes | None = None) -> Axes:
    """Draw how the mean IoU of single images is spread.

    Parameters
    ----------
    source : Report or Run
        One that kept the counts of its images.
    bins : int
        From 0 to 1.
    ax : Axes, optional

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the counts of images were not kept, or none has a score.
    """
    report = report_of(source)
    if report.per_image is None:
        msg = (
            "the counts of images were not kept; score with segiou.score or segiou.score_folder, "
            "and draw the Run"
        )
        raise ValueError(msg)
    scores = image_means(report.per_image, include=report.include)
    scores = scores[~np.isnan(scores)]
    if not scores.size:
        msg = "no image has a score, so there is nothing to draw"
        raise ValueError(msg)
    with drawing(ax, 1.9) as axes:
        axes.hist(scores, bins, range=(0, 1), color=IOU, edgecolor="white", linewidth=0.6)
        axes.axvline(float(scores.mean()), color="black", linewidth=0.9, label="mean over images")
        axes.axvline(
            report.mean_iou, color="black", linestyle=(0, (3, 2)), linewidth=0.9, label="data set"
        )
        axes.set_xlim(0, 1)
        in_percent(axes.xaxis)
        axes.set_xlabel("mean IoU of the image")
        axes.set_ylabel("images")
        axes.yaxis.set_major_locator(require("matplotlib.ticker").MaxNLocator(integer=True))
        legend_above(axes, 2)
    return axes


def boundary_against_iou(source: Any, *, limit: int = 40, ax: Axes | None = None) -> Axes:
    """Draw IoU and Boundary IoU of each class, the most frequent class on top.

    The line between the two is what the edges cost: it is long where a large
    object has ragged edges.

    Parameters
    ----------
    source : Report or Run
        In which boundaries were measured.
    limit : int
        Classes to draw, at most: those with the longest lines.
    ax : Axes, optional

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If boundaries were not measured, or no class has both scores.
    """
    report = report_of(source)
    measured = [row for row in report.boundary if row["measure"] == "boundary_iou"]
    if not measured:
        msg = "boundaries were not measured: score with boundary=True (--boundary)"
        raise ValueError(msg)
    scores = measured[0]["classes"]
    every = [(row, row.iou, float(scores[row.name])) for row in report.classes]
    every = [item for item in every if not np.isnan(item[1:]).any()]
    labels = "IoU", f"Boundary IoU {measured[0]['tolerance']}"
    return dumbbells(every, labels, limit=limit, ax=ax)


def comparison_forest(
    comparison: Comparison, *, pair: int = 0, limit: int = 40, ax: Axes | None = None
) -> Axes:
    """Draw the difference of two models and of each class, with intervals.

    Parameters
    ----------
    comparison : Comparison
    pair : int
        Which of its pairs of models.
    limit : int
        Classes to draw, at most: those that differ most.
    ax : Axes, optional

    Returns
    -------
    Axes
        The score of all classes on top as a diamond. Filled where interval and
        adjusted p both show a difference, open elsewhere.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If it is no comparison.
    """
    if not hasattr(comparison, "ranking"):
        raise refuse_kind("comparison", comparison, "what segiou.compare gives")
    found = comparison.pairs[pair]
    classes = [c for c in found.classes if not np.isnan(c.delta)]
    classes = sorted(classes, key=lambda c: -abs(c.delta))[:limit]
    rows = [found.overall, *sorted(classes, key=lambda c: -c.delta)]
    with drawing(ax, _height(len(rows)) + 0.1) as axes:
        axes.axvline(0, color="black", linewidth=0.7)
        for place, row in enumerate(rows):
            sure = row.differs(comparison.level)
            axes.hlines(place, row.low, row.high, color=IOU if sure else MUTED, linewidth=1.2)
            axes.plot(
                [row.delta],
                [place],
                "D" if place == 0 else "o",
                markersize=4.4 if place == 0 else 3.8,
                color=IOU if sure else "white",
                markeredgecolor=IOU if sure else MUTED,
            )
        name_rows(axes, [row.name for row in rows])
        axes.set_xlabel(
            f"difference of {metric_label(comparison.metric)}, points\n"
            f"← {_brief(found.a)} better    {_brief(found.b)} better →",
            parse_math=False,
        )
        ends = [abs(end) for row in rows for end in (row.delta, row.low, row.high)]
        reach = 1.06 * float(np.nanmax([1e-3, *ends]))
        axes.set_xlim(-reach, reach)
        points = require("matplotlib.ticker").FuncFormatter(lambda value, _: f"{100 * value:g}")
        axes.xaxis.set_major_formatter(points)
        axes.grid(visible=True, axis="x")
        axes.spines["left"].set_visible(False)
        if len(rows) > 1:
            axes.axhline(0.5, color=MUTED, linewidth=0.5)
    return axes


def _brief(name: str) -> str:
    """What fits: a run is named by a path unless it was named."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return last if len(last) <= 14 else f"{last[:13]}…"
