"""Paired permutation tests, Holm's adjustment, and power."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support import text
from segiou._support.text import Json
from segiou.inference.bootstrapping import batches
from segiou.inference.leave_one_out import Limits
from segiou.inference.statistics import Statistic
from segiou.inference.student import student, student_below
from segiou.inference.units import ROUNDING, weighted
from segiou.metrics.ratio import Floats

#: Most units that a power estimate names.
_MOST_UNITS = 10_000_000


@dataclass(frozen=True, slots=True)
class Power:
    """Differences and sample sizes that a comparison can detect.

    Attributes
    ----------
    unit : {"image", "group", "sequence", "batch"}
    units : int
        Units of the runs.
    level : float
        Level of the intervals that must exclude 0.
    target : float
        Target power.
    detectable : float
        Smallest true difference that these units detect with the target power.
    difference : float
        The true difference that was asked about; NaN if none was.
    now : float
        Power to detect it with these units.
    needed : int or None
        Units needed to detect it with the target power.
    """

    unit: str
    units: int
    level: float
    target: float
    detectable: float
    difference: float = float("nan")
    now: float = float("nan")
    needed: int | None = None

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        return dict(text.plain(self))


class Permuted(NamedTuple):
    """p-values of a permutation test."""

    p: Floats
    """Of the score, then of the classes, (1 + C,); NaN if the difference is undefined."""
    permutations: int
    """Number of permutations in which the score has a difference."""
    exact: bool
    """Whether these are all such permutations."""


def permutation_test(a: Statistic, b: Statistic, permutations: int, seed: int) -> Permuted:
    """Two-sided paired permutation test of a difference of scores.

    Under the null hypothesis, the two models are exchangeable on every unit.
    A permutation s swaps their counts on some units and gives the difference
    Δ_s; ``p = (1 + #{|Δ_s| ≥ |Δ|}) / (B + 1)`` for B random permutations. If
    there are at most B permutations, 2^U, the test is exact:
    ``p = #{|Δ_s| ≥ |Δ|} / 2^U``. A class that the truth lacks may be scored for
    one model only in some permutations. Then the test compares the means over
    the classes that both models have in every permutation, also for Δ, so that
    none is skipped. Permutations without a difference of a class, or without any
    such class in the mean, are skipped.

    Parameters
    ----------
    a, b : Statistic
        The same score over the same units.
    permutations, seed : int
        Number of permutations; seed of the random numbers.

    References
    ----------
    E. J. G. Pitman, Suppl. J. R. Stat. Soc. 4 (1937). For the added ones:
    B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol.
    9:39 (2010).
    """
    units = len(a.units)
    exact = 2**units <= permutations
    sums_a, sums_b = a.products, b.products
    first_a, step = sums_a.sum(0), sums_b - sums_a
    whole = first_a + sums_b.sum(0)

    def swaps() -> Iterator[NDArray[np.int64]]:
        """Rows of 0 and 1 per unit, 1 if the two models are exchanged."""
        if exact:
            yield (np.arange(2**units)[:, None] >> np.arange(units)) & 1
            return
        # A different stream from that of the bootstrap, which starts from the bare seed.
        rng = np.random.default_rng([seed, 1])
        for size in batches(permutations, units, 2 * sums_a.shape[1]):
            yield rng.integers(0, 2, (size, units))

    def counted(covered: NDArray[np.bool_] | None = None) -> _Reached:
        count = _Reached.by(a, b, covered)
        for swapped in swaps():
            first = first_a + weighted(swapped, step)
            second = whole - first
            values = a.evaluate(first), b.evaluate(second)
            count.add(*values, a.has_score(first, values[0]), b.has_score(second, values[1]))
        return count

    count = counted()
    if (always := count.always_scored) is not None:
        count = counted(always)
    added = 0 if exact else 1
    p = (count.reached + added) / np.maximum(count.defined + added, 1)
    p[np.isnan(b.values - a.values)] = np.nan
    return Permuted(p, int(count.defined[0]), exact)


@dataclass(eq=False)
class _Reached:
    """Numbers of permutations, for a score and each of its classes, (1 + C,)."""

    classes: NDArray[np.bool_] | None
    """Classes that the score is the mean of, (C,); None if it is another kind of score."""
    covered: NDArray[np.bool_] | None
    """Those that it covers instead."""
    observed: Floats
    """Sizes of the differences of the models."""
    reached: NDArray[np.int64]
    """Permutations whose difference is at least as large."""
    defined: NDArray[np.int64]
    """Permutations with a difference."""
    for_one: NDArray[np.bool_]
    """Whether a permutation has a score of the class for one model only, (C,)."""
    for_any: NDArray[np.bool_]
    """Whether a permutation has a score of the class."""

    @classmethod
    def by(cls, a: Statistic, b: Statistic, covered: NDArray[np.bool_] | None) -> _Reached:
        """No permutations yet."""
        score, size = a.score, len(a.values)
        classes = score.include if score.is_mean and score.weights is not None else None
        none, never = np.zeros((2, size), np.int64), np.zeros((2, size - 1), bool)
        count = cls(classes, covered, np.empty(0), *none, *never)
        first, second = a.values[None], b.values[None]
        for_one = a.has_scores != b.has_scores
        count.observed = np.abs(count.differences(first, second, for_one[None])[0])
        return count

    def add(
        self,
        first: Floats,
        second: Floats,
        has_first: NDArray[np.bool_],
        has_second: NDArray[np.bool_],
    ) -> None:
        """Count permutations by their scores, (B, 1 + C), and whether classes have one, (B, C)."""
        for_one = has_first != has_second
        delta = np.abs(self.differences(first, second, for_one))
        self.reached += np.count_nonzero(delta >= self.observed - ROUNDING, axis=0)
        self.defined += len(delta) - np.count_nonzero(np.isnan(delta), axis=0)
        self.for_one |= for_one.any(0)
        self.for_any |= has_first.any(0) | has_second.any(0)

    def differences(self, first: Floats, second: Floats, for_one: NDArray[np.bool_]) -> Floats:
        """Differences (B, 1 + C); undefined for means over different classes."""
        delta = second - first
        if self.classes is None:
            return delta
        if self.covered is not None:
            delta[:, 0] = delta[:, 1:][:, self.covered].mean(1)
        else:
            delta[:, 0][(for_one & self.classes).any(1)] = np.nan
        return delta

    @property
    def always_scored(self) -> NDArray[np.bool_] | None:
        """Classes of the mean that both models always had; None if these are all, or none is."""
        if self.classes is None or not (self.for_one & self.classes).any():
            return None
        always = self.classes & self.for_any & ~self.for_one
        return always if always.any() else None


def least_p(units: int) -> float:
    """Smallest p of a two-sided permutation test over units."""
    return 2.0 ** (1 - units)


def least_p_of(permutations: int, exact: bool) -> float:
    """Smallest p of a number of permutations, all of them or random ones."""
    # Of all, the one that exchanges the models on the other units is as far from 0.
    return 2 / max(permutations, 2) if exact else 1 / (permutations + 1)


def holm_adjust(p: Floats) -> Floats:
    """Holm's adjustment of p-values for multiple comparisons.

    In ascending order, p̃₍ᵢ₎ = max_{j ≤ i} min(1, (m − j + 1) p₍ⱼ₎). Rejecting all
    p̃ below α controls the family-wise error rate at α.

    Parameters
    ----------
    p : ndarray of float, shape (m,)
        NaN values are skipped and stay NaN.

    Returns
    -------
    ndarray of float64, shape (m,)

    References
    ----------
    S. Holm, Scand. J. Statist. 6 (1979), 65-70.

    Examples
    --------
    >>> holm_adjust(np.array([0.01, 0.04, np.nan, 0.03]))
    array([0.03, 0.06,  nan, 0.06])
    """
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p, kind="stable")
    order = order[~np.isnan(p[order])]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, factors * p[order]))
    return adjusted


def power(
    score: Statistic,
    limits: Limits,
    *,
    level: float = 0.95,
    target: float = 0.8,
    detect: float | None = None,
) -> Power:
    """Difference that a comparison can detect, and the units it takes to detect another.

    A true difference δ is detected if its interval excludes 0, which has the
    probability T_ν(δ / s − t) for the standard error s of the observed
    difference, ν degrees of freedom and Student's t at the level. s is
    proportional to 1/√units. The observed difference itself is not used:
    power at the observed difference only restates p (J. Hoenig and D. Heisey,
    Am. Stat. 55 (2001), 19-24).

    Parameters
    ----------
    score : Statistic
        The score of one of the models, for its units.
    limits : Limits
        Of the difference, from :func:`segiou.inference.leave_one_out.jackknife`.
    level, target : float
        Level of the intervals, e.g. 0.95; target power, e.g. 0.8.
    detect : float, optional
        A true difference to ask about.
    """
    units = len(score.units)
    error, freedom = float(limits.standard_error[0]), float(limits.freedom[0])
    if math.isnan(freedom):  # of a bootstrap
        freedom = units - 1.0
    result = Power(score.units.kind, units, level, target, _reach(error, freedom, level, target))
    if detect is None or not error > 0 or math.isnan(result.detectable):
        return result

    def reach(number: int) -> float:
        share = number / units
        return _reach(error / math.sqrt(share), max(freedom * share, 1.0), level, target)

    size = abs(detect)
    now = float(student_below(size / error - student(freedom, (1 - level) / 2), freedom))
    numbers = range(2, _MOST_UNITS)
    needed = bisect_left(numbers, True, key=lambda number: reach(number) <= size)
    return replace(
        result,
        difference=size,
        now=now,
        needed=numbers[needed] if needed < len(numbers) else None,
    )


def _reach(error: float, freedom: float, level: float, target: float) -> float:
    """The true difference that is detected with the target power."""
    return float((student(freedom, (1 - level) / 2) + student(freedom, 1 - target)) * error)
