"""Gains of other thresholds than the one that decided the predictions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import Json, plain
from segiou.counting.counts import Counts
from segiou.inference.paired import Paired
from segiou.inference.statistics import scored_counts
from segiou.inference.units import Units
from segiou.measures.plan import Alternative
from segiou.metrics.protocols import Protocol


@dataclass(frozen=True)
class ThresholdGain:
    """Gain of a different threshold on images that it was not chosen on.

    Attributes
    ----------
    score : {"mean_iou", "iou"}
        The score that it raises: with two classes the mean, else that of the class.
    name : str
        The class whose score is compared with the threshold.
    threshold : float
        The best threshold of all images.
    gain, low, high : float
        Difference of the score, and its interval. Each image is decided by the threshold
        that is best on all other units.
    level : float
        Confidence level of the intervals of all classes together.
    """

    score: str
    name: str
    threshold: float
    gain: float
    low: float
    high: float
    level: float

    def to_dict(self) -> dict[str, Json]:
        """Plain values."""
        data: dict[str, Json] = plain(asdict(self))
        return data


def threshold_gains(
    counts: Counts,
    other: Alternative,
    names: tuple[str, ...],
    units: Units,
    protocol: Protocol,
    include: NDArray[np.bool_],
    *,
    level: float = 0.95,
) -> tuple[ThresholdGain, ...]:
    """The gains whose interval is above 0, largest first; none over too few units."""
    if units.too_few_to_compare:
        return ()
    averaged = protocol.for_pixels
    tried = np.flatnonzero(~np.isnan(other.thresholds))
    several: Any = (
        scored_counts(one, "iou", averaged, names, include).over(units, None)
        for one in (counts, other.counts)
    )
    # The best of several classes is shown, so all intervals are simultaneous (Bonferroni).
    limits = Paired.of(*several).limits(1 - (1 - level) / max(len(tried), 1))
    gains = []
    for c in tried.tolist():
        at = 0 if other.decides_all else 1 + c
        gain, low, high = (float(x[at]) for x in (limits.values, limits.low, limits.high))
        if low > 0:
            score = "mean_iou" if other.decides_all else "iou"
            threshold = float(other.thresholds[c])
            gains.append(
                ThresholdGain(
                    score=score,
                    name=names[c],
                    threshold=threshold,
                    gain=gain,
                    low=low,
                    high=high,
                    level=level,
                )
            )
    return tuple(sorted(gains, key=lambda gain: -gain.gain))
