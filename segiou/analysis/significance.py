"""Is a difference more than chance: permutation tests, and how many images they need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import Json, plain
from segiou.analysis.bootstrapping import batches
from segiou.analysis.statistics import Statistic
from segiou.analysis.units import weighted
from segiou.metrics.ratio import Floats

# Scores are near 1 at most, so two differences closer than this are equal but for rounding.
_TIE = 1e-12


class Permuted(NamedTuple):
    """p-values and how they were found."""

    p: Floats
    """(1 + C,): of the score, then of the classes; NaN where there is no difference to test."""
    permutations: int
    """Swaps looked at."""
    exact: bool
    """Whether these were all there are."""


def permutation_p(a: Statistic, b: Statistic, permutations: int, seed: int) -> Permuted:
    """Two-sided paired permutation test of a difference of scores.

    If the two models were interchangeable, swapping their counts on any unit
    would change nothing: a swap s gives Δ_s, the difference of the scores of
    the swapped sums. ``p = (1 + #{|Δ_s| ≥ |Δ|}) / (B + 1)`` for B random swaps.
    Where there are no more than B swaps in all, 2^U, all of them are looked at
    and ``p = #{|Δ_s| ≥ |Δ|} / 2^U``. Swaps that leave a class without a value are
    not counted.

    Parameters
    ----------
    a, b : Statistic
        The same score over the same units.
    permutations, seed : int
        Number of permutations; seed of the random numbers.

    Returns
    -------
    Permuted

    References
    ----------
    The test: E. J. G. Pitman, Suppl. J. R. Stat. Soc. 4 (1937); one added
    above and below: B. Phipson and G. K. Smyth, Stat. Appl. Genet. Mol. Biol.
    9:39 (2010).
    """
    units = len(a.units)
    exact = 2**units <= permutations
    sums_a, sums_b = a.products, b.products
    first_a, step = sums_a.sum(0), sums_b - sums_a
    whole = first_a + sums_b.sum(0)
    observed = np.abs(b.values - a.values)
    reached, defined = np.zeros(len(observed)), np.zeros(len(observed))

    def swaps() -> Iterator[NDArray[np.int64]]:
        """Rows of 0 and 1 per unit, 1 where the two models are swapped."""
        if exact:
            yield (np.arange(2**units)[:, None] >> np.arange(units)) & 1
            return
        # Apart from the stream of the bootstrap, which starts from the bare seed.
        rng = np.random.default_rng([seed, 1])
        for size in batches(permutations, units, 2 * sums_a.shape[1]):
            yield rng.integers(0, 2, (size, units))

    for swapped in swaps():
        first = first_a + weighted(swapped, step)
        delta = np.abs(b.evaluate(whole - first) - a.evaluate(first))
        reached += (delta >= observed - _TIE).sum(0)
        defined += (~np.isnan(delta)).sum(0)
    added = 0 if exact else 1
    p = (reached + added) / np.maximum(defined + added, 1)
    p[np.isnan(observed)] = np.nan
    return Permuted(p, 2**units if exact else permutations, exact)


def holm(p: Floats) -> Floats:
    """Holm's adjustment of p-values for looking at several at once.

    In ascending order, p̃₍ᵢ₎ = max_{j ≤ i} min(1, (m − j + 1) p₍ⱼ₎): a class with
    p̃ below α is different with at most the chance α of one false alarm in all.

    Parameters
    ----------
    p : ndarray of float, shape (m,)
        NaN are left out and stay NaN.

    Returns
    -------
    ndarray of float64, shape (m,)

    References
    ----------
    S. Holm, Scand. J. Statist. 6 (1979), 65-70.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, np.nan, 0.03]))
    array([0.03, 0.06,  nan, 0.06])
    """
    found = np.full(len(p), np.nan)
    order = np.argsort(p, kind="stable")
    order = order[~np.isnan(p[order])]
    factors = np.arange(len(order), 0, -1)
    found[order] = np.maximum.accumulate(np.minimum(1.0, factors * p[order]))
    return found


_LEAST, _MOST = 5, 1_000_000
_NORMAL = NormalDist()
_STEPS = (0.25, 0.5, 0.71, 1.0, 1.41, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Power:
    """Chance to see the observed difference with other numbers of units.

    Attributes
    ----------
    unit : {"image", "group"}
    difference : float
        The difference taken for true: the observed one.
    level : float
        Level of the intervals that must exclude 0.
    target : float
        Power to be reached.
    units : int
        Units of the run.
    now : float
        Power with as many.
    needed : int or None
        Units for the target power; None where a million would not do, or the
        difference is 0 or undefined. 5 stands for 5 or fewer.
    grid : tuple of (int, float)
        Numbers of units and the power found with each.
    simulations : int
        Simulated experiments for each.
    """

    unit: str
    difference: float
    level: float
    target: float
    units: int
    now: float
    needed: int | None
    grid: tuple[tuple[int, float], ...]
    simulations: int

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        return dict(plain(self))


def power(
    a: Statistic,
    b: Statistic,
    *,
    level: float = 0.95,
    target: float = 0.8,
    simulations: int = 1000,
    seed: int = 0,
) -> Power:
    """Simulate the same comparison with fewer and with more units.

    An experiment with n units draws n of the run's units with replacement and
    takes the difference Δ* of the scores of their sums. It has seen the
    difference where Δ* has the sign of the observed Δ and its interval
    Δ* ± t s*/√n excludes 0; s* is the standard deviation of the drawn units'
    jackknife values u_i = (U − 1)(Δ − Δ₍ᵢ₎) and t the quantile of Student's
    distribution with n − 1 degrees of freedom. Power is the share of the
    experiments that have; between the simulated n it is interpolated in log n.

    Parameters
    ----------
    a, b : Statistic
        The same score over the same units.
    level, target : float
        Level of the intervals, such as 0.95; power that is wanted, such as 0.8.
    simulations, seed : int
        Number of simulated comparisons; seed of the random numbers.

    Returns
    -------
    Power

    Notes
    -----
    The run stands for all images there are, and its difference for the true
    one. Both are guesses, and the answer is an order of magnitude: a difference
    that was seen because chance made it large needs more than is said here.
    """
    units = len(a.units)
    difference = float(b.values[0] - a.values[0])
    effects = (units - 1) * (difference - (b.left_out[:, 0] - a.left_out[:, 0]))
    rng = np.random.default_rng([seed, 2])

    def seen(number: int) -> float:
        """Share of experiments with ``number`` units that see the difference."""
        # Inside, because it loads in tens of milliseconds.
        from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

        weights = rng.multinomial(number, np.full(units, 1 / units), simulations)
        of_a, of_b = (
            one.evaluate(weighted(weights, one.sums.astype(np.float64)))[:, 0] for one in (a, b)
        )
        drawn = weights @ effects / number
        spread = np.maximum(weights @ effects**2 / number - drawn**2, 0.0)
        freedom = max(number - 1, 1)
        reach = float(stdtrit(freedom, (1 + level) / 2)) * np.sqrt(spread / freedom)
        return float(((of_b - of_a) * np.sign(difference) > reach).mean())

    grid: tuple[tuple[int, float], ...] = ()
    if difference != 0 and np.isfinite([difference, *effects]).all():
        # Around where the normal approximation has 80 % power.
        quantiles = _NORMAL.inv_cdf((1 + level) / 2) + _NORMAL.inv_cdf(0.8)
        guess = (quantiles * float(effects.std()) / difference) ** 2
        numbers = {units, *(round(min(max(guess * step, _LEAST), _MOST)) for step in _STEPS)}
        grid = tuple((number, seen(number)) for number in sorted(numbers))
    return Power(
        unit=a.units.kind,
        difference=difference,
        level=level,
        target=target,
        units=units,
        now=dict(grid).get(units, float("nan")),
        needed=_reached(grid, target),
        grid=grid,
        simulations=simulations,
    )


def _reached(grid: tuple[tuple[int, float], ...], target: float) -> int | None:
    """First number of units with the target power, between grid points in log n."""
    if grid and grid[0][1] >= target:
        return grid[0][0]
    for (n0, p0), (n1, p1) in pairwise(grid):
        if p1 >= target:
            return int(np.ceil(n0 * (n1 / n0) ** ((target - p0) / (p1 - p0))))
    return None
