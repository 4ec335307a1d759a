"""Figures for a paper's column, in colour and in black and white.

Every function takes an :class:`matplotlib.axes.Axes` or makes one, 3.3 inches
wide, and returns it; pyplot and its global state are never touched. Needs
matplotlib: ``pip install 'segiou[plot]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.plots.class_plots import (
        accuracy_against_iou as accuracy_against_iou,
        boundary_against_iou as boundary_against_iou,
        class_bars as class_bars,
        image_distribution as image_distribution,
        prevalence_curve as prevalence_curve,
    )
    from segiou.plots.comparison_plot import comparison_forest as comparison_forest
    from segiou.plots.mask_overlay import overlay as overlay
    from segiou.plots.matrix import confusion_matrix as confusion_matrix
    from segiou.plots.saving import save_plots as save_plots
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "class_plots": (
                "accuracy_against_iou",
                "boundary_against_iou",
                "class_bars",
                "image_distribution",
                "prevalence_curve",
            ),
            "comparison_plot": ("comparison_forest",),
            "mask_overlay": ("overlay",),
            "matrix": ("confusion_matrix",),
            "saving": ("save_plots",),
        },
    )
