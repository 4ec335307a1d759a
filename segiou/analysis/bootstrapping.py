"""Bootstrap over images or groups of images: intervals of any statistic."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support import text
from segiou._support.arguments import (
    check_choice,
    check_integer,
    check_number,
)
from segiou._support.html import sentence_list, table
from segiou._support.text import plain
from segiou.analysis.statistics import Aggregate, Metric, Statistic, statistic
from segiou.analysis.units import units_of
from segiou.counting.counts import Counts, check_counts
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats

__all__ = [
    "FEW_UNITS",
    "Interval",
    "Intervals",
    "Method",
    "batches",
    "bca_limits",
    "bootstrap",
    "check_method",
    "interval",
    "limits_of",
    "percentile_limits",
    "resample_weights",
    "resampled",
]


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
        for one, products, parts in zip(statistics, tables, found, strict=True):
            parts.append(one.evaluate(_product(weights, products)))
    return [np.concatenate(parts) for parts in found]


def _product(weights: NDArray[np.int64], table: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(weights.astype(table.dtype) @ table)


Method = Literal["percentile", "bca"]

#: A class in the truth of fewer units than this is flagged.
FEW_UNITS = 10
_NORMAL = NormalDist()
_METHOD_WORDS = {"percentile": "percentile", "bca": "BCa"}


@dataclass(frozen=True, slots=True)
class Interval:
    """A score and how far it could have come out otherwise.

    Attributes
    ----------
    name : str
        Of the class, or of the score over all classes.
    value : float
        On the data itself.
    low, high : float
        Ends of the interval; NaN where undefined.
    standard_error : float
        Standard deviation over the resamples.
    units : int
        Units whose truth has the class; for the score all units.
    vanished : float
        Share of the resamples in which there was no value, because the class
        was in no image drawn. They are left out of everything else.
    """

    name: str
    value: float
    low: float
    high: float
    standard_error: float
    units: int
    vanished: float

    @property
    def few(self) -> bool:
        """Seen in fewer than :data:`FEW_UNITS` units, so not to be relied on."""
        return self.units < FEW_UNITS


@dataclass(frozen=True, slots=True)
class Intervals:
    """Bootstrap intervals of a score and of its classes.

    Attributes
    ----------
    metric, aggregate, protocol : str
        What was averaged, and how.
    level : float
    method : {"percentile", "bca"}
    resamples, seed : int
    unit : {"image", "group"}
        What was resampled.
    units : int
        How many there are.
    overall : Interval
    classes : tuple of Interval
        Empty for a metric of all classes at once.
    """

    metric: str
    aggregate: str
    protocol: str
    level: float
    method: Method
    resamples: int
    seed: int
    unit: str
    units: int
    overall: Interval
    classes: tuple[Interval, ...]

    def __iter__(self) -> Iterator[Interval]:
        yield self.overall
        yield from self.classes

    @property
    def few(self) -> tuple[str, ...]:
        """Classes in the truth of at least one and fewer than :data:`FEW_UNITS` units."""
        return tuple(c.name for c in self.classes if c.few and c.units)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = plain(self)
        found["few"] = list(self.few)
        return found

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        heads = ("", "score", f"{100 * self.level:g} % interval", f"{self.unit}s")
        rows = table(heads, [_cells(self.overall)], [_cells(c) for c in self.classes])
        return f'<div class="segiou-intervals">{sentence_list(self.sentences())}{rows}</div>'

    def sentences(self) -> list[str]:
        """Say it in words, rounded to a tenth of a point."""
        return [_overall_sentence(self), *self.cautions()]

    def cautions(self) -> list[str]:
        """Say what makes the intervals unsafe, if anything does."""
        said = []
        if self.units < FEW_UNITS:
            said.append(
                f"{text.plural(self.units, self.unit)} are few: the interval is only a hint "
                "and more likely too narrow than too wide."
            )
        elif self.few:
            said.append(
                f"Seen in fewer than {FEW_UNITS} {self.unit}s, so do not rely on the intervals "
                f"of: {text.classes(self.few)}."
            )
        gone = [
            f"{text.called(c.name)} ({text.percent(c.vanished)})"
            for c in self.classes
            if 0 < c.vanished < 1
        ]
        if gone:
            said.append(f"Without a value in some resamples: {text.listed(gone)}.")
        return said


def _cells(found: Interval) -> tuple[str, ...]:
    number = "–" if np.isnan(found.value) else f"{found.value:.4f}"
    ends = "–" if np.isnan(found.low) else f"{found.low:.4f} to {found.high:.4f}"
    return escape(found.name), number, ends, f"{found.units}{' (few)' if found.few else ''}"


def _overall_sentence(found: Intervals) -> str:
    score = found.overall
    start = (
        f"{score.name[:1].upper()}{score.name[1:]} is {text.percent(score.value)} over "
        f"{text.plural(found.units, found.unit)}"
    )
    if np.isnan(score.low):
        return f"{start}; its interval is undefined."
    if score.low == score.high:
        return (
            f"{start}, and in each of {found.resamples} resamples of these {found.unit}s: an "
            f"interval of no width, which does not show that other {found.unit}s would give the "
            "same."
        )
    return (
        f"{start}; over all {found.unit}s of this kind it is plausibly between "
        f"{text.points(score.low)} and {text.percent(score.high)} "
        f"({100 * found.level:g} % {_METHOD_WORDS[found.method]} bootstrap interval over "
        f"{found.unit}s, {found.resamples} resamples, seed {found.seed})."
    )


def percentile_limits(values: Floats, level: float) -> tuple[float, float]:
    """Give the ends of the percentile interval, the (1 ∓ level)/2 quantiles of the resamples.

    Parameters
    ----------
    values : ndarray of float, shape (B,)
        Resampled values; NaN are left out.
    level : float

    References
    ----------
    B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993),
    chapter 13.

    Examples
    --------
    >>> percentile_limits(np.arange(101.0), 0.5)
    (25.0, 75.0)
    """
    return _quantiles(values, (1 - level) / 2, (1 + level) / 2)


def bca_limits(values: Floats, value: float, left_out: Floats, level: float) -> tuple[float, float]:
    """Give the ends of the bias-corrected and accelerated (BCa) interval.

    Quantiles at Φ(z₀ + (z₀ + z_α) / (1 − a (z₀ + z_α))) for the two z_α, with
    z₀ = Φ⁻¹ of the share of resampled values below the value (ties count half)
    and a = Σ d³ / (6 (Σ d²)^1.5), d the mean of the leave-one-out values minus
    each of them. Where nothing varies, a = 0.

    Parameters
    ----------
    values : ndarray of float, shape (B,)
        Resampled values; NaN are left out.
    value : float
        On the data itself.
    left_out : ndarray of float, shape (U,)
        Without each unit in turn.
    level : float

    Returns
    -------
    low, high : float
        NaN where a leave-one-out value is undefined (a class seen in one unit)
        or every resample lies on one side of the value.

    References
    ----------
    B. Efron, J. Amer. Statist. Assoc. 82 (1987), 171-185; B. Efron and
    R. Tibshirani, An Introduction to the Bootstrap (1993), section 14.3.
    """
    defined = values[~np.isnan(values)]
    deviations = left_out.mean() - left_out
    if not defined.size or np.isnan(deviations).any():
        return float("nan"), float("nan")
    below = float((defined < value).mean() + (defined <= value).mean()) / 2
    if not 0 < below < 1:
        return float("nan"), float("nan")
    bias = _NORMAL.inv_cdf(below)
    spread = float((deviations**2).sum()) ** 1.5
    skew = float((deviations**3).sum()) / (6 * spread) if spread > 0 else 0.0
    at = [_adjusted(share, bias, skew) for share in ((1 - level) / 2, (1 + level) / 2)]
    return _quantiles(defined, *at)


def _adjusted(share: float, bias: float, skew: float) -> float:
    reached = bias + _NORMAL.inv_cdf(share)
    return _NORMAL.cdf(bias + reached / (1 - skew * reached))


def limits_of(
    values: Floats, points: Floats, left_out: Callable[[], Floats], level: float, method: Method
) -> list[tuple[float, float]]:
    """Ends of the interval of every column.

    Parameters
    ----------
    values : ndarray of float, shape (B, K)
        Resampled.
    points : ndarray of float, shape (K,)
        On the data itself.
    left_out : callable
        Gives the values without each unit, (U, K); called for BCa only.
    level : float
    method : {"percentile", "bca"}
    """
    if method == "percentile":
        return [percentile_limits(column, level) for column in values.T]
    columns = zip(values.T, points.tolist(), left_out().T, strict=True)
    return [bca_limits(column, value, without, level) for column, value, without in columns]


def interval(
    name: str, value: float, resamples: Floats, limits: tuple[float, float], units: int
) -> Interval:
    """Put an interval together; there is none around a value that is undefined."""
    gone = np.isnan(resamples)
    defined = resamples[~gone]
    error = float(defined.std(ddof=1)) if defined.size > 1 else float("nan")
    low, high = (float("nan"), float("nan")) if np.isnan(value) else limits
    return Interval(name, value, low, high, error, units, float(gone.mean()))


def check_method(method: str, level: float) -> None:
    """Refuse an unknown method or a level that is no probability."""
    check_choice("method", method, get_args(Method))
    if not 0 < check_number("level", level) < 1:
        msg = f"level must be between 0 and 1, such as 0.95, got {level}"
        raise ValueError(msg)


def _quantiles(values: Floats, low: float, high: float) -> tuple[float, float]:
    defined = values[~np.isnan(values)]
    if not defined.size:
        return float("nan"), float("nan")
    ends = np.quantile(defined, [low, high])
    return float(ends[0]), float(ends[1])


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
        See :func:`segiou.analysis.statistics.statistic`.
    groups : sequence of hashable, length N, optional
        Images of one group are drawn together, see
        :func:`segiou.analysis.units.group_by_pattern`. Needed wherever images are
        not independent: frames of one video, slices of one patient, tiles of
        one scene.
    resamples, seed : int
    level : float
        Between 0 and 1.
    method : {"percentile", "bca"}
        BCa corrects for bias and skew, and costs a leave-one-out pass.
    class_names, include, protocol, aggregate
        See :func:`segiou.analysis.statistics.statistic`.

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
