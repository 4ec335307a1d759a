"""Figures for a paper's column, in colour and in black and white.

Every function takes an :class:`matplotlib.axes.Axes` or makes one, 3.3 inches
wide, and returns it; pyplot and its global state are never touched. Needs
matplotlib: ``pip install 'segiou[plot]'``.
"""

from segiou.plots.boundaries import boundary_against_iou
from segiou.plots.classes import accuracy_against_iou, class_bars
from segiou.plots.comparison import comparison_forest
from segiou.plots.curves import image_distribution, prevalence_curve
from segiou.plots.matrix import confusion_matrix
from segiou.plots.overlay import overlay
from segiou.plots.saving import save_plots

__all__ = [
    "accuracy_against_iou",
    "boundary_against_iou",
    "class_bars",
    "comparison_forest",
    "confusion_matrix",
    "image_distribution",
    "overlay",
    "prevalence_curve",
    "save_plots",
]
