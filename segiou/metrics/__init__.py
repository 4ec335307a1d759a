"""Ratios of counts: pure functions from :class:`segiou.counting.counts.Counts` to float64.

Every function takes counts with any leading axes and the classes last. 0/0 is
NaN: a class that occurs in neither truth nor prediction has no IoU, and no
number is made up for it. Means skip NaN; ``segiou.metrics.protocols`` has the peers'
other rules.

Below, TP, FP, FN and TN are one class's counts against the rest, truth
``t = TP + FN``, prediction ``p = TP + FP``, valid pixels ``n = TP + FP + FN + TN``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.metrics.overall import (
        average as average,
        cohen_kappa as cohen_kappa,
        frequency_weighted_iou as frequency_weighted_iou,
        matthews_correlation as matthews_correlation,
        mean as mean,
        mean_accuracy as mean_accuracy,
        mean_dice as mean_dice,
        mean_iou as mean_iou,
        pixel_accuracy as pixel_accuracy,
    )
    from segiou.metrics.per_class import (
        METRICS as METRICS,
        balanced_accuracy as balanced_accuracy,
        dice as dice,
        f_beta as f_beta,
        iou as iou,
        precision as precision,
        recall as recall,
        share as share,
        specificity as specificity,
        tversky as tversky,
        volumetric_similarity as volumetric_similarity,
    )
    from segiou.metrics.per_image import (
        QUANTILES as QUANTILES,
        FineGrained as FineGrained,
        class_means as class_means,
        false_positive_classes as false_positive_classes,
        false_positive_images as false_positive_images,
        fine_grained as fine_grained,
        image_influence as image_influence,
        image_means as image_means,
        image_values as image_values,
        worst_mean as worst_mean,
    )
    from segiou.metrics.protocols import Protocol as Protocol, load_protocol as load_protocol
    from segiou.metrics.ratio import Floats as Floats
    from segiou.metrics.soft import soft_dice as soft_dice, soft_iou as soft_iou
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "overall": (
                "average",
                "cohen_kappa",
                "frequency_weighted_iou",
                "matthews_correlation",
                "mean",
                "mean_accuracy",
                "mean_dice",
                "mean_iou",
                "pixel_accuracy",
            ),
            "per_class": (
                "METRICS",
                "balanced_accuracy",
                "dice",
                "f_beta",
                "iou",
                "precision",
                "recall",
                "share",
                "specificity",
                "tversky",
                "volumetric_similarity",
            ),
            "per_image": (
                "FineGrained",
                "QUANTILES",
                "class_means",
                "false_positive_classes",
                "false_positive_images",
                "fine_grained",
                "image_influence",
                "image_means",
                "image_values",
                "worst_mean",
            ),
            "protocols": (
                "Protocol",
                "load_protocol",
            ),
            "ratio": ("Floats",),
            "soft": (
                "soft_dice",
                "soft_iou",
            ),
        },
    )
