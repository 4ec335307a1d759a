"""Charts with a row a class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou import metrics
from segiou.plots.style import IOU, MUTED, OTHER, drawing, name_rows, report_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from segiou.report import Report
    from segiou.report.rows import ClassRow
    from segiou.uncertainty import Intervals

__all__ = ["accuracy_against_iou", "class_bars", "dumbbells"]

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
    label = {"iou": "IoU"}.get(metric, metric.capitalize() if metric == "dice" else metric)
    with drawing(ax, _height(len(rows))) as axes:
        axes.barh(range(len(rows)), values, height=0.68, color=IOU, label=label)
        if intervals is not None:
            _whiskers(axes, rows, values, intervals)
        mean = _mean(report, metric)
        axes.axvline(mean, color="black", linestyle=(0, (3, 2)), linewidth=0.8, label="mean")
        name_rows(axes, [row.name for row in rows])
        _scale(axes, f"{label}, dashed: mean", len(rows), len(every), "lowest")
    return axes


def _mean(report: Report, metric: str) -> float:
    """Mean over the classes that means include and that have a value."""
    values = np.array([getattr(row, metric) for row in report.classes])
    return float(metrics.mean(values, report.include))


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
        axes.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, handletextpad=0.2, borderpad=0.1
        )
    return axes
