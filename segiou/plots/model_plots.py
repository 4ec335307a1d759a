"""Plots of several models or slices: scores side by side, and forests of differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from segiou._support.arguments import read_several, refuse_kind
from segiou._support.text import with_unit
from segiou.metrics.pixel_scores import metric_label
from segiou.plots.class_plots import height_of, scale, score_column
from segiou.plots.style import (
    IOU,
    MUTED,
    Look,
    NothingToDraw,
    drawing,
    in_percent,
    legend_above,
    name_rows,
    report_of,
    require,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from segiou.analysis.comparison import Comparison
    from segiou.analysis.slice_results import Slices


def model_bars(
    models: Any,
    *,
    names: Sequence[str] | None = None,
    metric: str = "iou",
    limit: int = 15,
    cmap: Any = "viridis",
    **look: Unpack[Look],
) -> Axes:
    """Draw a score of each class with one bar per model, below the mean.

    Parameters
    ----------
    models : Comparison, or sequence of Report, Run or ConfusionMatrix
        Models with the same classes. A comparison is drawn with its own metric.
    names : sequence of str, optional
        Names of the models; by default the names of the runs or titles of the
        reports, otherwise A, B, ….
    limit : int
        Largest number of classes to draw; those with the largest differences
        are kept.
    cmap : str or Colormap
        Colour map from which the colours of the models are taken.
    metric, title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        Classes are sorted by their lowest score. A score of 0 is a thin line, and
        an undefined score is marked "n/a". Circles on the bars of the mean are the
        training runs of a recipe.

    Raises
    ------
    TypeError
        If the models have a wrong type.
    ValueError
        If the metric is unknown, the classes differ, no class has a value, or the
        number of names is wrong.
    """
    label, rows, by_model = _read(models, names, metric)
    values = np.array(list(by_model.values()))
    defined = [c for c in range(1, len(rows)) if not np.isnan(values[:, c]).all()]
    if not defined:
        msg = f"no class has a defined {label}, so nothing can be drawn"
        raise NothingToDraw(msg)
    widest = sorted(defined, key=lambda c: -np.ptp(values[~np.isnan(values[:, c]), c]))[:limit]
    shown = [0, *sorted(widest, key=lambda c: np.nanmin(values[:, c]))]
    # From dark to light, so that the bars also differ in black and white.
    colors = require("matplotlib").colormaps.get_cmap(cmap)(np.linspace(0.3, 0.85, len(by_model)))
    thickness = 0.8 / len(by_model)
    with drawing(0.1 + height_of(len(shown) * (0.45 + 0.35 * len(by_model))), **look) as axes:
        for k, (name, scores) in enumerate(zip(by_model, values, strict=True)):
            places = np.arange(len(shown)) - 0.4 + (k + 0.5) * thickness
            axes.barh(places, scores[shown], height=0.92 * thickness, color=colors[k], label=name)
            _mark_small(axes, places, scores[shown], colors[k])
            trained = getattr(models, "run_scores", ())
            if trained:  # several runs, whose mean is the first bar
                dots: Any = {"color": "black", "markersize": 3, "markerfacecolor": "white"}
                axes.plot(trained[k], [places[0]] * len(trained[k]), "o", **dots)
        name_rows(axes, [rows[c] for c in shown])
        axes.axhline(0.5, color=MUTED, linewidth=0.5)
        scale(axes, label, len(widest), len(defined), "most different")
        legend_above(axes, min(len(by_model), 3), handlelength=1.2)
    return axes


def _mark_small(axes: Axes, places: Any, scores: Any, color: Any) -> None:
    """Tell a score of 0 from an undefined one; both have a bar of no width."""
    zero = places[scores == 0]
    axes.plot([0] * len(zero), zero, linestyle="", marker="|", color=color, clip_on=False)
    for place in places[np.isnan(scores)]:
        axes.text(0, place, " n/a", va="center", fontsize=5.5, color=MUTED)


#: Label of the score, names of the rows (the mean first), and scores of each model.
Scores = tuple[str, list[str], dict[str, list[float]]]


def _read(models: Any, names: Sequence[str] | None, metric: str) -> Scores:
    is_comparison = hasattr(models, "ranking")
    label, rows, by_model = _of_comparison(models) if is_comparison else _of_reports(models, metric)
    if names is not None:
        chosen = read_several("names", names, "a sequence of names, one per model")
        if not len(set(chosen)) == len(chosen) == len(by_model):
            msg = f"names must be {len(by_model)} unique names, one per model, got {chosen}"
            raise ValueError(msg)
        by_model = dict(zip(chosen, by_model.values(), strict=True))
    return label, rows, by_model


def _of_comparison(comparison: Comparison) -> Scores:
    by_model: dict[str, list[float]] = {}
    for pair in comparison.pairs:
        rows = (pair.overall, *pair.classes)
        by_model |= {pair.a: [row.a for row in rows], pair.b: [row.b for row in rows]}
    scores = {name: by_model[name] for name in comparison.names}
    return metric_label(comparison.metric), [row.name for row in rows], scores


def _of_reports(models: Any, metric: str) -> Scores:
    if isinstance(models, Mapping):
        raise refuse_kind("models", models, "a sequence; pass the names as names=")
    sources = read_several("models", models, "a comparison or a sequence of runs or reports")
    if not sources:
        msg = "models is empty, so nothing can be drawn"
        raise NothingToDraw(msg)
    by_model: dict[str, list[float]] = {}
    for k, source in enumerate(sources):
        report = report_of(source)
        class_names = report.class_names
        if class_names != report_of(sources[0]).class_names:
            msg = "the models have different classes; score them with the same label set"
            raise ValueError(msg)
        column = score_column(report, metric)
        name = getattr(source, "name", "") or report.title or chr(ord("A") + k % 26)
        name = f"{name} ({k + 1})" if name in by_model else name
        by_model[name] = [*column.means, *column.values]
    label = column.title
    return label, [f"mean {label}", *class_names], by_model


def comparison_forest(
    comparison: Comparison,
    *,
    pair: int = 0,
    limit: int = 40,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw the difference between two models, overall and per class, with intervals.

    Parameters
    ----------
    comparison : Comparison
        The comparison to show.
    pair : int
        Index of the pair of models.
    limit : int
        Largest number of classes to draw; those with the largest differences
        are kept.
    color, title, figsize, ax
        As for :func:`class_bars`; the colour of rows with a clear difference.

    Returns
    -------
    Axes
        The overall score is a diamond on top. Marks are filled if the interval and
        the adjusted p both show a difference.

    Raises
    ------
    TypeError
        If the argument is not a comparison.
    """
    if not hasattr(comparison, "ranking"):
        raise refuse_kind("comparison", comparison, "a result of segiou.compare")
    shown_pair = comparison.pairs[pair]
    classes = [c for c in shown_pair.classes if not np.isnan(c.delta)]
    classes = sorted(classes, key=lambda c: -abs(c.delta))[:limit]
    rows = [shown_pair.overall, *sorted(classes, key=lambda c: -c.delta)]
    with drawing(height_of(len(rows)) + 0.1, **look) as axes:
        axes.axvline(0, color="black", linewidth=0.7)
        for place, row in enumerate(rows):
            is_sure, mark = row.differs(comparison.level), "o" if place else "D"
            _mark(axes, place, (row.delta, row.low, row.high), color if is_sure else "", mark)
        name_rows(axes, [row.name for row in rows])
        axes.set_xlabel(
            f"difference of {metric_label(comparison.metric)}, points\n"
            f"← {brief(shown_pair.a)} better    {brief(shown_pair.b)} better →",
            parse_math=False,
        )
        ends = [abs(end) for row in rows for end in (row.delta, row.low, row.high)]
        reach = 1.06 * float(np.nanmax([1e-3, *ends]))
        axes.set_xlim(-reach, reach)
        in_percent(axes.xaxis, "")
        if len(rows) > 1:
            axes.axhline(0.5, color=MUTED, linewidth=0.5)
    return axes


