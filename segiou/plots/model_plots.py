"""Plots of several models or slices: scores side by side, forests of differences, rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from segiou._support.arguments import check_integer, check_kind, read_several, refuse_kind
from segiou.analysis.comparison.text import score_title
from segiou.plots.class_plots import axis_of, count_note, height_of, score_column
from segiou.plots.distribution_plots import draw_boxes
from segiou.plots.score_axis import ScoreAxis, mark_interval, mark_special
from segiou.plots.style import (
    IOU,
    MUTED,
    Look,
    NothingToDraw,
    drawing,
    ink,
    legend_above,
    name_rows,
    paper,
    plot_kind,
    report_of,
    require,
    short_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from segiou.analysis.comparison.ranking import Ranking
    from segiou.analysis.comparison.result import Comparison
    from segiou.analysis.slices.result import Slices


@plot_kind
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
        The class with the worst score is on top. A score of 0 is a thin line, an
        undefined score is marked "n/a" and an infinite one "∞". Circles on the bars of the
        mean are the training runs of a recipe.

    Raises
    ------
    TypeError
        If the models have a wrong type.
    ValueError
        If the metric is unknown, the classes differ, no class has a value, or the
        number of names is wrong.
    """
    axis, rows, by_model = _read(models, names, metric)
    values = np.array([*by_model.values()], dtype=float)
    defined = [c for c in range(1, len(rows)) if not np.isnan(values[:, c]).all()]
    if not defined and (len(rows) > 1 or np.isnan(values).all()):
        msg = f"no class has a defined {axis.title}, so nothing can be drawn"
        raise NothingToDraw(msg)
    widest = sorted(defined, key=lambda c: -_spread(values[:, c]))[:limit]
    shown = [0, *sorted(widest, key=lambda c: _worst(axis, values[:, c]))]
    # From dark to light, so that the bars also differ in black and white.
    colors = require("matplotlib").colormaps.get_cmap(cmap)(np.linspace(0.3, 0.85, len(by_model)))
    thickness = 0.8 / len(by_model)
    with drawing(0.1 + height_of(len(shown) * (0.45 + 0.35 * len(by_model))), **look) as axes:
        for k, name in enumerate(short_names([*by_model])):
            scores, places = values[k], np.arange(len(shown)) - 0.4 + (k + 0.5) * thickness
            widths = np.where(np.isfinite(scores), scores, 0)[shown]
            axes.barh(places, widths, height=0.92 * thickness, color=colors[k], label=name)
            _mark_small(axes, places, scores[shown], colors[k])
            trained = getattr(models, "run_scores", ())
            if trained:  # several runs, whose mean is the first bar
                dots: Any = {"color": ink(axes), "markersize": 3, "markerfacecolor": paper(axes)}
                axes.plot(trained[k], [places[0]] * len(trained[k]), "o", **dots)
        name_rows(axes, [rows[c] for c in shown])
        if len(shown) > 1:
            axes.axhline(0.5, color=MUTED, linewidth=0.5)
        note = count_note(len(widest), len(defined), "most different")
        dotted = [score for of_model in getattr(models, "run_scores", ()) for score in of_model]
        axis.show(axes, [*values[:, shown].flat, *dotted], note)
        legend_above(axes, min(len(by_model), 3), handlelength=1.2)
    return axes


def _mark_small(axes: Axes, places: Any, scores: Any, color: Any) -> None:
    """Tell a score of 0 from an undefined one; both have a bar of no width."""
    zero = places[scores == 0]
    axes.plot([0] * len(zero), zero, linestyle="", marker="|", color=color, clip_on=False)
    mark_special(axes, places, scores)


def _spread(scores: Any) -> float:
    """The largest difference of the models in a class; 0 if all are infinite."""
    known = scores[~np.isnan(scores)]
    return 0.0 if (known == known[0]).all() else float(np.ptp(known))


def _worst(axis: ScoreAxis, scores: Any) -> float:
    """A key that sorts the class with the worst score of a model first."""
    return min(axis.worst_first(score) for score in scores[~np.isnan(scores)])


#: Axis of the score, names of the rows (the mean first), and scores of each model.
Scores = tuple[ScoreAxis, list[str], dict[str, list[float]]]


