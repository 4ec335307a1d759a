"""Bootstrap intervals from the counts per image."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from segiou._arguments import check_integer
from segiou.counts import Counts, check_counts
from segiou.metrics import Floats
from segiou.protocols import Protocol
from segiou.uncertainty.intervals import (
    Interval,
    Intervals,
    Method,
    check_method,
    interval,
    limits_of,
)
from segiou.uncertainty.resampling import resampled
from segiou.uncertainty.scores import Aggregate, Metric, Statistic, statistic
from segiou.uncertainty.units import units_of

__all__ = ["bootstrap", "interval"]


def bootstrap(
    counts: Counts,
    metric: Metric = "iou",
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    method: Method = "percentile",
    class_names: Sequence[str] | None = None,
    include: Any = None,
    protocol: Protocol | str = "segiou",
    aggregate: Aggregate | None = None,
) -> Intervals:
    """Bootstrap interval of a score and of each class.

    A resample draws as many units as there are, with replacement: weights
    w ~ Multinomial(U, 1/U). Its score is that of the sums ``w @ counts``, so a
    batch of resamples is one matrix product of integers, which float64 gives
    exactly below 2^53 (past that, int64 is used). Time goes with U · C ·
    resamples; memory stays within some tens of MB beside the results.

    The interval is about other images of the same kind, scored with this same
    model: it knows nothing of training the model again, nor of other cities.

    Parameters
    ----------
    counts : Counts of shape (N, C)
        Counts of each image.
    metric : str or callable
        See :func:`segiou.uncertainty.statistic`.
    groups : sequence of hashable, length N, optional
        Images of one group are drawn together, see
        :func:`segiou.uncertainty.group_by_pattern`. Needed wherever images are
        not independent: frames of one video, slices of one patient, tiles of
        one scene.
    resamples, seed : int
    level : float
        Between 0 and 1.
    method : {"percentile", "bca"}
        BCa corrects for bias and skew, and costs a leave-one-out pass.
    class_names, include, protocol, aggregate
        See :func:`segiou.uncertainty.statistic`.

    Returns
    -------
    Intervals

    Raises
    ------
    TypeError
        If a number is of the wrong kind.
    ValueError
        If a value is out of range or there are fewer than two units.

    References
    ----------
    B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993),
    chapters 13 and 14; groups: A. C. Davison and D. V. Hinkley,
    Bootstrap Methods and their Application (1997), section 3.8.

    Examples
    --------
    >>> import numpy as np
    >>> tp = np.array([[90, 8], [80, 9], [85, 2], [95, 1]])
    >>> miss = np.array([[1, 1], [9, 2], [9, 4], [2, 2]])
    >>> counts = Counts(tp, miss[:, ::-1], miss, tp[:, ::-1])
    >>> found = bootstrap(counts, resamples=1000, class_names=["road", "pole"])
    >>> found.overall.name, round(found.overall.value, 4), found.unit, found.units
    ('mean IoU', 0.6605, 'image', 4)
    >>> found.few
    ('road', 'pole')
    """
    check_integer("resamples", resamples, 2)
    check_integer("seed", seed, 0)
    check_method(method, level)
    check_counts(counts, "counts of each image")
    prepared = statistic(
        counts,
        metric,
        units=units_of(counts.tp.shape[0], groups),
        class_names=class_names,
        include=include,
        protocol=protocol,
        aggregate=aggregate,
    )
    (values,) = resampled((prepared,), resamples, seed)
    found = _intervals(prepared, values, level, method)
    return Intervals(
        metric=prepared.metric,
        aggregate=prepared.aggregate,
        protocol=prepared.protocol,
        level=level,
        method=method,
        resamples=resamples,
        seed=seed,
        unit=prepared.units.kind,
        units=len(prepared.units),
        overall=found[0],
        classes=found[1:],
    )


def _intervals(
    prepared: Statistic, values: Floats, level: float, method: Method
) -> tuple[Interval, ...]:
    limits = limits_of(values, prepared.values, lambda: prepared.left_out, level, method)
    columns = zip(
        prepared.names,
        prepared.values.tolist(),
        values.T,
        limits,
        prepared.seen.tolist(),
        strict=True,
    )
    return tuple(interval(*column) for column in columns)
