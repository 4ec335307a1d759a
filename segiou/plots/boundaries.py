"""IoU of whole masks beside IoU of their boundaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from segiou.plots.classes import dumbbells
from segiou.plots.style import report_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["boundary_against_iou"]


def boundary_against_iou(source: Any, *, limit: int = 40, ax: Axes | None = None) -> Axes:
    """Draw IoU and Boundary IoU of each class, the most frequent class on top.

    The line between the two is what the edges cost: long where a large object
    hides ragged ones.

    Parameters
    ----------
    source : Report or Run
        In which boundaries were measured.
    limit : int
        Classes to draw, at most: those with the longest lines.
    ax : Axes, optional

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
    every = [
        (row, float(scores[row.name]))
        for row in report.classes
        if not np.isnan(row.iou) and not np.isnan(scores[row.name])
    ]
    return dumbbells(
        [(row, row.iou, edge) for row, edge in every],
        ("IoU", f"Boundary IoU {measured[0]['tolerance']}"),
        limit=limit,
        ax=ax,
    )
