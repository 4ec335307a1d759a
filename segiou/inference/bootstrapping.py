"""Bootstrap over units: values of scores on resamples, and percentile and BCa limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.inference.limits import Limits, wide_limits
from segiou.inference.statistics import Statistic
from segiou.inference.units import weighted
from segiou.metrics.ratio import Floats

#: Batches that fit into the cache are a quarter faster.
_BATCH_BYTES = 1 << 23


def resampled(statistics: Sequence[Statistic], resamples: int, seed: int) -> list[Floats]:
    """Values (B, 1 + C) of each statistic on the same resamples."""
    tables = [statistic.products for statistic in statistics]
    features = sum(table.shape[1] for table in tables)
    values: list[list[Floats]] = [[] for _ in statistics]
    for times in times_drawn(resamples, tables[0].shape[0], features, seed):
        for score, sums, parts in zip(statistics, tables, values, strict=True):
            parts.append(score.evaluate(weighted(times, sums)))
    return [np.concatenate(parts) for parts in values]


def batches(resamples: int, units: int, features: int) -> Iterator[int]:
    """Split resamples so that the arrays of one batch stay within 8 MiB."""
    most = max(1, _BATCH_BYTES // (8 * (3 * units + 6 * features)))
    for start in range(0, resamples, most):
        yield min(most, resamples - start)


def times_drawn(
    resamples: int, units: int, features: int, seed: int
) -> Iterator[NDArray[np.int64]]:
    """Number of times that each resample contains each unit, in batches (B, U)."""
    rng = np.random.default_rng(seed)
    for size in batches(resamples, units, features):
        drawn = rng.integers(0, units, (size, units)) + np.arange(size)[:, None] * units
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)


def bootstrap_limits(
    values: Floats, score: Statistic, minus: Statistic | None = None, *, level: float, method: str
) -> Limits:
    """Limits from resampled values (B, K) of a score, or of the difference of two."""
    both = [score] if minus is None else [score, minus]
    points = np.subtract.reduce([scored.values for scored in both])
    left_out = np.subtract.reduce([scored.left_out for scored in both]) if method == "bca" else None
    rows = []
    for place, (column, value) in enumerate(zip(values.T, points, strict=True)):
        left = None if left_out is None else left_out[:, place]
        defined = column[~np.isnan(column)]
        low, high = (np.nan, np.nan) if np.isnan(value) else limits_of(column, level, value, left)
        is_finite = len(defined) > 1 and bool(np.isfinite(defined).all())
        error = defined.std(ddof=1) if is_finite else np.nan
        rows.append((low, high, error))
    low, high, error = np.array(rows).T
    freedom = np.full(len(points), np.nan)
    return Limits(points, *wide_limits(low, high), error, freedom, np.isnan(values).mean(0))


def limits_of(
    values: Floats, level: float, value: float = 0.0, left_out: Floats | None = None
) -> tuple[float, float]:
    """The (1 ∓ level)/2 quantiles of the defined resamples, BCa-corrected with ``left_out``."""
    defined = values[~np.isnan(values)]
    shares: Sequence[float] = ((1 - level) / 2, (1 + level) / 2)
    if left_out is not None:
        shares = _corrected(shares, defined, value, left_out)
    if not shares or not defined.size:
        return float("nan"), float("nan")
    # Infinite distances have no values between them.
    method: Any = "linear" if np.isfinite(defined).all() else "inverted_cdf"
    low, high = np.quantile(defined, shares, method=method).tolist()
    return low, high


def _corrected(
    shares: Sequence[float], defined: Floats, value: float, left_out: Floats
) -> Sequence[float]:
    """The quantile levels of BCa; empty if undefined."""
    # B. Efron, J. Amer. Statist. Assoc. 82 (1987), 171-185: quantiles at
    # Φ(z₀ + (z₀ + z_α) / (1 − a (z₀ + z_α))) for the two z_α. z₀ = Φ⁻¹ of the share of
    # resamples below the value, ties counted half; a = Σ d³ / (6 (Σ d²)^1.5) of the deviations
    # d of the leave-one-out values, 0 if nothing varies. Undefined if a leave-one-out value is (a
    # class in one unit) or is infinite, or if all resamples are on one side of the value.
    if not defined.size or not np.isfinite(left_out).all():
        return ()
    deviations = left_out.mean() - left_out
    below = float((defined < value).mean() + (defined <= value).mean()) / 2
    if not 0 < below < 1:
        return ()
    from statistics import NormalDist

    normal = NormalDist()
    bias = normal.inv_cdf(below)
    spread = float((deviations**2).sum()) ** 1.5
    skew = float((deviations**3).sum()) / (6 * spread) if spread > 0 else 0.0
    reached = (bias + normal.inv_cdf(share) for share in shares)
    return [normal.cdf(bias + z / (1 - skew * z)) for z in reached]
