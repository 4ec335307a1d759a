"""Jackknife-t intervals: a score without each unit in turn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind, check_level
from segiou.inference.limits import SCALES, Limits, Scale, wide_limits
from segiou.inference.statistics import Statistic
from segiou.inference.student import student
from segiou.inference.units import ROUNDING
from segiou.metrics.ratio import Floats

#: Least degrees of freedom of a mean of classes: t(1) is 12.7 standard errors wide.
LEAST_FREEDOM = 2.0
#: Numbers of left-out values that are kept between passes; more are computed again.
_KEPT = 1 << 22
#: Shares above the limits of usual levels, which are exactly nested.
_USUAL_TAILS = 0.25, 0.1, 0.05, 0.025, 0.01, 0.005, 0.0005
#: Rows that are multiplied at once.
_ROWS = 256


def jackknife(of: Statistic, *, level: float = 0.95) -> Limits:
    """Jackknife-t intervals of a score and its classes.

    Every unit is omitted in turn. The variance of a class, V_c = Σ_i (v_c − v_c(i))², has
    k_c − 1 degrees of freedom for k_c units whose truth has the class, and its limits are
    symmetric on the score's scale (the logit of a ratio), by the delta method. A mean of classes
    has Satterthwaite degrees of freedom, (Σ V_c)² / Σ V_c²/(k_c − 1), and unequal arms: each class
    contributes the distances of its limits from its value, so the interval keeps the correlation
    of the classes (MOVER on jackknife influences). A mean over one class has the limits of this
    class. A mean of distances is symmetric on the log scale. The variance of a score includes the
    square of its jackknife bias. A score at a bound of the scale has the limit of as many hits or
    misses in a row, or of the same images with one pixel changed, whichever is closer. Limits are
    nested: at a level, they are those of the widest interval at any lower level. Differences of
    models: :class:`segiou.inference.paired.Paired`.

    Parameters
    ----------
    of : Statistic
        The score over its units.
    level : float
        Between 0 and 1. Limits at 0.9 are one-sided bounds at 95 %.

    References
    ----------
    J. W. Tukey, Ann. Math. Statist. 29 (1958), 614; F. E. Satterthwaite, Biometrics Bulletin 2
    (1946), 110-114; G. Y. Zou and A. Donner, Statist. Med. 27 (2008), 1693-1702 (MOVER);
    J. A. Hanley and A. Lippman-Hand, JAMA 249 (1983), 1743-1745 (limits at a bound).
    """
    check_kind("of", of, Statistic, "a Statistic of segiou.inference.statistic")
    check_level("level", level)
    return Jackknife.of(of).limits(level)


@dataclass(frozen=True, eq=False)
class Jackknife:
    """A score without each unit in turn.

    Made once, it has limits of any part of the score at any level::

        left_out = Jackknife.of(score)
        left_out.limits(0.95)  # of the score and every class
        side = left_out.score  # as the score averages its classes
        side = left_out.mean_of(classes)  # the mean over some classes, bool (C,)
        side = left_out.one_class(3)
        side.value, side.moves, side.variance, side.freedom
        down, up = side.reach(0.95)  # distances of the limits from the value

    Two sides over other units (a slice and the rest) are subtracted by MOVER: the lower limit of
    s − r is √(down_s² + up_r² − 2 ρ down_s up_r) below it, with ρ of :func:`correlation` if
    some units are in both. :func:`tail_of` inverts any such distance for p.

    Attributes
    ----------
    values : ndarray of float, shape (1 + C,)
        The score, then the classes.
    variance : ndarray of float, shape (1 + C,)
        Sums of squared steps.
    """

    statistic: Statistic
    values: Floats
    variance: Floats
    kept: tuple[Floats, ...]

    @classmethod
    @np.errstate(invalid="ignore")  # differences of infinite distances are undefined
    def of(cls, score: Statistic) -> Jackknife:
        """Leave out the units of a score."""
        values, kept = score.values, []
        squares = np.zeros(len(values))
        for step in steps_of(score):
            squares += np.einsum("ij,ij->j", step, step)
            if len(score.units) * step.shape[1] <= _KEPT:
                kept.append(step)
        return cls(score, values, squares, tuple(kept))

    def steps(self) -> Iterator[Floats]:
        """Contributions of units to each value, in parts (n, 1 + C); 0 for a class's only unit."""
        yield from self.kept or steps_of(self.statistic)

    @property
    def seen(self) -> NDArray[np.int64]:
        """Units with a score, and units whose truth contains each class."""
        return self.statistic.seen

    @cached_property
    def scale(self) -> Scale:
        """The scale on which limits are symmetric."""
        return SCALES[self.statistic.scale]

    @cached_property
    def weights(self) -> Floats | None:
        """Weight of each class in the score, if it is a mean of classes."""
        return self.statistic.weights

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        return self.scale.least, self.scale.most

    @property
    def score(self) -> Side:
        """The score, as it averages its classes; not kept, so that no cycle keeps the steps."""
        if (index := only_class([self.statistic])) is not None:
            return self.one_class(index)
        parts, freedom = self.weights, float(self.freedom()[0])
        if self.scale.most == np.inf:
            # Without an upper bound, the arm of one rare class is many times the score.
            parts = None
        return self._side(0, parts, freedom, int(self.seen[0]))

    def mean_of(self, classes: NDArray[np.bool_]) -> Side:
        """The mean over some classes with a value, at least one, which weigh the same."""
        if classes.sum() == 1:
            return self.one_class(int(classes.argmax()))
        weights = classes / classes.sum()
        hits = int(self.seen[1:][classes].max())
        return self._side(None, weights, self._freedom(weights), hits)

    def one_class(self, index: int) -> Side:
        """One class, by its index."""
        seen = int(self.seen[1 + index])
        return self._side(1 + index, None, seen - 1.0, seen)

    @np.errstate(invalid="ignore")  # of infinite distances
    def limits(self, level: float) -> Limits:
        """Intervals of the score and of every class, at a two-sided level."""
        tail, score, freedom = (1 - level) / 2, self.score, self.freedom()
        t = np.asarray(student(freedom, tail))
        down, up = self.class_reach(slice(None), t, tail)
        down[0], up[0] = score.reach_at(float(t[0]), tail)
        low, high = wide_limits(self.values - down, self.values + up, self.bounds)
        return Limits(self.values, low, high, self.errors(), freedom, np.full(len(low), np.nan))

    def arms(self, columns: Any, t: Any) -> tuple[Floats, Floats]:
        """Distances of limits on the score's scale, in units of t standard errors."""
        values, errors = self.values[columns], np.sqrt(self.variance[columns])
        with np.errstate(all="ignore"):
            reach = t * errors
            ends = self.scale.ends(values, reach)
            low, high = (values - ends[0]) / reach, (ends[1] - values) / reach
        fine = np.isfinite(low) & np.isfinite(high) & (errors > ROUNDING)
        return np.where(fine, low, 1.0), np.where(fine, high, 1.0)

    def class_errors(self) -> Floats:
        """Standard errors by the plain sum of squares, (1 + C,); undefined for one unit."""
        error = np.sqrt(self.variance)
        error[(self.seen < 2) | ~np.isfinite(self.values)] = np.nan
        return error

    def errors(self) -> Floats:
        """Standard errors of the score and of each class, (1 + C,)."""
        errors = self.class_errors()
        errors[0] = self.score.error
        return errors

    def class_reach(self, columns: Any, t: Any, tail: float) -> tuple[Floats, Floats]:
        """Distances of the limits of classes from their values, by Student's t and its tail."""
        error = self.class_errors()[columns]
        low, high = self.arms(columns, t)
        near = self.near(columns, t)
        bound = self.bound_reach(self.values[columns], self.seen[columns], tail, near)
        some = error > 0
        down, up = (
            np.where(some, t * error * arm, np.where(np.isnan(error), np.nan, end))
            for arm, end in zip((low, high), bound, strict=True)
        )
        return down, up

    def bound_reach(
        self, values: Floats, hits: Any, tail: float, near: Any
    ) -> tuple[Floats, Floats]:
        """Distances of the limits if all units agree: at a bound, of as many hits in a row.

        A model with one wrong pixel may have a closer limit, and that of a perfect one is ``near``.
        """
        least, most = self.bounds
        with np.errstate(invalid="ignore", over="ignore"):
            away = (most - least) * (1 - tail ** (1 / np.maximum(hits, 1)))
        away = np.fmin(away, near)
        low, high = values == least, values == most
        down = np.where(low, 0.0, np.where(high, away, np.nan))
        up = np.where(high, 0.0, np.where(low, away, np.nan))
        finite = np.isfinite(away)
        return np.where(finite, down, np.nan), np.where(finite, up, np.nan)

    def near(self, columns: Any, t: Any, shrink: float = 1.0) -> Floats:
        """Distances of limits from a bound with one pixel changed, NaN if unknown.

        Only the unit of the pixel changes, by its step, so this is the standard error.
        """
        scale = self.scale
        if not np.isin(self.values[columns], self.bounds).any():
            return np.full(np.shape(self.values[columns]), np.nan)
        step = self.statistic.least_steps[columns]
        # The step is 1 for a class of one pixel.
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            return scale.ends(scale.least + step, t * step * shrink)[1] - scale.least

    def freedom(self, share: Any = 1.0) -> Floats:
        """Degrees of freedom, (1 + C,), with so many times the units."""
        freedom = np.asarray(share * self.seen - 1.0)
        of_score = float(np.broadcast_to(share, freedom.shape)[0])
        if (index := only_class([self.statistic])) is not None:
            freedom[0] = of_score * self.seen[1 + index] - 1.0
        elif self.weights is not None:
            freedom[0] = self._freedom(self.weights, of_score)
        return freedom

    def _freedom(self, weights: Floats, share: float = 1.0) -> float:
        """Satterthwaite degrees of freedom of a mean of classes, with so many times the units."""
        v, k = weights**2 * self.variance[1:], self.seen[1:]
        use = (k > 1) & (v > 0)
        most = share * self.seen[0] - 1.0
        if not use.any():
            return float(most)
        v, k = v[use] / v[use].max(), np.maximum(share * k[use] - 1.0, 1.0)
        return float(min(max(v.sum() ** 2 / (v**2 / k).sum(), LEAST_FREEDOM), most))

    @np.errstate(invalid="ignore")  # of infinite distances
    def _side(self, column: int | None, parts: Floats | None, freedom: float, hits: int) -> Side:
        """The value in a column, or the mean of parts; their steps in one pass."""
        used, weights = np.array([column or 0]), np.ones(1)
        if parts is not None:
            varying = (parts > 0) & (self.variance[1:] > 0)
            used = 1 + np.flatnonzero(varying if varying.any() else parts > 0)
            weights = parts[used - 1]
        # Without an upper bound, the arm of one rare class is many times the score.
        is_plain = column is None and self.scale.most == np.inf
        moves: list[Floats] = []
        size = 1 if is_plain else 1 + len(used)
        products = np.zeros((size, size))
        for step in self.steps():
            moving = step[:, used]
            together = np.einsum("ij,j->i", moving, weights)  # BLAS would wait, as in _gram
            moved = together if column is None else step[:, column]
            # The rest that no class moves: a class vanishes with a unit, or absent ones are filled.
            rest = [moved] if is_plain else [moved - together, moving]
            block = np.column_stack(rest)
            moves.append(moved)
            products += _gram(block)
        is_class, units = bool(column), len(self.statistic.units)
        shrink = 1.0 if is_class else (units - 1) / units
        every = np.concatenate(moves) * math.sqrt(shrink)
        bias = 0.0 if is_class else float(every.sum()) * math.sqrt(shrink)
        if is_plain:
            used, weights = used[:0], weights[:0]
        if column is None and parts is not None:
            value = float(self.values[1:][parts > 0] @ parts[parts > 0])
        else:
            value = float(self.values[column or 0])
        return Side(
            value=value,
            moves=every,
            bias=bias,
            freedom=freedom,
            hits=hits,
            is_class=is_class,
            left_out=self,
            columns=used,
            weights=weights,
            products=products * shrink,
        )


