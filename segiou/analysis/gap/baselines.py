"""Baselines: trivial predictors, and scores at other class prevalences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_kind
from segiou._support.numbers import percent
from segiou._support.text import Plain
from segiou.counting.arrays import read_floats
from segiou.counting.counts import ConfusionCounts, Counts, check_counts
from segiou.metrics.overall import mean
from segiou.metrics.per_class import recall
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats, included, ratio

_NUMBERS = "a number or an array of numbers"


class WeightedMean(NamedTuple):
    """A mean as the sum of ``values * weights``."""

    values: Floats
    """(C,) or (N, C); 0 where a value is not included."""
    weights: Floats
    """Same shape, with sum 1; NaN if nothing is included."""

    @property
    def value(self) -> float:
        """The mean."""
        return float((self.values * self.weights).sum())

    @property
    def classes(self) -> int:
        """Number of included classes."""
        taken = np.atleast_2d(self.weights > 0)
        return int(taken.any(0).sum())

    def per_class(self, values: Any = None) -> Floats:
        """Each class's part of the mean of these or other values."""
        parts = (self.values if values is None else values) * self.weights
        return np.asarray(np.atleast_2d(parts).sum(0))


def weighted_mean(
    images: Counts, metric: Callable[[Counts], Floats], protocol: Protocol, include: Any = None
) -> WeightedMean:
    """A protocol's mean of a metric, from per-image counts (N, C)."""
    # 1/K over K classes; 1/(N K_i) for the K_i classes of each of N images; 1/(K N_c) for the N_c
    # images of each of K classes; or 1/M over M pairs of image and class.
    protocol = protocol.of_metric(metric)
    counts = images if protocol.needs_images else images.summed()
    values, part = protocol.taken(metric, counts, include)
    if protocol.unit not in ("image", "class"):
        return WeightedMean(values, protocol.divide(part, part.sum()))
    if protocol.unit == "class":
        # An absent class may count with its fixed value in every image.
        means = ratio(values.sum(0), part.sum(0))
        filled, classes = protocol.taken_classes(means, include)
        never = classes & ~part.any(0)
        values, part = np.where(never, filled, values), part | never
    axis = 0 if protocol.unit == "class" else -1
    shares = np.nan_to_num(ratio(part, part.sum(axis, keepdims=True)))
    return WeightedMean(values, protocol.divide(shares, part.any(axis).sum()))


@dataclass(frozen=True, slots=True)
class Baseline(Plain):
    """A trivial predictor, and the skill of a model over it.

    Attributes
    ----------
    name : str
        ``"majority"`` or ``"random"``.
    predicted_class : str or None
        The class that the majority baseline predicts.
    pixel_accuracy, mean_iou : float
        Its scores on the same truth under the same protocol.
    mean_iou_classes : int
        Number of classes that its mean IoU covers.
    accuracy_skill, mean_iou_skill : float
        The model's :func:`skill_score` over it.
    """

    name: str
    predicted_class: str | None
    pixel_accuracy: float
    mean_iou: float
    mean_iou_classes: int
    accuracy_skill: float
    mean_iou_skill: float

    def skill_in_words(self) -> str:
        """Return the skill of the model, as the end of a sentence."""
        skills = self.accuracy_skill, self.mean_iou_skill
        in_accuracy, in_iou = ("less than 0 %" if x < 0 else percent(x) for x in skills)
        if any(map(math.isnan, skills)):
            return "the baseline is already perfect, so skill is undefined"
        return (
            "on a scale from this baseline (0 %) to perfect (100 %), the model reaches "
            f"{in_accuracy} in accuracy and {in_iou} in mean IoU"
        )


def skill_score(score: Any, baseline: Any) -> Floats:
    """Skill score over a baseline, (x − b) / (1 − b).

    0 equals the baseline, 1 is perfect, negative values are worse than the
    baseline; NaN if the baseline is already perfect.

    Parameters
    ----------
    score, baseline : array_like of float, at most 1
        Scores of the model and of the baseline, as fractions.

    Returns
    -------
    ndarray of float64

    References
    ----------
    D. S. Wilks, Statistical Methods in the Atmospheric Sciences, 3rd ed.
    (2011), eq. 8.4, for a perfect score of 1.

    Examples
    --------
    >>> float(skill_score(0.95, 0.9).round(4))
    0.5
    """
    s, b = read_floats(score, "score", _NUMBERS), read_floats(baseline, "baseline", _NUMBERS)
    return ratio(s - b, 1.0 - b)


def majority_class(counts: Counts) -> int:
    """Index of the class with most truth pixels; the first if several tie.

    Parameters
    ----------
    counts : Counts of shape (C,)
        Counts per class, (..., C).

    Examples
    --------
    >>> majority_class(Counts(tp=[1, 5], fp=[0, 0], fn=[2, 0], tn=[5, 3]))
    1
    """
    check_counts(counts)
    return int(np.argmax(counts.truth))