def _read(models: Any, names: Sequence[str] | None, metric: str) -> Scores:
    is_comparison = hasattr(models, "ranking")
    axis, rows, by_model = (
        _comparison_scores(models) if is_comparison else _report_scores(models, metric)
    )
    if names is not None:
        wanted = "a sequence of names, one per model"
        chosen = read_several("names", names, wanted)
        for name in chosen:
            check_kind("names", name, str, wanted)
        if not len(set(chosen)) == len(chosen) == len(by_model):
            msg = f"names must be {len(by_model)} unique names, one per model, got {chosen}"
            raise ValueError(msg)
        by_model = dict(zip(chosen, by_model.values(), strict=True))
    return axis, rows, by_model


def _comparison_scores(comparison: Comparison) -> Scores:
    by_model: dict[str, list[float]] = {}
    for pair in comparison.pairs:
        rows = (pair.overall, *pair.classes)
        by_model |= {pair.a: [row.a for row in rows], pair.b: [row.b for row in rows]}
    scores = {name: by_model[name] for name in comparison.names}
    return _axis_of(comparison), [row.name for row in rows], scores


def _axis_of(comparison: Comparison) -> ScoreAxis:
    """The axis of the score of a comparison."""
    title = score_title(comparison, comparison.pairs[0])
    return ScoreAxis(title, comparison.score_unit, comparison.better)


def _report_scores(models: Any, metric: str) -> Scores:
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
        while name in by_model:
            name = f"{name} ({k + 1})"
        by_model[name] = [*column.means, *column.values]
    return axis_of(column), [column.overall_title, *class_names], by_model


@plot_kind
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
        The overall score is a diamond on top. Infinite values are arrows, and the label
        states on which side each model is better. Marks are filled if the interval and
        the adjusted p both show a difference.

    Raises
    ------
    TypeError
        If the argument is not a comparison.
    ValueError
        If there is no such pair.
    """
    if not hasattr(comparison, "ranking"):
        raise refuse_kind("comparison", comparison, "a result of segiou.compare")
    shown_pair = _pair_of(comparison, pair)
    known = [c for c in shown_pair.classes if not np.isnan(c.delta)]
    classes = sorted(known, key=lambda c: -abs(c.delta))[:limit]
    rows = [shown_pair.overall, *sorted(classes, key=lambda c: -c.delta)]
    axis = _axis_of(comparison)
    reach = axis.reach(end for row in rows for end in (row.delta, row.low, row.high))
    with drawing(height_of(len(rows)) + 0.1, **look) as axes:
        axes.axvline(0, color=ink(axes), linewidth=0.7)
        axes.set_xlim(reach)
        for place, row in enumerate(rows):
            is_sure, mark = row.differs(comparison.level), "o" if place else "D"
            ends = row.delta, row.low, row.high
            mark_interval(axes, place, ends, color if is_sure else "", mark)
        name_rows(axes, [row.name for row in rows])
        sides = axis.directions(*short_names([shown_pair.a, shown_pair.b], 14))
        note = count_note(len(classes), len(known), "most different")
        axis.format_change(axes, "difference", f"\n{sides}{note}")
        if len(rows) > 1:
            axes.axhline(0.5, color=MUTED, linewidth=0.5)
    return axes


def _pair_of(comparison: Comparison, pair: int) -> Any:
    """A pair by its index, also from the end; the error lists the pairs."""
    index, pairs = check_integer("pair", pair), comparison.pairs
    if not -len(pairs) <= index < len(pairs):
        listed = ", ".join(f"{k} ({p.b} vs {p.a})" for k, p in enumerate(pairs[:12]))
        msg = f"comparison has {len(pairs)} pairs; choose from {listed}, got {index}"
        raise ValueError(msg)
    return pairs[index]


@plot_kind
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
    known = [row for row in sliced if not np.isnan(row.score)]
    if not known:
        msg = f"no slice has a defined {sliced.title}, so nothing can be drawn"
        raise NothingToDraw(msg)
    kept = sorted(known, key=lambda row: -abs(np.nan_to_num(row.gap.value)))[:limit]
    rows = [row for row in known if row in kept]
    axis = ScoreAxis(sliced.title, sliced.score_unit, sliced.better)
    ends = [end for row in rows for end in (row.score, row.low, row.high)]
    known_ends = [end for end in (*ends, sliced.score) if np.isfinite(end)] or [0.0, 1.0]
    margin = 0.05 * np.ptp(known_ends) or 0.05
    with drawing(height_of(len(rows)) + 0.1, **look) as axes:
        axes.set_xlim(min(known_ends) - margin, max(known_ends) + margin)
        note = ""
        if np.isfinite(sliced.score):
            axes.axvline(sliced.score, color=ink(axes), linestyle=(0, (3, 2)), linewidth=0.8)
            note = f", dashed: all {sliced._image}s"
        note += count_note(len(rows), len(known), "most different", "slices")
        for place, row in enumerate(rows):
            is_sure = row.differs(sliced.level)
            mark_interval(axes, place, (row.score, row.low, row.high), color if is_sure else "")
        name_rows(axes, [row.name for row in rows])
        if len(sliced.names) > 1:
            axis.format_change(axes, "change", note)
        else:
            axis.format(axes, note)
    return axes


#: Largest diameter of the dot of a rank that all resamples have, in points, and the share of the
#: width per rank that it fills: names take a part of the axes of new figures.
_WHOLE, _FILLED = 18, 0.7


@plot_kind
def rank_stability(
    ranking: Any,
    *,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw the share of the resamples in which each model has each rank.

    Parameters
    ----------
    ranking : Ranking or Comparison
        With resamples; a comparison of three or more models.
    color, title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        The area of a dot is the share; a cross marks the rank on all images, and
        a line the simultaneous confidence set.

    Raises
    ------
    TypeError
        If the argument is not a ranking.
    ValueError
        If nothing was resampled, or there are too few units for shares of resamples.
    """
    ranks = _ranking_of(ranking)
    if not ranks.resamples:
        msg = "the ranking has no resamples to draw; rank with draws=1000"
        raise NothingToDraw(msg)
    if not ranks.is_resampled:
        msg = f"P(best) cannot be estimated from {ranks.units_text}; draw case_boxes instead"
        raise NothingToDraw(msg)
    number = len(ranks.models)
    with drawing(height_of(number) + 0.2, **look) as axes:
        room = axes.get_window_extent().width / axes.figure.dpi * 72 / number
        whole = min(_WHOLE, _FILLED * room)
        for place, model in enumerate(ranks.models):
            if model.rank_low is not None:
                axes.hlines(place, model.rank_low, model.rank_high or 0, color=MUTED, linewidth=1.2)
            shares = np.array(model.shares)
            at = np.flatnonzero(shares)
            sizes = whole**2 * shares[at]
            axes.scatter(at + 1, np.full(len(at), place), sizes, color=color, zorder=3)
            axes.plot(
                [model.rank], [place], "x", color=ink(axes), markersize=min(4, whole / 2), zorder=4
            )
        name_rows(axes, [model.name for model in ranks.models])
        axes.set_xlim(0.5, number + 0.5)
        axes.set_xticks(range(1, number + 1))
        axes.set_xlabel(f"rank in {ranks.resamples} resamples")
    return axes


