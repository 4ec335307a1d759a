"""Plots of score histograms: curves, scores at each threshold, and calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from segiou._support.arguments import read_several
from segiou.accumulators.histograms.score_counts import ScoreHistogram
from segiou.accumulators.histograms.threshold_curves import Curve
from segiou.inference.scored_runs import unit_of_pixels
from segiou.plots.class_plots import count_note
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
    paper,
    plot_kind,
    report_of,
    require,
    short_name,
    short_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Line styles of the classes, so that they also differ in black and white.
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1.5, 1.5, 1.5)))
#: More points than this are not distinguishable in a column.
_POINTS = 1000


def histogram_of(source: Any) -> ScoreHistogram:
    """The score histograms of a run or report; histograms are returned unchanged."""
    if isinstance(source, ScoreHistogram):
        return source
    for table in report_of(source).tables:
        if table.histogram is not None:
            return table.histogram
    msg = "no scores were counted; score with measures=['scores'] (--scores)"
    raise NothingToDraw(msg)


@plot_kind
def pr_curve(
    source: Any,
    class_names: str | Sequence[str] | None = None,
    *,
    limit: int = 6,
    cmap: Any = "viridis",
    **look: Unpack[Look],
) -> Axes:
    """Draw precision against recall, with the average precision (AP) of each class.

    Parameters
    ----------
    source : ScoreHistogram, Report or Run
        Source of the scores; runs and reports need the measure ``scores``.
    class_names : str or sequence of str, optional
        Classes to draw; by default the ``limit`` with the lowest average precision.
    limit : int
        Largest number of classes to draw if none are named.
    cmap : str or Colormap
        Colour map from which the colours of the classes are taken.
    title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        One line per class; a dot marks the threshold with the best IoU.

    Raises
    ------
    ValueError
        If scores were not counted, a class is unknown, or no class has a curve.
    """
    histogram = histogram_of(source)
    values = histogram.average_precision()
    chosen, note = _chosen(histogram, class_names, values, limit)
    with drawing(2.6, **look) as axes:
        _curves(axes, histogram, chosen, (values, "AP"), histogram.pr_curve, cmap)
        axes.set_xlabel(f"recall (dot: best IoU){note}")
        axes.set_ylabel("precision")
    return axes


@plot_kind
def roc_curve(
    source: Any,
    class_names: str | Sequence[str] | None = None,
    *,
    limit: int = 6,
    cmap: Any = "viridis",
    **look: Unpack[Look],
) -> Axes:
    """Draw true against false positive rate, with the area under the curve of each class.

    Parameters
    ----------
    source, class_names, limit, cmap, title, figsize, ax
        As for :func:`pr_curve`; by default the classes with the smallest area.

    Returns
    -------
    Axes
        One line per class; a dot marks the threshold with the best IoU, and the
        dashed diagonal is chance.

    Raises
    ------
    ValueError
        If scores were not counted, a class is unknown, or no class has a curve.
    """
    histogram = histogram_of(source)
    values = histogram.roc_auc()
    chosen, note = _chosen(histogram, class_names, values, limit)
    with drawing(2.6, **look) as axes:
        _diagonal(axes)
        _curves(axes, histogram, chosen, (values, "AUROC"), histogram.roc_curve, cmap)
        axes.set_xlabel(f"false positive rate (dot: best IoU){note}")
        axes.set_ylabel("true positive rate")
    return axes


def _chosen(
    histogram: ScoreHistogram,
    class_names: str | Sequence[str] | None,
    values: Any,
    limit: int,
) -> tuple[list[int], str]:
    """Classes to draw, the given ones or the lowest, and the note of how many they are."""
    if class_names is None:
        order = np.argsort(values, kind="stable")
        known = [int(c) for c in order if not np.isnan(values[c])] or _none(histogram)
        return known[:limit], count_note(min(limit, len(known)), len(known), "lowest")
    names = [class_names] if isinstance(class_names, str) else class_names
    names = read_several("class_names", names, "a sequence of class names")
    if not names:
        msg = "class_names is empty; name a class, or omit it"
        raise ValueError(msg)
    indices = dict.fromkeys(class_index(histogram.class_names, name) for name in names)
    return [c for c in indices if not np.isnan(values[c])] or _none(histogram), ""


def _none(histogram: ScoreHistogram) -> list[int]:
    reasons = "; ".join(f"{name}: {why}" for name, why in histogram.undefined.items())
    msg = f"no class has a curve ({reasons}), so nothing can be drawn"
    raise NothingToDraw(msg)


def _curves(
    axes: Axes,
    histogram: ScoreHistogram,
    chosen: list[int],
    area: tuple[Any, str],
    curve_of: Callable[[int], Curve],
    cmap: Any,
) -> None:
    values, label = area
    thresholds = histogram.best_threshold().thresholds
    colors = require("matplotlib").colormaps.get_cmap(cmap)(np.linspace(0.1, 0.8, len(chosen)))
    names = short_names([histogram.class_names[c] for c in chosen], 20)
    for k, (c, color) in enumerate(zip(chosen, colors, strict=True)):
        curve = curve_of(c)
        # Bins without pixels have no point: the next higher one has the same positive pixels.
        best = int(np.where(curve.thresholds < thresholds[c], np.inf, curve.thresholds).argmin())
        shown = np.unique(np.append(_thin(len(curve.x)), best))
        axes.plot(
            curve.x[shown],
            curve.y[shown],
            color=color,
            linestyle=_DASHES[k % len(_DASHES)],
            label=f"{names[k]} ({label} {values[c]:.3f})",
        )
        mark_point(axes, curve.x[best], curve.y[best], color, clip_on=False, zorder=3)
    _unit_square(axes)
    legend_above(axes, 2, handlelength=1.8, columnspacing=1.0)


def _thin(number: int) -> Any:
    """Indices of at most _POINTS points, with the first and last."""
    return np.unique(np.linspace(0, number - 1, min(number, _POINTS)).round().astype(int))


def _diagonal(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color=MUTED, linestyle=(0, (4, 2)), linewidth=0.8)


def _unit_square(axes: Axes) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    format_percent(axes.xaxis)
    format_percent(axes.yaxis)
    axes.grid(visible=True)


@plot_kind
def reliability(
    source: Any,
    class_name: str | None = None,
    *,
    bins: int = 15,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw accuracy against confidence: the reliability diagram.

    Parameters
    ----------
    class_name : str, optional
        A class against the rest; by default the highest score of each pixel.
    bins : int
        Number of equal bins of the diagram.
    source, color, title, figsize, ax
        As for :func:`pr_curve` and :func:`class_bars`.

    Returns
    -------
    Axes
        A calibrated model is on the dashed diagonal, an overconfident one below it.
        Grey bars are the share of pixels in each bin.

    Raises
    ------
    ValueError
        If scores were not counted, the class is unknown, or there are no pixels.
    """
    histogram = histogram_of(source)
    c = None if class_name is None else class_index(histogram.class_names, class_name)
    diagram = histogram.calibration(bins, c)
    filled = diagram.pixels > 0
    if not filled.any():
        msg = "no scores were counted, so nothing can be drawn; if classes overlap, pass class_name"
        raise NothingToDraw(msg)
    share = diagram.pixels / diagram.pixels.sum()
    named = "" if class_name is None else f"{short_name(class_name, 20)}, "
    with drawing(2.6, **look) as axes:
        edges: Any = {
            "align": "edge",
            "color": "#d8d5cc",
            "edgecolor": paper(axes),
            "linewidth": 0.6,
        }
        axes.bar(
            diagram.edges[:-1], share, 1 / bins, label=f"share of {unit_of_pixels(source)}", **edges
        )
        _diagonal(axes)
        axes.plot(
            diagram.confidence[filled],
            diagram.accuracy[filled],
            "o-",
            color=color,
            markersize=3.5,
            label="accuracy",
            clip_on=False,
        )
        _unit_square(axes)
        label_x(axes, "confidence", f" ({named}ECE {diagram.ece:.3f})")
        axes.set_ylabel("accuracy" if c is None else "share of the class")
        legend_above(axes, 2, handlelength=1.8, columnspacing=1.0)
    return axes