def majority_counts(counts: Counts, majority: int) -> Counts:
    """Counts of always predicting one class, on the same truth.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class, (..., C).
    majority : int
        Index of the class that is always predicted.

    Examples
    --------
    >>> counts = Counts(tp=[80, 5], fp=[5, 10], fn=[10, 5], tn=[5, 80])
    >>> majority_counts(counts, majority_class(counts))
    Counts(tp=[90  0], fp=[10  0], fn=[ 0 10], tn=[ 0 90])
    """
    check_counts(counts)
    truth = counts.truth
    check_integer("majority", majority, 0, truth.shape[-1] - 1)
    total = truth.sum(-1, keepdims=True)
    chosen = np.arange(truth.shape[-1]) == majority
    tp = np.where(chosen, truth, 0)
    fp = np.where(chosen, total - truth, 0)
    fn = np.where(chosen, 0, truth)
    return Counts(tp, fp, fn, total - tp - fp - fn)


def random_iou(shares: Any, prior: Any) -> Floats:
    """IoU of sampling each pixel's class at random, from expected counts.

    Truth and prediction are independent, so for n pixels E[TP] = n s q,
    E[FP] = n (1 − s) q and E[FN] = n s (1 − q). The ratio of these expectations
    is s q / (s + q − s q), or s / (2 − s) if q = s. The IoU converges to it with
    the number of pixels.

    Parameters
    ----------
    shares : array_like of float, shape (..., C)
        Share s of each class in the truth.
    prior : array_like of float, shape (C,)
        Probability q of sampling each class.

    Returns
    -------
    ndarray of float64, shape (..., C)
        NaN for a class that neither occurs nor is ever sampled.

    Examples
    --------
    >>> random_iou([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]).round(4)
    array([0.3333, 0.3333,    nan])
    """
    s, q = read_floats(shares, "shares", _NUMBERS), read_floats(prior, "prior", _NUMBERS)
    return ratio(s * q, s + q - s * q)


def baseline_of(
    name: str, answer: str | None, accuracy: float, mean: WeightedMean, model: tuple[float, float]
) -> Baseline:
    """A baseline with the skill of a model, given its pixel accuracy and mean IoU."""
    skills = skill_score(model, (accuracy, mean.value)).tolist()
    return Baseline(name, answer, accuracy, mean.value, mean.classes, *skills)


_TALLY = (
    "a segiou.counting.counts.ConfusionCounts, such as the tally of a ConfusionMatrix or a Report"
)


@dataclass(frozen=True, slots=True, eq=False)
class Prevalence(Plain):
    """Scores at given class shares.

    Attributes
    ----------
    shares : ndarray of float, shape (C,)
        Share of each class in the truth, with sum 1.
    matrix : ndarray of float, shape (C, C + 1)
        Share of the pixels of truth ``t`` predicted as ``p``, with sum 1; the
        last column is unassigned.
    iou, recall : ndarray of float, shape (C,)
    pixel_accuracy, mean_accuracy, mean_iou : float
    mean_iou_classes : int
        Number of classes that the mean IoU covers.
    """

    shares: Floats
    matrix: Floats
    iou: Floats
    recall: Floats
    pixel_accuracy: float
    mean_accuracy: float
    mean_iou: float
    mean_iou_classes: int


@dataclass(frozen=True, slots=True, eq=False)
class PrevalenceCurve(Plain):
    """Scores by the share of one class, with all confusion rates fixed.

    Attributes
    ----------
    class_index : int
    shares : ndarray of float, shape (S,)
        Share of the class.
    pixel_accuracy, iou, mean_iou : ndarray of float, shape (S,)
        ``iou`` is the IoU of the class.
    """

    class_index: int
    shares: Floats
    pixel_accuracy: Floats
    iou: Floats
    mean_iou: Floats


def at_prevalence(
    tally: ConfusionCounts,
    shares: Any,
    *,
    include: Any = None,
    class_names: Sequence[str] | None = None,
) -> Prevalence:
    """Score the same model at other class shares.

    Keeps the confusion rates of each truth class and changes only the class
    shares: ``n'[t, p] = shares[t] · n[t, p] / n[t, ·]``, with unassigned pixels
    in the row sums. Recall is unchanged; accuracy, precision and IoU change.
    This assumes label shift (Lipton et al., ICML 2018): in practice, a rarer
    class may also become harder to recognise.

    Parameters
    ----------
    tally : ConfusionCounts of shape (C, C)
        Counts of the model.
    shares : array_like of float, shape (C,), or "balanced"
        Weights of the truth classes, normalised to sum 1; "balanced" weighs all
        classes of the truth equally, so that pixel accuracy equals mean
        accuracy.
    include : array_like of bool, shape (C,), optional
        Classes that are included in the means.
    class_names : sequence of str, optional
        Used in error messages.

    Raises
    ------
    ValueError
        If the shares have the wrong shape, are negative or not finite, or are
        positive for a class that is not in the truth.

    Examples
    --------
    >>> tally = ConfusionCounts.of_matrix([[90, 0], [5, 5]])
    >>> found = at_prevalence(tally, "balanced")
    >>> found.pixel_accuracy, found.iou.round(4)
    (0.75, array([0.6667, 0.5 ]))
    """
    check_kind("tally", tally, ConfusionCounts, _TALLY)
    counts = tally.counts
    wanted = _read_shares(shares, counts.truth > 0, class_names)
    matrix, ious, accuracy = _mixed_scores(tally, wanted)
    recalls = np.where(wanted > 0, recall(counts), np.nan)
    return Prevalence(
        shares=wanted,
        matrix=matrix,
        iou=ious,
        recall=recalls,
        pixel_accuracy=float(accuracy),
        mean_accuracy=float(mean(recalls, include)),
        mean_iou=float(mean(ious, include)),
        mean_iou_classes=int((~np.isnan(ious) & included(include, len(ious))).sum()),
    )


