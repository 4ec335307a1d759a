"""Predictors that have seen no image: what a score must be compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from segiou.counts import Counts
from segiou.imbalance.rule import Case, Scores, mean_terms
from segiou.metrics import Floats, iou, pixel_accuracy, share
from segiou.metrics._ratio import ratio

__all__ = [
    "Baseline",
    "majority_baseline",
    "majority_class",
    "majority_counts",
    "random_baseline",
    "random_iou",
    "skill",
]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A trivial predictor and how far a model is above it.

    Attributes
    ----------
    name : str
        ``"majority"`` or ``"random"``.
    answer : str or None
        The class that the majority predictor answers.
    pixel_accuracy, mean_iou : float
        Its scores on the same truth, by the same rule.
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


def skill(score: Any, baseline: Any) -> Floats:
    """Skill over a baseline: the part of the way to a perfect score, (x − b) / (1 − b).

    0 is no better than the baseline, 1 is perfect, negative is worse; NaN
    where the baseline is perfect already.

    Parameters
    ----------
    score, baseline : array_like of float, at most 1

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

    Examples
    --------
    >>> majority_class(Counts(tp=[1, 5], fp=[0, 0], fn=[2, 0], tn=[5, 3]))
    1
    """
    return int(np.argmax(counts.truth))


def majority_counts(counts: Counts, majority: int) -> Counts:
    """Give the counts of the predictor that answers one class everywhere, on the same truth.

    Parameters
    ----------
    counts : Counts of shape (..., C)
    majority : int
        The class that is always predicted.

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


def majority_baseline(case: Case, class_names: tuple[str, ...], model: Scores) -> Baseline:
    """Score the predictor that always answers the most frequent class.

    Its pixel accuracy is that class's share, and over K classes in the truth
    its mean IoU is that share / K.
    """
    majority = majority_class(case.total)
    always = case.with_counts(majority_counts(case.images, majority))
    terms = always.terms(iou)
    scores = Scores(float(pixel_accuracy(always.total)), terms.mean)
    return _against("majority", class_names[majority], scores, terms.classes, model)


def random_baseline(case: Case, model: Scores) -> Baseline:
    """Score the predictor that draws each pixel's class with the truth's own shares.

    Its expected pixel accuracy is Σ s², its IoU that of :func:`random_iou`.
    """
    prior = share(case.total)
    shares = share(case.scored)
    terms = mean_terms(case.protocol, random_iou(shares, prior), shares > 0, case.include)
    scores = Scores(float((prior * prior).sum()), terms.mean)
    return _against("random", None, scores, terms.classes, model)


def _against(
    name: str, answer: str | None, scores: Scores, classes: int, model: Scores
) -> Baseline:
    above = skill(model, scores)
    return Baseline(name, answer, *scores, classes, float(above[0]), float(above[1]))
