"""Every average of a metric over images and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou.counts import Counts
from segiou.fine_grained.values import (
    Ascending,
    Metric,
    checked_weights,
    false_positive_images,
    image_values,
    percentages,
)

__all__ = ["QUANTILES", "FineGrained", "fine_grained"]

#: The percentages that the mean over worst cases is taken over.
QUANTILES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


@dataclass(frozen=True, eq=False)
class FineGrained:
    """Averages of one metric over a data set, by image and by class.

    Attributes
    ----------
    dataset : float
        D: ratios of the summed counts, averaged over classes.
    image : float
        I: averaged over the classes in each image's truth, then over images.
    class_mean : float
        C: averaged over the images with a class in their truth, then over classes.
    worst_image, worst_class : mapping of int to float
        I_q and C_q for each percentage q: of the lowest q % of the images; of
        the lowest q % of each class's images.
    worst_image_mean, worst_class_mean : float
        Their means over q.
    false_positive_images : ndarray of int64, shape (C,)
        Images without the class in their truth in which it was predicted: none
        of I, C and the worst cases sees them.
    images : int
        Images that I covers: those with a class in their truth.
    classes : int
        Classes that C covers: those in the truth of an image.
    """

    dataset: float
    image: float
    class_mean: float
    worst_image: dict[int, float]
    worst_class: dict[int, float]
    worst_image_mean: float
    worst_class_mean: float
    false_positive_images: NDArray[np.int64]
    images: int
    classes: int

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain data; percentages are text, as keys in JSON are."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("worst_image", "worst_class"):
            data[name] = {str(q): value for q, value in data[name].items()}
        return data | {"false_positive_images": self.false_positive_images.tolist()}


def fine_grained(
    per_image: Counts,
    metric: Metric = metrics.iou,
    *,
    include: Any = None,
    weights: Any = None,
    quantiles: Sequence[int] = QUANTILES,
) -> FineGrained:
    """All the averages of a metric over images and classes.

    Parameters
    ----------
    per_image : Counts of shape (N, C)
        Counts of each image.
    metric : callable
        A per-class metric of :mod:`segiou.metrics`.
    include : array_like of bool, shape (C,), optional
        Classes that take part.
    weights : array_like of float, shape (N,), optional
        Weight of each image in the means over images. They are off by default,
        they never choose which images are the worst, and D knows none: it is
        made of pixels.
    quantiles : sequence of int
        Percentages of the worst cases, each above 0 and at most 100.

    Raises
    ------
    ValueError
        If the counts are not per image, a weight is negative or not finite, or
        a percentage is out of range.

    Examples
    --------
    >>> per_image = Counts(
    ...     tp=[[8, 0], [3, 1]], fp=[[2, 0], [1, 0]], fn=[[0, 2], [0, 1]], tn=[[0, 8], [1, 3]]
    ... )
    >>> scores = fine_grained(per_image)
    >>> scores.image, scores.class_mean, round(scores.dataset, 4)
    (0.5125, 0.5125, 0.5179)
    >>> scores.worst_image[50], scores.worst_class[50]
    (0.4, 0.375)
    """
    wanted = percentages(quantiles)
    values = image_values(per_image, metric, include=include)
    checked = checked_weights(weights, len(values))
    by_image = Ascending.of(metrics.mean(values), checked)
    by_class = Ascending.of(values, checked)
    worst_image = {q: float(by_image.lowest_mean(q)) for q in wanted}
    worst_class = {q: float(metrics.mean(by_class.lowest_mean(q))) for q in wanted}
    return FineGrained(
        dataset=float(metrics.mean(metric(per_image.summed()), include)),
        image=float(by_image.lowest_mean(100)),
        class_mean=float(metrics.mean(by_class.lowest_mean(100))),
        worst_image=worst_image,
        worst_class=worst_class,
        worst_image_mean=float(metrics.mean(np.array(list(worst_image.values())))),
        worst_class_mean=float(metrics.mean(np.array(list(worst_class.values())))),
        false_positive_images=false_positive_images(per_image),
        images=int(by_image.defined),
        classes=int((by_class.defined > 0).sum()),
    )
