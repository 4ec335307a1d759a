"""Metrics of one class against the rest."""

from __future__ import annotations

from segiou._support.arguments import check_number
from segiou.counting.counts import Counts, check_counts
from segiou.metrics.ratio import Floats, ratio


def iou(counts: Counts) -> Floats:
    """Intersection over union (Jaccard index) per class, TP / (TP + FP + FN), (..., C).

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.

    References
    ----------
    P. Jaccard, Bull. Soc. Vaud. Sci. Nat. 37 (1901); M. Everingham et al.,
    IJCV 88 (2010).

    Examples
    --------
    >>> iou(Counts(tp=[100], fp=[25], fn=[75], tn=[0]))
    array([0.5])
    """
    check_counts(counts)
    return ratio(counts.tp, counts.tp + counts.fp + counts.fn)


def dice(counts: Counts) -> Floats:
    """Dice coefficient (F1 score) per class, 2 TP / (2 TP + FP + FN), (..., C).

    Equals 2 IoU / (1 + IoU) for each class; means do not convert.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.

    References
    ----------
    L. R. Dice, Ecology 26 (1945).

    Examples
    --------
    >>> dice(Counts(tp=[2], fp=[1], fn=[1], tn=[0])).round(4)
    array([0.6667])
    """
    check_counts(counts)
    return ratio(2 * counts.tp, counts.truth + counts.pred)


def f_beta(counts: Counts, beta: float) -> Floats:
    """F-beta score per class, (1 + β²) TP / ((1 + β²) TP + β² FN + FP), (..., C).

    Recall weighs ``beta`` times as much as precision. The score of a class that
    is always missed is 0, not undefined.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.
    beta : float
        At least 0; 1 gives Dice.

    Raises
    ------
    ValueError
        If ``beta`` is negative or above 1e100.

    References
    ----------
    C. J. van Rijsbergen, Information Retrieval, 2nd ed. (1979), ch. 7.

    Examples
    --------
    >>> f_beta(Counts(tp=[1], fp=[1], fn=[0], tn=[0]), 2.0).round(4)
    array([0.8333])
    """
    check_counts(counts)
    weight = check_weight("beta", beta) ** 2
    top = (1 + weight) * counts.tp
    return ratio(top, top + weight * counts.fn + counts.fp)


def tversky(counts: Counts, alpha: float, beta: float) -> Floats:
    """Tversky index per class, TP / (TP + α FP + β FN), (..., C).

    α = β = 1 gives IoU, α = β = ½ gives Dice, α = 1 and β = 0 gives precision,
    α = 0 and β = 1 gives recall.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.
    alpha, beta : float
        Weights of false positives and false negatives, at least 0.

    Raises
    ------
    ValueError
        If a weight is negative or above 1e100.

    References
    ----------
    A. Tversky, Psychological Review 84 (1977).

    Examples
    --------
    >>> tversky(Counts(tp=[1], fp=[1], fn=[2], tn=[0]), 1.0, 0.5).round(4)
    array([0.3333])
    """
    check_counts(counts)
    alpha, beta = check_weight("alpha", alpha), check_weight("beta", beta)
    return ratio(counts.tp, counts.tp + alpha * counts.fp + beta * counts.fn)


def precision(counts: Counts) -> Floats:
    """Precision per class, TP / (TP + FP), (..., C); NaN for a class that was never predicted.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.

    Examples
    --------
    >>> precision(Counts(tp=[3], fp=[1], fn=[0], tn=[0]))
    array([0.75])
    """
    check_counts(counts)
    return ratio(counts.tp, counts.tp + counts.fp)


def recall(counts: Counts) -> Floats:
    """Recall (sensitivity, class accuracy) per class, TP / (TP + FN), (..., C); NaN if absent.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.

    Examples
    --------
    >>> recall(Counts(tp=[3], fp=[0], fn=[1], tn=[0]))
    array([0.75])
    """
    check_counts(counts)
    return ratio(counts.tp, counts.tp + counts.fn)


def specificity(counts: Counts) -> Floats:
    """Specificity per class, TN / (TN + FP), (..., C); NaN for a class that is the whole truth.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.

    Examples
    --------
    >>> specificity(Counts(tp=[0], fp=[1], fn=[0], tn=[9]))
    array([0.9])
    """
    check_counts(counts)
    return ratio(counts.tn, counts.tn + counts.fp)


def balanced_accuracy(counts: Counts) -> Floats:
    """Balanced accuracy per class against the rest, (recall + specificity) / 2, (..., C).

    NaN for a class that is absent or the whole truth. The multi-class balanced
    accuracy is :func:`mean_accuracy`.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.

    References
    ----------
    K. H. Brodersen et al., ICPR 2010.

    Examples
    --------
    >>> balanced_accuracy(Counts(tp=[1], fp=[1], fn=[1], tn=[9]))
    array([0.7])
    """
    return (recall(counts) + specificity(counts)) / 2


def volumetric_similarity(counts: Counts) -> Floats:
    """Volumetric similarity per class, ``1 − |FN − FP| / (2 TP + FP + FN)``, (..., C).

    Equals 2 min(t, p) / (t + p), which compares only sizes: two areas of equal
    size that do not overlap score 1.

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.

    References
    ----------
    A. A. Taha and A. Hanbury, BMC Medical Imaging 15:29 (2015).

    Examples
    --------
    >>> volumetric_similarity(Counts(tp=[0], fp=[4], fn=[4], tn=[0]))
    array([1.])
    """
    check_counts(counts)
    total = counts.truth + counts.pred
    return ratio(total - abs(counts.truth - counts.pred), total)


def check_weight(name: str, value: float) -> float:
    """A weight as a float: the square of one of NumPy's small integers would overflow."""
    return check_number(name, value, 0, 1e100)


def prevalence(counts: Counts) -> Floats:
    """Fraction of the valid truth pixels in each class, (TP + FN) / Σ (TP + FN), (..., C).

    Parameters
    ----------
    counts : Counts of shape (..., C)
        Counts per class.

    Examples
    --------
    >>> prevalence(Counts(tp=[3, 1], fp=[0, 0], fn=[0, 0], tn=[1, 3]))
    array([0.75, 0.25])
    """
    check_counts(counts)
    return ratio(counts.truth, counts.truth.sum(-1, keepdims=True))