@plot_kind
def case_boxes(
    ranking: Any,
    *,
    color: Any = IOU,
    **look: Unpack[Look],
) -> Axes:
    """Draw the distribution of the score over images, the first model on top.

    Parameters
    ----------
    ranking : Ranking or Comparison
        A ranking, or a comparison of three or more models.
    color, title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        Boxes as in :func:`class_boxes`, of the first score.

    Raises
    ------
    TypeError
        If the argument is not a ranking.
    """
    ranks = _ranking_of(ranking)
    cases = dict(zip(ranks.names, map(np.array, ranks.cases), strict=True))
    rows = [cases[model.name] for model in ranks.models]
    finite = [row[np.isfinite(row)] for row in rows]
    lost = [int(np.isinf(row).sum()) for row in rows]
    texts = [f" ({number} infinite)" if number else "" for number in lost]
    with drawing(height_of(len(rows)), **look) as axes:
        draw_boxes(axes, finite, color)
        name_rows(axes, [model.name for model in ranks.models], texts)
        ScoreAxis(ranks.case_name, ranks.case_unit).per_image(ranks._pixel_unit).format(axes)
    return axes


def _ranking_of(source: Any) -> Ranking:
    """The ranking of a comparison; a ranking is returned unchanged."""
    ranking: Any = source.stability if hasattr(source, "stability") else source
    if ranking is None:
        msg = "a comparison of two models has no ranking; compare three, or use segiou.rank"
        raise NothingToDraw(msg)
    if not hasattr(ranking, "models"):
        raise refuse_kind("ranking", source, "a result of segiou.rank or segiou.compare")
    return cast("Ranking", ranking)
