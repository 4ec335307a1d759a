"""Plots of images and cases: distributions of scores, and agreement of volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from segiou import metrics
from segiou._support.arguments import check_kind
from segiou._support.numbers import shown_change, with_unit
from segiou._support.text import did_you_mean, nouns
from segiou.measures.score_names import read_name
from segiou.metrics.per_image import image_means
from segiou.metrics.pixel_scores import OF_CLASSES, metric_label
from segiou.metrics.ratio import Floats
from segiou.plots.class_plots import count_note, height_of
from segiou.plots.score_axis import ScoreAxis
from segiou.plots.style import (
    IOU,
    MUTED,
    Look,
    NothingToDraw,
    drawing,
    ink,
    label_x,
    legend_above,
    name_rows,
    paper,
    plot_kind,
    report_of,
    require,
    short_name,
)
from segiou.report.pages.distance_pictures import cases_of, values_of_cases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from segiou.counting.counts import Counts
    from segiou.report.report import Report


class _OfImages(NamedTuple):
    """A score of each image."""

    axis: ScoreAxis
    """The axis of the score of a class."""
    names: tuple[str, ...]
    rows: Floats
    """(N, K); NaN in images whose truth lacks the class."""
    mean_title: str
    means: Floats
    """(N,)"""
    whole: float
    """The score of the data set."""


def _image_values(source: Any, metric: str) -> _OfImages:
    """A score of pixels or, of a run, of its measures in each image."""
    report = report_of(source)
    plans = getattr(source, "score_plans", {})
    choices = f"choose from {', '.join([*OF_CLASSES, *plans])}"
    try:
        named = read_name(metric, plans)
    except ValueError as error:
        msg = f"unknown metric {metric!r}; {choices}"
        raise ValueError(msg) from error
    name = named.score
    if named.row or name not in {*OF_CLASSES, *report.scores_by_name}:
        msg = f"unknown metric {metric!r}; {choices}"
        raise ValueError(msg)
    whole = report.scores_by_name[name].value
    if name in OF_CLASSES:
        counts, function = _counts_of_images(report), metrics.METRICS[name]
        rows = np.where(counts.truth > 0, function(counts), np.nan)
        means = image_means(counts, function, include=report.include)
        axis = ScoreAxis(metric_label(name))
        return _OfImages(axis, report.class_names, rows, f"mean {axis.title}", means, whole)
    if name not in plans:
        msg = f"values of {metric!r} in each image are not available; {choices}, or plot the Run"
        raise NothingToDraw(msg)
    score = plans[name].scores[name]
    values = source._table().values_of(name)
    axis = ScoreAxis(score.title.removeprefix("median "), score.unit, score.better)
    return _OfImages(axis, score.names, values[:, 1:], score.image_title, values[:, 0], whole)


def _counts_of_images(report: Report) -> Counts:
    if report.per_image is None:
        msg = (
            "per-image counts are not available; score with segiou.score or segiou.score_folder "
            "and plot the Run"
        )
        raise NothingToDraw(msg)
    return report.per_image


@plot_kind
def image_distribution(
    source: Any,
    *,
    metric: str = "iou",
    bins: int = 20,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw a histogram of the mean IoU, or another score, of individual images.

    Parameters
    ----------
    source : Report or Run
        Source of the scores, with per-image counts.
    metric : str
        Score to draw, as for :func:`class_boxes`.
    bins : int
        Number of bins, of ratios between 0 and 1.
    color, title, figsize, ax
        As for :func:`class_bars`.

    Raises
    ------
    ValueError
        If per-image counts are not available, or no image has a score.
    """
    scored = _image_values(source, metric)
    unit = report_of(source).unit
    axis = scored.axis.per_image(unit, scored.mean_title)
    known = scored.means[~np.isnan(scored.means)]
    scores = known[np.isfinite(known)]
    if not scores.size:
        msg = "no image has a finite score, so nothing can be drawn"
        raise NothingToDraw(msg)
    infinite = known.size - scores.size
    with drawing(1.9, **look) as axes:
        note = f"\n(without {infinite} infinite)" if infinite else ""
        axis.show(axes, scores, note, whole=True)
        ends = axes.get_xlim()
        axes.hist(scores, bins, range=ends, color=color, edgecolor=paper(axes), linewidth=0.6)
        line: dict[str, Any] = {"color": ink(axes), "linewidth": 0.9}
        axes.axvline(float(scores.mean()), label=f"mean over {nouns(unit)[1]}s", **line)
        if ends[0] <= scored.whole <= ends[1]:
            axes.axvline(scored.whole, label="data set", linestyle=(0, (3, 2)), **line)
        axes.set_xlim(ends)
        axes.set_ylabel(f"{nouns(unit)[1]}s")
        axes.yaxis.set_major_locator(require("matplotlib.ticker").MaxNLocator(integer=True))
        legend_above(axes, 2)
    return axes


