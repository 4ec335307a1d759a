"""Agreement of two measurements of the same cases, by Bland and Altman."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from segiou._support.arguments import check_level
from segiou.counting.arrays import read_floats
from segiou.inference.student import student

#: Standard deviations from the bias to the limits of agreement.
WIDTH = 1.96
_NONE = math.nan, math.nan
#: Measurements whose squares have finite sums.
_MOST = 1e100


class Agreement(NamedTuple):
    """Bias and limits of agreement, in the unit of the measurements.

    Attributes
    ----------
    cases : int
        Number of cases.
    bias : float
        Mean difference, second minus first.
    sd : float
        Standard deviation of the differences; NaN with fewer than two cases.
    low, high : float
        Limits of agreement: bias ± 1.96 standard deviations.
    bias_interval, low_interval, high_interval : tuple of float
        Confidence intervals of the three.
    """

    cases: int
    bias: float
    sd: float
    low: float
    high: float
    bias_interval: tuple[float, float] = _NONE
    low_interval: tuple[float, float] = _NONE
    high_interval: tuple[float, float] = _NONE


def bland_altman(first: Any, second: Any, *, level: float = 0.95) -> Agreement:
    """Bias and limits of agreement of two measurements of the same, independent cases.

    Parameters
    ----------
    first, second : array_like of float, shape (N,)
        Measurements, such as the volumes of truth and prediction.
    level : float
        Level of the confidence intervals.

    Returns
    -------
    Agreement
        NaN if undefined: the bias with no case, the rest with fewer than two.

    Raises
    ------
    ValueError
        If the shapes differ, a measurement is not finite, or the level is not between 0 and 1.

    Notes
    -----
    With d the differences, s their standard deviation (n - 1) and t the quantile of Student's
    distribution with n - 1 degrees of freedom, the interval of the bias is mean(d) ± t s / √n, and
    those of the limits mean(d) ± 1.96 s are ± t s √(1/n + 1.96² / (2 (n - 1))). Repeated
    measurements of a case are not independent.

    References
    ----------
    J. M. Bland and D. G. Altman, Statistical methods for assessing agreement between two methods of
    clinical measurement, Lancet 327 (1986), 307-310; Measuring agreement in method comparison
    studies, Stat. Methods Med. Res. 8 (1999), 135-160, section 2.

    Examples
    --------
    >>> found = bland_altman([10, 20, 30], [11, 21, 34])
    >>> found.bias, round(found.sd, 3), round(found.low, 3), round(found.high, 3)
    (2.0, 1.732, -1.395, 5.395)
    """
    level = check_level("level", level)
    sides = [read_floats(*side, "numbers") for side in ((first, "first"), (second, "second"))]
    if sides[0].ndim != 1 or sides[0].shape != sides[1].shape:
        msg = f"first and second must have equal shape (N,), got {sides[0].shape}, {sides[1].shape}"
        raise ValueError(msg)
    if not (np.abs(sides) <= _MOST).all():
        msg = f"first and second must be numbers from -{_MOST:g} to {_MOST:g}, got NaN or larger"
        raise ValueError(msg)
    differences = (sides[1] - sides[0]).tolist()
    number = len(differences)
    bias = math.fsum(differences) / number if number else math.nan
    if number < 2:
        return Agreement(number, bias, math.nan, math.nan, math.nan)
    sd = math.hypot(*(d - bias for d in differences)) / math.sqrt(number - 1)
    t = float(student(number - 1, (1 - level) / 2))
    of_bias = t * sd / math.sqrt(number)
    of_limits = t * sd * math.sqrt(1 / number + WIDTH**2 / (2 * (number - 1)))
    low, high = bias - WIDTH * sd, bias + WIDTH * sd
    reaches = (bias, of_bias), (low, of_limits), (high, of_limits)
    intervals = [(value - reach, value + reach) for value, reach in reaches]
    return Agreement(number, bias, sd, low, high, *intervals)