def slices(sliced: Slices, *, limit: int = 40, color: Any = IOU, **look: Unpack[Look]) -> Axes:
    """Draw the score of each slice, or its change between two models, with intervals.

    Parameters
    ----------
    sliced : Slices
        The slices to show.
    limit : int
        Largest number of slices to draw; those that differ most from the rest are kept.
    color, title, figsize, ax
        As for :func:`class_bars`; the colour of slices that differ from the rest.

    Returns
    -------
    Axes
        The dashed line is the score of all images. Marks are filled if the slice differs from the
        rest beyond chance, among all tests of the slices.

    Raises
    ------
    TypeError
        If the argument is not a result of :func:`segiou.slices`.
    ValueError
        If no slice has a score.
    """
    if not hasattr(sliced, "trends"):
        raise refuse_kind("sliced", sliced, "a result of segiou.slices")
    known = [one for one in sliced if np.isfinite(one.score)]
    if not known:
        msg = f"no slice has a defined {sliced.title}, so nothing can be drawn"
        raise NothingToDraw(msg)
    kept = sorted(known, key=lambda one: -abs(np.nan_to_num(one.gap.value)))[:limit]
    rows = [one for one in known if one in kept]
    is_change, unit = len(sliced.names) > 1, sliced.score_unit
    with drawing(height_of(len(rows)) + 0.1, **look) as axes:
        axes.axvline(sliced.score, color="black", linestyle=(0, (3, 2)), linewidth=0.8)
        for place, one in enumerate(rows):
            ends = one.score, one.low, one.high
            _mark(axes, place, ends, color if one.differs(sliced.level) else "")
        name_rows(axes, [one.name for one in rows])
        what = f"change of {sliced.title}" if is_change else sliced.title
        head = with_unit(what, unit)
        axes.set_xlabel(f"{head}, dashed: all images", parse_math=False)
        if not unit:
            in_percent(axes.xaxis, "" if is_change else " %")
    return axes


def _mark(
    axes: Axes, place: int, ends: tuple[float, float, float], color: Any, mark: str = "o"
) -> None:
    """A value with its interval; hollow and grey without a colour."""
    value, low, high = ends
    line, inside = color or MUTED, color or "white"
    axes.hlines(place, low, high, color=line, linewidth=1.2)
    size = 3.8 if mark == "o" else 4.4
    dots: dict[str, Any] = {"color": inside, "markeredgecolor": line, "markersize": size}
    axes.plot([value], [place], mark, **dots)


def brief(name: str) -> str:
    """A short form of a name, which may be the path of a run."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return last if len(last) <= 14 else f"{last[:13]}…"
