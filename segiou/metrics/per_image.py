"""Averages over images: per image, per class, and over the worst cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_callable, read_several, refuse_kind
from segiou._support.text import Json
from segiou.counting.arrays import read_floats
from segiou.counting.counts import Counts, check_counts
from segiou.metrics.overall import mean
from segiou.metrics.per_class import iou
from segiou.metrics.ratio import Floats, included, ratio

#: Default percentages of worst cases.
QUANTILES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)

Metric = Callable[[Counts], Floats]


def image_level_means(
    per_image: Counts,
    metric: Metric = iou,
    *,
    include: Any = None,
    weights: Any = None,
    quantiles: Sequence[int] = QUANTILES,
) -> ImageLevelMeans:
    """All averages of a metric over images and classes.

    Parameters
    ----------
    per_image : Counts of shape (N, C)
        Counts of each image.
    metric : callable
        A per-class metric of :mod:`segiou.metrics`.
    include : array_like of bool, shape (C,), optional
        Classes to average over; all by default.
    weights : array_like of float, shape (N,), optional
        Weight of each image in the means over images, equal by default. The
        choice of the worst images does not depend on weights, nor does D, which
        is computed from pixels.
    quantiles : sequence of int
        Percentages of the worst cases, each above 0 and at most 100.

    Raises
    ------
    ValueError
        If the counts are not per image, a weight is negative or not finite, or
        a percentage is out of range.

    References
    ----------
    Z. Wang et al., NeurIPS 2023, arXiv 2310.19252.

    Examples
    --------
    >>> per_image = Counts(
    ...     tp=[[8, 0], [3, 1]], fp=[[2, 0], [1, 0]], fn=[[0, 2], [0, 1]], tn=[[0, 8], [1, 3]]
    ... )
    >>> scores = image_level_means(per_image)
    >>> scores.image, scores.class_mean, round(scores.dataset, 4)
    (0.5125, 0.5125, 0.5179)
    >>> scores.worst_image[50], scores.worst_class[50]
    (0.4, 0.375)
    """
    wanted = percentages(quantiles)
    values = image_values(per_image, metric, include=include)
    of_images = mean(values)
    image, *worst_image = _lowest_means(of_images, (100, *wanted), weights)
    classes, *worst_class = map(mean, _lowest_means(values, (100, *wanted), weights))
    return ImageLevelMeans(
        dataset=float(mean(metric(per_image.summed()), include)),
        image=float(image),
        class_mean=float(classes),
        worst_image=dict(zip(wanted, map(float, worst_image), strict=True)),
        worst_class=dict(zip(wanted, map(float, worst_class), strict=True)),
        worst_image_mean=float(mean(np.array(worst_image))),
        worst_class_mean=float(mean(np.array(worst_class))),
        false_positive_images=false_positive_images(per_image),
        images=int((~np.isnan(of_images)).sum()),
        classes=int((~np.isnan(values)).any(0).sum()),
    )


@dataclass(frozen=True, eq=False)
class ImageLevelMeans:
    """Averages of a metric over a data set, per image and per class.

    Attributes
    ----------
    dataset : float
        D: ratios of the pooled counts, averaged over classes.
    image : float
        I: averaged over the classes in each image's truth, then over images.
    class_mean : float
        C: averaged over the images with a class in their truth, then over classes.
    worst_image, worst_class : mapping of int to float
        I_q and C_q for each percentage q: I over the lowest q % of the images,
        and C over the lowest q % of the images of each class.
    worst_image_mean, worst_class_mean : float
        Means of I_q and C_q over q.
    false_positive_images : ndarray of int64, shape (C,)
        Images in which the class was predicted but is not in the truth. I, C
        and the worst cases skip them.
    images : int
        Number of images with a class in their truth, over which I is averaged.
    classes : int
        Number of classes in the truth of an image, over which C is averaged.
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

    def to_dict(self) -> dict[str, Json]:
        """The values as plain data; percentages are strings, as in JSON."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("worst_image", "worst_class"):
            data[name] = {str(q): value for q, value in data[name].items()}
        return data | {"false_positive_images": self.false_positive_images.tolist()}


def image_values(per_image: Counts, metric: Metric = iou, *, include: Any = None) -> Floats:
    """Metric of each image and class, (N, C); NaN if the class is not in the image's truth.

    Parameters
    ----------
    per_image, metric, include
        As for :func:`image_level_means`.
    """
    check_per_image(per_image)
    check_callable("metric", metric, "a function of Counts, such as segiou.metrics.iou")
    selected = (per_image.truth > 0) & included(include, per_image.tp.shape[1])
    return np.where(selected, metric(per_image), np.nan)


def image_means(per_image: Counts, metric: Metric = iou, *, include: Any = None) -> Floats:
    """Mean of each image over the classes in its truth, (N,).

    Parameters
    ----------
    per_image, metric, include
        As for :func:`image_level_means`.
    """
    return mean(image_values(per_image, metric, include=include))


def class_means(
    per_image: Counts, metric: Metric = iou, *, include: Any = None, weights: Any = None
) -> Floats:
    """Mean of each class over the images with it in their truth, (C,).

    Parameters
    ----------
    per_image, metric, include, weights
        As for :func:`image_level_means`.
    """
    return worst_mean(image_values(per_image, metric, include=include), 100, weights)


def worst_mean(values: Any, quantile: int, weights: Any = None) -> Floats:
    """Mean of the lowest values along the first axis, () or (C,); NaN is skipped.

    The mean covers the lowest max(1, ⌊quantile · n / 100⌋) of n defined values,
    in exact integer arithmetic: 70 % of 90 values are 63, although 0.7 * 90 is
    less than 63 in floating point.

    Parameters
    ----------
    values : array_like of float, shape (N,) or (N, C)
        Values; NaN is skipped.
    quantile : int
        Percentage, above 0 and at most 100.
    weights : array_like of float, shape (N,), optional
        Weight of each value in the mean. The choice of the lowest values does
        not depend on weights.

    Examples
    --------
    >>> float(worst_mean([0.5, 0.1, 0.9, 0.3], 50))
    0.2
    """
    (lowest,) = _lowest_means(values, percentages([quantile]), weights)
    return lowest


def false_positive_images(per_image: Counts) -> NDArray[np.int64]:
    """Number of images in which each class is predicted but not in the truth, (C,).

    Parameters
    ----------
    per_image : Counts of shape (N, C)
        Counts of each image.
    """
    return np.asarray(_only_predicted(per_image).sum(0, dtype=np.int64))


def false_positive_classes(per_image: Counts) -> NDArray[np.int64]:
    """Number of classes in each image that are predicted but not in its truth, (N,).

    Parameters
    ----------
    per_image : Counts of shape (N, C)
        Counts of each image.
    """
    return np.asarray(_only_predicted(per_image).sum(1, dtype=np.int64))


def _only_predicted(per_image: Counts) -> NDArray[np.bool_]:
    """Classes that were predicted in an image but are not in its truth, (N, C)."""
    check_per_image(per_image)
    return np.asarray((per_image.truth == 0) & (per_image.fp > 0))


def image_influence(
    per_image: Counts, whole: Counts | None = None, metric: Metric = iou, *, include: Any = None
) -> Floats:
    """Influence of each image on the mean of the data set, (N,).

    The influence is the mean of all images minus the mean without this image,
    so it is negative if the image lowers the score. It is exact, because the
    counts without an image are a difference of integers.
    :func:`segiou.analysis.influence` does the same for groups, other averages
    and each class.

    Parameters
    ----------
    per_image : Counts of shape (N, C)
        Counts of each image.
    whole : Counts of shape (C,), optional
        Counts of the data set, if the images are only a part of it.
    metric : callable
        A per-class metric of :mod:`segiou.metrics`.
    include : array_like of bool, shape (C,), optional
        Classes to average over; all by default.

    Examples
    --------
    >>> per_image = Counts(tp=[[9], [1]], fp=[[1], [3]], fn=[[0], [0]], tn=[[0], [6]])
    >>> image_influence(per_image).round(4)
    array([ 0.4643, -0.1857])
    """
    check_per_image(per_image)
    check_callable("metric", metric, "a function of Counts, such as segiou.metrics.iou")
    total = per_image.summed() if whole is None else whole
    check_counts(total, "whole")
    rest = Counts(
        total.tp - per_image.tp,
        total.fp - per_image.fp,
        total.fn - per_image.fn,
        total.tn - per_image.tn,
    )
    return mean(metric(total), include) - mean(metric(rest), include)


def _lowest_means(values: Any, wanted: Iterable[int], weights: Any) -> list[Floats]:
    """Means of the lowest max(1, ⌊q · n / 100⌋) of n defined values, for each percentage q."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or not array.ndim:
        raise refuse_kind("values", values, "an array of numbers, one per image and class")
    defined = (~np.isnan(array)).sum(0)
    if weights is None:
        ascending, weight = np.sort(array, axis=0), np.ones(())
    else:
        order = np.argsort(array, axis=0, kind="stable")
        ascending = np.take_along_axis(array, order, 0)
        weight = _checked_weights(weights, len(array))[order]
    position = np.arange(len(array)).reshape(-1, *[1] * (array.ndim - 1))
    means = []
    for q in wanted:
        lowest = position < np.minimum(np.maximum(1, q * defined // 100), defined)
        parts = np.where(lowest, weight, 0.0)
        means.append(ratio((np.where(lowest, ascending, 0.0) * parts).sum(0), parts.sum(0)))
    return means


def check_per_image(per_image: Counts) -> None:
    """Raise unless counts have shape (N, C)."""
    check_counts(per_image, "counts per image")
    if per_image.tp.ndim != 2:
        msg = f"counts per image must have shape (N, C), got {per_image.tp.shape}"
        raise ValueError(msg)


def percentages(quantiles: Iterable[int]) -> tuple[int, ...]:
    """Checked whole percentages above 0 and at most 100."""
    wanted = "a whole percentage above 0 and at most 100"
    numbers = read_several("quantiles", quantiles, f"several, each {wanted}")
    for q in numbers:
        if isinstance(q, bool) or not isinstance(q, Real):
            raise refuse_kind("quantile", q, wanted)
        if not 0 < q <= 100 or int(q) != q:
            msg = f"quantile must be {wanted}, got {q!r}"
            raise ValueError(msg)
    return tuple(int(q) for q in numbers)


def _checked_weights(weights: Any, num_images: int) -> Floats:
    """Weights as floats; raises unless there is one finite, non-negative weight per image."""
    array = read_floats(weights, "weights", "numbers, one per image")
    if array.shape != (num_images,):
        msg = f"weights must have shape ({num_images},), one per image, got {array.shape}"
        raise ValueError(msg)
    if not (np.isfinite(array) & (array >= 0)).all():
        msg = "weights must be finite and at least 0"
        raise ValueError(msg)
    return array
