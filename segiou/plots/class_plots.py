"""Plots of classes: scores, prevalence, boundaries, images, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from segiou import metrics
from segiou._support.text import short_count
from segiou.analysis.statistics import metric_label
from segiou.metrics.per_image import image_means
from segiou.metrics.ratio import Floats, ratio
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
    short_name,
)
from segiou.report.measured import first_distance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from segiou.analysis.bootstrapping import Intervals
    from segiou.counting.counts import Counts
    from segiou.report.report import ClassRow, Report


#: Scores of a class that are drawn.
METRICS = ("iou", "dice", "precision", "recall")
_ROW = 0.165


def _defined(report: Report, metric: str) -> list[ClassRow]:
    rows = [row for row in report.classes if not np.isnan(getattr(row, metric))]
    if not rows:
        msg = f"no class has a defined {metric}, so there is nothing to draw"
        raise ValueError(msg)
    return rows


def height_of(rows: float) -> float:
    """Inches of a chart with so many rows of classes."""
    return 0.75 + _ROW * rows


def check_metric(metric: str) -> None:
    """Refuse what is no score of a class that is drawn."""
    if metric not in METRICS:
        msg = f"no metric {metric!r} to draw; there are {', '.join(METRICS)}"
        raise ValueError(msg)


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
        What has scores of classes: a run, report or confusion matrix.
    metric : {"iou", "dice", "precision", "recall"}
        Function of counts.
    intervals : Intervals, optional
        Bootstrap intervals of the same metric; those of the report by default.
    limit : int
        Classes to draw, at most: the lowest.
    ax : Axes, optional
        Axes to draw into; new ones by default.

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
    check_metric(metric)
    if intervals is None and report.intervals is not None and report.intervals.metric == metric:
        intervals = report.intervals
    if intervals is not None and intervals.metric != metric:
        msg = f"the intervals are of {intervals.metric!r}, not of {metric!r}"
        raise ValueError(msg)
    every = sorted(_defined(report, metric), key=lambda row: float(getattr(row, metric)))
    rows = every[:limit]
    values = np.array([getattr(row, metric) for row in rows])
    label = metric_label(metric)
    with drawing(ax, height_of(len(rows))) as axes:
        axes.barh(range(len(rows)), values, height=0.68, color=IOU, label=label)
        if intervals is not None:
            _whiskers(axes, rows, values, intervals)
        values_of_all = np.array([getattr(row, metric) for row in report.classes])
        mean = float(metrics.mean(values_of_all, report.include))
        axes.axvline(mean, color="black", linestyle=(0, (3, 2)), linewidth=0.8, label="mean")
        name_rows(axes, [row.name for row in rows])
        scale(axes, f"{label}, dashed: mean", len(rows), len(every), "lowest")
    return axes


def _whiskers(axes: Axes, rows: list[ClassRow], values: Any, intervals: Iterable[Any]) -> None:
    ends = {found.name: (found.low, found.high) for found in intervals}
    limits = np.array([ends.get(row.name, (np.nan, np.nan)) for row in rows])
    known = np.flatnonzero(~np.isnan(limits[:, 0]))
    middle, (low, high) = values[known], limits[known].T
    # A percentile interval need not hold the value itself.
    lengths = np.maximum(0, [middle - low, high - middle])
    axes.errorbar(
        middle, known, xerr=lengths, fmt="none", ecolor="black", elinewidth=0.8, capsize=1.6
    )


def scale(axes: Axes, label: str, shown: int, total: int, which: str) -> None:
    """An axis of scores, and how many of the classes are shown."""
    axes.set_xlim(0, 1)
    in_percent(axes.xaxis)
    left_out = f"\n(the {shown} {which} of {total} classes)" if shown < total else ""
    axes.set_xlabel(f"{label}{left_out}")


def accuracy_against_iou(source: Any, *, limit: int = 40, ax: Axes | None = None) -> Axes:
    """Draw accuracy and IoU of each class, the most frequent class on top.

    The accuracy of a class is its recall. The line between the two is what
    false positives cost.

    Parameters
    ----------
    source : Report, Run or ConfusionMatrix
        What has scores of classes: a run, report or confusion matrix.
    limit : int
        Classes to draw, at most: those with the longest lines.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If no class is in the truth.
    """
    every = _defined(report_of(source), "recall")
    pairs = [(row, row.recall, row.iou) for row in every]
    return _dumbbells(pairs, ("accuracy", "IoU"), limit, ax)


def _dumbbells(
    every: list[tuple[ClassRow, float, float]], labels: tuple[str, str], limit: int, ax: Axes | None
) -> Axes:
    """Draw two scores of each class and the line between them, the most frequent class on top."""
    if not every:
        msg = f"no class has both {labels[0]} and {labels[1]}, so there is nothing to draw"
        raise ValueError(msg)
    shown = sorted(every, key=lambda item: item[2] - item[1])[:limit]
    shown.sort(key=lambda item: -item[0].share)
    rows, first, second = (list(column) for column in zip(*shown, strict=True))
    places = range(len(rows))
    is_open: dict[str, Any] = {"facecolor": "white", "edgecolor": OTHER, "linewidth": 1.1}
    # At 0 and 1 half a dot lies beyond the axes.
    dots: dict[str, Any] = {"s": 17, "clip_on": False}
    with drawing(ax, height_of(len(rows)) + 0.2) as axes:
        axes.hlines(places, second, first, color=MUTED, linewidth=1.1, zorder=1)
        axes.scatter(first, places, label=labels[0], zorder=2, **dots, **is_open)
        axes.scatter(second, places, label=labels[1], zorder=3, **dots, color=IOU)
        name_rows(axes, [row.name for row in rows])
        scale(axes, "score", len(rows), len(every), "widest")
        legend_above(axes, 2, handletextpad=0.2)
    return axes


def prevalence_curve(source: Any, class_name: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw what the same model would score if one class were rarer or more frequent.

    Confusion rates are held; see :func:`segiou.analysis.baselines.prevalence_curve`.

    Parameters
    ----------
    source : Report, Run or ConfusionMatrix
        What has scores of classes: a run, report or confusion matrix.
    class_name : str, optional
        The rarest class of the truth by default.
    ax : Axes, optional
        Axes to draw into; new ones by default.

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
    from segiou.analysis.baselines import prevalence_curve as curve_of

    report = report_of(source)
    if class_name is None:
        in_truth = [row for row in _defined(report, "recall") if row.share > 0]
        class_name = min(in_truth, key=lambda row: row.share).name
    if class_name not in report.class_names:
        msg = f"no class {class_name!r}; there are {', '.join(report.class_names[:12])}"
        raise ValueError(msg)
    if not report.has_matrix:
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
        axes.set_xlabel(
            f"share of {short_name(class_name, 20)} in the truth, dot: here", parse_math=False
        )
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
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the counts of images were not kept, or none has a score.
    """
    report = report_of(source)
    scores = image_means(_of_images(report), include=report.include)
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