@dataclass(frozen=True, eq=False)
class Side:
    """A value over units, with its own limits at any level; made by :class:`Jackknife`.

    Attributes
    ----------
    value : float
    moves : ndarray of float, shape (U,)
        What each unit adds to the value; the squares sum to the variance.
    bias : float
        By the jackknife; 0 for a class.
    freedom : float
        Degrees of freedom of Student's t.
    """

    value: float
    moves: Floats
    bias: float
    freedom: float
    hits: int
    """Units that agree if all do."""
    is_class: bool
    left_out: Jackknife
    columns: NDArray[np.intp]
    """The columns of its parts in the values: classes, or the score itself."""
    weights: Floats
    products: Floats
    """Sums of products of the steps of the rest and of each part."""

    @cached_property
    def variance(self) -> float:
        """Square of the standard error."""
        if self.is_class:
            return float(self.left_out.variance[self.columns[0]])
        return float(np.einsum("i,i", self.moves, self.moves))

    @property
    def error(self) -> float:
        """Standard error; NaN if undefined."""
        known = math.isfinite(self.value) and (self.freedom > 0 or not self.is_class)
        return math.sqrt(self.variance) if known else math.nan

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        return self.left_out.bounds

    def reach(self, level: float) -> tuple[float, float]:
        """Distances of the lower and upper limit from the value, at a two-sided level; or NaN."""
        tail = (1 - level) / 2
        return self.reach_at(float(student(self.freedom, tail)), tail)

    def reach_at(self, t: float, tail: float) -> tuple[float, float]:
        """Distances of the limits at a quantile of Student's t, with the share above it."""
        if self.is_class:
            down, up = self.left_out.class_reach(self.columns, t, tail)
        elif self.error > 0:
            return self._widest(t)
        elif math.isnan(self.error) or not len(self.columns):  # 0 by a protocol, of no class
            return math.nan, math.nan
        else:
            near = self._bound_distance(tail)
            down, up = self.left_out.bound_reach(np.array([self.value]), self.hits, tail, near)
        return float(down[0]), float(up[0])

    def _bound_distance(self, tail: float) -> float:
        """Distance of the limit from a bound with one pixel changed, in the class of the least."""
        seen, units = self.left_out.seen[self.columns], len(self.moves)
        freedom = np.minimum(np.maximum(seen - 1.0, LEAST_FREEDOM), units - 1.0)
        t = np.asarray(student(freedom, tail))
        near = self.left_out.near(self.columns, t, math.sqrt((units - 1) / units))
        return float(np.fmin.reduce(self.weights * near))

    def _widest(self, t: float) -> tuple[float, float]:
        """Distances of the limits, the largest up to this quantile.

        Arms end at the bounds, so those of classes that compensate may shrink as t grows.
        """
        # The bias is too uncertain to be subtracted, so it widens the limits like a variance.
        wider = math.sqrt(1 + self.bias**2 / self.variance)
        tried = np.array([t])
        if len(self.columns):
            tried = np.append(self._usual[self._usual < t], t)
        arms = self.left_out.arms(self.columns, tried[:, None])
        down, up = (wider * tried * self._moved(arm) for arm in arms)
        return float(down.max()), float(up.max())

    @cached_property
    def _usual(self) -> Floats:
        """Quantiles up to which the limits are compared."""
        usual = [float(student(self.freedom, tail)) for tail in _USUAL_TAILS]
        return np.append(np.geomspace(0.25, 64, 25), usual)

    def _moved(self, arms: Floats) -> Floats:
        """Roots of the summed squared contributions of the units, with parts scaled by (T, K)."""
        x = np.insert(self.weights * arms, 0, 1.0, axis=-1)
        with np.errstate(over="ignore", invalid="ignore"):  # arms may be of any length
            square = ((x @ self.products) * x).sum(-1)
        square[np.isnan(square) & ~np.isnan(x).any(-1)] = np.inf
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def correlation(first: Floats, second: Floats, mine: NDArray[Any], theirs: NDArray[Any]) -> float:
    """Correlation of two values by their moves, whose units overlap at these places in each."""
    scale = math.sqrt(float(np.einsum("i,i", first, first) * np.einsum("i,i", second, second)))
    return float(first[mine] @ second[theirs]) / scale if scale > 0 else 0.0


def _gram(block: Floats) -> Floats:
    """Products of columns, few rows at a time: BLAS would wait for threads of busy cores."""
    whole = len(block) // _ROWS * _ROWS
    parts = block[:whole].reshape(-1, _ROWS, block.shape[1])
    rest = block[whole:]
    return np.asarray((parts.transpose(0, 2, 1) @ parts).sum(0) + rest.T @ rest)


def steps_of(score: Statistic) -> Iterator[Floats]:
    """What units add to each value, in parts (n, 1 + C); 0 for a class's only unit."""
    if not score.is_smooth:
        msg = (
            "the jackknife is wrong for medians and percentiles; use a bootstrap "
            "(method='percentile')"
        )
        raise ValueError(msg)
    values = score.values
    for without in score.left_out_parts():
        step = values - without
        step[:, 1:][np.isnan(step[:, 1:])] = 0
        yield step


def only_class(models: Sequence[Statistic]) -> int | None:
    """The class that the score is the value of, if it is the mean over one class."""
    score, weights = models[0].score, models[0].weights
    used = score.include if weights is None else weights > 0
    if used is None or used.sum() != 1:
        return None
    index = int(used.argmax())
    same = all(model.values[0] == model.values[1 + index] for model in models)
    return index if same else None
