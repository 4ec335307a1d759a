"""Scores of all classes together: means of per-class metrics, accuracy, agreement, soft overlap."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

import numpy as np

from segiou._support.arguments import (
    check_callable,
    check_choice,
    check_integer,
    check_kind,
    refuse_kind,
)
from segiou.counting.arrays import as_array, as_float, check_same_shape
from segiou.counting.counts import Counts, check_counts
from segiou.metrics.per_class import dice, iou, recall
from segiou.metrics.ratio import Floats, included, ratio


def mean(values: Floats, include: Any = None, xp: Any = np) -> Floats:
    """Mean over the classes (last axis) that have a value, (...); NaN if none has.

    Parameters
    ----------
    values : ndarray of float, shape (..., C)
        Values; NaN is skipped.
    include : array_like of bool, shape (C,) or (..., C), optional
        Classes to average over; all by default.
    xp : module
        Module of the arrays: NumPy, or ``keras.ops``.

    Examples
    --------
    >>> float(mean(np.array([0.5, np.nan, 1.0])))
    0.75
    """
    _check_module(xp)
    if xp is np:
        values = np.asarray(values)
        if values.dtype.kind not in "biuf" or not values.ndim:
            raise refuse_kind("values", values, "numbers with an axis of classes")
    selected = ~xp.isnan(values)
    if include is not None:
        selected = xp.where(included(include, values.shape[-1]), selected, False)
    number = xp.sum(xp.where(selected, 1.0, 0.0), axis=-1)
    return ratio(xp.sum(xp.where(selected, values, 0.0), axis=-1), number)


def average(
    metric: Callable[[Counts], Floats],
    counts: Counts,
    how: Literal["macro", "micro", "weighted", "none"] = "macro",
    *,
    include: Any = None,
) -> Floats:
    """Average a per-class metric over the classes, (...).

    Parameters
    ----------
    metric : callable
        A per-class metric of this module.
    counts : Counts of shape (..., C)
        Counts per class.
    how : {"macro", "micro", "weighted", "none"}
        ``"macro"``: mean of the defined values; ``"micro"``: metric of the
        pooled counts; ``"weighted"``: mean weighted by truth pixels;
        ``"none"``: the value of each class, (..., C).
    include : array_like of bool, shape (C,), optional
        Classes to average over; all by default.

    Raises
    ------
    ValueError
        If ``how`` is not one of these.

    Examples
    --------
    >>> from segiou.metrics import iou
    >>> counts = Counts(tp=[9, 0], fp=[1, 0], fn=[0, 1], tn=[0, 9])
    >>> round(float(average(iou, counts)), 4), round(float(average(iou, counts, "micro")), 4)
    (0.45, 0.8182)
    """
    check_counts(counts)
    check_callable("metric", metric, "a function of Counts, such as segiou.metrics.iou")
    check_choice("average", how, ("macro", "micro", "weighted", "none"))
    selected = included(include, counts.tp.shape[-1])
    if how == "macro":
        return mean(metric(counts), selected)
    if how == "micro":
        return metric(counts[..., selected].pooled())[..., 0]
    if how == "weighted":
        values, weights = metric(counts), np.where(selected, counts.truth, 0)
        weights = np.where(np.isnan(values), 0, weights)
        return ratio((np.nan_to_num(values) * weights).sum(-1), weights.sum(-1))
    return metric(counts)


def mean_iou(counts: Counts) -> Floats:
    """Mean IoU over the classes in truth or prediction, (...).

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.

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
    """Mean Dice over the classes in truth or prediction, (...).

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.

    Examples
    --------
    >>> float(mean_dice(Counts(tp=[2, 0], fp=[1, 0], fn=[0, 1], tn=[0, 2])))
    0.4
    """
    return mean(dice(counts))


def mean_accuracy(counts: Counts) -> Floats:
    """Mean recall over the classes in the truth (multi-class balanced accuracy), (...).

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.

    References
    ----------
    J. Long et al., CVPR 2015, section 5.

    Examples
    --------
    >>> float(mean_accuracy(Counts(tp=[9, 0], fp=[1, 0], fn=[0, 1], tn=[0, 9])))
    0.5
    """
    return mean(recall(counts))


