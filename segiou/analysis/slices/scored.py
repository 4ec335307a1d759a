"""Scores on the images of a slice: with intervals, against the rest, along numbers, in a mix."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support import numbers
from segiou.analysis.slices.result import (
    FEWEST,
    FEWEST_OF_PAIRS,
    FEWEST_TESTED,
    TIMES,
    Gap,
    Mix,
    Slice,
    Trend,
)
from segiou.analysis.slices.sums import SliceSums
from segiou.inference.leave_one_out import Jackknife, Side, correlation
from segiou.inference.limits import tail_of, wide_limits
from segiou.inference.metadata import MetadataColumn, told_apart
from segiou.inference.order_statistics import median_limits
from segiou.inference.paired import Change, Paired
from segiou.inference.statistics import Statistic
from segiou.inference.student import student, student_below
from segiou.inference.units import MOST_RESAMPLED, ROUNDING, Units, random_groups
from segiou.metrics.ratio import Floats

#: Batches that a slice of one or two sequences is divided into, at least.
_BATCHES = 5


class _Median:
    """The median of cases, with limits by order statistics, as a side of a difference."""

    bounds: tuple[float, float] = -math.inf, math.inf
    freedom: float = math.nan
    moves: Floats = np.zeros(0)  # units in both sides cause no correlation that is known

    def __init__(self, score: Statistic) -> None:
        assert score.median_of is not None
        self.cases: Floats = score.median_of[:, 0]
        self.value: float = float(score.values[0])
        # Over groups, and of several structures, limits would need a bootstrap.
        self.is_plain: bool = score.median_of.shape[1] == 1 and score.units.kind == "image"

    def reach(self, level: float) -> tuple[float, float]:
        """Distances of the limits from the value."""
        if not self.is_plain:
            return math.nan, math.nan
        low, high = median_limits(self.cases, level=level)
        return self.value - low, high - self.value


#: A score on some images, or its difference between two models.
_Side = Side | Change | _Median


@dataclass(frozen=True, eq=False)
class _Images:
    """Scores on some images, over their units."""

    number: int
    num_units: int
    units: NDArray[np.intp]
    """The units, in order; none if images are summed over random groups."""
    values: list[Floats]
    """Values of each model: the score, then the classes."""
    models: list[Statistic]
    """Empty for fewer than two units."""
    left_out: Jackknife | Paired | None

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Classes with a value of every model."""
        return np.asarray(np.isfinite([values[1:] for values in self.values]).all(0))

    def side(self, classes: NDArray[np.bool_] | None) -> _Side:
        """The score, or its mean over some classes."""
        if self.left_out is None:
            return _Median(self.models[0])
        return self.left_out.score if classes is None else self.left_out.mean_of(classes)


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores over single images, to be summed over the units of slices."""

    models: list[Statistic]
    present: NDArray[np.bool_]
    units: Units
    level: float
    against: str | None = None
    by_class: bool = False

    def __post_init__(self) -> None:
        if len(self.models) > 1 and self.models[0].median_of is not None:
            msg = (
                f"{self.models[0].score.name} is a median, and differences of medians have no "
                "slices; pass one run at a time"
            )
            raise ValueError(msg)

    @property
    def whole(self) -> float:
        """The score, or the difference, on all images."""
        values = [numbers.number_of(model.values[0]) for model in self.models]
        return values[-1] - values[0] if len(values) > 1 else values[0]

    @property
    def taken(self) -> NDArray[np.bool_] | None:
        """Classes of the mean; None if the score is not a mean of classes."""
        score = self.models[0].score
        if self.models[0].median_of is not None or self.models[0].weights is None:
            return None
        return np.ones(len(score.names), bool) if score.include is None else score.include

    def column(self, column: MetadataColumn) -> Iterator[Slice]:
        """The slices of a column, and the classes on them."""
        others = column.codes >= 0
        if self.against in column.values:
            others = column.inside(column.values.index(self.against))
        whole = self._sums(others)
        for code, value in enumerate(column.values):
            inside = column.inside(code)
            mine = self._sums(inside)
            part = self.images(inside, mine)
            if not part.number or (TIMES in column.name and part.num_units < FEWEST_OF_PAIRS):
                continue
            rest = None
            if part.num_units >= FEWEST:
                if whole is not None and not others[inside].all():
                    mine = self._sums(others & inside)
                less = None if whole is None or mine is None else whole - mine
                rest = self.images(others & ~inside, less)
            yield self._slice(column, value, part, rest)
            if self.by_class and self.taken is not None and rest is not None:
                for place in np.flatnonzero(part.defined & self.taken).tolist():
                    yield self._slice(column, value, part, rest, place)

    def _sums(self, inside: NDArray[np.bool_]) -> SliceSums | None:
        """Sums of some of very many images over all units, of which those of all are kept."""
        number, kind = len(inside), self.units.kind
        if number <= MOST_RESAMPLED or kind == "batch" or self.models[0].median_of is not None:
            return None
        return self._all_sums if inside.all() else self._over_units(inside)

    @cached_property
    def _all_sums(self) -> SliceSums:
        return self._over_units(np.ones(len(self.units.index), bool))

    def _over_units(self, inside: NDArray[np.bool_]) -> SliceSums:
        index, number = self.units.index, len(self.units)
        if self.units.kind == "image":
            index, number = random_groups(number), MOST_RESAMPLED
        return SliceSums.of(self.models, self.present, np.where(inside, index, -1), number)

    def _units_in(self, inside: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[Any], SliceSums]:
        """The units of some images, the place of that of each image, and sums over them."""
        number = int(inside.sum())
        if self.units.kind == "image":
            sums = SliceSums.of_images(self.models, self.present, inside)
            return self.units.index[inside], np.arange(number), sums
        every = self.units.index[inside]
        if self.units.kind == "batch":  # batches of neighbours are made within the slice
            share = round(number * len(self.units) / len(inside))
            every = np.arange(number) * min(max(share, _BATCHES), number) // max(number, 1)
        names, index = np.unique(every, return_inverse=True)
        places = np.full(len(inside), -1)
        places[inside] = index
        return names, index, SliceSums.of(self.models, self.present, places, len(names))

    def images(self, inside: NDArray[np.bool_], sums: SliceSums | None = None) -> _Images:
        """Some images with their scores, from sums over all units if these are known."""
        number, is_single = int(inside.sum()), self.units.kind == "image"
        is_grouped = sums is not None and is_single and number > MOST_RESAMPLED
        if sums is None or (is_single and not is_grouped):
            names, index, sums = self._units_in(inside)
        else:
            names = index = np.flatnonzero(sums.images)
            sums = sums.filled()
        if len(names) < 2:
            values = [model.of_unit(inside) for model in self.models]
            return _Images(number, len(names), names, values, [], None)
        kind = "image" if is_single and not is_grouped else "group"
        units = Units(kind, ("",) * len(names), index)
        models = [
            model.part(inside, units, table, sums.hits, each=is_grouped)
            for model, table in zip(self.models, sums.sums, strict=True)
        ]
        left_out: Jackknife | Paired | None = None
        if models[0].median_of is None:
            left_out = (
                Paired.of(models[0], models[-1]) if len(models) > 1 else Jackknife.of(models[0])
            )
        values = [model.values for model in models]
        if is_grouped:
            return _Images(number, number, names[:0], values, models, left_out)
        return _Images(number, len(names), names, values, models, left_out)

    def _slice(
        self,
        column: MetadataColumn,
        value: str,
        part: _Images,
        rest: _Images | None,
        place: int | None = None,
    ) -> Slice:
        """A slice, or one class on it."""
        taken, row, at = self.taken, "", 0
        if place is not None:
            taken = np.arange(len(part.defined)) == place
            row, at = self.models[0].score.names[place], 1 + place
        gap = Gap()
        if rest is not None:
            gap = self._gap(part, rest, taken, is_tested=column.numbers is None)
        score, side = self._score(part, place)
        low, high = _ends(score, side, self.level)
        scores = tuple(numbers.number_of(values[at]) for values in part.values)
        classes = int((part.defined if taken is None else part.defined & taken).sum())
        return Slice(
            column=column.name,
            value=value,
            images=part.number,
            units=part.num_units,
            score=score,
            low=low,
            high=high,
            scores=scores,
            classes=classes,
            gap=gap,
            row=row,
            p=side.p if isinstance(side, Change) else math.nan,
        )

    def _score(self, part: _Images, place: int | None = None) -> tuple[float, _Side | None]:
        """The score of some images, or of a class, and its side unless units are too few."""
        first, last = part.values[0], part.values[-1]
        change = last - first if len(self.models) > 1 else last
        score = numbers.number_of(change[0 if place is None else 1 + place])
        there = None
        if len(self.models) > 1 and place is None and self.taken is not None:
            there = part.defined & self.taken
            score = float(change[1:][there].mean()) if there.any() else math.nan
        if part.num_units < FEWEST or math.isnan(score):
            return score, None
        if place is None or part.left_out is None:
            return score, part.side(there)
        return score, part.left_out.one_class(place)

    def mix(self, column: MetadataColumn, shares: Mapping[str, float]) -> Mix:
        """The score in another mix of the slices of a column."""
        images = [self.images(column.inside(column.values.index(value))) for value in shares]
        scores, sides = zip(*map(self._score, images), strict=True)
        weights = np.array([*shares.values()])
        rho = np.eye(len(weights))
        for i, j in combinations(range(len(weights)), 2):
            rho[i, j] = rho[j, i] = self._shared(images[i], images[j], sides[i], sides[j])[1]
        none = (math.nan, math.nan)
        reach = np.array([none if side is None else side.reach(self.level) for side in sides])
        arms = weights[:, None] * reach
        down, up = np.sqrt(np.maximum(np.einsum("ik,ij,jk->k", arms, rho, arms), 0)).tolist()
        score = float(weights @ scores)
        low, high, value = map(numbers.number_of, (score - down, score + up, score))
        return Mix(column.name, dict(shares), value, low, high)

    def _gap(
        self, part: _Images, rest: _Images, common: NDArray[np.bool_] | None, *, is_tested: bool
    ) -> Gap:
        """A slice minus the rest, over some classes that both have."""
        fewer = min(part.num_units, rest.num_units)
        if fewer < FEWEST:
            return Gap()
        if common is not None:
            every = [*part.models, *rest.models]
            common = common & (np.minimum.reduce([side.seen[1:] for side in every]) >= 2)
            common = common & part.defined & rest.defined
            if not common.any():
                return Gap()
        a, b = part.side(common), rest.side(common)
        shared, rho = self._shared(part, rest, a, b)
        delta = a.value - b.value

        def reach(level: float) -> tuple[float, float]:
            (down_a, up_a), (down_b, up_b) = a.reach(level), b.reach(level)
            return _mover(down_a, up_b, rho), _mover(up_a, down_b, rho)

        down, up = reach(self.level)
        p = math.nan
        if is_tested and fewer >= FEWEST_TESTED:
            p = 2 * tail_of(reach, delta)
        classes = 0 if common is None else int(common.sum())
        low, high, value = map(numbers.number_of, (delta - down, delta + up, delta))
        return Gap(
            value=value,
            low=low,
            high=high,
            p=numbers.number_of(p),
            classes=classes,
            shared=shared,
        )

    def _shared(
        self, part: _Images, rest: _Images, a: _Side | None, b: _Side | None
    ) -> tuple[int, float]:
        """Number of units in both, and the correlation that they cause."""
        if self.units.kind == "batch":  # of the slice, and of the rest
            return 0, 0.0
        shared, mine, theirs = np.intersect1d(part.units, rest.units, return_indices=True)
        if not len(shared) or a is None or b is None:
            return len(shared), 0.0
        return len(shared), correlation(a.moves, b.moves, mine, theirs)

    def trend(self, column: MetadataColumn) -> Iterator[Trend]:
        """Slope of the units' influence on the score, with errors for unequal variances (HC3)."""
        if column.numbers is None:
            return
        known = ~np.isnan(column.numbers)
        images = self.images(known)
        if images.num_units < FEWEST_TESTED or images.left_out is None:
            return
        classes = self.taken
        if classes is not None:
            classes = classes & images.defined & (images.left_out.seen[1:] >= 2)
            if not classes.any():
                return
        side = images.side(classes)
        index = images.models[0].units.index
        x = np.bincount(index, column.numbers[known]) / np.bincount(index)
        if np.ptp(x) == 0:
            return
        slope, error = _slope(x, side.moves * len(x))
        if error < ROUNDING:  # all units agree
            return
        freedom = min(len(x) - 2.0, side.freedom)
        reach = float(student(freedom, (1 - self.level) / 2)) * error
        p = 2 * float(student_below(-abs(slope) / error, freedom))
        start, end = np.quantile(x, [0.1, 0.9]).tolist()
        change, low, high = ((end - start) * (slope + sign * reach) for sign in (0, -1, 1))
        first, last = told_apart([start, end], are_dates=True) if column.is_date else (start, end)
        yield Trend(
            column=column.name, start=first, end=last, change=change, low=low, high=high, p=p
        )


def _ends(value: float, side: _Side | None, level: float) -> tuple[float, float]:
    """The interval of a value; none if all units agree away from a bound."""
    if side is None:
        return math.nan, math.nan
    down, up = side.reach(level)
    low, high = wide_limits(value - down, value + up, side.bounds)
    return numbers.number_of(low), numbers.number_of(high)


def _slope(x: Floats, y: Floats) -> tuple[float, float]:
    """The slope of y on x, and its HC3 error."""
    centred = x - x.mean()
    square = float(centred @ centred)
    slope = float(centred @ y) / square
    leverage = 1 / len(x) + centred**2 / square
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = (y - y.mean() - slope * centred) / (1 - leverage)
    return slope, math.sqrt(float(centred**2 @ errors**2)) / square


def _mover(a: float, b: float, rho: float) -> float:
    return math.sqrt(max(a * a + b * b - 2 * rho * a * b, 0.0)) if a == a and b == b else math.nan
