"""Quantiles of Student's t; loading SciPy's would double the time of a small command."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Powers and factors of the series: powers of at most ``_SMALL`` fall below rounding.
_POWERS = np.arange(400)
_FACTORS = np.cumprod(np.r_[1, (2 * _POWERS[1:] - 1) / (2 * _POWERS[1:])])
_SMALL = 0.9
#: Nodes between 0 and 1 and weights of the Gauss-Legendre rule of five nodes in each of 16 panels;
#: making longer rules would load numpy.polynomial.
_PANELS = 16
_OUTER, _INNER = 0.906179845938664, 0.5384693101056831
_NODES = np.array([-_OUTER, -_INNER, 0, _INNER, _OUTER])
_PLACES = ((np.arange(_PANELS)[:, None] + (_NODES + 1) / 2) / _PANELS).ravel()
_HALF = np.array([0.23692688505618908, 0.47862867049936647, 0.5688888888888889])
_WEIGHTS = np.tile(_HALF[[0, 1, 2, 1, 0]], _PANELS)
_MOST_STEPS = 100
#: Error of the quantiles of a normal distribution.
_ERROR = 4.5e-4


def student(freedom: Any, tail: float) -> Any:
    """Quantile with the tail above it; NaN without degrees of freedom."""
    distinct, where = np.unique(np.asarray(freedom, float), return_inverse=True)
    f, smaller = np.where(distinct > 0, distinct, 1.0), min(tail, 1 - tail)
    t, scale = _start(f, smaller), _scale(f)
    # The tail is convex, so Newton's steps from below never overshoot.
    for _ in range(_MOST_STEPS):
        density = scale * (1 + t * t / f) ** (-(f + 1) / 2)
        step = (_tail(f, t, scale) - smaller) / density
        t = t + step
        if (step <= 1e-14 * t).all():
            break
    quantiles = np.where(distinct > 0, math.copysign(1, 0.5 - tail) * t, np.nan)
    return quantiles[where.reshape(np.shape(freedom))]


def student_below(t: Any, freedom: Any) -> Any:
    """Probability of Student's t below a value; twice that of −|t| is a two-sided p."""
    from scipy.special import stdtr  # type: ignore[import-untyped, unused-ignore]

    return stdtr(freedom, t)


def _start(f: NDArray[Any], tail: float) -> NDArray[Any]:
    """A quantile that is not above Student's: of a normal distribution, and his first term."""
    r = math.sqrt(-2 * math.log(tail))
    # M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 26.2.23.
    top = (0.010328 * r + 0.802853) * r + 2.515517
    bottom = ((0.001308 * r + 0.189269) * r + 1.432788) * r + 1
    z = max(r - top / bottom - _ERROR, 0.0)
    return np.asarray(z + (z**3 + z) / (4 * f))


def _tail(f: NDArray[Any], t: NDArray[Any], scale: NDArray[Any]) -> Any:
    """The upper tail of values of at least 0."""
    x, scale = f / (f + t * t), scale * np.sqrt(f)
    far, near = x < _SMALL, x >= _SMALL
    tail = np.full(x.shape, np.nan)
    if far.any():
        tail[far] = scale[far] * _series(f[far], x[far])
    if near.any():
        tail[near] = 0.5 - scale[near] * _integral(f[near], t[near])
    return tail


def _series(f: NDArray[Any], x: NDArray[Any]) -> Any:
    """The tail in units of the scale, by powers of x."""
    terms = _FACTORS * x[:, None] ** _POWERS / (f[:, None] / 2 + _POWERS)
    return x ** (f / 2) * terms.sum(-1) / 2


def _integral(f: NDArray[Any], t: NDArray[Any]) -> Any:
    """The density from 0 to t in units of the scale, over the angle with tangent t / √f."""
    end = np.arctan(t / np.sqrt(f))
    logs = np.log1p(-(np.sin(end[:, None] * _PLACES) ** 2)) * (f[:, None] - 1) / 2
    return (_WEIGHTS * np.exp(logs)).sum(-1) * end / (2 * _PANELS)


def _scale(f: NDArray[Any]) -> Any:
    """The density at 0."""
    known = {half: _gamma_ratio(half) for half in set((f / 2).ravel().tolist())}
    ratios = np.array([known[half] for half in (f / 2).ravel().tolist()]).reshape(f.shape)
    return ratios / np.sqrt(math.pi * f)


def _gamma_ratio(x: float) -> float:
    """Γ(x + 1/2) / Γ(x)."""
    if x < 100:
        return math.gamma(x + 0.5) / math.gamma(x)
    r = 1 / x
    return math.sqrt(x) * (
        1 - r / 8 + r**2 / 128 + 5 * r**3 / 1024 - 21 * r**4 / 32768 - 399 * r**5 / 262144
    )