@plot_kind
def thresholds(
    source: Any,
    class_name: str | None = None,
    *,
    by: str = "iou",
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw IoU, Dice, precision and recall of a class against the threshold.

    Parameters
    ----------
    class_name : str, optional
        By default the rarest class in the truth.
    by : {"iou", "dice"}
        Score whose best threshold is marked.
    source, color, title, figsize, ax
        As for :func:`pr_curve` and :func:`class_bars`.

    Returns
    -------
    Axes
        A vertical line marks the best threshold, and a dot the score there.

    Raises
    ------
    ValueError
        If scores were not counted, or the class is unknown or not in the truth.
    """
    histogram = histogram_of(source)
    c = _class_in_truth(histogram, class_name)
    table, best = histogram.at_thresholds(), histogram.best_threshold(by)
    lines: dict[str, tuple[Any, dict[str, Any]]] = {
        "IoU": (table.iou, {"color": color, "linewidth": 1.8}),
        "Dice": (table.dice, {"color": OTHER, "linestyle": _DASHES[1]}),
        "precision": (table.precision, {"color": MUTED, "linestyle": _DASHES[0]}),
        "recall": (table.recall, {"color": MUTED, "linestyle": _DASHES[2]}),
    }
    threshold, score = best.thresholds[c], best.scores[c]
    shown = _thin(len(table.thresholds))
    with drawing(2.4, **look) as axes:
        for label, (values, style) in lines.items():
            axes.plot(table.thresholds[shown], values[c, shown], label=label, **style)
        axes.axvline(threshold, color=ink(axes), linestyle=(0, (3, 2)), linewidth=0.8)
        mark_point(axes, threshold, score, ink(axes), zorder=3)
        _unit_square(axes)
        named = short_name(histogram.class_names[c], 20)
        label_x(axes, f"threshold of {named}", f" (dashed: best, {threshold:.3f})")
        axes.xaxis.set_major_formatter(require("matplotlib.ticker").ScalarFormatter())
        axes.set_ylabel("score")
        legend_above(axes, 4, handlelength=1.8, columnspacing=1.0)
    return axes


def _class_in_truth(histogram: ScoreHistogram, class_name: str | None) -> int:
    """The index of a class, or of the rarest one; NothingToDraw if it is not in the truth."""
    pixels, names = histogram.counts[..., 1].sum(-1), histogram.class_names
    if class_name is None:
        if not pixels.any():
            _none(histogram)
        return int(np.where(pixels > 0, pixels, pixels.max() + 1).argmin())
    c = class_index(names, class_name)
    if not pixels[c]:
        msg = f"class {class_name!r} is not in the truth, so nothing can be drawn"
        raise NothingToDraw(msg)
    return c
