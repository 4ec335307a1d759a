"""Resamples as weights, drawn in batches of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.metrics import Floats
from segiou.uncertainty.scores import Statistic

__all__ = ["batches", "resample_weights", "resampled"]

_BATCH_BYTES = 1 << 25


def resample_weights(rng: np.random.Generator, resamples: int, units: int) -> NDArray[np.int64]:
    """Draw how often each unit is in each resample: Multinomial(U, 1/U), U draws each.

    Returns
    -------
    ndarray of int64, shape (resamples, units)
        Each row sums to ``units``.
    """
    drawn = rng.integers(0, units, (resamples, units))
    drawn += np.arange(resamples)[:, None] * units
    return np.bincount(drawn.ravel(), minlength=resamples * units).reshape(resamples, units)


def batches(resamples: int, units: int, features: int) -> Iterator[int]:
    """Split resamples so that the arrays of one batch stay within some tens of MB."""
    most = max(1, _BATCH_BYTES // (8 * (3 * units + 6 * features)))
    for start in range(0, resamples, most):
        yield min(most, resamples - start)


def resampled(statistics: tuple[Statistic, ...], resamples: int, seed: int) -> list[Floats]:
    """Values of one or several statistics on the same resamples of the same units.

    Parameters
    ----------
    statistics : tuple of Statistic
        Over equal numbers of units; they share every resample's weights.
    resamples, seed : int

    Returns
    -------
    list of ndarray of float64, shape (resamples, 1 + C)
        Does not depend on how the resamples fall into batches.
    """
    rng = np.random.default_rng(seed)
    units = len(statistics[0].units)
    tables = [statistic.products for statistic in statistics]
    features = sum(table.shape[1] for table in tables)
    found: list[list[Floats]] = [[] for _ in statistics]
    for size in batches(resamples, units, features):
        weights = resample_weights(rng, size, units)
        for statistic, table, parts in zip(statistics, tables, found, strict=True):
            parts.append(statistic.evaluate(_product(weights, table)))
    return [np.concatenate(parts) for parts in found]


def _product(weights: NDArray[np.int64], table: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(weights.astype(table.dtype) @ table)
