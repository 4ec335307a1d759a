"""Quantiles of Student's t; loading SciPy's would double the time of a small command."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Powers and factors of the series: powers of at most ``_SMALL`` fall below rounding.
_POWERS = np.arange(400)
_FACTORS = np.cumprod(np.r_[1, (2 * _POWERS[1:] - 1) / (2 * _POWERS[1:])])
_SMALL, _LOG_ROUNDING = 0.9, math.log(1e-18)
#: Above it, a small tail would lose digits as 1/2 minus the integral from 0.
_NEAR = 2.0
#: Nodes between 0 and 1 and weights of the Gauss-Legendre rule of five nodes in each of 16 panels;
#: making longer rules would load numpy.polynomial.
_PANELS = 16
_OUTER, _INNER = 0.906179845938664, 0.5384693101056831
_NODES = np.array([-_OUTER, -_INNER, 0, _INNER, _OUTER])
_PLACES = ((np.arange(_PANELS)[:, None] + (_NODES + 1) / 2) / _PANELS).ravel()
_HALF = np.array([0.23692688505618908, 0.47862867049936647, 0.5688888888888889])
_WEIGHTS = np.tile(_HALF[[0, 1, 2, 1, 0]], _PANELS)
_MOST_STEPS, _CLOSE, _LEAST = 12, 1e-11, 1e-300
#: Error of the quantiles of a normal distribution.
_ERROR = 4.5e-4


def student(freedom: Any, tail: float) -> Any:
    """Quantile with the tail above it; NaN without degrees of freedom."""
    distinct, where = np.unique(np.asarray(freedom, float), return_inverse=True)
    f, smaller = np.where(distinct > 0, distinct, 1.0), min(tail, 1 - tail)
    scale = _scale(f)
    t = _start(f, smaller, scale)
    # The logarithm of the tail is a concave function of that of t, and far out almost linear, so
    # Newton's first step reaches the quantile or passes it, and few others return.
    for _ in range(_MOST_STEPS):
        above, density = _tail(f, t, scale), scale * (1 + t * t / f) ** (-(f + 1) / 2)
        excess = np.log(above / smaller)
        t = t * np.exp(excess * above / (np.maximum(t, _LEAST) * density))
        if (np.abs(excess) <= _CLOSE).all():  # the step squares the error
            break
    quantiles = np.where(distinct > 0, math.copysign(1, 0.5 - tail) * t, np.nan)
    return quantiles[where.reshape(np.shape(freedom))]


def student_below(t: Any, freedom: Any) -> Any:
    """Probability of Student's t below a value; twice that of −|t| is a two-sided p."""
    t, f = np.broadcast_arrays(np.asarray(t, float), np.asarray(freedom, float))
    flat = np.where(f > 0, f, np.nan).ravel()
    above = _tail(flat, np.abs(t).ravel(), _scale(flat)).reshape(t.shape)
    return np.where(t > 0, 1 - above, above)[()]


def _start(f: NDArray[Any], tail: float, scale: NDArray[Any]) -> NDArray[Any]:
    """A quantile that is not above Student's: of a normal distribution, and his first term."""
    r = math.sqrt(-2 * math.log(tail))
    # M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 26.2.23.
    top = (0.010328 * r + 0.802853) * r + 2.515517
    bottom = ((0.001308 * r + 0.189269) * r + 1.432788) * r + 1
    z = max(r - top / bottom - _ERROR, 0.0)
    # The density is largest at 0.
    return np.maximum(z + (z**3 + z) / (4 * f), (0.5 - tail) / scale)


def _tail(f: NDArray[Any], t: NDArray[Any], scale: NDArray[Any]) -> Any:
    """The upper tail of values of at least 0."""
    x, tail = f / (f + t * t), np.full(f.shape, np.nan)
    far, near = x < _SMALL, (x >= _SMALL) & (t < _NEAR)
    if far.any():
        tail[far] = _series(f[far], x[far])
    if near.any():
        tail[near] = 0.5 / scale[near] - _integral(f[near], t[near])
    if (beyond := (x >= _SMALL) & ~near).any():
        tail[beyond] = _integral_beyond(f[beyond], t[beyond])
    return scale * tail


def _series(f: NDArray[Any], x: NDArray[Any]) -> Any:
    """The tail in units of the scale, by powers of x."""
    number = 1 + int(min(_POWERS[-1], _LOG_ROUNDING / math.log(max(x.max(), _LEAST))))
    powers, factors = _POWERS[:number], _FACTORS[:number]
    terms = factors * x[:, None] ** powers / (f[:, None] / 2 + powers)
    return np.sqrt(f) * x ** (f / 2) * terms.sum(-1) / 2


def _integral(f: NDArray[Any], t: NDArray[Any]) -> Any:
    """The density from 0 to t in units of the scale, over the angle with tangent t / √f."""
    end = np.arctan(t / np.sqrt(f))
    logs = np.log1p(-(np.sin(end[:, None] * _PLACES) ** 2)) * (f[:, None] - 1) / 2
    return np.sqrt(f) * (_WEIGHTS * np.exp(logs)).sum(-1) * end / (2 * _PANELS)


def _integral_beyond(f: NDArray[Any], t: NDArray[Any]) -> Any:
    """The density above t in units of the scale, where its decay is close to exponential."""
    length = (f + t * t) / ((f + 1) * t)
    # With u for the place, e^(-s) is (1 - u)^11, so the rule is almost exact for an exponential.
    places = t[:, None] - 11 * np.log1p(-_PLACES) * length[:, None]
    logs = np.log1p(places**2 / f[:, None]) * (f[:, None] + 1) / -2
    return (_WEIGHTS * np.exp(logs) * 11 / (1 - _PLACES)).sum(-1) * length / (2 * _PANELS)


def _scale(f: NDArray[Any]) -> Any:
    """The density at 0."""
    ratios = np.array([_gamma_ratio(half) for half in (f / 2).tolist()])
    return ratios / np.sqrt(math.pi * f)


def _gamma_ratio(x: float) -> float:
    """Γ(x + 1/2) / Γ(x)."""
    if x < 100:
        return math.gamma(x + 0.5) / math.gamma(x)
    r = 1 / x
    return math.sqrt(x) * (
        1 - r / 8 + r**2 / 128 + 5 * r**3 / 1024 - 21 * r**4 / 32768 - 399 * r**5 / 262144
    )