def pixel_accuracy(counts: Counts, xp: Any = np) -> Floats:
    """Fraction of the valid pixels that are correct, Σ TP / Σ (TP + FN), (...).

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.
    xp : module
        Module of the arrays: NumPy, or ``keras.ops``.

    Examples
    --------
    >>> float(pixel_accuracy(Counts(tp=[9, 0], fp=[1, 0], fn=[0, 1], tn=[0, 9])))
    0.9
    """
    check_counts(counts)
    _check_module(xp)
    return ratio(xp.sum(counts.tp, -1), xp.sum(counts.truth, -1))


def frequency_weighted_iou(counts: Counts, xp: Any = np) -> Floats:
    """IoU weighted by the prevalence of each class, Σ prevalence · IoU, (...).

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.
    xp : module
        Module of the arrays: NumPy, or ``keras.ops``.

    References
    ----------
    J. Long et al., CVPR 2015, section 5.

    Examples
    --------
    >>> round(float(frequency_weighted_iou(Counts(tp=[9, 0], fp=[1, 0], fn=[0, 1], tn=[0, 9]))), 4)
    0.81
    """
    _check_module(xp)
    ious, weights = iou(counts), counts.truth
    weighted = xp.where(weights > 0, weights * ious, xp.zeros_like(ious))
    return ratio(xp.sum(weighted, -1), xp.sum(weights, -1))


def cohen_kappa(counts: Counts, xp: Any = np) -> Floats:
    """Cohen's kappa over all classes, (p_o − p_e) / (1 − p_e), (...).

    p_o is pixel accuracy and p_e = Σ t_c p_c / n² the agreement expected of two
    independent labellings with the same class frequencies. It is computed as
    Σ (TP·TN − FP·FN) / Σ t (n − p), which avoids the cancellation in 1 − p_e if
    one class is very frequent. NaN if truth and prediction consist of the same
    single class.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts of all classes of a labelling. Unassigned pixels count as
        disagreement.
    xp : module
        Module of the arrays: NumPy, or ``keras.ops``.

    Raises
    ------
    ValueError
        If the counts cover only some of the classes, or overlapping channels;
        see :meth:`segiou.counting.Counts.one_vs_rest`.

    References
    ----------
    J. Cohen, Educ. Psychol. Meas. 20 (1960).

    Examples
    --------
    >>> round(float(cohen_kappa(Counts(tp=[1, 1], fp=[1, 0], fn=[0, 1], tn=[1, 1]))), 4)
    0.4
    """
    tp, _, fn, tn = labelled = _labelled(counts, "cohen_kappa", xp)
    return ratio(_covariance(labelled, xp), xp.sum((tp + fn) * (tn + fn), -1))


def matthews_correlation(counts: Counts, xp: Any = np) -> Floats:
    """Multi-class Matthews correlation (R_K) over all classes, (...).

    (c s − Σ p_k t_k) / √((s² − Σ p_k²)(s² − Σ t_k²)), with c correct pixels of s
    valid ones; unassigned pixels count as an additional class. NaN if truth
    or prediction consists of a single class.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts of all classes of a labelling.
    xp : module
        Module of the arrays: NumPy, or ``keras.ops``.

    Raises
    ------
    ValueError
        If the counts cover only some of the classes, or overlapping channels;
        see :meth:`segiou.counting.Counts.one_vs_rest`.

    References
    ----------
    J. Gorodkin, Comput. Biol. Chem. 28 (2004).

    Examples
    --------
    >>> float(matthews_correlation(Counts(tp=[2, 2], fp=[0, 0], fn=[0, 0], tn=[2, 2])))
    1.0
    """
    tp, fp, fn, tn = labelled = _labelled(counts, "matthews_correlation", xp)
    # s² − Σ x² = Σ x (s − x), and the sum of products does not cancel.
    spread_truth = xp.sum((tp + fn) * (fp + tn), -1)
    spread_pred = xp.sum((tp + fp) * (fn + tn), -1)
    unassigned = xp.sum(fn, -1) - xp.sum(fp, -1)
    spread_pred = spread_pred + unassigned * xp.sum(tp + fp, -1)
    return ratio(_covariance(labelled, xp), xp.sqrt(spread_pred * spread_truth))


