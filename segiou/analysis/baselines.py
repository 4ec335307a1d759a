"""Predictors that have seen no image: what a score must be compared with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from segiou._support.text import percent
from segiou.counting.counts import Counts
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats, included, ratio


class WeightedMean(NamedTuple):
    """A mean as the sum of ``values * weights``."""

    values: Floats
    """(C,) or (N, C); 0 where a value takes no part."""
    weights: Floats
    """Same shape; they sum to 1. NaN where nothing takes part."""

    @property
    def value(self) -> float:
        """The mean itself."""
        return float((self.values * self.weights).sum())

    @property
    def classes(self) -> int:
        """How many classes take part."""
        taken = np.atleast_2d(self.weights > 0)
        return int(taken.any(0).sum())

    def per_class(self, values: Any = None) -> Floats:
        """Each class's part of the mean, or of the mean of other values."""
        parts = (self.values if values is None else values) * self.weights
        return np.asarray(np.atleast_2d(parts).sum(0))


def weighted_mean(
    images: Counts, metric: Callable[[Counts], Floats], protocol: Protocol, include: Any = None
) -> WeightedMean:
    """A protocol's mean of a metric, from counts of each image, (N, C)."""
    # 1/K over K classes; 1/(N K_i) for the K_i classes of each of N images; 1/(K N_c) for the N_c
    # images of each of K classes; or 1/M over M pairs of image and class.
    protocol = protocol.of_metric(metric)
    counts = images if protocol.needs_images else images.summed()
    values, part = protocol.values_taken(metric(counts), counts.truth > 0, include)
    if protocol.unit not in ("image", "class"):
        return WeightedMean(values, protocol.divide(part, part.sum()))
    if protocol.unit == "class" and protocol.absent != "skip" and protocol.over == "occurring":
        # A class without a value in any image has in each what it counts as.
        never = ~part.any(0) & included(include, values.shape[-1])
        values = np.where(never, protocol.mean_of_classes(np.array([np.nan])), values)
        part = part | never
    axis = 0 if protocol.unit == "class" else -1
    shares = np.nan_to_num(ratio(part, part.sum(axis, keepdims=True)))
    return WeightedMean(values, protocol.divide(shares, part.any(axis).sum()))


@dataclass(frozen=True, slots=True)
class Baseline:
    """A trivial predictor and how far a model is above it.

    Attributes
    ----------
    name : str
        ``"majority"`` or ``"random"``.
    answer : str or None
        The class that the majority baseline predicts.
    pixel_accuracy, mean_iou : float
        Its scores on the same truth, by the same protocol.
    mean_iou_classes : int
        How many classes its mean IoU covers.
    accuracy_skill, mean_iou_skill : float
        The model's :func:`skill` over it.
    """

    name: str
    answer: str | None
    pixel_accuracy: float
    mean_iou: float
    mean_iou_classes: int
    accuracy_skill: float
    mean_iou_skill: float

    def skill_in_words(self) -> str:
        """How far the model is above the baseline, as the end of a sentence."""
        skills = self.accuracy_skill, self.mean_iou_skill
        in_accuracy, in_iou = map(percent, skills)
        if any(map(math.isnan, skills)):
            return "where the baseline is perfect, a score of a model says nothing"
        return (
            "counting that as 0 % and a perfect score as 100 %, this model reaches "
            f"{in_accuracy} in accuracy and {in_iou} in mean IoU"
        )


def skill(score: Any, baseline: Any) -> Floats:
    """Skill over a baseline: the part of the way to a perfect score, (x − b) / (1 − b).

    0 is no better than the baseline, 1 is perfect, negative is worse; NaN
    where the baseline is perfect already.

    Parameters
    ----------
    score, baseline : array_like of float, at most 1
        Score of the model, a fraction; score of the baseline, a fraction.

    Returns
    -------
    ndarray of float64

    References
    ----------
    D. S. Wilks, Statistical Methods in the Atmospheric Sciences, 3rd ed.
    (2011), eq. 8.4, for a perfect score of 1.

    Examples
    --------
    >>> float(skill(0.95, 0.9).round(4))
    0.5
    """
    return ratio(np.subtract(score, baseline), np.subtract(1.0, baseline))


def majority_class(counts: Counts) -> int:
    """Index of the class with the most truth pixels, the first of several.

    Parameters
    ----------
    counts : Counts of shape (C,)
        Counts per class, (..., C).

    Returns
    -------
    int

    Examples
    --------
    >>> majority_class(Counts(tp=[1, 5], fp=[0, 0], fn=[2, 0], tn=[5, 3]))
    1
    """
    return int(np.argmax(counts.truth))


def majority_counts(counts: Counts, majority: int) -> Counts:
    """Give the counts of the predictor that predicts one class everywhere, on the same truth.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class, (..., C).
    majority : int
        The class that is always predicted.

    Returns
    -------
    Counts

    Examples
    --------
    >>> counts = Counts(tp=[80, 5], fp=[5, 10], fn=[10, 5], tn=[5, 80])
    >>> majority_counts(counts, majority_class(counts))
    Counts(tp=[90  0], fp=[10  0], fn=[ 0 10], tn=[ 0 90])
    """
    truth = counts.truth
    total = truth.sum(-1, keepdims=True)
    chosen = np.arange(truth.shape[-1]) == majority
    tp = np.where(chosen, truth, 0)
    fp = np.where(chosen, total - truth, 0)
    fn = np.where(chosen, 0, truth)
    return Counts(tp, fp, fn, total - tp - fp - fn)


def random_iou(shares: Any, prior: Any) -> Floats:
    """IoU of a predictor that draws each pixel's class at random, from expected counts.

    Truth and prediction are independent, so of n pixels
    E[TP] = n s q, E[FP] = n (1 − s) q, E[FN] = n s (1 − q), and the ratio of
    these expectations is s q / (s + q − s q); with q = s it is s / (2 − s).
    On images of many pixels the IoU itself comes as close to it as one likes.

    Parameters
    ----------
    shares : array_like of float, shape (..., C)
        Share s of each class in the truth.
    prior : array_like of float, shape (C,)
        Probability q with which each class is drawn.

    Returns
    -------
    ndarray of float64, shape (..., C)
        NaN for a class that neither occurs nor is ever drawn.

    Examples
    --------
    >>> random_iou([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]).round(4)
    array([0.3333, 0.3333,    nan])
    """
    s, q = np.asarray(shares, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    return ratio(s * q, s + q - s * q)


def baseline_of(
    name: str, answer: str | None, accuracy: float, mean: WeightedMean, model: tuple[float, float]
) -> Baseline:
    """The scores of a baseline beside the pixel accuracy and mean IoU of a model."""
    skills = skill(model, (accuracy, mean.value)).tolist()
    return Baseline(name, answer, accuracy, mean.value, mean.classes, *skills)
