"""Overlap of maps of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from segiou.metrics.ratio import Floats, ratio

__all__ = ["soft_dice", "soft_iou"]


def soft_iou(truth: Any, pred: Any, *, axis: int | tuple[int, ...] | None = None) -> Floats:
    """IoU of two maps of probabilities, Σ min / Σ max.

    For maps of 0 and 1 this is IoU.

    Parameters
    ----------
    truth, pred : array_like of float in [0, 1], equal shapes
    axis : int or tuple of int, optional
        Axes to sum over; all by default.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    ValueError
        If the shapes differ or a value lies outside [0, 1].

    References
    ----------
    The Ruzicka similarity, M. Ruzicka, Biologia 13 (1958).

    Examples
    --------
    >>> round(float(soft_iou([1.0, 0.0], [0.5, 0.5])), 4)
    0.3333
    """
    t, p = _probabilities(truth, pred)
    return ratio(np.minimum(t, p).sum(axis), np.maximum(t, p).sum(axis))


def soft_dice(truth: Any, pred: Any, *, axis: int | tuple[int, ...] | None = None) -> Floats:
    """Dice of two maps of probabilities, 2 Σ min / Σ (truth + pred).

    For maps of 0 and 1 this is Dice, and 2 J / (1 + J) of :func:`soft_iou` always.

    Parameters
    ----------
    truth, pred : array_like of float in [0, 1], equal shapes
    axis : int or tuple of int, optional
        Axes to sum over; all by default.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    ValueError
        If the shapes differ or a value lies outside [0, 1].

    Examples
    --------
    >>> float(soft_dice([1.0, 0.0], [0.5, 0.5]))
    0.5
    """
    t, p = _probabilities(truth, pred)
    return ratio(2 * np.minimum(t, p).sum(axis), (t + p).sum(axis))


def _probabilities(truth: Any, pred: Any) -> tuple[Floats, Floats]:
    t, p = _numbers(truth, "truth"), _numbers(pred, "pred")
    if t.shape != p.shape:
        msg = f"truth has shape {t.shape} but pred has {p.shape}"
        raise ValueError(msg)
    for name, values in (("truth", t), ("pred", p)):
        if values.size and not (values.min() >= 0 and values.max() <= 1):
            msg = (
                f"{name} must be probabilities in [0, 1], found {values.min()} to {values.max()}; "
                "apply a sigmoid or softmax first"
            )
            raise ValueError(msg)
    return t, p


def _numbers(values: Any, name: str) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        msg = f"{name} must be numbers, probabilities in [0, 1], got dtype {array.dtype}"
        raise TypeError(msg)
    return array.astype(np.float64, copy=False)
