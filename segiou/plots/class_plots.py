"""Plots of class scores: bars, dumbbells, prevalence, and distributions over images and cases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from segiou import metrics
from segiou._support.text import with_unit
from segiou.measures.score_names import ScoreName, read_name
from segiou.metrics.per_image import image_means
from segiou.metrics.pixel_scores import OF_CLASSES, metric_label
from segiou.metrics.ratio import Floats
from segiou.plots.style import (
    IOU,
    MUTED,
    OTHER,
    Look,
    NothingToDraw,
    class_index,
    drawing,
    in_percent,
    legend_above,
    mark_point,
    name_rows,
    report_of,
    require,
    short_name,
)
from segiou.report.class_table import column_named
from segiou.report.distance_pictures import first_distance, values_of_cases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from segiou.analysis.intervals import Intervals
    from segiou.counting.counts import Counts
    from segiou.measures.score_table import Column
    from segiou.report.class_table import ClassRow
    from segiou.report.report import Report


_ROW = 0.165


def _defined(report: Report, metric: str) -> list[ClassRow]:
    rows = [row for row in report.classes if np.isfinite(row.values[metric])]
    if not rows:
        msg = f"no class has a defined {metric}, so nothing can be drawn"
        raise NothingToDraw(msg)
    return rows


def height_of(rows: float) -> float:
    """Height in inches of a chart with this many rows."""
    return 0.75 + _ROW * rows


def check_metric(metric: str) -> str:
    """The score of classes with this name; ValueError if it has none."""
    try:
        named = read_name(metric)
    except ValueError:
        named = ScoreName("")
    if named.score not in OF_CLASSES or named.row:
        msg = f"unknown metric {metric!r}; choose from {', '.join(OF_CLASSES)}"
        raise ValueError(msg)
    return named.score


def class_bars(
    source: Any,
    *,
    metric: str = "iou",
    intervals: Intervals | None = None,
    limit: int = 40,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw a score of each class as a bar, the lowest on top, with intervals if available.

    Parameters
    ----------
    source : Report, Run or ConfusionMatrix
        Source of the scores.
    metric : str
        Score to draw: any that has values of classes, also of a measure.
    intervals : Intervals, optional
        Intervals of the same metric; by default those of the report.
    limit : int
        Largest number of classes to draw; the lowest ones are kept.
    color : color, optional
        Colour of the score.
    title, figsize, ax : optional
        Title, size of a new figure in inches, and axes to draw into.

    Returns
    -------
    Axes
        Classes without a value are not drawn. The dashed line is the mean.

    Raises
    ------
    ValueError
        If the metric is unknown, no class has a value, or the intervals are of a
        different metric.
    """
    report = report_of(source)
    column = score_column(report, metric)
    if intervals is not None and intervals.metric != column.name:
        msg = f"the intervals are for {intervals.metric!r}, but metric is {column.name!r}"
        raise ValueError(msg)
    if intervals is None and (report.intervals is not None or column.limits):
        intervals = report.intervals_of(column.name)
    drawn = _defined(report, column.name)
    is_worse_high = column.better == "lower"
    every = sorted(drawn, key=lambda row: float(row.values[column.name]), reverse=is_worse_high)
    rows = every[:limit]
    values = np.array([row.values[column.name] for row in rows])
    label = column.title
    with drawing(height_of(len(rows)), **look) as axes:
        axes.barh(range(len(rows)), values, height=0.68, color=color, label=label)
        if intervals is not None:
            _whiskers(axes, rows, values, intervals)
        line: Any = {"linestyle": (0, (3, 2)), "linewidth": 0.8, "label": "mean"}
        axes.axvline(column.means[0], color="black", **line)
        name_rows(axes, [row.name for row in rows])
        about = (f"{label}, dashed: mean", len(rows), len(every))
        scale(axes, *about, "highest" if is_worse_high else "lowest", column.unit)
    return axes


def score_column(report: Report, metric: str) -> Column:
    """The column of a score of classes with its mean, by any name of the score."""
    try:
        column = column_named(report.class_table, metric)
    except ValueError as error:
        known = [one.name for one in report.class_table.columns if one.means]
        msg = f"unknown metric {metric!r}; choose from {', '.join(known)}"
        raise ValueError(msg) from error
    if not column.means:
        msg = f"{metric!r} has no mean; choose another score"
        raise ValueError(msg)
    return column