def _of_images(report: Report) -> Counts:
    if report.per_image is None:
        msg = (
            "the counts of images were not kept; score with segiou.score or segiou.score_folder, "
            "and draw the Run"
        )
        raise ValueError(msg)
    return report.per_image


def class_boxes(
    source: Any, *, metric: str = "iou", limit: int = 40, ax: Axes | None = None
) -> Axes:
    """Draw how a score of each class is spread over images, the lowest median on top.

    Of each class, the images whose truth has it and that have a value.

    Parameters
    ----------
    source : Report or Run
        One that kept the counts of its images.
    metric : {"iou", "dice", "precision", "recall"}
        Function of counts.
    limit : int
        Classes to draw, at most: those with the lowest medians.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes
        A box from the first quartile to the third and a line at the median; whiskers reach the
        last image within 1.5 times the length of the box, and dots are images beyond. Behind the
        name of a class, how many images have it.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If there is no such metric, the counts of images were not kept, or no
        class has a score in any.
    """
    report = report_of(source)
    check_metric(metric)
    counts = _of_images(report)
    scores = np.where(counts.truth > 0, metrics.METRICS[metric](counts), np.nan)
    columns = zip(report.class_names, scores.T, strict=True)
    every = [(name, values[~np.isnan(values)]) for name, values in columns]
    every = [(name, values) for name, values in every if values.size]
    if not every:
        msg = f"no class has a defined {metric} in any image, so there is nothing to draw"
        raise ValueError(msg)
    every.sort(key=lambda item: float(np.median(item[1])))
    shown = every[:limit]
    with drawing(ax, height_of(len(shown))) as axes:
        _draw_boxes(axes, [values for _, values in shown])
        name_rows(axes, [f"{short_name(name, 17)} ({values.size})" for name, values in shown])
        label = f"{metric_label(metric)} of the class in an image"
        scale(axes, label, len(shown), len(every), "lowest")
    return axes


def _draw_boxes(axes: Axes, columns: list[Floats]) -> None:
    """A box for each column of values, in rows."""
    for place, box in enumerate(require("matplotlib.cbook").boxplot_stats(columns)):
        low, high = box["q1"], box["q3"]
        axes.hlines(place, box["whislo"], box["whishi"], color=MUTED, linewidth=1)
        axes.barh(place, high - low, left=low, height=0.6, color="white", edgecolor=IOU)
        axes.vlines(box["med"], place - 0.3, place + 0.3, color=IOU, linewidth=1.8)
        axes.plot(box["fliers"], [place] * len(box["fliers"]), ".", color=MUTED, markersize=2.5)


