"""Scores against prevalence, and over images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from segiou.counts import Tally
from segiou.fine_grained import image_means
from segiou.plots.style import IOU, MUTED, OTHER, drawing, report_of, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["image_distribution", "prevalence_curve"]


def prevalence_curve(source: Any, class_name: str, *, ax: Axes | None = None) -> Axes:
    """Draw what the same model would score if one class were rarer or more frequent.

    Confusion rates are held; see :func:`segiou.imbalance.prevalence_curve`.

    Parameters
    ----------
    source : Report, Run or ConfusionMatrix
    class_name : str
    ax : Axes, optional

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
    from segiou.imbalance import prevalence_curve as curve_of

    report = report_of(source)
    if class_name not in report.class_names:
        msg = f"no class {class_name!r}; there are {', '.join(report.class_names[:12])}"
        raise ValueError(msg)
    if not isinstance(report.tally, Tally):
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
        axes.set_xlabel(f"share of {class_name} in the truth, dot: here", parse_math=False)
        axes.set_ylabel("score")
        axes.grid(visible=True, axis="y")
        axes.legend(
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=3,
            handlelength=1.5,
            columnspacing=1.0,
            borderpad=0.1,
        )
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

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the images were not kept apart, or none has a score.
    """
    report = report_of(source)
    if report.per_image is None:
        msg = (
            "the images were not kept apart; score with segiou.score or segiou.score_folder, "
            "and draw the Run"
        )
        raise ValueError(msg)
    scores = image_means(report.per_image, include=report.include)
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
        axes.set_xlabel("mean IoU of the image")
        axes.set_ylabel("images")
        axes.yaxis.set_major_locator(require("matplotlib.ticker").MaxNLocator(integer=True))
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, borderpad=0.1)
    return axes