def _whiskers(axes: Axes, rows: list[ClassRow], values: Any, intervals: Iterable[Any]) -> None:
    ends = {interval.name: (interval.low, interval.high) for interval in intervals}
    limits = np.array([ends.get(row.name, (np.nan, np.nan)) for row in rows])
    known = np.flatnonzero(~np.isnan(limits[:, 0]))
    middle, (low, high) = values[known], limits[known].T
    # A percentile interval may not contain the value.
    lengths = np.maximum(0, [middle - low, high - middle])
    axes.errorbar(
        middle, known, xerr=lengths, fmt="none", ecolor="black", elinewidth=0.8, capsize=1.6
    )


def scale(axes: Axes, label: str, shown: int, total: int, which: str, unit: str = "") -> None:
    """Set up the axis of scores and state how many classes are shown."""
    if unit:
        label = with_unit(label, unit)
        axes.set_xlim(left=0)
    else:
        axes.set_xlim(0, 1)
        in_percent(axes.xaxis)
    left_out = f"\n({shown} {which} of {total} classes)" if shown < total else ""
    axes.set_xlabel(f"{label}{left_out}")


def accuracy_vs_iou(
    source: Any,
    *,
    limit: int = 40,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw accuracy and IoU of each class, the most frequent class on top.

    The accuracy of a class is its recall. The line between the two dots is the
    cost of false positives; ``limit`` keeps the longest lines.

    Parameters
    ----------
    source, limit, color, title, figsize, ax
        As for :func:`class_bars`.

    Raises
    ------
    ValueError
        If the truth contains no class.
    """
    every = _defined(report_of(source), "recall")
    pairs = [(row, row.recall, row.iou) for row in every]
    return _dumbbells(pairs, ("accuracy", "IoU"), limit, color, look)


def _dumbbells(
    every: list[tuple[ClassRow, float, float]],
    labels: tuple[str, str],
    limit: int,
    color: Any,
    look: Look,
) -> Axes:
    """Draw two scores of each class and the line between them, the most frequent class on top."""
    if not every:
        msg = f"no class has both {labels[0]} and {labels[1]}, so nothing can be drawn"
        raise NothingToDraw(msg)
    shown = sorted(every, key=lambda item: item[2] - item[1])[:limit]
    shown.sort(key=lambda item: -item[0].share)
    rows, first, second = (list(column) for column in zip(*shown, strict=True))
    places = range(len(rows))
    is_open: dict[str, Any] = {"facecolor": "white", "edgecolor": OTHER, "linewidth": 1.1}
    # At 0 and 1, half of a dot is outside the axes.
    dots: dict[str, Any] = {"s": 17, "clip_on": False}
    with drawing(height_of(len(rows)) + 0.2, **look) as axes:
        axes.hlines(places, second, first, color=MUTED, linewidth=1.1, zorder=1)
        axes.scatter(first, places, label=labels[0], zorder=2, **dots, **is_open)
        axes.scatter(second, places, label=labels[1], zorder=3, **dots, color=color)
        name_rows(axes, [row.name for row in rows])
        scale(axes, "score", len(rows), len(every), "widest")
        legend_above(axes, 2, handletextpad=0.2)
    return axes


def prevalence_curve(
    source: Any,
    class_name: str | None = None,
    *,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw the scores of the same model if one class were rarer or more frequent.

    Confusion rates stay constant; see :func:`segiou.analysis.baselines.prevalence_curve`.

    Parameters
    ----------
    source : Report, Run or ConfusionMatrix
        Source of the scores.
    class_name : str, optional
        By default the rarest class in the truth.
    color, title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        Scores against the share of the class, on a logarithmic axis, with a dot
        at its actual share.

    Raises
    ------
    ValueError
        If the class is unknown or not in the truth, or the classes are
        overlapping channels.
    """
    from segiou.analysis.baselines import prevalence_curve as curve_of

    report = report_of(source)
    index = _class_of_matrix(report, class_name)
    row = report.classes[index]
    low = np.log10(min(1e-4, row.share / 2)) if row.share > 0 else -4.0
    shares = np.logspace(low, np.log10(0.5), 81)
    curve = curve_of(report.tally, index, shares, include=report.include)
    with drawing(2.1, **look) as axes:
        axes.plot(shares, curve.pixel_accuracy, color=OTHER, label="pixel accuracy")
        axes.plot(shares, curve.iou, color=color, linewidth=1.8, label="class IoU")
        axes.plot(shares, curve.mean_iou, color=MUTED, linestyle=(0, (4, 2)), label="mean IoU")
        mark_point(axes, row.share, row.iou, color)
        axes.set_xscale("log")
        axes.set_ylim(0, 1.02)
        in_percent(axes.xaxis)
        in_percent(axes.yaxis)
        axes.set_xlabel(
            f"share of {short_name(row.name, 20)} in the truth (dot: actual)", parse_math=False
        )
        axes.set_ylabel("score")
        axes.grid(visible=True, axis="y")
        legend_above(axes, 3, handlelength=1.5, columnspacing=1.0)
    return axes


def _class_of_matrix(report: Report, class_name: str | None) -> int:
    """The index of a class, or of the rarest one; NothingToDraw for overlapping channels."""
    if class_name is None:
        in_truth = [row for row in _defined(report, "recall") if row.share > 0]
        class_name = min(in_truth, key=lambda row: row.share).name
    index = class_index(report.class_names, class_name)
    if not report.has_matrix:
        msg = "a prevalence curve requires exclusive classes, not overlapping channels"
        raise NothingToDraw(msg)
    return index


def image_distribution(
    source: Any,
    *,
    bins: int = 20,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw a histogram of the mean IoU of individual images.

    Parameters
    ----------
    source : Report or Run
        Source of the scores, with per-image counts.
    bins : int
        Number of bins between 0 and 1.
    color, title, figsize, ax
        As for :func:`class_bars`.

    Raises
    ------
    ValueError
        If per-image counts are not available, or no image has a score.
    """
    report = report_of(source)
    scores = image_means(_of_images(report), include=report.include)
    scores = scores[~np.isnan(scores)]
    if not scores.size:
        msg = "no image has a score, so nothing can be drawn"
        raise NothingToDraw(msg)
    with drawing(1.9, **look) as axes:
        axes.hist(scores, bins, range=(0, 1), color=color, edgecolor="white", linewidth=0.6)
        axes.axvline(float(scores.mean()), color="black", linewidth=0.9, label="mean over images")
        axes.axvline(
            report.mean_iou, color="black", linestyle=(0, (3, 2)), linewidth=0.9, label="data set"
        )
        axes.set_xlim(0, 1)
        in_percent(axes.xaxis)
        axes.set_xlabel("mean IoU per image")
        axes.set_ylabel("images")
        axes.yaxis.set_major_locator(require("matplotlib.ticker").MaxNLocator(integer=True))
        legend_above(axes, 2)
    return axes


def _of_images(report: Report) -> Counts:
    if report.per_image is None:
        msg = (
            "per-image counts are not available; score with segiou.score or segiou.score_folder "
            "and plot the Run"
        )
        raise NothingToDraw(msg)
    return report.per_image


def class_boxes(
    source: Any,
    *,
    metric: str = "iou",
    limit: int = 40,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw the distribution of a class score over images, the lowest median on top.

    The box of a class covers the images whose truth contains it; ``limit`` keeps
    the lowest medians.

    Parameters
    ----------
    source : Report or Run
        Source of the scores, with per-image counts.
    metric, limit, color, title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        Boxes from the first to the third quartile with a line at the median. Whiskers extend to
        the last image within 1.5 box lengths; dots are images beyond. The number of images
        follows the class name.

    Raises
    ------
    ValueError
        If the metric is unknown, per-image counts are not available, or no class
        has a score in any image.
    """
    report = report_of(source)
    metric = check_metric(metric)
    counts = _of_images(report)
    scores = np.where(counts.truth > 0, metrics.METRICS[metric](counts), np.nan)
    columns = zip(report.class_names, scores.T, strict=True)
    every = [(name, values[~np.isnan(values)]) for name, values in columns]
    every = [(name, values) for name, values in every if values.size]
    if not every:
        msg = f"no class has a defined {metric} in any image, so nothing can be drawn"
        raise NothingToDraw(msg)
    every.sort(key=lambda item: float(np.median(item[1])))
    shown = every[:limit]
    with drawing(height_of(len(shown)), **look) as axes:
        draw_boxes(axes, [values for _, values in shown], color)
        name_rows(axes, [f"{short_name(name, 17)} ({values.size})" for name, values in shown])
        label = f"{metric_label(metric)} per image"
        scale(axes, label, len(shown), len(every), "lowest")
    return axes


def draw_boxes(axes: Axes, columns: list[Floats], color: Any) -> None:
    """Draw a horizontal box for each list of values."""
    for place, box in enumerate(require("matplotlib.cbook").boxplot_stats(columns)):
        low, high = box["q1"], box["q3"]
        axes.hlines(place, box["whislo"], box["whishi"], color=MUTED, linewidth=1)
        axes.barh(place, high - low, left=low, height=0.6, color="white", edgecolor=color)
        axes.vlines(box["med"], place - 0.3, place + 0.3, color=color, linewidth=1.8)
        axes.plot(box["fliers"], [place] * len(box["fliers"]), ".", color=MUTED, markersize=2.5)


def distance_boxes(
    source: Any,
    *,
    measure: str = "",
    limit: int = 40,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw the distribution of a surface measure over cases, the largest median on top.

    If there are more structures than ``limit``, those with the largest medians are
    kept.

    Parameters
    ----------
    source : Report or Run
        Source of the scores, with surface measurements.
    measure : str
        Such as ``"hausdorff_95"``, ``"average_surface_distance"``, ``"dice"`` or
        ``"surface_dice_1"``; by default the first percentile of the distances.
    limit, color, title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        Boxes as in :func:`class_boxes`. The structure name is followed by the number of cases
        with a value, and of those without one (missed or false positive).

    Raises
    ------
    ValueError
        If surfaces or the measure are not available, or no structure has a value in any case.
    """
    report = report_of(source)
    measures: Any = report.measures
    if "surface_plan" not in measures:
        msg = "surfaces were not measured; score with surfaces=True (--surface segiou)"
        raise NothingToDraw(msg)
    by_structure = values_of_cases(report, measure)
    every = [(name, *of_cases) for name, of_cases in by_structure.items() if of_cases[0].size]
    if not every:
        msg = "no structure has a value in any case, so nothing can be drawn"
        raise NothingToDraw(msg)
    every.sort(key=lambda item: -float(np.median(item[1])))
    shown = every[:limit]
    measure = measure or first_distance(report)
    unit = measures["surface_plan"]["unit"] if report.score_unit(measure) else ""
    with drawing(height_of(len(shown)), **look) as axes:
        draw_boxes(axes, [values for _, values, _ in shown], color)
        names = [
            f"{short_name(name, 15)} ({values.size}{f', {lost} without' if lost else ''})"
            for name, values, lost in shown
        ]
        name_rows(axes, names)
        axes.set_xlim(left=0)
        short = measure.replace("hausdorff_", "HD").replace("_", " ")
        axes.set_xlabel(with_unit(short, unit))
    return axes


def boundary_vs_iou(
    source: Any,
    *,
    limit: int = 40,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw IoU and Boundary IoU of each class, the most frequent class on top.

    The line between the two dots is long for large objects with ragged edges;
    ``limit`` keeps the longest lines.

    Parameters
    ----------
    source : Report or Run
        Source of the scores, with boundary measurements.
    limit, color, title, figsize, ax
        As for :func:`class_bars`.

    Raises
    ------
    ValueError
        If boundaries were not measured, or no class has both scores.
    """
    report = report_of(source)
    tables = {table.key: table for table in report.tables}
    if "boundaries" not in tables:
        msg = "boundaries were not measured; score with boundary=True (--boundary)"
        raise NothingToDraw(msg)
    measured = tables["boundaries"].columns[0]
    pairs = zip(report.classes, measured.values, strict=True)
    every = [(row, row.iou, value) for row, value in pairs if not np.isnan([row.iou, value]).any()]
    return _dumbbells(every, ("IoU", measured.title), limit, color, look)
