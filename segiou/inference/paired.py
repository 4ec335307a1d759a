"""Differences of two models over the same units: interval and p from the same permutations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from segiou._support.numbers import number_of
from segiou.inference.bootstrapping import bootstrap_limits
from segiou.inference.leave_one_out import only_class, steps_of
from segiou.inference.limits import Limits, bounds_of, wide_limits
from segiou.inference.significance import Permuted, permutation_test, share_reached
from segiou.inference.statistics import Statistic
from segiou.inference.student import student, student_below
from segiou.inference.units import FEWEST_COMPARED, ROUNDING
from segiou.metrics.overall import mean
from segiou.metrics.ratio import Floats

#: With fewer units, no permutation test is significant at 95 %, so Student's t is used.
FEWEST_PERMUTED = 6
#: Additional weight of the largest contribution on the side away from 0.
_FAR = 2.0


@dataclass(frozen=True, eq=False)
class Paired:
    """The differences of a score and its classes between two models, second minus first.

    ::

        paired = Paired.of(first, second)
        paired.limits(0.95), paired.p
        change = paired.score  # as the score averages its classes
        change = paired.mean_of(classes)  # the mean over some classes, bool (C,)
        change = paired.one_class(3)
        change.value, change.p
        down, up = change.reach(0.95)  # distances of the limits from the value

    Attributes
    ----------
    models : pair of Statistic
    values : ndarray of float, shape (1 + C,)
        The differences of the score, then of the classes.
    seen : ndarray of int, shape (1 + C,)
        Units with a score, and units whose truth contains each class.
    steps : ndarray of float, shape (U, 1 + C)
        What each unit adds to each difference; 0 for a class's only unit.
    permuted : Permuted
    bounds : tuple of float
        The smallest and the largest possible difference.
    """

    models: tuple[Statistic, Statistic]
    values: Floats
    seen: NDArray[np.int64]
    steps: Floats
    permuted: Permuted
    bounds: tuple[float, float]
    only: int | None
    """The class that the score is the value of, if it is the mean over one class."""

    @classmethod
    @np.errstate(invalid="ignore")  # differences of infinite distances are undefined
    def of(cls, a: Statistic, b: Statistic, permutations: int = 10_000, seed: int = 0) -> Paired:
        """Leave out and exchange the units of one score of two models; no median or percentile."""
        both = zip(steps_of(a), steps_of(b), strict=True)
        steps = np.concatenate([after - before for before, after in both])
        permuted = permutation_test(a, b, permutations, seed)
        seen = np.minimum(a.seen, b.seen)
        values, only = b.values - a.values, only_class([a, b])
        return cls((a, b), values, seen, steps, permuted, bounds_of(b), only)

    @cached_property
    def score(self) -> Change:
        """The difference of the score, as it averages its classes."""
        if self.only is not None:
            return self.one_class(self.only)
        covered = self.permuted.covered
        if covered is None:
            deltas = self.permuted.deltas[:, 0].copy()
            return self._change(float(self.values[0]), self.steps[:, 0], deltas)
        return self._mean(float(self.values[0]), covered)

    def mean_of(self, classes: NDArray[np.bool_]) -> Change:
        """The difference of means over some classes, each with a difference."""
        if classes.sum() == 1:
            return self.one_class(int(classes.argmax()))
        return self._mean(float(self.values[1:][classes].mean()), classes)

    def one_class(self, place: int) -> Change:
        """The difference of one class, by its place."""
        column, seen = 1 + place, int(self.seen[1 + place])
        deltas = self.permuted.deltas[:, column].copy()  # not to keep those of all classes
        value = float(self.values[column])
        return Change(value, self.steps[:, column], deltas, seen, self.bounds)

    def _mean(self, value: float, classes: NDArray[np.bool_]) -> Change:
        """A mean that the permutations may cover fewer classes of, in the size of its value."""
        deltas, covered = self.permuted.mean_deltas(classes)
        before, after = (_mean_steps(model, covered) for model in self.models)
        steps = after - before
        size = abs(value / deltas[0]) if abs(deltas[0]) > ROUNDING else 1.0
        return self._change(value, steps * size, deltas * size)

    def _change(self, value: float, steps: Floats, deltas: Floats) -> Change:
        units = len(steps)
        shrink = (units - 1) / units
        return Change(value, steps, deltas, int(self.seen[0]), self.bounds, shrink)

    @cached_property
    def changes(self) -> list[Change]:
        """The differences of the score, then of the classes."""
        return [self.score, *map(self.one_class, range(len(self.values) - 1))]

    @property
    def p(self) -> Floats:
        """P-values of the score, then of the classes."""
        return np.array([change.p for change in self.changes])

    @property
    def is_students(self) -> bool:
        """Whether p of the score is of Student's t."""
        return self.score.is_of_few

    def spread(self, units: int, level: float) -> tuple[float, float]:
        """Error and degrees of freedom of the score over so many units."""
        return self.score.spread(units, level)

    def limits(self, level: float) -> Limits:
        """Intervals of the score and of every class, at a two-sided level."""
        low, high = np.array([change.limits(level) for change in self.changes]).T
        error = np.array([change.error for change in self.changes])
        freedom = np.array([change.freedom for change in self.changes])
        return Limits(self.values, low, high, error, freedom, np.full(len(low), np.nan))


