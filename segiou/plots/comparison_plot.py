"""Two models on the same images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from segiou._support.arguments import refuse_kind
from segiou.plots.style import IOU, MUTED, drawing, name_rows, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from segiou.analysis.comparison import Comparison

__all__ = ["comparison_forest"]

_METRICS = {"iou": "IoU", "dice": "Dice"}


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
    with drawing(ax, 0.85 + 0.165 * len(rows)) as axes:
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
            f"difference of {_METRICS.get(comparison.metric, comparison.metric)}, points\n"
            f"← {_brief(found.a)} better    {_brief(found.b)} better →",
            parse_math=False,
        )
        reach = 1.06 * max([1e-3, *(_reach(row.delta, row.low, row.high) for row in rows)])
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


def _reach(*values: float) -> float:
    return float(np.nanmax(np.abs(values)))
