"""What a score is held against: predictors that have seen no image, and other class shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_kind, refuse_kind
from segiou._support.text import Json, percent, plain
from segiou.counting.counts import ConfusionCounts, Counts
from segiou.metrics.overall import mean
from segiou.metrics.per_class import recall
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


_TALLY = (
    "a segiou.counting.counts.ConfusionCounts, such as the tally of a ConfusionMatrix or a Report"
)


@dataclass(frozen=True, slots=True, eq=False)
class Prevalence:
    """Scores at given class shares.

    Attributes
    ----------
    shares : ndarray of float, shape (C,)
        Share of each class in the truth; they sum to 1.
    matrix : ndarray of float, shape (C, C + 1)
        Share of the pixels of truth ``t`` predicted ``p``; last column
        unassigned. It sums to 1.
    iou, recall : ndarray of float, shape (C,)
    pixel_accuracy, mean_accuracy, mean_iou : float
    mean_iou_classes : int
        How many classes the mean IoU covers.
    """

    shares: Floats
    matrix: Floats
    iou: Floats
    recall: Floats
    pixel_accuracy: float
    mean_accuracy: float
    mean_iou: float
    mean_iou_classes: int

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        return dict(plain(self))


@dataclass(frozen=True, slots=True, eq=False)
class PrevalenceCurve:
    """Scores along the share of one class, all confusion rates held.

    Attributes
    ----------
    class_index : int
    shares : ndarray of float, shape (S,)
        Share of the class.
    pixel_accuracy, iou, mean_iou : ndarray of float, shape (S,)
        ``iou`` is that of the class.
    """

    class_index: int
    shares: Floats
    pixel_accuracy: Floats
    iou: Floats
    mean_iou: Floats

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        return dict(plain(self))


def at_prevalence(
    tally: ConfusionCounts,
    shares: Any,
    *,
    include: Any = None,
    class_names: Sequence[str] | None = None,
) -> Prevalence:
    """Score the same model on a truth with other class shares.

    Keeps what the model does to the pixels of each truth class and changes
    only how many of them there are: ``n'[t, p] = shares[t] · n[t, p] / n[t, ·]``,
    row sums with the unassigned pixels. Recall stays as it is; accuracy,
    precision and IoU move. This is label shift in the sense of Lipton et al.
    (ICML 2018) and a forecast only as far as it holds: a class that
    gets rarer in the world may also become harder to see.

    Parameters
    ----------
    tally : ConfusionCounts of shape (C, C)
        What was counted.
    shares : array_like of float, shape (C,), or "balanced"
        Weights of the truth classes, scaled to sum to 1; "balanced" gives
        every class of the truth the same, which makes pixel accuracy equal to
        mean accuracy.
    include : array_like of bool, shape (C,), optional
        Classes that take part in the means.
    class_names : sequence of str, optional
        For messages.

    Returns
    -------
    Prevalence

    Raises
    ------
    ValueError
        If the shares do not fit, are negative or not finite, or ask for a
        class that the truth has not: its confusion rates are unknown.

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
    matrix, ious, accuracy = _at_mix(tally, wanted)
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
    """Scores as one class gets rarer and the model stays the same.

    The class gets a share s of the pixels, the others keep their proportions
    in the rest. With the class's recall r and the rate f at which the others'
    pixels are taken for it, IoU = s r / (s + (1 − s) f): it falls to 0 with s
    however small f is, while pixel accuracy goes to what it is on the others.

    Parameters
    ----------
    tally : ConfusionCounts of shape (C, C)
        What was counted.
    class_index : int
        Index of the class.
    shares : array_like of float in [0, 1], shape (S,), optional
        61 shares from one half down to one in a million by default.
    include : array_like of bool, shape (C,), optional
        Classes that take part in the mean.

    Returns
    -------
    PrevalenceCurve

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
    wanted = np.geomspace(0.5, 1e-6, 61) if shares is None else _floats(shares)
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
    _, ious, accuracy = _at_mix(tally, mixes)
    return PrevalenceCurve(class_index, wanted, accuracy, ious[:, class_index], mean(ious, include))


def _floats(shares: Any) -> Floats:
    array = np.asarray(shares)
    if array.dtype.kind not in "iuf":
        raise refuse_kind("shares", shares, "numbers")
    return array.astype(np.float64)


def _read_shares(
    shares: Any, known: NDArray[np.bool_], class_names: Sequence[str] | None
) -> Floats:
    """Shares that sum to 1; refuse those of classes whose rates are not known."""
    if isinstance(shares, str) and shares != "balanced":
        msg = f"shares must be numbers, one per class, or 'balanced', got {shares!r}"
        raise ValueError(msg)
    wanted = known.astype(np.float64) if isinstance(shares, str) else _floats(shares)
    if wanted.shape != known.shape:
        msg = f"there must be {len(known)} shares, one per class, got shape {wanted.shape}"
        raise ValueError(msg)
    if not (np.isfinite(wanted).all() and (wanted >= 0).all() and wanted.sum() > 0):
        msg = f"shares must be finite, at least 0 and not all 0, got {wanted.tolist()}"
        raise ValueError(msg)
    unknown = np.flatnonzero((wanted > 0) & ~known).tolist()
    if unknown:
        names = [str(c) if class_names is None else class_names[c] for c in unknown]
        msg = (
            f"the truth has no pixel of class {', '.join(names)}, so what the model would do "
            "to it is unknown; give it the share 0"
        )
        raise ValueError(msg)
    return np.asarray(wanted / wanted.sum())


def _at_mix(tally: ConfusionCounts, mix: Floats) -> tuple[Floats, Floats, Floats]:
    """Matrix, IoU per class and pixel accuracy where the classes have shares (..., C)."""
    rates = ratio(tally.table, tally.table.sum(-1, keepdims=True))
    matrix = mix[..., None] * np.nan_to_num(rates)
    right = np.diagonal(matrix, axis1=-2, axis2=-1)
    truth, pred = matrix.sum(-1), matrix[..., :-1].sum(-2)
    return matrix, ratio(right, truth + pred - right), np.asarray(right.sum(-1))
