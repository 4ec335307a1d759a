"""What pixel accuracy hides: trivial baselines and the split of the gap to mean IoU."""

from __future__ import annotations

import numpy as np

from segiou.counts import Counts

__all__ = ["majority_class", "majority_counts"]


def majority_class(counts: Counts) -> int:
    """Index of the class with the most truth pixels, the first of several."""
    return int(np.argmax(counts.truth))


def majority_counts(counts: Counts, majority: int) -> Counts:
    """Counts of the predictor that answers one class everywhere, on the same truth.

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