def soft_iou(truth: Any, pred: Any, *, axis: int | tuple[int, ...] | None = None) -> Floats:
    """IoU of two probability maps, Σ min / Σ max.

    For maps of 0 and 1, this is IoU.

    Parameters
    ----------
    truth, pred : array_like of float, equal shapes
        Probabilities in [0, 1].
    axis : int or tuple of int, optional
        Axes to sum over; all by default.

    Raises
    ------
    ValueError
        If the shapes differ or a value is outside [0, 1].

    References
    ----------
    The Ruzicka similarity, M. Ruzicka, Biologia 13 (1958).

    Examples
    --------
    >>> round(float(soft_iou([1.0, 0.0], [0.5, 0.5])), 4)
    0.3333
    """
    t, p = _probabilities(truth, pred, axis)
    return ratio(np.minimum(t, p).sum(axis), np.maximum(t, p).sum(axis))


def soft_dice(truth: Any, pred: Any, *, axis: int | tuple[int, ...] | None = None) -> Floats:
    """Dice of two probability maps, 2 Σ min / Σ (truth + pred).

    For maps of 0 and 1, this is Dice. It always equals 2 J / (1 + J), where J is
    :func:`soft_iou`.

    Parameters
    ----------
    truth, pred : array_like of float, equal shapes
        Probabilities in [0, 1].
    axis : int or tuple of int, optional
        Axes to sum over; all by default.

    Raises
    ------
    ValueError
        If the shapes differ or a value is outside [0, 1].

    Examples
    --------
    >>> float(soft_dice([1.0, 0.0], [0.5, 0.5]))
    0.5
    """
    t, p = _probabilities(truth, pred, axis)
    return ratio(2 * np.minimum(t, p).sum(axis), (t + p).sum(axis))


def _check_module(xp: Any) -> None:
    """Raise a TypeError unless the module of arrays is one."""
    if xp is not np:
        check_kind("xp", xp, ModuleType, "a module, such as numpy or keras.ops")


def _labelled(counts: Counts, what: str, xp: Any) -> tuple[Floats, Floats, Floats, Floats]:
    """TP, FP, FN and TN as floats; shares if they are tensors, whose products stay in float32."""
    check_counts(counts)
    _check_module(xp)
    labelled = xp.sum(counts.truth, -1)
    if xp is np:
        _check_labelled(counts, labelled, what)
    # Products of pixel counts can exceed int64.
    tp, fp, fn, tn = (x.astype(np.float64) if xp is np else x / labelled for x in counts._arrays)
    return tp, fp, fn, tn


def _covariance(labelled: tuple[Floats, Floats, Floats, Floats], xp: Any) -> Floats:
    """Σ (TP·TN − FP·FN)."""
    tp, fp, fn, tn = labelled
    covariance: Floats = xp.sum(tp * tn - fp * fn, -1)
    return covariance


def _check_labelled(counts: Counts, labelled: Any, what: str) -> None:
    if (counts.total != labelled[..., None]).any():
        msg = (
            f"{what} needs exactly one class per valid pixel, but the classes have "
            f"{int(labelled.max(initial=0))} truth pixels of {int(counts.total.max(initial=0))} "
            "valid pixels. For overlapping channels or one class against the rest, use "
            "counts.one_vs_rest()"
        )
        raise ValueError(msg)


def _probabilities(truth: Any, pred: Any, axis: Any) -> list[Floats]:
    """Checked probability maps of truth and prediction, which have these axes."""
    checked: list[Floats] = []
    for name, array_like in (("truth", truth), ("pred", pred)):
        values = as_float(as_array(array_like, name))
        if values.dtype.kind not in "biuf":
            msg = f"{name} must be probabilities in [0, 1], got dtype {values.dtype}"
            raise TypeError(msg)
        if values.size and not (values.min() >= 0 and values.max() <= 1):
            msg = (
                f"{name} must be probabilities in [0, 1], got {values.min()} to {values.max()}; "
                "apply a sigmoid or softmax first"
            )
            raise ValueError(msg)
        checked.append(values.astype(np.float64, copy=False))
    check_same_shape(checked[0], checked[1])
    axes = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
    places = [check_integer("axis", one, -checked[0].ndim, checked[0].ndim - 1) for one in axes]
    if len({place % checked[0].ndim for place in places}) < len(places):
        msg = f"axis has an axis twice: {axis}"
        raise ValueError(msg)
    return checked
