"""Intervals of medians of cases by order statistics, and of means of the worst cases."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_number
from segiou.counting.arrays import read_floats
from segiou.inference.limits import SCALES
from segiou.inference.student import student


def _ranked(values: ArrayLike) -> NDArray[np.float64]:
    """Defined numbers in ascending order."""
    table = read_floats(values, "values", "numbers, one per image")
    return np.sort(table[~np.isnan(table)])


def median_limits(values: ArrayLike, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of a median by interpolated order statistics.

    For n values, the interval from the l-th lowest to the l-th highest covers
    the median with probability γ_l = 1 − 2 P(Bin(n, ½) < l). The limits
    interpolate between the last l with γ_l of at least the level and the next.

    Parameters
    ----------
    values : array_like, shape (N,)
        One value per case; NaN values are skipped, infinite ones are not.
    level : float
        Between 0 and 1.

    Returns
    -------
    tuple of float
        The lower and the upper limit: NaN for so few values that no interval
        has the level (five at 95 %), infinite if missing cases decide it.

    References
    ----------
    T. P. Hettmansperger and S. J. Sheather, Statist. Probab. Lett. 4 (1986),
    75-79; J. Nyblom, Statist. Probab. Lett. 14 (1992), 135-139.

    Examples
    --------
    >>> low, high = median_limits([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> round(low, 3), round(high, 3)
    (1.357, 5.643)
    """
    from scipy.special import bdtr  # type: ignore[import-untyped, unused-ignore]

    ranked = _ranked(values)
    n = len(ranked)
    wanted = check_number("level", level, 0, 1)
    places = np.arange(1, n // 2 + 1)
    covered = 1 - 2 * bdtr(places - 1.0, n, 0.5)
    last = int((covered >= wanted).sum())
    if not last:
        return math.nan, math.nan
    following = covered[last] if last < len(covered) else 0.0
    share = (covered[last - 1] - wanted) / (covered[last - 1] - following)
    weight = (n - last) * share / (last + (n - 2 * last) * share)
    ends = ranked[last - 1], ranked[last], ranked[n - last], ranked[n - last - 1]
    low, high = (
        outer if outer == inner or weight == 0 else (1 - weight) * outer + weight * inner
        for outer, inner in (ends[:2], ends[2:])
    )
    return float(low), float(high)


def worst_mean_limits(
    values: ArrayLike, percent: float, *, level: float = 0.95
) -> tuple[float, float]:
    """Interval of the mean over the worst share of cases.

    A jackknife-t interval on the logit scale with ⌊q n / 100⌋ − 1 degrees of
    freedom: only the worst cases carry information. If a few cases
    have no overlap at all, such as missed structures, samples without one do not
    show it: with 1 % of them, coverage at 95 % was 87, 38 and 62 % with 20, 50
    and 100 cases and q = 10 (1000 samples each).

    Parameters
    ----------
    values : array_like, shape (N,)
        Scores in [0, 1], one per case; NaN values are skipped.
    percent : float
        Share of the cases, above 0 and at most 100.
    level : float
        Between 0 and 1.

    Returns
    -------
    tuple of float
        The lower and the upper limit: NaN for fewer than two worst cases, or if they are equal.

    Examples
    --------
    >>> low, high = worst_mean_limits(np.linspace(0.3, 0.9, 40), 10)
    >>> round(low, 3), round(high, 3)
    (0.262, 0.391)
    """
    check_number("percent", percent, 0, 100)
    check_number("level", level, 0, 1)
    ranked = _ranked(values)
    n, number = len(ranked), int(percent * len(ranked) / 100)
    if number < 2:
        return math.nan, math.nan
    value = ranked[:number].mean()
    # Without one of the worst cases, the next one joins them: the share of cases stays the same.
    following = ranked[number] if number < n else value
    changes = np.zeros(n)
    changes[:number] = (following - ranked[:number]) / number
    variance = float(((changes - changes.mean()) ** 2).sum())
    error = math.sqrt(variance * n / (n - 1))
    if not 0 < value < 1 or error == 0:
        return math.nan, math.nan
    reach = float(student(number - 1.0, (1 - level) / 2)) * error
    low, high = SCALES["logit"].ends(value, reach)
    return float(low), float(high)
