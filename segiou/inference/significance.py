"""Paired permutation tests, Holm's adjustment, and power."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import (
    check_callable,
    check_integer,
    check_kind,
    check_level,
    check_number,
    names_options,
    refuse_kind,
)
from segiou._support.numbers import number_of
from segiou._support.text import Plain
from segiou.inference.bootstrapping import batches
from segiou.inference.statistics import Statistic
from segiou.inference.student import student, student_below
from segiou.inference.units import ROUNDING, Units, weighted
from segiou.metrics.ratio import Floats

#: Most units that a power estimate names.
_MOST_UNITS = 10_000_000


@dataclass(frozen=True, slots=True)
class Power(Plain):
    """Differences and sample sizes that a comparison can detect.

    Attributes
    ----------
    unit : {"image", "group", "sequence", "batch"}
    units : int
        Units of the runs.
    level : float
        1 minus the significance level.
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


@dataclass(frozen=True, eq=False)
class Permuted:
    """Differences under the permutations of a paired test, and their p.

    Attributes
    ----------
    deltas : ndarray of float, shape (N, 1 + C)
        Difference of the score, then of the classes, in each permutation; the observed one is
        first. NaN if a permutation has none.
    always : ndarray of bool, shape (C,)
        Classes that both models have in every permutation in which one has them.
    covered : ndarray of bool or None
        Classes of the means that are compared, if some permutations lack others.
    exact : bool
        Whether these are all permutations.
    """

    deltas: Floats
    always: NDArray[np.bool_]
    covered: NDArray[np.bool_] | None
    exact: bool

    @property
    def p(self) -> Floats:
        """P-values of the score and the classes, (1 + C,); NaN if the difference is undefined."""
        return np.array([share_reached(column, column[0]) for column in self.deltas.T])

    @property
    def permutations(self) -> int:
        """Number of permutations in which the score has a difference."""
        defined = len(self.deltas) - int(np.isnan(self.deltas[:, 0]).sum())
        return defined if self.exact else max(defined - 1, 0)

    def mean_deltas(self, classes: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
        """Differences of the mean over some classes, and those of them that it covers.

        A class that the truth lacks may be scored for one model only in some permutations. Then
        the mean covers the classes that both models have in every permutation, if there are any,
        so that no permutation is skipped.
        """
        kept = classes & self.always if (classes & self.always).any() else classes
        return self.deltas[:, 1:][:, kept].mean(1), kept


def share_reached(deltas: Floats, delta: float) -> float:
    """Share of the differences that are as far from 0 as one of them; NaN without it."""
    sizes = np.abs(deltas[~np.isnan(deltas)])
    return float(np.mean(sizes >= abs(delta) - ROUNDING)) if delta == delta else math.nan


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
        The same score over the same units; the differences are b − a.
    permutations, seed : int
        Number of permutations; seed of the random numbers.

    References
    ----------
    E. J. G. Pitman, Suppl. J. R. Stat. Soc. 4 (1937). For the added ones:
    B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol.
    9:39 (2010).
    """
    for name, score_of_model in (("a", a), ("b", b)):
        check_kind(name, score_of_model, Statistic, "a Statistic of segiou.inference.statistic")
    check_integer("permutations", permutations, 1)
    check_integer("seed", seed, 0)
    exact = 2 ** len(a.units) <= permutations
    sums_a, sums_b = a.products, b.products
    first_a, step = sums_a.sum(0), sums_b - sums_a
    whole = first_a + sums_b.sum(0)
    score = a.score
    classes = score.include if score.is_mean and score.weights is not None else None
    deltas, for_one, for_any = [], *np.zeros((2, len(a.values) - 1), bool)
    number, width = sums_a.shape[0], sums_a.shape[1]
    for swapped in _swaps(number, width, permutations, seed):
        first = first_a + weighted(swapped, step)
        second = whole - first
        values = a.evaluate(first), b.evaluate(second)
        has_first, has_second = a.has_score(first, values[0]), b.has_score(second, values[1])
        delta, of_one = values[1] - values[0], has_first != has_second
        if classes is not None:  # means over different classes
            delta[(of_one & classes).any(1), 0] = np.nan
        deltas.append(delta)
        for_one |= of_one.any(0)
        for_any |= (has_first | has_second).any(0)
    found = Permuted(np.concatenate(deltas), for_any & ~for_one, None, exact)
    if classes is None or not (for_one & classes).any() or not (classes & found.always).any():
        return found
    found.deltas[:, 0], covered = found.mean_deltas(classes)
    return replace(found, covered=covered)


def _swaps(units: int, width: int, permutations: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Rows of 0 and 1 per unit, 1 if the two models are exchanged; the first row is all 0."""
    if 2**units <= permutations:
        yield (np.arange(2**units)[:, None] >> np.arange(units)) & 1
        return
    yield np.zeros((1, units), np.int64)
    # A different stream from that of the bootstrap, which starts from the bare seed.
    rng = np.random.default_rng([seed, 1])
    for size in batches(permutations, units, 2 * width):
        yield rng.integers(0, 2, (size, units))


def is_significant(p: Any, level: float) -> Any:
    """Whether p-values are below 1 − level, except for rounding; undefined ones are not."""
    return p < 1 - level - ROUNDING


def least_p(permutations: int, *, exact: bool = True) -> float:
    """Smallest p of a number of permutations, all of them (2 to the power of units) or random."""
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
    p = np.asarray(p)
    if p.ndim != 1 or p.dtype.kind not in "fiu":
        raise refuse_kind("p", p.tolist(), "a sequence of p-values")
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p, kind="stable")
    order = order[~np.isnan(p[order])]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, factors * p[order]))
    return adjusted


