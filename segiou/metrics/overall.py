"""Metrics over all classes at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from segiou.counts import Counts
from segiou.metrics._ratio import Floats, ratio
from segiou.metrics.averages import mean
from segiou.metrics.per_class import dice, iou, recall

__all__ = [
    "cohen_kappa",
    "frequency_weighted_iou",
    "matthews_correlation",
    "mean_accuracy",
    "mean_dice",
    "mean_iou",
    "pixel_accuracy",
]


def mean_iou(counts: Counts) -> Floats:
    """Mean IoU over the classes in truth or prediction.

    Parameters
    ----------
    counts : Counts of shape (..., C)

    Returns
    -------
    ndarray of float64, shape (...)

    References
    ----------
    J. Long et al., CVPR 2015, section 5.

    Examples
    --------
    >>> float(mean_iou(Counts(tp=[1, 0, 0], fp=[1, 0, 0], fn=[0, 1, 0], tn=[0, 1, 2])))
    0.25
    """
    return mean(iou(counts))


def mean_dice(counts: Counts) -> Floats:
    """Mean Dice over the classes in truth or prediction.

    Parameters
    ----------
    counts : Counts of shape (..., C)

    Returns
    -------
    ndarray of float64, shape (...)

    Examples
    --------
    >>> float(mean_dice(Counts(tp=[2, 0], fp=[1, 0], fn=[0, 1], tn=[0, 2])))
    0.4
    """
    return mean(dice(counts))


def mean_accuracy(counts: Counts) -> Floats:
    """Mean recall over the classes in the truth (multi-class balanced accuracy).

    Parameters
    ----------
    counts : Counts of shape (..., C)

    Returns
    -------
    ndarray of float64, shape (...)

    References
    ----------
    J. Long et al., CVPR 2015, section 5.

    Examples
    --------
    >>> float(mean_accuracy(Counts(tp=[9, 0], fp=[1, 0], fn=[0, 1], tn=[0, 9])))
    0.5
    """
    return mean(recall(counts))


def pixel_accuracy(counts: Counts) -> Floats:
    """Share of the valid pixels that are right, Σ TP / Σ (TP + FN).

    Parameters
    ----------
    counts : Counts of shape (..., C)

    Returns
    -------
    ndarray of float64, shape (...)

    Examples
    --------
    >>> float(pixel_accuracy(Counts(tp=[9, 0], fp=[1, 0], fn=[0, 1], tn=[0, 9])))
    0.9
    """
    return ratio(counts.tp.sum(-1), counts.truth.sum(-1))


def frequency_weighted_iou(counts: Counts) -> Floats:
    """IoU weighted by each class's share of the truth, Σ share · IoU.

    Parameters
    ----------
    counts : Counts of shape (..., C)

    Returns
    -------
    ndarray of float64, shape (...)

    References
    ----------
    J. Long et al., CVPR 2015, section 5.

    Examples
    --------
    >>> round(float(frequency_weighted_iou(Counts(tp=[9, 0], fp=[1, 0], fn=[0, 1], tn=[0, 9]))), 4)
    0.81
    """
    weights = counts.truth
    weighted = np.where(weights > 0, weights * np.nan_to_num(iou(counts)), 0.0)
    return ratio(weighted.sum(-1), weights.sum(-1))


def cohen_kappa(counts: Counts) -> Floats:
    """Cohen's kappa over all classes, (p_o − p_e) / (1 − p_e).

    p_o is pixel accuracy, p_e = Σ t_c p_c / n² the agreement of two
    independent labellings with the same shares.

    Parameters
    ----------
    counts : Counts of shape (..., C)

    Returns
    -------
    ndarray of float64, shape (...)
        NaN where truth and prediction are the same single class throughout.

    References
    ----------
    J. Cohen, Educ. Psychol. Meas. 20 (1960), eq. 1.

    Examples
    --------
    >>> round(float(cohen_kappa(Counts(tp=[1, 1], fp=[1, 0], fn=[0, 1], tn=[1, 1]))), 4)
    0.4
    """
    truth, pred = _float(counts.truth), _float(counts.pred)
    total = truth.sum(-1)
    agreed = ratio(counts.tp.sum(-1), total)
    chance = ratio((truth * pred).sum(-1), total * total)
    return ratio(agreed - chance, 1 - chance)


def matthews_correlation(counts: Counts) -> Floats:
    """Multi-class Matthews correlation (R_K) over all classes.

    (c s − Σ p_k t_k) / √((s² − Σ p_k²)(s² − Σ t_k²)), with c correct of s
    valid pixels; pixels without a predicted class count as one more class.

    Parameters
    ----------
    counts : Counts of shape (..., C)

    Returns
    -------
    ndarray of float64, shape (...)
        NaN where truth or prediction is one class throughout.

    References
    ----------
    J. Gorodkin, Comput. Biol. Chem. 28 (2004), eq. 8.

    Examples
    --------
    >>> float(matthews_correlation(Counts(tp=[2, 2], fp=[0, 0], fn=[0, 0], tn=[2, 2])))
    1.0
    """
    truth, pred = _float(counts.truth), _float(counts.pred)
    total, correct = truth.sum(-1), _float(counts.tp.sum(-1))
    unassigned = total - pred.sum(-1)
    covariance = correct * total - (pred * truth).sum(-1)
    spread_pred = total**2 - (pred**2).sum(-1) - unassigned**2
    spread_truth = total**2 - (truth**2).sum(-1)
    return ratio(covariance, np.sqrt(spread_pred * spread_truth))


def _float(counts: Any) -> Floats:
    # Products of pixel counts pass 2^63 long before the counts do.
    return np.asarray(counts, dtype=np.float64)
