"""Paired permutation: what the difference would be if it did not matter which model is which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou.metrics import Floats
from segiou.uncertainty.resampling import batches
from segiou.uncertainty.scores import Statistic

__all__ = ["Permuted", "holm", "permutation_p"]

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
    the swapped sums. p = (1 + #{|Δ_s| ≥ |Δ|}) / (B + 1) for B random swaps.
    Where there are no more than B swaps in all, 2^U, all of them are looked at
    and p = #{|Δ_s| ≥ |Δ|} / 2^U. Swaps that leave a class without a value are
    not counted.

    Parameters
    ----------
    a, b : Statistic
        The same score over the same units.
    permutations, seed : int

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
    whole = sums_a.sum(0) + sums_b.sum(0)
    observed = np.abs(b.values - a.values)
    reached, defined = np.zeros(len(observed)), np.zeros(len(observed))
    step = sums_b - sums_a
    for swaps in _swaps(units, permutations, seed, exact=exact, features=2 * sums_a.shape[1]):
        first = sums_a.sum(0) + swaps.astype(step.dtype) @ step
        delta = np.abs(b.evaluate(whole - first) - a.evaluate(first))
        reached += (delta >= observed - _TIE).sum(0)
        defined += (~np.isnan(delta)).sum(0)
    added = 0 if exact else 1
    p = (reached + added) / np.maximum(defined + added, 1)
    p[np.isnan(observed)] = np.nan
    return Permuted(p, 2**units if exact else permutations, exact)


def _swaps(
    units: int, permutations: int, seed: int, *, exact: bool, features: int
) -> Iterator[NDArray[np.int64]]:
    """Rows of 0 and 1 per unit, 1 where the two models are swapped."""
    if exact:
        yield (np.arange(2**units)[:, None] >> np.arange(units)) & 1
        return
    # Apart from the stream of the bootstrap, which starts from the bare seed.
    rng = np.random.default_rng([seed, 1])
    for size in batches(permutations, units, features):
        yield rng.integers(0, 2, (size, units))


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
