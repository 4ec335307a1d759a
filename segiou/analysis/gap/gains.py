"""Gains on images: those of next steps with their images, and of other thresholds."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import Plain
from segiou.analysis.gap.steps import NextStep, corrected
from segiou.counting.counts import Counts
from segiou.inference.paired import Paired
from segiou.inference.statistics import scored_counts
from segiou.inference.student import student
from segiou.inference.units import Units
from segiou.measures.plan import Alternative
from segiou.metrics.per_class import iou
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats

Ints = NDArray[np.int64]
#: Most images of a step.
_STEP_IMAGES = 10
#: Steps whose gains have an interval: only the first are shown.
_BOUNDED = 6
_LEVEL, _TAIL = 0.95, 0.025


class ImageGains:
    """Collects the pixels that each step moves in each unit, and computes intervals of the gains.

    A gain g has the variance Σ (g − g₍ᵢ₎)² over left-out units and k − 1 degrees of freedom for
    k units with the error, as the score of a class has. The interval is on the log scale.
    """

    def __init__(
        self, per_image: Counts, units: Units, protocol: Protocol, include: NDArray[np.bool_]
    ) -> None:
        self._counts, self._units, self._include = per_image, units, include
        self._protocol = protocol.for_pixels
        shape = (_BOUNDED, len(units), len(include) + 1)
        self._found, self._lost = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    def add(self, place: int, images: Ints, cells: Ints, pixels: Ints) -> None:
        """Add the cells that a step corrects, by the numbers of their images."""
        if place < _BOUNDED:
            truth, pred = np.divmod(cells, len(self._include) + 1)
            units = self._units.index[images]
            np.add.at(self._found[place], (units, truth), pixels)
            np.add.at(self._lost[place], (units, pred), pixels)

    def limited(self, steps: Sequence[NextStep]) -> tuple[NextStep, ...]:
        """Add the intervals, and whether a gain is within noise of the first; the order stays.

        Steps within noise are not put last: this made the truly costliest error first less often.
        """
        if len(self._units) < 3 or not steps:
            return tuple(steps)
        gains = self._left_out(min(len(steps), _BOUNDED))
        first = steps[:_BOUNDED]
        away = np.array([step.gain for step in first])[:, None] - gains
        has = (self._found[: len(first)].sum(-1) > 0).sum(-1)
        t = np.asarray(student(np.maximum(has - 1, 1), _TAIL))
        reach = t * np.sqrt((away**2).sum(-1))
        spread = np.sqrt(((away[0] - away) ** 2).sum(-1)) * np.maximum(t[0], t)
        bounded = [
            _bounded(step, *of_step)
            for step, *of_step in zip(first, reach.tolist(), has.tolist(), strict=True)
        ]
        ranked = [
            replace(step, tied=steps[0].gain - step.gain <= near and not step.uncertain)
            for step, near in zip(bounded[1:], spread[1:].tolist(), strict=True)
        ]
        return (bounded[0], *ranked, *steps[_BOUNDED:])

    def _left_out(self, steps: int) -> Floats:
        """Gains without each unit, (S, U)."""
        arrays = (self._counts.tp, self._counts.fp, self._counts.fn, self._counts.tn)
        rest = Counts.trusted(*(part.sum(0) - part for part in map(self._units.sums, arrays)))
        before = self._mean(rest)
        gains = []
        for hits, lost in zip(self._found[:steps], self._lost[:steps], strict=True):
            hit, wrong = (part[:, :-1].sum(0) - part[:, :-1] for part in (hits, lost))
            gains.append(self._mean(corrected(rest, hit, wrong)) - before)
        return np.nan_to_num(np.stack(gains))

    def _mean(self, counts: Counts) -> Floats:
        return self._protocol.pooled_mean(iou, counts, self._include)


def _bounded(step: NextStep, reach: float, units: int) -> NextStep:
    """A step with limits on the log scale, because gains are skewed; from 0 if within reach."""
    if units < 2:  # an error in one unit may not occur in others
        return replace(step, low=0.0, high=1.0)
    apart = math.exp(min(reach / step.gain, 700.0))
    low = step.gain / apart if reach < step.gain else 0.0
    return replace(step, low=low, high=min(step.gain * apart, 1.0))


def steps_with_images(
    steps: Sequence[NextStep],
    class_names: Sequence[str],
    blocks: Iterable[Any],
    gains: ImageGains | None = None,
) -> tuple[NextStep, ...]:
    """Add the images that contain most of each step's pixels, and intervals of the gains."""
    index: dict[str | None, int] = {name: i for i, name in enumerate([*class_names, None])}
    held: list[list[tuple[int, str]]] = [[] for _ in steps]
    totals = [0] * len(steps)
    start = 0
    for block in blocks:
        owner = np.repeat(np.arange(len(block)), block.sizes)
        for place, step in enumerate(steps):
            chosen = _cells_of(step, block.cells, index)
            sums = np.bincount(owner[chosen], block.values[chosen], minlength=len(block))
            first = np.argsort(-sums, kind="stable")[:_STEP_IMAGES]
            found = [(int(sums[i]), block.ids[i]) for i in first[sums[first] > 0].tolist()]
            # Those with most pixels; the order of ids stays.
            held[place] = sorted(held[place] + found, key=lambda one: -one[0])[:_STEP_IMAGES]
            totals[place] += int(sums.sum())
            if gains is not None:
                cells, values = block.cells[chosen], block.values[chosen]
                gains.add(place, start + owner[chosen], cells, values)
        start += len(block)
    located = tuple(
        replace(step, images=_most(images, total))
        for step, images, total in zip(steps, held, totals, strict=True)
    )
    return located if gains is None else gains.limited(located)


