"""Plots of rankings: ranks of the resamples, and scores of the images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from segiou._support.arguments import refuse_kind
from segiou.plots.class_plots import height_of
from segiou.plots.distribution_plots import draw_boxes
from segiou.plots.score_axis import ScoreAxis
from segiou.plots.style import IOU, MUTED, Look, NothingToDraw, drawing, name_rows, plot_kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from segiou.analysis.comparison.ranking import Ranking

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
                [model.rank], [place], "x", color="black", markersize=min(4, whole / 2), zorder=4
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