def _mean_steps(score: Statistic, classes: NDArray[np.bool_]) -> Floats:
    """What units add to the mean over some classes, which those that vanish with a unit leave."""
    whole = score.values[1:][classes].mean()
    left = [mean(part[:, 1:], classes) for part in score.left_out_parts()]
    return np.asarray(np.nan_to_num(whole - np.concatenate(left)))


@dataclass(frozen=True, eq=False)
class Resampled:
    """The same with the limits of a bootstrap, which do not change p.

    Attributes
    ----------
    a, b : Statistic
    drawn : ndarray of float, shape (B, 1 + C)
        Differences on the resamples.
    method : {"percentile", "bca"}
    p : ndarray of float, shape (1 + C,)
        P-values of the score, then of the classes.
    permuted : Permuted
    is_students : bool
        Whether p of the score is of Student's t.
    """

    a: Statistic
    b: Statistic
    drawn: Floats
    method: str
    p: Floats
    permuted: Permuted
    is_students: bool = False

    @classmethod
    def of(
        cls, a: Statistic, b: Statistic, drawn: Floats, method: str, permutations: int, seed: int
    ) -> Resampled:
        """The p of :class:`Paired`; of medians, which have no steps, that of the permutations."""
        if not a.is_smooth:
            permuted = permutation_test(a, b, permutations, seed)
            return cls(a, b, drawn, method, permuted.p, permuted)
        paired = Paired.of(a, b, permutations, seed)
        return cls(a, b, drawn, method, paired.p, paired.permuted, paired.is_students)

    def limits(self, level: float) -> Limits:
        """Intervals of the score and of every class, at a two-sided level."""
        return bootstrap_limits(self.drawn, self.b, self.a, level=level, method=self.method)

    def spread(self, units: int, level: float) -> tuple[float, float]:
        """Error and degrees of freedom of the score over so many units."""
        error = float(self.limits(level).standard_error[0])
        return error / math.sqrt(units / len(self.a.units)), units - 1.0