@names_options
def power(
    units: Units,
    spread: Callable[[int], tuple[float, float]],
    *,
    level: float = 0.95,
    target: float = 0.8,
    detect: float | None = None,
) -> Power:
    """Detectable difference of a comparison, and the units needed to detect another one.

    A true difference δ is significant with the probability T_ν(δ / e − t) for the error e, which
    is the reach of the interval divided by Student's t at the level, and ν degrees of freedom.
    Without training runs, e is proportional to 1/√units and ν = units − 1; the variance of
    training runs does not fall with units. The observed difference itself is not asked about:
    power at it only restates p (J. Hoenig and D. Heisey, Am. Stat. 55 (2001), 19-24).

    Parameters
    ----------
    units : Units
        The units that are compared.
    spread : callable
        Error and degrees of freedom by the number of units.
    level, target : float
        Level of the intervals, e.g. 0.95; target power, e.g. 0.8.
    detect : float, optional
        A true difference to ask about, which is not 0.
    """
    check_difference(detect)
    check_kind("units", units, Units, "Units of segiou.inference.units_of")
    check_callable("spread", spread, "a function of the number of units")
    check_level("level", level)
    if not 0 < check_number("target", target) < 1:
        msg = f"target must be between 0 and 1, such as 0.8, got {target}"
        raise ValueError(msg)

    def reach(number: int) -> float:
        error, freedom = spread(number)
        t = student(freedom, (1 - level) / 2) + student(freedom, 1 - target)
        return number_of(t * error)

    number = len(units)
    result = Power(units.kind, number, level, target, reach(number))
    if detect is None or not result.detectable > 0:
        return result
    error, freedom = spread(number)
    size = abs(detect)
    now = float(student_below(size / error - student(freedom, (1 - level) / 2), freedom))
    # Few degrees of freedom of training runs may weigh more with more units, so the first numbers
    # are tried one after the other.
    doubled = (min(2**n, _MOST_UNITS) for n in range(1, _MOST_UNITS.bit_length() + 1))
    enough = next((n for n in doubled if reach(n) <= size), None)
    needed = None
    if enough is not None:
        numbers = range(max(enough // 2, 2), enough + 1)
        needed = numbers[bisect_left(numbers, True, key=lambda number: reach(number) <= size)]
    return replace(result, difference=size, now=now, needed=needed)


def check_difference(detect: object) -> None:
    """Raise an error unless a difference to detect is None, or finite and not 0."""
    if detect is not None and (not math.isfinite(check_number("detect", detect)) or detect == 0):
        msg = f"detect must be a finite difference other than 0, such as 0.01, got {detect}"
        raise ValueError(msg)
