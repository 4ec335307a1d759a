"""The smallest change of a score by one pixel, which bounds the limits of perfect scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from segiou.counting.counts import Counts
from segiou.inference.units import ImageParts
from segiou.measures.score import Score
from segiou.metrics.ratio import Floats

#: Most numbers of the changed images of a score that is not a mean of classes.
_MOST = 1 << 26


def least_steps(images: ImageParts, score: Score, whole: NDArray[np.number]) -> Floats:
    """Smallest distance from each value if one pixel of an image changes, (1 + C,); or NaN."""
    values = score.evaluate(whole)
    least = np.full(len(values), np.inf)
    by_class = score.weights is None and images.number * images.width**2 <= _MOST
    for part in images.parts():
        if not isinstance(part, Counts):
            return np.full(len(values), np.nan)
        before = score.sums(part)
        for changed in _one_pixel(part, np.ones((1, images.width), bool)):
            steps = np.abs(score.evaluate(whole + (score.sums(changed) - before)) - values)
            least[1:] = np.minimum(least[1:], _smallest(steps)[1:])
        for changed in _one_pixel(part, np.eye(images.width * by_class, images.width, dtype=bool)):
            steps = np.abs(score.evaluate(whole + (score.sums(changed) - before)) - values)
            least[0] = min(least[0], _smallest(steps)[0])
    return np.where(np.isfinite(least), least, np.nan)


def _one_pixel(counts: Counts, several: NDArray[np.bool_]) -> Iterator[Counts]:
    """Counts with one pixel of some classes missed, found, or false positive in each image."""
    tp, fp, fn, tn = counts.tp, counts.fp, counts.fn, counts.tn
    for classes in several:
        missed, found, false = (np.where(x > 0, classes, 0).astype(np.int64) for x in (tp, fn, tn))
        yield Counts.trusted(tp - missed, fp, fn + missed, tn)
        yield Counts.trusted(tp + found, fp, fn - found, tn)
        yield Counts.trusted(tp, fp + false, fn, tn - false)


def _smallest(steps: Floats) -> Floats:
    """The smallest positive step of each column."""
    smallest: Floats = np.where(steps > 0, steps, np.inf).min(0)
    return smallest
