"""Bootstrap over images or groups of images: resamples, limits of intervals, and the intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_integer, check_number
from segiou.analysis.blocks import Blocks, Draw
from segiou.analysis.design import BlockLength, design_of
from segiou.analysis.intervals import Interval, Intervals, Method
from segiou.analysis.scored_images import Scored, scored_images
from segiou.analysis.statistics import Aggregate, Metric, Statistic, image_scores, statistic
from segiou.analysis.unit_sums import weighted
from segiou.analysis.units import Groups, Units
from segiou.counting.counts import Counts
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats

_BATCH_BYTES = 1 << 25
_NORMAL = NormalDist()
_UNDEFINED = float("nan"), float("nan")


def bootstrap(
    counts: Counts | Scored,
    metric: Metric = "iou",
    *,
    ids: Sequence[str] | None = None,
    groups: Groups | None = None,
    blocks: BlockLength | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    method: Method = "percentile",
    class_names: Sequence[str] | None = None,
    include: Any = None,
    protocol: Protocol | str | None = None,
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
    counts : Run, Report or Counts of shape (N, C)
        The counts of each image, or what has them. A confusion matrix has
        none: it is the sum of them.
    metric : str or callable
        See :func:`segiou.analysis.statistics.statistic`; of a run also
        ``"boundary_iou"``, at the first width that was measured.
    ids : sequence of str, length N, optional
        Names of the images of bare counts; a run and a report have their own.
    groups : str, mapping, callable or sequence, optional
        Images of one group are drawn together, see
        :func:`segiou.analysis.units.groups_of`. Needed wherever images are
        not independent: frames of one video, slices of one patient, tiles of
        one scene. Fewer than ten groups have no interval. ``"none"`` states
        that the images are independent, and ids are not looked at.
    blocks : "auto" or float, optional
        Draw blocks of neighbouring images along each sequence, of this many
        images on average, by the stationary bootstrap. The sequences are the
        groups, or what the numbers in the ids show, or all images in the order
        given. ``"auto"`` takes the length from how far scores of neighbours go
        together. The interval is then about other stretches of these sequences.
    resamples, seed : int
    level : float
        Between 0 and 1.
    method : {"percentile", "bca"}
        BCa corrects for bias and skew, and costs a leave-one-out pass.
    class_names, include, protocol, aggregate
        See :func:`segiou.analysis.statistics.statistic`; by default those of
        the run or report.

    Returns
    -------
    Intervals

    Raises
    ------
    TypeError
        If a number is of the wrong kind, or ``counts`` has no images.
    ValueError
        If a value is out of range or there are fewer than two units.

    References
    ----------
    B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993),
    chapters 13 and 14; groups: A. C. Davison and D. V. Hinkley,
    Bootstrap Methods and their Application (1997), section 3.8; blocks:
    D. N. Politis and J. P. Romano, J. Amer. Statist. Assoc. 89 (1994); their
    length: D. N. Politis and H. White, Econometric Reviews 23 (2004).

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
    images, metric = scored_images(counts, metric, protocol, ids)
    include = images.include if include is None else include

    def score(units: Units) -> Statistic:
        return statistic(
            images.counts,
            metric,
            units=units,
            class_names=images.class_names if class_names is None else class_names,
            include=include,
            protocol=images.protocol,
            aggregate=aggregate,
        )

    def alone() -> list[Floats]:
        return [image_scores(images.counts, metric, include, images.protocol)]

    design = design_of(images.num_images, images.ids, groups, blocks, alone)
    units = design.units
    prepared = score(units)
    drawn = prepared if design.blocks is None else score(design.images)
    (values,) = resampled((drawn,), resamples, seed, design.blocks)
    overall, *classes = intervals_of(
        prepared, values, prepared.values, lambda: prepared.left_out, level, method
    )
    return Intervals(
        metric=prepared.metric,
        aggregate=prepared.aggregate,
        protocol=prepared.protocol,
        level=level,
        method=method,
        resamples=resamples,
        seed=seed,
        unit=units.kind,
        units=len(units),
        overall=overall,
        classes=tuple(classes),
        dependence=design.dependence,
        block_length=None if design.blocks is None else design.blocks.length,
    )


def check_method(method: str, level: float) -> None:
    """Refuse an unknown method or a level that is no probability."""
    check_choice("method", method, get_args(Method))
    if not 0 < check_number("level", level) < 1:
        msg = f"level must be between 0 and 1, such as 0.95, got {level}"
        raise ValueError(msg)


def resampled(
    statistics: tuple[Statistic, ...], resamples: int, seed: int, blocks: Blocks | None = None
) -> list[Floats]:
    """Values (B, 1 + C) of statistics on the same resamples, however these fall into batches."""
    units = len(statistics[0].units)
    draw = independent_draw(seed, units) if blocks is None else blocks.draw(seed)
    tables = [statistic.products for statistic in statistics]
    features = sum(table.shape[1] for table in tables)
    found: list[list[Floats]] = [[] for _ in statistics]
    for size in batches(resamples, units, features):
        weights = draw(size)
        for one, table, parts in zip(statistics, tables, found, strict=True):
            parts.append(one.evaluate(weighted(weights, table)))
    return [np.concatenate(parts) for parts in found]


def independent_draw(seed: int, units: int) -> Draw:
    """Draws how often each unit is in each resample, (B, U): Multinomial(U, 1/U), U draws each."""
    rng = np.random.default_rng(seed)

    def weights(resamples: int) -> NDArray[np.int64]:
        drawn = rng.integers(0, units, (resamples, units))
        drawn += np.arange(resamples)[:, None] * units
        return np.bincount(drawn.ravel(), minlength=resamples * units).reshape(resamples, units)

    return weights


def batches(resamples: int, units: int, features: int) -> Iterator[int]:
    """Split resamples so that the arrays of one batch stay within some tens of MB."""
    most = max(1, _BATCH_BYTES // (8 * (3 * units + 6 * features)))
    for start in range(0, resamples, most):
        yield min(most, resamples - start)


def intervals_of(
    prepared: Statistic,
    values: Floats,
    points: Floats,
    left_out: Callable[[], Floats],
    level: float,
    method: Method,
) -> list[Interval]:
    """Intervals from resampled ``values`` (B, K) around ``points`` (K,), named as a statistic.

    ``left_out`` gives the values without each unit, (U, K); it is called for BCa only.
    """
    limits = limits_of(values, points, left_out, level, method)
    columns = zip(
        prepared.names, points.tolist(), values.T, limits, prepared.seen.tolist(), strict=True
    )
    found = [_interval(*column) for column in columns]
    if not prepared.units.few_groups:
        return found
    # A handful of groups is no sample of groups: what their resamples say is no interval.
    nan = float("nan")
    return [replace(one, low=nan, high=nan, standard_error=nan) for one in found]


def _interval(
    name: str, value: float, resamples: Floats, limits: tuple[float, float], units: int
) -> Interval:
    undefined = np.isnan(resamples)
    defined = resamples[~undefined]
    error = float(defined.std(ddof=1)) if defined.size > 1 else float("nan")
    low, high = _UNDEFINED if np.isnan(value) else limits
    return Interval(name, value, low, high, error, units, float(undefined.mean()))


def limits_of(
    values: Floats, points: Floats, left_out: Callable[[], Floats], level: float, method: Method
) -> list[tuple[float, float]]:
    """Ends of the interval of every column; arguments as of :func:`intervals_of`."""
    if method == "percentile":
        return [percentile_limits(column, level) for column in values.T]
    columns = zip(values.T, points.tolist(), left_out().T, strict=True)
    return [bca_limits(column, value, without, level) for column, value, without in columns]


def percentile_limits(values: Floats, level: float) -> tuple[float, float]:
    """Ends of the percentile interval: the (1 ∓ level)/2 quantiles of the defined resamples."""
    return _quantiles(values, (1 - level) / 2, (1 + level) / 2)


def bca_limits(values: Floats, value: float, left_out: Floats, level: float) -> tuple[float, float]:
    """Ends of the bias-corrected and accelerated (BCa) interval; undefined where they are NaN."""
    # B. Efron, J. Amer. Statist. Assoc. 82 (1987), 171-185: quantiles at
    # Φ(z₀ + (z₀ + z_α) / (1 − a (z₀ + z_α))) for the two z_α. z₀ = Φ⁻¹ of the share of
    # resamples below the value, ties counted half; a = Σ d³ / (6 (Σ d²)^1.5) of the deviations
    # d of the leave-one-out values, 0 where nothing varies. Undefined where a value without a
    # unit is (a class in one unit), or where all resamples lie on one side of the value.
    defined = values[~np.isnan(values)]
    deviations = left_out.mean() - left_out
    if not defined.size or np.isnan(deviations).any():
        return _UNDEFINED
    below = float((defined < value).mean() + (defined <= value).mean()) / 2
    if not 0 < below < 1:
        return _UNDEFINED
    bias = _NORMAL.inv_cdf(below)
    spread = float((deviations**2).sum()) ** 1.5
    skew = float((deviations**3).sum()) / (6 * spread) if spread > 0 else 0.0
    low, high = (_adjusted(share, bias, skew) for share in ((1 - level) / 2, (1 + level) / 2))
    return _quantiles(defined, low, high)


def _adjusted(share: float, bias: float, skew: float) -> float:
    reached = bias + _NORMAL.inv_cdf(share)
    return _NORMAL.cdf(bias + reached / (1 - skew * reached))


def _quantiles(values: Floats, low: float, high: float) -> tuple[float, float]:
    defined = values[~np.isnan(values)]
    if not defined.size:
        return _UNDEFINED
    ends = np.quantile(defined, [low, high])
    return float(ends[0]), float(ends[1])