def prevalence_curve(
    tally: ConfusionCounts, class_index: int, shares: Any = None, *, include: Any = None
) -> PrevalenceCurve:
    """Scores of the same model as one class gets rarer.

    The class has a share s of the pixels; the others keep their proportions.
    With the recall r of the class and the rate f at which other pixels are
    predicted as it, IoU = s r / (s + (1 − s) f). It falls to 0 with s for any
    f > 0, while pixel accuracy approaches that on the other classes.

    Parameters
    ----------
    tally : ConfusionCounts of shape (C, C)
        Counts of the model.
    class_index : int
        Index of the class.
    shares : array_like of float in [0, 1], shape (S,), optional
        By default, 61 shares from one half to one in a million.
    include : array_like of bool, shape (C,), optional
        Classes that are included in the mean.

    Raises
    ------
    ValueError
        If the class or all other classes are not in the truth, or a share is
        outside [0, 1].

    Examples
    --------
    >>> tally = ConfusionCounts.of_matrix([[90, 0], [5, 5]])
    >>> curve = prevalence_curve(tally, 0, [0.9, 0.5, 0.01])
    >>> curve.iou.round(4), curve.pixel_accuracy.round(4)
    (array([0.9474, 0.6667, 0.0198]), array([0.95 , 0.75 , 0.505]))
    """
    check_kind("tally", tally, ConfusionCounts, _TALLY)
    check_integer("class_index", class_index, 0, tally.num_classes - 1)
    shares = np.geomspace(0.5, 1e-6, 61) if shares is None else shares
    wanted = read_floats(shares, "shares", "numbers")
    if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
        msg = f"shares must be numbers in [0, 1], got {shares}"
        raise ValueError(msg)
    others = tally.counts.truth.astype(np.float64)
    if not others[class_index]:
        msg = f"class {class_index} is not in the truth, so its confusion rates are unknown"
        raise ValueError(msg)
    others[class_index] = 0
    if not others.any():
        msg = f"class {class_index} is the only one in the truth; its share cannot change"
        raise ValueError(msg)
    mixes = np.outer(1 - wanted, others / others.sum())
    mixes[:, class_index] = wanted
    _, ious, accuracy = _mixed_scores(tally, mixes)
    return PrevalenceCurve(class_index, wanted, accuracy, ious[:, class_index], mean(ious, include))


def _read_shares(
    shares: Any, known: NDArray[np.bool_], class_names: Sequence[str] | None
) -> Floats:
    """Normalised shares; reject those of classes with unknown confusion rates."""
    if isinstance(shares, str) and shares != "balanced":
        msg = f"shares must be numbers, one per class, or 'balanced', got {shares!r}"
        raise ValueError(msg)
    if isinstance(shares, str):
        shares = known.astype(np.int64)
    wanted = read_floats(shares, "shares", "numbers")
    if wanted.shape != known.shape:
        msg = f"expected {len(known)} shares, one per class, got shape {wanted.shape}"
        raise ValueError(msg)
    if not (np.isfinite(wanted).all() and (wanted >= 0).all() and wanted.sum() > 0):
        msg = f"shares must be finite, at least 0 and not all 0, got {wanted.tolist()}"
        raise ValueError(msg)
    unknown = np.flatnonzero((wanted > 0) & ~known).tolist()
    if unknown:
        names = [str(c) if class_names is None else class_names[c] for c in unknown]
        msg = (
            f"class {', '.join(names)} does not occur in the truth, so its predictions are "
            "unknown; set its share to 0"
        )
        raise ValueError(msg)
    return np.asarray(wanted / wanted.sum())


def _mixed_scores(tally: ConfusionCounts, mix: Floats) -> tuple[Floats, Floats, Floats]:
    """Matrix, per-class IoU and pixel accuracy at class shares (..., C)."""
    rates = ratio(tally.table, tally.table.sum(-1, keepdims=True))
    matrix = mix[..., None] * np.nan_to_num(rates)
    right = np.diagonal(matrix, axis1=-2, axis2=-1)
    truth, pred = matrix.sum(-1), matrix[..., :-1].sum(-2)
    return matrix, ratio(right, truth + pred - right), np.asarray(right.sum(-1))
