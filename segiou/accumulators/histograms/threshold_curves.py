"""Curves and thresholds as functions of histograms (..., B, 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_number
from segiou.metrics.per_class import check_weight
from segiou.metrics.ratio import Floats, ratio

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve over thresholds.

    Attributes
    ----------
    x, y : ndarray of float64
        The points.
    thresholds : ndarray of float64
        Threshold of each point: pixels with at least this score are positive.
    """

    x: Floats
    y: Floats
    thresholds: Floats


@dataclass(frozen=True, eq=False)
class BestThreshold:
    """Thresholds with the best score.

    Attributes
    ----------
    by : str
        The score.
    thresholds, scores : ndarray of float64, shape (C,)
        Best threshold of each class, and the score there; NaN for an absent class.
    overall, mean : float
        The single threshold with the best mean over the included classes, and the mean.
    """

    by: str
    thresholds: Floats
    scores: Floats
    overall: float
    mean: float


@dataclass(frozen=True, eq=False)
class ThresholdTable:
    """Scores of each class at every threshold.

    Attributes
    ----------
    thresholds : ndarray of float64, shape (B,)
        Pixels with at least this score are positive.
    iou, dice, precision, recall : ndarray of float64, shape (C, B)
        NaN where undefined.
    """

    thresholds: Floats
    iou: Floats
    dice: Floats
    precision: Floats
    recall: Floats

    @classmethod
    def of(cls, counts: Ints, edges: Floats) -> ThresholdTable:
        """Make the table of histograms (C, B, 2).

        Parameters
        ----------
        counts : ndarray
            Histograms of the classes.
        edges : ndarray
            Smallest score of each bin.
        """
        fp, tp, positive, _ = passing(counts)
        fn = positive - tp
        return cls(
            edges,
            ratio(tp, tp + fp + fn),
            ratio(2 * tp, 2 * tp + fp + fn),
            ratio(tp, tp + fp),
            ratio(tp, tp + fn),
        )


def passing(counts: Any, xp: Any = np) -> tuple[Any, ...]:
    """FP and TP at each threshold (..., B), and pixels of the class and others (..., 1).

    ``xp`` is the module of the arrays, here and below: NumPy, or ``keras.ops``.
    """
    above = xp.flip(xp.cumsum(xp.flip(counts, axis=-2), axis=-2), axis=-2)
    return above[..., 0], above[..., 1], above[..., :1, 1], above[..., :1, 0]


def average_precision(counts: Any, xp: Any = np) -> Floats:
    """Σ (R_n - R_{n-1}) P_n, (...,); NaN without a pixel of the class."""
    fp, tp, positive, _ = passing(counts, xp)
    precision = ratio(tp, tp + fp)
    weighted = xp.where(counts[..., 1] > 0, counts[..., 1] * precision, 0.0)
    return ratio(xp.sum(weighted, axis=-1), positive[..., 0])


def roc_auc(counts: Any, xp: Any = np) -> Floats:
    """Probability that a pixel of the class scores higher than another; ties count half."""
    _, tp, positive, negative = passing(counts, xp)
    higher = tp - counts[..., 1] + 0.5 * counts[..., 1]
    share = ratio(higher, positive)
    return ratio(xp.sum(counts[..., 0] * share, axis=-1), negative[..., 0])


def best_iou(counts: Any, xp: Any = np) -> Floats:
    """IoU at the threshold where it is highest, (...,)."""
    fp, tp, positive, _ = passing(counts, xp)
    best = xp.max(xp.nan_to_num(ratio(tp, positive + fp)), axis=-1)
    ious: Floats = xp.where(positive[..., 0] > 0, best, np.nan)
    return ious


def fpr_at_tpr(counts: Any, tpr: float = 0.95, xp: Any = np) -> Floats:
    """False positive rate at the highest threshold with this recall, (...,)."""
    tpr = check_number("tpr", tpr, 0, 1)
    fp, tp, positive, negative = passing(counts, xp)
    reached = ratio(tp, positive) >= tpr
    # False positives only decrease with the threshold.
    least = xp.min(xp.where(reached, fp, fp[..., :1]), axis=-1)
    rates: Floats = xp.where(positive[..., 0] > 0, ratio(least, negative[..., 0]), np.nan)
    return rates


def brier(counts: Any, values: Floats, xp: Any = np) -> Floats:
    """Mean of (score - truth)^2, (...,)."""
    errors = counts[..., 0] * values**2 + counts[..., 1] * (1 - values) ** 2
    return ratio(xp.sum(errors, axis=-1), xp.sum(counts, axis=(-2, -1)))


def pr_curve(counts: Ints, edges: Floats) -> Curve:
    """Precision over recall, from the threshold that all pixels pass on."""
    fp, tp, positive, _ = passing(counts)
    kept = _steps(counts)
    recall = ratio(tp, positive)[kept]
    precision = ratio(tp, tp + fp)[kept]
    return Curve(np.append(recall, 0.0), np.append(precision, 1.0), np.append(edges[kept], np.inf))


def roc_curve(counts: Ints, edges: Floats) -> Curve:
    """True over false positive rate, from (0, 0) on."""
    fp, tp, positive, negative = passing(counts)
    kept = _steps(counts)[::-1]
    x, y = ratio(fp, negative)[kept], ratio(tp, positive)[kept]
    return Curve(np.append(0.0, x), np.append(0.0, y), np.append(np.inf, edges[kept]))


def risk_coverage(top: Ints, edges: Floats) -> Curve:
    """Error rate over the share of pixels with a highest score of at least the threshold."""
    wrong, right, _, _ = passing(top)
    kept = _steps(top)[::-1]
    pixels = (wrong + right)[kept]
    return Curve(ratio(pixels, top.sum()), ratio(wrong[kept], pixels), edges[kept])


def _steps(counts: Ints) -> NDArray[np.intp]:
    """Bins with pixels: thresholds between them change nothing."""
    return np.flatnonzero(counts.any(-1))


def best_threshold(
    counts: Ints, edges: Floats, include: NDArray[np.bool_], by: str, beta: float
) -> BestThreshold:
    """The lowest of the thresholds with the best score."""
    check_choice("by", by, ("iou", "dice", "fbeta"))
    beta = check_weight("beta", beta)
    if beta != 1 and by != "fbeta":
        msg = f"beta={beta:g} applies to by='fbeta' only; pass by='fbeta', or omit beta"
        raise ValueError(msg)
    values = scores_at(counts, by, beta)
    known = np.asarray(~np.isnan(values).any(-1))
    at = np.where(known[:, None], values, 0.0).argmax(-1)
    scores = np.where(known, values[np.arange(len(at)), at], np.nan)
    thresholds = np.where(known, edges[at], np.nan)
    several = known & include
    if not several.any():
        return BestThreshold(by, thresholds, scores, np.nan, np.nan)
    means = values[several].mean(0)
    best = int(means.argmax())
    return BestThreshold(by, thresholds, scores, float(edges[best]), float(means[best]))


def scores_at(counts: NDArray[Any], by: str, beta: float = 1.0) -> Floats:
    """A score at each threshold (..., B); NaN for classes without a pixel."""
    fp, tp, positive, _ = passing(counts)
    if by == "iou":
        values = ratio(tp, positive + fp)
    else:
        weight = beta**2 if by == "fbeta" else 1.0
        values = ratio((1 + weight) * tp, weight * positive + tp + fp)
    # Without positive pixels predicted, precision (beta 0) is 0/0; every other F-beta is 0.
    return np.where(positive > 0, np.nan_to_num(values), np.nan)
