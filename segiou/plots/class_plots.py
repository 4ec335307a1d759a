"""Plots of class scores: bars, dumbbells and prevalence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from segiou._support.arguments import refuse_kind
from segiou._support.numbers import COUNT, NUMBER, shown
from segiou._support.text import nouns
from segiou.measures.score import MEAN
from segiou.plots.score_axis import ScoreAxis, mark_special
from segiou.plots.style import (
    IOU,
    MUTED,
    OTHER,
    Look,
    NothingToDraw,
    class_index,
    drawing,
    format_percent,
    ink,
    label_x,
    legend_above,
    mark_point,
    name_rows,
    paper,
    plot_kind,
    report_of,
    short_name,
)
from segiou.report.class_table import column_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from segiou.inference.intervals import Intervals
    from segiou.measures.score_values import ScoreValues
    from segiou.report.class_table import ClassRow
    from segiou.report.report import Report


_ROW = 0.165


def _defined(report: Report, metric: str) -> list[ClassRow]:
    rows = [row for row in report.classes if not np.isnan(row.values[metric])]
    if not rows:
        msg = f"no class has a defined {metric}, so nothing can be drawn"
        raise NothingToDraw(msg)
    return rows


def height_of(rows: float) -> float:
    """Height in inches of a chart with this many rows."""
    return 0.75 + _ROW * rows


@plot_kind
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
    if intervals is not None and not hasattr(intervals, "metric"):
        raise refuse_kind("intervals", intervals, "a result of run.intervals(metric)")
    if intervals is not None and intervals.metric != column.name:
        msg = f"the intervals are for {intervals.metric!r}, but metric is {column.name!r}"
        raise ValueError(msg)
    if intervals is None and (report.intervals is not None or column.limits):
        intervals = report.intervals_of(column.name)
    axis = axis_of(column)
    name = column.name
    drawn = _defined(report, name)
    every = sorted(drawn, key=lambda row: axis.worst_first(float(row.values[name])))
    rows = every[:limit]
    values = np.array([row.values[name] for row in rows], dtype=float)
    # Counts have a sum instead.
    mean = np.nan if column.unit == COUNT else column.means[0]
    with drawing(height_of(len(rows)), **look) as axes:
        widths = np.where(np.isfinite(values), values, 0)
        axes.barh(range(len(rows)), widths, height=0.68, color=color, label=column.title)
        ends = [] if intervals is None else _whiskers(axes, rows, values, intervals)
        mark_special(axes, range(len(rows)), values)
        if np.isfinite(mean):
            line: Any = {"linestyle": (0, (3, 2)), "linewidth": 0.8, "label": column.overall}
            axes.axvline(mean, color=ink(axes), **line)
        name_rows(axes, [row.name for row in rows])
        note = mean_note(mean, column.overall) + count_note(len(rows), len(every), axis.worst)
        axis.show(axes, [*values, mean, *ends], note)
    return axes


def axis_of(column: ScoreValues) -> ScoreAxis:
    """The axis of a column."""
    return ScoreAxis(column.title, column.unit, column.better)


def mean_note(mean: float, name: str = MEAN) -> str:
    """The part of an axis label that describes the overall value."""
    if np.isnan(mean):
        return ""
    return f", dashed: {name}" if np.isfinite(mean) else f", {name}: {shown(mean, NUMBER)}"


def count_note(drawn: int, total: int, which: str, rows: str = "classes") -> str:
    """How many of the rows are drawn, on another line of a label; empty if all are."""
    return f"\n({drawn} {which} of {total} {rows})" if drawn < total else ""


def score_column(report: Report, metric: str) -> ScoreValues:
    """The column of a score of classes with its mean, by any name of the score."""
    try:
        column = column_named(report.class_table, metric)
    except ValueError as error:
        known = [column.name for column in report.class_table.columns if column.means]
        msg = f"unknown metric {metric!r}; choose from {', '.join(known)}"
        raise ValueError(msg) from error
    if not column.means:
        msg = f"{metric!r} has no mean; choose another score"
        raise ValueError(msg)
    return column


def _whiskers(
    axes: Axes, rows: list[ClassRow], values: Any, intervals: Iterable[Any]
) -> list[float]:
    """Draw the intervals of finite values; the limits that are finite."""
    ends = {interval.name: (interval.low, interval.high) for interval in intervals}
    limits = np.array([ends.get(row.name, (np.nan, np.nan)) for row in rows])
    known = np.flatnonzero(np.isfinite(values) & ~np.isnan(limits[:, 0]))
    middle, limits = values[known], limits[known]
    finite = limits[np.isfinite(limits)]
    # Lines to infinity end outside the axis.
    far = 2 * float(np.max(np.abs([*values[np.isfinite(values)], *finite, 1])))
    low, high = np.clip(limits, -far, far).T
    # A percentile interval may not contain the value.
    lengths = np.maximum(0, [middle - low, high - middle])
    axes.errorbar(
        middle, known, xerr=lengths, fmt="none", ecolor=ink(axes), elinewidth=0.8, capsize=1.6
    )
    return [float(end) for end in finite]


@plot_kind
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
    shown = sorted(every, key=lambda item: -abs(item[2] - item[1]))[:limit]
    shown.sort(key=lambda item: -item[0].share)
    rows, first, second = (list(column) for column in zip(*shown, strict=True))
    places = range(len(rows))
    # At 0 and 1, half of a dot is outside the axes.
    dots: dict[str, Any] = {"s": 17, "clip_on": False}
    with drawing(height_of(len(rows)) + 0.2, **look) as axes:
        axes.hlines(places, second, first, color=MUTED, linewidth=1.1, zorder=1)
        is_open: Any = {"facecolor": paper(axes), "edgecolor": OTHER, "linewidth": 1.1}
        axes.scatter(first, places, label=labels[0], zorder=2, **dots, **is_open)
        axes.scatter(second, places, label=labels[1], zorder=3, **dots, color=color)
        name_rows(axes, [row.name for row in rows])
        ScoreAxis("score").show(
            axes, [*first, *second], count_note(len(rows), len(every), "widest")
        )
        legend_above(axes, 2, handletextpad=0.2)
    return axes


@plot_kind
def prevalence_curve(
    source: Any,
    class_name: str | None = None,
    *,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw the scores of the same model if one class were rarer or more frequent.

    Confusion rates stay constant; see :func:`segiou.analysis.gap.baselines.prevalence_curve`.

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
        If the class is unknown, not in the truth or the only one there, or the classes
        are overlapping channels.
    """
    from segiou.analysis.gap.baselines import prevalence_curve as curve_of

    report = report_of(source)
    index = _class_of_matrix(report, class_name)
    row = report.classes[index]
    # Up to a half, or to the class itself if it is more frequent.
    shares = np.geomspace(min(1e-4, row.share / 2), max(0.5, row.share), 81)
    curve = curve_of(report.tally, index, shares, include=report.include)
    with drawing(2.1, **look) as axes:
        axes.plot(
            shares, curve.pixel_accuracy, color=OTHER, label=f"{nouns(report.unit).pixel} accuracy"
        )
        axes.plot(shares, curve.iou, color=color, linewidth=1.8, label="class IoU")
        axes.plot(shares, curve.mean_iou, color=MUTED, linestyle=(0, (4, 2)), label="mean IoU")
        mark_point(axes, row.share, row.iou, color)
        axes.set_xscale("log")
        axes.set_ylim(0, 1.02)
        format_percent(axes.xaxis)
        format_percent(axes.yaxis)
        label_x(axes, f"share of {short_name(row.name, 20)} in the truth", " (dot: actual)")
        axes.set_ylabel("score")
        axes.grid(visible=True, axis="y")
        legend_above(axes, 3, handlelength=1.5, columnspacing=1.0)
    return axes


