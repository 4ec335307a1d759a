"""Limits of a score: the scales on which they are symmetric, and the tail at which one is 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from segiou._support.numbers import number_of
from segiou._support.text import records
from segiou.inference.statistics import Statistic
from segiou.inference.units import ROUNDING
from segiou.metrics.ratio import Floats

#: The logarithm of the smallest p, its relative tolerance, and the maximum number of steps.
_MOST_DECADES, _CLOSE, _MOST_STEPS = 15.0, 1e-11, 100


class Scale(NamedTuple):
    """Monotone function on whose scale an interval is symmetric, its inverse, slope and bounds."""

    forward: Callable[[Floats], Floats]
    inverse: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    least: float
    most: float

    def ends(self, values: Floats, reach: Any) -> tuple[Floats, Floats]:
        """Limits of values at distances that are symmetric on this scale (delta method)."""
        centre, move = self.forward(values), reach * self.slope(values)
        return self.inverse(centre - move), self.inverse(centre + move)


SCALES = {
    "identity": Scale(lambda x: x, lambda z: z, np.ones_like, -np.inf, np.inf),
    "logit": Scale(
        lambda x: np.log(x) - np.log1p(-x),
        lambda z: 1 / (1 + np.exp(-z)),
        lambda x: 1 / (x * (1 - x)),
        0.0,
        1.0,
    ),
    "fisher": Scale(np.arctanh, np.tanh, lambda x: 1 / (1 - x * x), -1.0, 1.0),
    "log": Scale(np.log, np.exp, lambda x: 1 / x, 0.0, np.inf),
}


@dataclass(frozen=True, eq=False)
class Limits:
    """Intervals of a score and its classes, each array (1 + C,); NaN if undefined.

    Attributes
    ----------
    values : ndarray of float
        On the data itself; of two models, the second minus the first.
    low, high : ndarray of float
        Ends of the intervals.
    standard_error : ndarray of float
        Jackknife standard errors.
    freedom : ndarray of float
        Degrees of freedom of Student's t.
    undefined_share : ndarray of float
        Share of the resamples without a value; NaN if nothing was resampled.
    """

    values: Floats
    low: Floats
    high: Floats
    standard_error: Floats
    freedom: Floats
    undefined_share: Floats

    @property
    def ends(self) -> tuple[float, float]:
        """The interval of the score."""
        return number_of(self.low[0]), number_of(self.high[0])

    def undefined_limits(self) -> Limits:
        """The same without intervals."""
        nowhere = np.full(len(self.values), np.nan)
        return replace(self, low=nowhere, high=nowhere)


def rows_of_limits(limits: Limits, **more: Any) -> Iterator[dict[str, Any]]:
    """The limits of the score, then of each class, by name, with further columns."""
    return records(
        low=limits.low,
        high=limits.high,
        standard_error=limits.standard_error,
        freedom=limits.freedom,
        undefined_share=limits.undefined_share,
        **more,
    )


def wide_limits(
    low: Any, high: Any, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[Floats, Floats]:
    """Limits within bounds; NaN for those of no width, because units that agree show no spread."""
    least, most = np.clip([low, high], *bounds)
    is_point = np.isclose(least, most, rtol=ROUNDING, atol=ROUNDING)
    return np.where(is_point, np.nan, least), np.where(is_point, np.nan, most)


def tail_of(reach: Callable[[float], tuple[float, float]], value: float) -> float:
    """The tail at which the limit on the side of 0 reaches 0; NaN if undefined."""
    side = 0 if value > 0 else 1

    def beyond(decades: float) -> float:
        return reach(1 - 10**-decades)[side] - abs(value)

    # Limits are nested in the level, so there is one crossing, if any.
    below = above = 0.0, beyond(0.0)
    while above[1] < 0 and above[0] < _MOST_DECADES:
        place = min(max(2 * above[0], 0.25), _MOST_DECADES)
        below, above = above, (place, beyond(place))
    if math.isnan(above[1]):
        return math.nan
    is_between = above[0] > 0 <= above[1]
    return 0.5 * 10 ** -(_root(beyond, below, above) if is_between else above[0])


def _root(
    function: Callable[[float], float], below: tuple[float, float], above: tuple[float, float]
) -> float:
    """Where a function is 0 between two places with values, by Chandrupatla's method."""
    (a, at_a), (b, at_b) = below, above
    share = 0.5
    # Between a and b is the root, and c is the end before.
    for _ in range(_MOST_STEPS):
        place = a + share * (b - a)
        at = function(place)
        if (at < 0) == (at_a < 0):
            c, at_c = a, at_a
        else:
            c, at_c, b, at_b = b, at_b, a, at_a
        a, at_a = place, at
        if at == 0 or abs(b - a) < _CLOSE * abs(a):
            break
        share, least = 0.5, _CLOSE * abs(a / (b - a)) / 2
        moved, fell = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        if fell**2 < moved and (1 - fell) ** 2 < 1 - moved:
            # Inverse quadratic interpolation.
            share = at_a / (at_b - at_a) * at_c / (at_b - at_c)
            share += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
            share = min(max(share, least), 1 - least)
    return a


def bounds_of(score: Statistic) -> tuple[float, float]:
    """The smallest and the largest possible difference of a score."""
    scale = SCALES[score.scale]
    return scale.least - scale.most, scale.most - scale.least
