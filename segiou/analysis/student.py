"""Quantiles of Student's t; loading SciPy's would double the time of a small command."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Terms of the series: powers of at most ``_SMALL`` fall below rounding.
_TERMS = 400
_SMALL = 0.9
#: Nodes of the Gauss-Legendre rule.
_NODES = 40
_MOST_STEPS = 100


def student(freedom: Any, tail: float) -> Any:
    """Quantile with the tail above it; NaN without degrees of freedom."""
    given = np.asarray(freedom, float)
    f, smaller = np.where(given > 0, given, 1.0), min(tail, 1 - tail)
    t = np.full(f.shape, NormalDist().inv_cdf(1 - smaller))
    # The tail is convex and the normal quantile is below, so Newton's steps never overshoot.
    for _ in range(_MOST_STEPS):
        density = _scale(f) * (1 + t * t / f) ** (-(f + 1) / 2)
        step = (_tail(f, t) - smaller) / density
        t = t + step
        if (np.abs(step) <= 1e-14 * t).all():
            break
    return np.where(given > 0, math.copysign(1, 0.5 - tail) * t, np.nan)


def _tail(f: NDArray[Any], t: NDArray[Any]) -> Any:
    """The upper tail of values of at least 0."""
    x, scale = f / (f + t * t), _scale(f) * np.sqrt(f)
    n = np.arange(_TERMS)
    factors = np.cumprod(np.r_[1, (2 * n[1:] - 1) / (2 * n[1:])])
    small = np.minimum(x, _SMALL)[..., None]
    series = small[..., 0] ** (f / 2) * (factors * small**n / (f[..., None] / 2 + n)).sum(-1) / 2
    # Far from the tail, the integral of the density from 0, over the angle with tangent t / √f.
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    end = np.arctan(t / np.sqrt(f))
    angles = np.minimum(end, 0.5)[..., None] * (nodes + 1) / 2
    logs = np.log1p(-(np.sin(angles) ** 2)) * (f[..., None] - 1) / 2
    inner = (weights * np.exp(logs)).sum(-1) * end / 2
    return np.where(x < _SMALL, scale * series, 0.5 - scale * inner)


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