def _cells_of(
    step: NextStep, cells: NDArray[np.int64], index: Mapping[str | None, int]
) -> NDArray[np.bool_]:
    """Whether each flat cell index belongs to a step."""
    first, second, columns = index[step.truth], index[step.pred], len(index)
    if step.kind == "confusion":
        return np.equal(cells, first * columns + second)
    if step.kind == "swapped_classes":
        return np.isin(cells, (first * columns + second, second * columns + first))
    truth, pred = np.divmod(cells, columns)
    if step.truth is not None:
        return np.asarray((truth == first) & (pred != first))
    return np.equal(pred, second)


def _most(first: list[tuple[int, str]], total: int) -> tuple[str, ...]:
    """The first images that contain half of all pixels."""
    held = list(accumulate(n for n, _ in first))
    return tuple(id for _, id in first[: bisect_left(held, (total + 1) // 2) + 1])


@dataclass(frozen=True)
class ThresholdGain(Plain):
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


def threshold_gains(
    counts: Counts,
    other: Alternative,
    names: tuple[str, ...],
    units: Units,
    protocol: Protocol,
    include: NDArray[np.bool_],
) -> tuple[ThresholdGain, ...]:
    """The gains whose interval is above 0, largest first; none over too few units."""
    if units.too_few_to_compare:
        return ()
    averaged = protocol.for_pixels
    tried = np.flatnonzero(~np.isnan(other.thresholds))
    several: Any = (
        scored_counts(decided, "iou", averaged, names, include).over(units, None)
        for decided in (counts, other.counts)
    )
    # The best of several classes is shown, so all intervals are simultaneous (Bonferroni).
    limits = Paired.of(*several).limits(1 - (1 - _LEVEL) / max(len(tried), 1))
    gains = [
        ThresholdGain(
            score="mean_iou" if other.decides_all else "iou",
            name=names[c],
            threshold=float(other.thresholds[c]),
            gain=float(limits.values[at]),
            low=float(limits.low[at]),
            high=float(limits.high[at]),
            level=_LEVEL,
        )
        for c in tried.tolist()
        for at in [0 if other.decides_all else 1 + c]
    ]
    return tuple(sorted((gain for gain in gains if gain.low > 0), key=lambda gain: -gain.gain))
