"""The measure of suspects: the largest regions in which truth and prediction differ.

A region is a connected set of pixels of truth a and prediction b. Its score, which ranks it, needs
the confusion matrices of all images and is computed by :mod:`segiou.suspects`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.histograms.score_bins import as_floats, as_scores
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.measure import Measure
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Plan
from segiou.measures.score import Score
from segiou.metrics.ratio import Floats, ratio
from segiou.regions.differences import Codes, Differences, differences

Ints = NDArray[np.int64]

#: Largest regions that are kept of each pair of classes in an image.
KEPT = 8
#: Side of the smallest region in pixels: 9 pixels, or 27 voxels.
SIDE = 3
#: Columns of a region before its box: label, suggestion, pixels, pixels of both objects.
_NUMBERS = 5
#: Columns of a region that images have, too: those of planes come after them.
_STORED = _NUMBERS + 4


@dataclass(frozen=True)
class SuspectOptions(Measure):
    """Share of the truth in connected regions that are predicted as a different class.

    The eight largest regions of each pair of classes are kept per image, so that
    :func:`segiou.find_suspects` ranks the regions to review first.

    Examples
    --------
    >>> SuspectOptions()
    SuspectOptions()
    """

    key: ClassVar[str] = "suspects"
    title: ClassVar[str] = "Regions that differ"
    score_names: ClassVar[tuple[str, ...]] = ("suspect_share",)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return SuspectPlan(self, classes, masks)


@dataclass(frozen=True)
class SuspectPlan(Plan):
    """Plan of the measure of suspects."""

    measure: SuspectOptions

    @cached_property
    def layout(self) -> Layout:
        """Regions as small numbers, see `regions_of`, and pixels of each class.

        Planes of volumes only, and margins only if there are scores.
        """
        return {
            "regions": Field((_STORED,), rows=True),
            "planes": Field((2,), rows=True),
            "margins": Field((), rows=True, floats=True),
            "pixels": Field((self.classes.num_classes,)),
        }

    def count(self, pair: MaskPair) -> Parts:
        """Find the regions of one image."""
        least, number = SIDE**pair.truth.ndim, self.classes.num_classes
        has_scores, sides = pair.scores is not None, self._sides(pair)
        found = differences(*sides, number, least=least, most=KEPT, with_runs=has_scores)
        arrays = {
            "regions": found.rows[:, :_STORED],
            "planes": found.rows[: None if pair.truth.ndim > 2 else 0, _STORED:],
            "margins": _margins(found, pair) if has_scores else np.zeros(0),
            "pixels": _labelled(pair)[None],
        }
        sizes = {name: np.array([len(arrays[name])]) for name in ("regions", "planes", "margins")}
        return Parts(self.layout, 1, arrays, sizes)

    def regions_of(self, parts: Parts) -> tuple[Ints, Floats]:
        """The regions of all images, (R, 11), and their margins, (R,).

        Label, suggestion, pixels, pixels of both objects, begin and end along three axes.
        """
        regions = parts["regions"]
        planes = self._region_rows(parts, "planes", (0, 1))
        rows = np.insert(regions, [_NUMBERS] * 2, planes, 1)
        rows[:, 3:_NUMBERS] += rows[:, 2:3]
        rows[:, _NUMBERS + 1 :: 2] += rows[:, _NUMBERS::2]
        return rows, self._region_rows(parts, "margins", 1.0)

    def _region_rows(self, parts: Parts, name: str, otherwise: Any) -> NDArray[Any]:
        """Rows of each region; the same ones in images without them."""
        rows, sizes = parts[name], parts.sizes(name)
        if len(rows) == len(parts["regions"]):
            return rows
        whole = np.empty((len(parts["regions"]), *rows.shape[1:]), rows.dtype)
        whole[:] = otherwise
        whole[np.repeat(sizes > 0, parts.sizes("regions"))] = rows
        return whole

    def _sides(self, pair: MaskPair) -> tuple[NDArray[Any], NDArray[Any], tuple[Codes, Codes]]:
        """Truth and prediction in one type of integers, and the classes of their values."""
        kind = np.result_type(pair.truth, pair.pred)
        codes = None if pair.mask is not None else self._codes(kind)
        if codes is None:
            every = np.arange(self.classes.num_classes + 1, dtype=np.uint16)
            return *pair.codes, ((0, every), (0, every))
        return pair.truth.astype(kind, copy=False), pair.pred.astype(kind, copy=False), codes

    @cached_property
    def _codes(self) -> Callable[[np.dtype[Any]], tuple[Codes, Codes] | None]:
        """The classes of the values of a type; None if a table would not have them all."""
        encoding = Encoding.of_classes(self.classes)
        truth, pred = encoding.truth, encoding.pred

        @cache
        def codes(kind: np.dtype[Any]) -> tuple[Codes, Codes] | None:
            if truth.far or pred.far or kind.kind not in "iu":
                return None
            return truth.table(kind), pred.table(kind)

        return codes

    def check(self, parts: Parts) -> None:
        """Reject regions that cannot have been found."""
        regions, number = parts.sizes("regions"), self.classes.num_classes
        sizes = [parts.sizes(name) for name in ("planes", "margins")]
        uneven = any(((size > 0) & (size != regions)).any() for size in sizes)
        if not uneven:
            rows, margins = self.regions_of(parts)
            sides = (rows[:, _NUMBERS + 1 :: 2] - rows[:, _NUMBERS::2]).astype(float)
            wrong = (rows[:, :2] >= number).any(1) | (rows[:, 0] == rows[:, 1]) | (rows[:, 2] < 1)
            wrong |= (rows[:, 3:_NUMBERS] < rows[:, 2:3]).any(1)  # overflow
            wrong |= (sides.prod(1) < rows[:, 2]) | ~((margins >= 0) & (margins <= 1))
        if uneven or wrong.any():
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


def _labelled(pair: MaskPair) -> Ints:
    """Pixels of each class of the truth that have a class in the prediction, (C,)."""
    number = pair.classes.num_classes
    if pair.tally is not None:
        return np.asarray(pair.tally.table[:, :number].sum(1))
    truth, pred = pair.codes
    return np.bincount(truth[pred < number], minlength=number)[:number]


def _margins(found: Differences, pair: MaskPair) -> Floats:
    """Mean of p(suggestion) − p(label) over each region, at least 0."""
    array, rows = as_scores(pair.scores), found.rows
    starts, lengths, regions = found.runs.T.astype(np.int64)
    ends = np.cumsum(lengths)
    pixels = np.arange(int(lengths.sum())) + np.repeat(starts + lengths - ends, lengths)
    owner, shape = np.repeat(regions, lengths), pair.truth.shape
    apart = _probability(array, rows[owner, 1], pixels, shape)
    apart = apart - _probability(array, rows[owner, 0], pixels, shape)
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