def _class_of_matrix(report: Report, class_name: str | None) -> int:
    """The index of a class, or of the rarest one; NothingToDraw if its share cannot change."""
    if class_name is None:
        in_truth = [row for row in _defined(report, "recall") if row.share > 0]
        class_name = min(in_truth, key=lambda row: row.share).name
    index = class_index(report.class_names, class_name)
    if not report.has_matrix:
        msg = "a prevalence curve requires exclusive classes, not overlapping channels"
        raise NothingToDraw(msg)
    pixels = report.tally.counts.truth
    if not pixels[index]:
        msg = f"class {class_name!r} is not in the truth, so nothing can be drawn"
        raise NothingToDraw(msg)
    if pixels[index] == pixels.sum():
        msg = f"class {class_name!r} is the only one in the truth, so its share cannot change"
        raise NothingToDraw(msg)
    return index


@plot_kind
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
    if (table := report.table("boundaries")) is None:
        msg = "boundaries were not measured; score with boundary=True (--boundary)"
        raise NothingToDraw(msg)
    measured = table.columns[0]
    pairs = zip(report.classes, measured.values, strict=True)
    every = [(row, row.iou, value) for row, value in pairs if not np.isnan([row.iou, value]).any()]
    return _dumbbells(every, ("IoU", measured.title), limit, color, look)