def distance_boxes(
    source: Any, *, measure: str = "", limit: int = 40, ax: Axes | None = None
) -> Axes:
    """Draw how a distance between surfaces is spread over cases, the largest median on top.

    Parameters
    ----------
    source : Report or Run
        One that measured surfaces.
    measure : str
        As of :meth:`segiou.report.Report.surface_values`: by default the first
        percentile of the distances, such as ``"hausdorff_95"``.
    limit : int
        Structures to draw, at most: those with the largest medians.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes
        A box as of :func:`class_boxes`. Behind the name of a structure, in how many cases it has
        a value, and in how many it is missed or invented and has none.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If surfaces or this measure were not measured, or no structure has a value in any case.
    """
    report = report_of(source)
    if report.surface_plan is None:
        msg = "surfaces were not measured; score with surfaces=True (--surface segiou)"
        raise ValueError(msg)
    found = report.surface_values(measure)
    every = [(name, *of_cases) for name, of_cases in found.items() if of_cases[0].size]
    if not every:
        msg = "no structure has a distance in any case, so there is nothing to draw"
        raise ValueError(msg)
    every.sort(key=lambda item: -float(np.median(item[1])))
    shown = every[:limit]
    measure = measure or first_distance(report.surfaces[0])
    is_distance = measure.startswith(("hausdorff", "average_surface_distance"))
    unit = report.surface_plan["unit"] if is_distance else ""
    with drawing(ax, height_of(len(shown))) as axes:
        _draw_boxes(axes, [values for _, values, _ in shown])
        names = [
            f"{short_name(name, 15)} ({values.size}{f', {lost} without' if lost else ''})"
            for name, values, lost in shown
        ]
        name_rows(axes, names)
        axes.set_xlim(left=0)
        short = measure.replace("hausdorff_", "HD").replace("_", " ")
        axes.set_xlabel(", ".join(filter(None, (short, unit))))
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
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes

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
    return _dumbbells(every, labels, limit, ax)


_TEXTS = 12
_NAMED = 40
#: What stands in the cells of a matrix, by what its shares are of.
_SHARES = {"truth": "share of truth", "pred": "share of prediction", None: "pixels"}


def confusion_matrix(
    source: Any, *, normalize: Literal["truth", "pred"] | None = "truth", ax: Axes | None = None
) -> Axes:
    """Draw the confusion matrix; rows are truth.

    Parameters
    ----------
    source : Report, Run or ConfusionMatrix
        What has scores of classes: a run, report or confusion matrix.
    normalize : {"truth", "pred"}, optional
        Shares of each row (the diagonal is recall), of each column (precision),
        or pixels on a logarithmic scale.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes
        Values stand in the cells up to 12 classes, names beside them up to 40.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If ``normalize`` is not one of its words, or the classes are channels
        that overlap and have no such matrix.
    """
    report = report_of(source)
    if not report.has_matrix:
        msg = "overlapping channels have no confusion matrix; draw class_bars instead"
        raise ValueError(msg)
    if normalize not in _SHARES:
        msg = f"normalize must be 'truth', 'pred' or None, got {normalize!r}"
        raise ValueError(msg)
    matrix = report.matrix
    wholes = {"truth": (matrix.sum(1) + report.unassigned)[:, None], "pred": matrix.sum(0)}
    values = ratio(matrix, wholes[normalize]) if normalize else matrix.astype(np.float64)
    num_classes = len(values)
    with drawing(ax, 3.3 if num_classes > 6 else 2.7) as axes:
        log = require("matplotlib.colors").LogNorm(1, max(2, np.nanmax(values, initial=2)))
        scale: dict[str, Any] = {"vmin": 0, "vmax": 1} if normalize else {"norm": log}
        shown = np.ma.masked_where(~(values > 0), values)
        image = axes.imshow(shown, cmap="Blues", interpolation="nearest", aspect="equal", **scale)
        _name(axes, report.class_names)
        if num_classes <= _TEXTS:
            _put_texts(axes, values, normalize)
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.045, pad=0.03)
        bar.set_label(_SHARES[normalize])
        if normalize:
            in_percent(bar.ax.yaxis)
        bar.outline.set_visible(False)
    return axes


def _name(axes: Axes, class_names: tuple[str, ...]) -> None:
    axes.set_xlabel("prediction")
    axes.set_ylabel("truth")
    axes.spines[:].set(visible=True, color="#d8d5cc")
    axes.tick_params(length=0)
    if len(class_names) > _NAMED:
        return
    names = [short_name(name) for name in class_names]
    places, size = range(len(names)), min(7.0, 190 / len(names))
    axes.set_xticks(places, names, rotation=90, fontsize=size, parse_math=False)
    axes.set_yticks(places, names, fontsize=size, parse_math=False)


def _put_texts(axes: Axes, values: Floats, normalize: str | None) -> None:
    top = float(np.nanmax(values, initial=1.0))
    for t, p in np.argwhere(values > 0).tolist():
        value = float(values[t, p])
        dark = value > 0.55 if normalize else np.log1p(value) > 0.6 * np.log1p(top)
        text = f"{100 * value:.0f}" if normalize else short_count(value)
        if text != "0":
            color = "white" if dark else "black"
            axes.text(p, t, text, ha="center", va="center", fontsize=5.5, color=color)


#: What can be drawn of a report, a run or a matrix.
KINDS: dict[str, Callable[..., Axes]] = {
    "confusion_matrix": confusion_matrix,
    "class_bars": class_bars,
    "accuracy_against_iou": accuracy_against_iou,
    "boundary_against_iou": boundary_against_iou,
    "prevalence_curve": prevalence_curve,
    "image_distribution": image_distribution,
    "class_boxes": class_boxes,
    "distance_boxes": distance_boxes,
}
