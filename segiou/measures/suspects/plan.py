"""The measure of suspects: the largest regions in which truth and prediction differ.

A region is a connected set of pixels of truth a and prediction b. Its score, which ranks it, needs
the confusion matrices of all images and is computed by :mod:`segiou.suspects`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.histograms.score_bins import as_floats, as_scores
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.measure import Measure
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Plan
from segiou.measures.score import Score
from segiou.metrics.ratio import Floats, ratio
from segiou.regions.components import Components, components

Ints = NDArray[np.int64]

#: Largest regions that are kept of each pair of classes in an image.
KEPT = 8
#: Side of the smallest region in pixels: 9 pixels, or 27 voxels.
SIDE = 3
#: Columns of a region before its box: label, suggestion, pixels, pixels of both objects.
_NUMBERS = 5


@dataclass(frozen=True)
class SuspectOptions(Measure):
    """Share of the truth in connected regions that are predicted as a different class.

    The eight largest regions of each pair of classes are kept per image, so that
    :func:`segiou.find_suspects` ranks the regions whose truth to review first.

    Examples
    --------
    >>> SuspectOptions()
    SuspectOptions()
    """

    key: ClassVar[str] = "suspects"
    title: ClassVar[str] = "Regions that differ"
    options: ClassVar[str] = """suspects: score
  --suspects  also keep the largest regions where truth and prediction differ, which segiou suspects
      ranks"""
    score_names: ClassVar[tuple[str, ...]] = ("suspect_share",)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return SuspectPlan(self, classes, masks)


@dataclass(frozen=True)
class SuspectPlan(Plan):
    """Plan of the measure of suspects."""

    measure: SuspectOptions

    @property
    def layout(self) -> Layout:
        """Regions with a box of three axes, their margins, and pixels of each class."""
        return {
            "regions": Field((_NUMBERS + 6,), rows=True),
            "margins": Field((), rows=True, floats=True),
            "pixels": Field((self.classes.num_classes,)),
        }

    def count(self, pair: MaskPair) -> Parts:
        """Find the regions of one image."""
        number = self.classes.num_classes
        truth, pred = pair.codes
        found = components(_disagreement(truth, pred, number), [], None, 0)
        kept = _largest(found, SIDE**truth.ndim)
        rows = np.zeros((len(kept), _NUMBERS + 6), np.int64)
        rows[:, 0], rows[:, 1] = np.divmod(found.values[kept].astype(np.int64) - 1, number)
        rows[:, 2] = found.sizes[kept]
        numbers = np.full(len(found.values), -1)
        numbers[kept] = np.arange(len(kept))
        runs = _Runs.of(found, numbers)
        rows[:, _NUMBERS:] = runs.boxes()
        for column, side in ((3, truth), (4, pred)):
            objects = components(side, [], None, 0)
            at = np.searchsorted(objects.starts, runs.first_pixels, "right") - 1
            rows[:, column] = objects.sizes[objects.ids[at].astype(np.int64) - 1]
        margins = np.ones(len(rows)) if pair.scores is None else runs.margins(pair.scores, rows)
        return Parts.of(self.layout, regions=rows, margins=margins, pixels=_labelled(pair))

    def check(self, parts: Parts) -> None:
        """Reject regions that cannot have been found."""
        rows, number = parts["regions"], self.classes.num_classes
        begins, ends = rows[:, _NUMBERS::2], rows[:, _NUMBERS + 1 :: 2]
        sides = np.maximum(ends - begins, 0).astype(float)
        wrong = (rows[:, :2] >= number).any(1) | (rows[:, 0] == rows[:, 1]) | (rows[:, 2] < 1)
        wrong |= (rows[:, 3:5] < rows[:, 2:3]).any(1) | (sides.prod(1) < rows[:, 2])
        margins = parts["margins"]
        uneven = (parts.sizes("margins") != parts.sizes("regions")).any()
        if uneven or wrong.any() or not ((margins >= 0) & (margins <= 1)).all():
            msg = "a region has an unknown class, or numbers that contradict each other"
            raise ValueError(msg)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Pixels in regions per labelled pixel of each class."""
        number = self.classes.num_classes

        def numbers(parts: Parts) -> Ints:
            inside = np.zeros((len(parts), number), np.int64)
            rows = parts["regions"]
            np.add.at(inside, (parts.owner("regions"), rows[:, 0]), rows[:, 2])
            return np.stack([inside, parts["pixels"]], -1)

        score = Score.of_classes(
            "suspect_share",
            "share in regions",
            self.classes,
            numbers,
            lambda sums: ratio(sums[..., 0], sums[..., 1]),
            better="lower",
        )
        return {score.name: score}


