"""Ratios of counts: pure functions from :class:`segiou.counts.Counts` to float64.

Every function takes counts with any leading axes and the classes last. 0/0 is
NaN: a class that occurs in neither truth nor prediction has no IoU, and no
number is made up for it. Means skip NaN; ``segiou.protocols`` has the peers'
other rules.

Below, TP, FP, FN and TN are one class's counts against the rest, truth
``t = TP + FN``, prediction ``p = TP + FP``, valid pixels ``n = TP + FP + FN + TN``.
"""

from __future__ import annotations

from collections.abc import Callable

from segiou.counts import Counts
from segiou.metrics._ratio import Floats
from segiou.metrics.averages import average, mean
from segiou.metrics.overall import (
    cohen_kappa,
    frequency_weighted_iou,
    matthews_correlation,
    mean_accuracy,
    mean_dice,
    mean_iou,
    pixel_accuracy,
)
from segiou.metrics.per_class import (
    balanced_accuracy,
    dice,
    f_beta,
    iou,
    precision,
    recall,
    share,
    specificity,
    tversky,
    volumetric_similarity,
)
from segiou.metrics.soft import soft_dice, soft_iou

__all__ = [
    "METRICS",
    "Floats",
    "average",
    "balanced_accuracy",
    "cohen_kappa",
    "dice",
    "f_beta",
    "frequency_weighted_iou",
    "iou",
    "matthews_correlation",
    "mean",
    "mean_accuracy",
    "mean_dice",
    "mean_iou",
    "pixel_accuracy",
    "precision",
    "recall",
    "share",
    "soft_dice",
    "soft_iou",
    "specificity",
    "tversky",
    "volumetric_similarity",
]

#: Per-class metrics by the names used in reports, on the command line and in JSON.
METRICS: dict[str, Callable[[Counts], Floats]] = {
    "iou": iou,
    "dice": dice,
    "precision": precision,
    "recall": recall,
    "specificity": specificity,
    "balanced_accuracy": balanced_accuracy,
    "volumetric_similarity": volumetric_similarity,
}