@dataclass(frozen=True, eq=False)
class Change:
    """A difference of two models with limits at any level, and the p that agrees with them.

    Let q be the largest difference that is not significant: p < α if and only if |Δ| > q, the
    ⌈αN⌉-th largest of the N permutations' |Δ*|. The limits reach r = q from Δ if q ≥ |Δ|, and
    else r = q / √(1 + (Δ² − q²) / ((k − 1) s²)), because the spread about Δ replaces that about 0.
    On the side away from 0, the reach is √(1 + 2 (m/s)²) times as long for the largest
    contribution m of a unit, because few units miss rare large gains; it passes to the same on
    the side of 0 if Δ is small. So the interval excludes 0 if and only if p < α, and limits are
    nested in the level. If no difference could be significant, r is at least Student's.

    With fewer than six units, r is Student's and p is of Student's t.

    Attributes
    ----------
    value : float
    steps : ndarray of float, shape (U,)
        What each unit adds to the value.
    deltas : ndarray of float, shape (N,)
        Differences in the permutations, the observed one first.
    hits : int
        Units that have the value.
    bounds : tuple of float
        The smallest and the largest possible difference.
    shrink : float
        Variance relative to the sum of squared steps.
    """

    value: float
    steps: Floats
    deltas: Floats
    hits: int
    bounds: tuple[float, float]
    shrink: float = 1.0

    @property
    def moves(self) -> Floats:
        """Steps whose squares sum to the variance."""
        return self.steps * math.sqrt(self.shrink)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of Student's t."""
        return self.hits - 1.0

    @cached_property
    def variance(self) -> float:
        """Square of the standard error."""
        return self.shrink * float(np.einsum("i,i", self.steps, self.steps))

    @property
    def error(self) -> float:
        """Standard error; NaN if undefined."""
        known = math.isfinite(self.value) and self.hits > 1
        return math.sqrt(self.variance) if known else math.nan

    @property
    def is_of_few(self) -> bool:
        """Whether Student's t replaces the permutations."""
        return FEWEST_COMPARED <= len(self.steps) < FEWEST_PERMUTED and self.error > ROUNDING

    @cached_property
    def p(self) -> float:
        """Two-sided p; NaN if undefined."""
        if math.isnan(self.value):
            return math.nan
        if self.is_of_few:
            return float(2 * student_below(-abs(self.value) / self.error, self.freedom))
        return share_reached(self.deltas, self.deltas[0])

    @cached_property
    def _sizes(self) -> Floats:
        """Sizes of the differences, the largest first."""
        return np.sort(np.abs(self.deltas[~np.isnan(self.deltas)]))[::-1]

    def reach(self, level: float) -> tuple[float, float]:
        """Distances of the lower and upper limit from the value, at a two-sided level; or NaN."""
        if not self.error > ROUNDING:
            return math.nan, math.nan
        reach, size = self.reach_to_0(level), abs(self.value)
        if not reach > 0:
            return 0.0, 0.0
        share = max(0.0, 1 - size / reach)
        centred = self.steps - self.steps.mean()
        down, up = (share, 1.0) if self.value >= 0 else (1.0, share)
        squares = _FAR * (np.array([-centred.min(), centred.max()]) / self.error) ** 2
        low, high = (reach * np.sqrt(1 + np.array([down, up]) * squares)).tolist()
        return low, high

    def reach_to_0(self, level: float) -> float:
        """Distance of the limit on the side of 0, if the difference is not small."""
        alpha, size = 1 - level, abs(self.value)
        plain = float(student(self.freedom, alpha / 2)) * self.error
        if self.is_of_few or not len(self._sizes):
            return plain
        place = max(math.ceil(alpha * len(self._sizes) - 1e-9) - 1, 0)
        q = float(self._sizes[place])
        q = size if abs(q - size) <= ROUNDING else q
        reach = q
        if q < size:
            reach = q / math.sqrt(1 + (size**2 - q**2) / (self.freedom * self.variance))
        # The largest: no difference could be significant.
        return max(reach, plain) if q >= self._sizes[0] - ROUNDING else reach

    def spread(self, units: int, level: float) -> tuple[float, float]:
        """Error and degrees of freedom over so many units, by the reach at a level."""
        if not self.error > ROUNDING:
            return self.error, self.freedom
        error = self.reach_to_0(level) / float(student(self.freedom, (1 - level) / 2))
        share = units / len(self.steps)
        return error / math.sqrt(share), max(share * (self.freedom + 1) - 1, 1.0)

    def limits(self, level: float) -> tuple[float, float]:
        """The limits within the possible differences, at a two-sided level; NaN if undefined."""
        down, up = self.reach(level)
        low, high = wide_limits(self.value - down, self.value + up, self.bounds)
        return number_of(low), number_of(high)