def _disagreement(truth: NDArray[Any], pred: NDArray[Any], number: int) -> NDArray[Any]:
    """A value ≥ 1 for each pair of different classes, and 0 for all other pixels."""
    code: NDArray[Any] = truth.astype(np.uint16 if number < 1 << 8 else np.uint32)
    code = code * code.dtype.type(number) + pred + code.dtype.type(1)
    code[(truth == pred) | (truth == number) | (pred == number)] = 0
    return code


def _labelled(pair: MaskPair) -> Ints:
    """Pixels of each class of the truth that have a class in the prediction, (C,)."""
    number = pair.classes.num_classes
    if pair.tally is not None:
        return np.asarray(pair.tally.table[:, :number].sum(1))
    truth, pred = pair.codes
    return np.bincount(truth[pred < number], minlength=number)[:number]


def _largest(found: Components, least: int) -> NDArray[np.intp]:
    """Positions of the largest components of each value but 0, ties by their first pixel."""
    sizes, values = found.sizes, found.values
    order = np.lexsort((np.arange(len(sizes)), -sizes, values))
    places = np.arange(len(order))
    is_first = np.append(True, np.diff(values[order]) != 0)[: len(order)]
    rank = places - np.maximum.accumulate(np.where(is_first, places, 0))
    return order[(rank < KEPT) & (values[order] > 0) & (sizes[order] >= least)]


@dataclass(frozen=True, eq=False)
class _Runs:
    """The runs of some components: pixels in sequence, sorted by component."""

    shape: tuple[int, ...]
    #: First and last pixel of each run, and the number of its component.
    starts: Ints
    lasts: Ints
    owner: Ints

    @classmethod
    def of(cls, found: Components, numbers: NDArray[np.intp]) -> _Runs:
        """The runs of the components that have a number ≥ 0."""
        owner = numbers[found.ids.astype(np.int64) - 1]
        at = np.flatnonzero(owner >= 0)
        at = at[np.argsort(owner[at], kind="stable")]
        starts = found.starts[at].astype(np.int64)
        return cls(found.shape, starts, starts + found.lengths[at] - 1, owner[at])

    @cached_property
    def _begins(self) -> NDArray[np.intp]:
        """The first run of each component."""
        return np.flatnonzero(np.append(True, np.diff(self.owner) != 0)[: len(self.owner)])

    @property
    def first_pixels(self) -> Ints:
        """The first pixel of each component in raster order."""
        return self.starts[self._begins]

    def boxes(self) -> Ints:
        """Begin and end of each component along three axes, (K, 6); images have one plane."""
        if not len(self.starts):
            return np.zeros((0, 6), np.int64)
        shape = (1,) * (3 - len(self.shape)) + self.shape
        sides: list[Ints] = []
        crosses = np.zeros(len(self.starts), bool)
        low, high = (np.unravel_index(ends, shape) for ends in (self.starts, self.lasts))
        for axis, length in enumerate(shape):
            # A run that continues in the next row, or plane, covers all columns, or rows.
            first = np.where(crosses, 0, low[axis])
            last = np.where(crosses, length - 1, high[axis])
            sides += [np.minimum.reduceat(first, self._begins)]
            sides += [np.maximum.reduceat(last, self._begins) + 1]
            crosses |= low[axis] != high[axis]
        return np.stack(sides, 1)

    def margins(self, scores: Any, rows: Ints) -> Floats:
        """Mean of p(suggestion) − p(label) over each component, at least 0."""
        array = as_scores(scores)
        lengths = self.lasts - self.starts + 1
        ends = np.cumsum(lengths)
        pixels = np.arange(int(lengths.sum())) + np.repeat(self.lasts + 1 - ends, lengths)
        owner = np.repeat(self.owner, lengths)
        apart = _probability(array, rows[owner, 1], pixels, self.shape)
        apart = apart - _probability(array, rows[owner, 0], pixels, self.shape)
        sums = np.bincount(owner, np.nan_to_num(apart), len(rows))
        return np.clip(ratio(sums, rows[:, 2]), 0.0, 1.0)


def _probability(
    scores: NDArray[Any], classes: Ints, pixels: Ints, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Probability of a class at each pixel; logits are turned into probabilities."""
    if scores.shape == shape:
        second = as_floats(scores.reshape(-1)[pixels]).astype(np.float64)
        if _are_logits(second):
            second = 1 / (1 + np.exp(-np.clip(second, -700, 700)))
        return np.where(classes == 1, second, 1 - second)
    planes = as_floats(scores.reshape(len(scores), -1)[:, pixels]).astype(np.float64)
    if _are_logits(planes):
        planes = np.exp(planes - planes.max(0))
        planes /= planes.sum(0)
    return np.asarray(planes[classes, np.arange(len(pixels))])


def _are_logits(values: NDArray[np.float64]) -> bool:
    """Whether values are outside [0, 1], beyond the rounding of half precision."""
    return bool((np.abs(values - 0.5) > 0.501).any())
