"""The same model where its classes are rarer or more frequent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segiou._support.arguments import check_integer, check_kind, refuse_kind
from segiou._support.text import Json, plain
from segiou.counting.counts import Tally
from segiou.metrics.overall import mean
from segiou.metrics.ratio import Floats, included, ratio

_TALLY = "a segiou.counting.counts.Tally, such as the tally of a ConfusionMatrix or a Report"


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
    tally: Tally,
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
    tally : Tally of shape (C, C)
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
    >>> tally = Tally.of_matrix([[90, 0], [5, 5]])
    >>> found = at_prevalence(tally, "balanced")
    >>> found.pixel_accuracy, found.iou.round(4)
    (0.75, array([0.6667, 0.5 ]))
    """
    check_kind("tally", tally, Tally, _TALLY)
    rates, known = _rates(tally)
    wanted = known.astype(np.float64) if isinstance(shares, str) else _floats(shares)
    if isinstance(shares, str) and shares != "balanced":
        msg = f"shares must be numbers, one per class, or 'balanced', got {shares!r}"
        raise ValueError(msg)
    _check_shares(wanted, known, class_names)
    wanted = wanted / wanted.sum()
    matrix = wanted[:, None] * np.where(known[:, None], rates, 0.0)
    ious, accuracy = _scores(matrix)
    recalls = np.where(wanted > 0, np.diagonal(rates), np.nan)
    covered = ~np.isnan(ious) & included(include, len(ious))
    return Prevalence(
        shares=wanted,
        matrix=matrix,
        iou=ious,
        recall=recalls,
        pixel_accuracy=float(accuracy),
        mean_accuracy=float(mean(recalls, include)),
        mean_iou=float(mean(ious, include)),
        mean_iou_classes=int(covered.sum()),
    )


def prevalence_curve(
    tally: Tally, class_index: int, shares: Any = None, *, include: Any = None
) -> PrevalenceCurve:
    """Scores as one class gets rarer and the model stays the same.

    The class gets a share s of the pixels, the others keep their proportions
    in the rest. With the class's recall r and the rate f at which the others'
    pixels are taken for it, IoU = s r / (s + (1 − s) f): it falls to 0 with s
    however small f is, while pixel accuracy goes to what it is on the others.

    Parameters
    ----------
    tally : Tally of shape (C, C)
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
    >>> tally = Tally.of_matrix([[90, 0], [5, 5]])
    >>> curve = prevalence_curve(tally, 0, [0.9, 0.5, 0.01])
    >>> curve.iou.round(4), curve.pixel_accuracy.round(4)
    (array([0.9474, 0.6667, 0.0198]), array([0.95 , 0.75 , 0.505]))
    """
    check_kind("tally", tally, Tally, _TALLY)
    check_integer("class_index", class_index, 0, tally.num_classes - 1)
    wanted = np.geomspace(0.5, 1e-6, 61) if shares is None else _floats(shares)
    if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
        msg = f"shares must be numbers in [0, 1], got {shares}"
        raise ValueError(msg)
    rates, known = _rates(tally)
    others = np.array(tally.matrix.sum(-1) + tally.unassigned, dtype=np.float64)
    if not known[class_index]:
        msg = f"class {class_index} is not in the truth, so its confusion rates are unknown"
        raise ValueError(msg)
    others[class_index] = 0
    if not others.any():
        msg = f"class {class_index} is the only one in the truth; its share cannot change"
        raise ValueError(msg)
    mixes = np.outer(1 - wanted, others / others.sum())
    mixes[:, class_index] = wanted
    matrices = mixes[:, :, None] * np.where(known[:, None], rates, 0.0)
    ious, accuracy = _scores(matrices)
    return PrevalenceCurve(class_index, wanted, accuracy, ious[:, class_index], mean(ious, include))


def _floats(shares: Any) -> Floats:
    array = np.asarray(shares)
    if array.dtype.kind not in "iuf":
        raise refuse_kind("shares", shares, "numbers")
    return array.astype(np.float64)


def _rates(tally: Tally) -> tuple[Floats, Any]:
    """Rows of the table as rates, NaN where the truth has no such class, and where it has."""
    rows = tally.table.sum(-1)
    return ratio(tally.table, rows[..., None]), rows > 0


def _check_shares(shares: Floats, known: Any, class_names: Sequence[str] | None) -> None:
    if shares.shape != known.shape:
        msg = f"there must be {len(known)} shares, one per class, got shape {shares.shape}"
        raise ValueError(msg)
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        msg = f"shares must be finite, at least 0 and not all 0, got {shares.tolist()}"
        raise ValueError(msg)
    unknown = np.flatnonzero((shares > 0) & ~known).tolist()
    if unknown:
        names = [str(c) if class_names is None else class_names[c] for c in unknown]
        msg = (
            f"the truth has no pixel of class {', '.join(names)}, so what the model would do "
            "to it is unknown; give it the share 0"
        )
        raise ValueError(msg)


def _scores(matrix: Floats) -> tuple[Floats, Floats]:
    """IoU per class and pixel accuracy of (..., C, C + 1) shares."""
    right = np.diagonal(matrix, axis1=-2, axis2=-1)
    truth, pred = matrix.sum(-1), matrix[..., :-1].sum(-2)
    return ratio(right, truth + pred - right), np.asarray(right.sum(-1))