@plot_kind
def class_boxes(
    source: Any,
    *,
    metric: str = "iou",
    limit: int = 40,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw the distribution of a class score over images, the worst median on top.

    The box of a class covers the images whose truth contains it; ``limit`` keeps
    the worst medians.

    Parameters
    ----------
    source : Report or Run
        Source of the scores, with per-image counts.
    metric : str
        A score of classes; scores of measures require a run.
    limit, color, title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        Boxes from the first to the third quartile with a line at the median. Whiskers extend to
        the last image within 1.5 box lengths; dots are images beyond. The number of images
        with a finite value follows the class name, and that of infinite values.

    Raises
    ------
    ValueError
        If the metric is unknown, per-image counts are not available, or no class
        has a score in any image.
    """
    scored = _image_values(source, metric)
    every: _Cases = {}
    for name, column in zip(scored.names, scored.rows.T, strict=True):
        known = column[~np.isnan(column)]
        finite = known[np.isfinite(known)]
        every[name] = finite, known.size - finite.size
    axis = scored.axis.per_image(report_of(source).unit)
    if not any(values.size for values, _ in every.values()):
        msg = f"no class has a defined {metric} in any image, so nothing can be drawn"
        raise NothingToDraw(msg)
    return _boxes(axis, every, limit, color, look)


#: By row: the finite values, and the number of images or cases without one.
_Cases = dict[str, tuple[Floats, int]]


def _boxes(axis: ScoreAxis, cases: _Cases, limit: int, color: Any, look: Look) -> Axes:
    """Draw a box per row with a case, the worst median on top."""
    every = [(name, *row) for name, row in cases.items() if row[0].size or row[1]]
    # A row without any finite value is the worst.
    medians = [axis.worst_first(np.median(v)) if v.size else -np.inf for _, v, _ in every]
    shown = [every[k] for k in np.argsort(medians, kind="stable")][:limit]
    with drawing(height_of(len(shown)), **look) as axes:
        draw_boxes(axes, [values for _, values, _ in shown], color)
        texts = [f" ({v.size}{f', {lost} without' if lost else ''})" for _, v, lost in shown]
        name_rows(axes, [name for name, _, _ in shown], texts)
        axis.show(
            axes,
            np.concatenate([values for _, values, _ in shown]),
            count_note(len(shown), len(every), axis.worst),
        )
    return axes


def draw_boxes(axes: Axes, columns: list[Floats], color: Any) -> None:
    """Draw a horizontal box for each list of values; none for an empty one."""
    places = [place for place, values in enumerate(columns) if values.size]
    boxes = require("matplotlib.cbook").boxplot_stats([columns[place] for place in places])
    for place, box in zip(places, boxes, strict=True):
        low, high = box["q1"], box["q3"]
        axes.hlines(place, box["whislo"], box["whishi"], color=MUTED, linewidth=1)
        axes.barh(place, high - low, left=low, height=0.6, color=paper(axes), edgecolor=color)
        axes.vlines(box["med"], place - 0.3, place + 0.3, color=color, linewidth=1.8)
        axes.plot(box["fliers"], [place] * len(box["fliers"]), ".", color=MUTED, markersize=2.5)


@plot_kind
def distance_boxes(
    source: Any,
    *,
    measure: str = "",
    limit: int = 40,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw the distribution of a surface measure over cases, the worst median on top.

    If there are more structures than ``limit``, those with the worst medians are
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
    check_kind("measure", measure, str, "the name of a surface measure")
    report = report_of(source)
    scored = cases_of(report)
    if scored is None:
        msg = "surfaces were not measured; score with surfaces=True (--surface segiou)"
        raise NothingToDraw(msg)
    cases = values_of_cases(scored, measure)
    if not any(values.size for values, _ in cases.values()):
        msg = "no structure has a value in any case, so nothing can be drawn"
        raise NothingToDraw(msg)
    measure = measure or scored.first
    unit = report.score_unit(measure)
    column = report.scores_by_name.get(measure)
    title = column.title.removeprefix("median ") if column else measure.replace("_", " ")
    axis = ScoreAxis(title, unit, "lower" if unit else "higher")
    return _boxes(axis, cases, limit, color, look)


@plot_kind
def bland_altman(
    source: Any, structure: str = "", *, color: Any = IOU, **look: Unpack[Look]
) -> Axes:
    """Draw the difference of predicted and true volume against their mean, one point per case.

    Parameters
    ----------
    source : Report or Run
        Source of the volumes, with the measure ``volume``.
    structure : str
        The structure; by default the first that at least two cases have.
    color, title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        A solid line is the bias, dashed lines are the limits of agreement, and bars at the
        right are their confidence intervals.

    Raises
    ------
    ValueError
        If volumes were not measured, the structure is unknown, or fewer than two cases have it.
    """
    if (table := report_of(source).table("volume")) is None:
        msg = "volumes were not measured; score with measures=['volume'] (--volume)"
        raise NothingToDraw(msg)
    data: Any = table.to_dict()["volume"]
    agreement = data["agreement"]
    check_kind("structure", structure, str, "the name of a structure")
    if structure and structure not in agreement:
        hint = did_you_mean(structure, agreement) or f"; choose from {', '.join(agreement)}"
        msg = f"unknown structure {structure!r}{hint}"
        raise ValueError(msg)
    name = structure or next(
        (name for name, limits in agreement.items() if limits["cases"] > 1), ""
    )
    if not name or agreement[name]["cases"] < 2:
        msg = "limits of agreement need at least two cases with the structure"
        raise NothingToDraw(msg)
    rows = [row for row in data["cases"] if row["label"] == name and (row["truth"] or row["pred"])]
    with drawing(2.6, **look) as axes:
        axes.margins(x=0.12)
        means = [(row["truth"] + row["pred"]) / 2 for row in rows]
        axes.plot(means, [row["pred"] - row["truth"] for row in rows], "o", color=color, ms=3)
        _draw_limits(axes, agreement[name], data["unit"])
        if not agreement[name]["sd"]:  # else rounding errors would be the unit of the axis
            axes.set_ylim(agreement[name]["bias"] - 1, agreement[name]["bias"] + 1)
        noun = data["title"].lower().removesuffix("s")
        label_x(axes, with_unit(f"mean {noun} of {short_name(name, 24)}", data["unit"]), "")
        axes.set_ylabel(with_unit("prediction − truth", data["unit"]))
    return axes


def _draw_limits(axes: Axes, agreement: Any, unit: str) -> None:
    """Draw bias and limits with their intervals, and write their values."""
    places: tuple[tuple[str, float], ...] = (("low", 0.94), ("bias", 0.96), ("high", 0.98))
    if agreement["low"] == agreement["high"]:  # equal to the bias
        places = (("bias", 0.96),)
    for key, place in places:
        value, ends = agreement[key], agreement[f"{key}_interval"]
        dashes: Any = "-" if key == "bias" else (0, (4, 2))
        axes.axhline(value, color=ink(axes), linewidth=0.9, linestyle=dashes)
        bar: Any = {"transform": axes.get_yaxis_transform(), "color": MUTED}
        axes.errorbar([place], [value], [[value - ends[0]], [ends[1] - value]], capsize=2, **bar)
        axes.annotate(
            shown_change(value, unit),
            (1, value),
            xycoords=("axes fraction", "data"),
            xytext=(2, 0),
            textcoords="offset points",
            va="center",
            fontsize=6,
        )
