"""What each image does to the score of the data set, and what its own mean does not see."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou.counts import Counts
from segiou.fine_grained.values import Metric, check_per_image
from segiou.metrics import Floats

__all__ = ["false_positive_classes", "image_influence"]


def image_influence(
    per_image: Counts,
    whole: Counts | None = None,
    metric: Metric = metrics.iou,
    *,
    include: Any = None,
) -> Floats:
    """How much higher the data set mean is for having each image, (N,).

    The mean with all images minus the mean without this one: negative where the
    image drags the score down. Exact, since the counts without an image are a
    subtraction of integers. :func:`segiou.uncertainty.influence` does the same
    for groups, other averages and each class.

    Parameters
    ----------
    per_image : Counts of shape (N, C)
    whole : Counts of shape (C,), optional
        Counts of the data set, where the images are a part of it only.
    metric : callable
        A per-class metric of :mod:`segiou.metrics`.
    include : array_like of bool, shape (C,), optional
        Classes that take part.

    Examples
    --------
    >>> per_image = Counts(tp=[[9], [1]], fp=[[1], [3]], fn=[[0], [0]], tn=[[0], [6]])
    >>> image_influence(per_image).round(4)
    array([ 0.4643, -0.1857])
    """
    check_per_image(per_image)
    total = per_image.summed() if whole is None else whole
    rest = Counts(
        total.tp - per_image.tp,
        total.fp - per_image.fp,
        total.fn - per_image.fn,
        total.tn - per_image.tn,
    )
    return metrics.mean(metric(total), include) - metrics.mean(metric(rest), include)


def false_positive_classes(per_image: Counts) -> NDArray[np.int64]:
    """Classes predicted in each image and not in its truth, how many, (N,)."""
    check_per_image(per_image)
    return np.asarray(((per_image.truth == 0) & (per_image.fp > 0)).sum(1, dtype=np.int64))
