"""Bootstrap over images or groups of images: resamples, intervals, and what they say in words."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np

from segiou._support import text
from segiou._support.arguments import check_choice, check_integer, check_number
from segiou._support.html import sentence_list, table
from segiou._support.text import Json
from segiou.analysis.dependence import BlockLength, Blocks, Dependence, design_of, independent_draw
from segiou.analysis.statistics import (
    Aggregate,
    ScoredImages,
    Statistic,
    scored_images,
)
from segiou.analysis.units import FEW_UNITS, CountParts, Groups, Metric, Scored, units_of, weighted
from segiou.counting.counts import Counts
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats

#: What stays in the cache is a quarter faster.
_BATCH_BYTES = 1 << 23
_NORMAL = NormalDist()

Method = Literal["percentile", "bca"]

#: Share of 95 % intervals that held the truth, from this many units on: benchmarks/coverage.py.
MEASURED_COVERAGE: dict[tuple[str, str], tuple[tuple[int, float], ...]] = {
    ("image", "percentile"): ((10, 0.889), (20, 0.911), (50, 0.924), (100, 0.944)),
    ("image", "bca"): ((10, 0.870), (20, 0.904), (50, 0.921), (100, 0.933)),
    ("group", "percentile"): ((10, 0.893), (20, 0.915), (40, 0.926), (80, 0.947)),
    ("group", "bca"): ((10, 0.892), (20, 0.918), (40, 0.925), (80, 0.945)),
    ("block", "percentile"): ((2, 0.60), (20, 0.82), (40, 0.87), (70, 0.91), (150, 0.92)),
    ("block", "bca"): ((2, 0.60), (20, 0.81), (40, 0.88), (70, 0.90), (150, 0.92)),
}
#: What covers less is said to.
_LEAST_COVERAGE = 0.93
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
    undefined_share : float
        Share of the resamples in which there was no value, because the class
        was in no image drawn. They are left out of everything else.
    """

    name: str
    value: float
    low: float
    high: float
    standard_error: float
    units: int
    undefined_share: float

    @property
    def few(self) -> bool:
        """Seen in fewer than :data:`FEW_UNITS` units, so not to be relied on."""
        return self.units < FEW_UNITS


class OverUnits:
    """What intervals and comparisons over units that were drawn have in common."""

    __slots__ = ()
    unit: str
    units: int
    method: Method
    dependence: Dependence | None

    @property
    def unsafe(self) -> bool:
        """Whether the images were taken for independent although they may not be."""
        return self.unit == "image" and self.dependence is not None and self.dependence.noteworthy

    def _doubts(self, few: str, *, p: bool = False, has_width: bool = True) -> list[str]:
        """Say what makes intervals unsafe, and p where there is one; ``few`` ends a sentence."""
        units = text.plural(self.units, self.unit)
        if self.unit == "group" and self.units < FEW_UNITS:
            return [
                f"{units} are too few for an interval over groups; from {FEW_UNITS} groups on "
                "there is one. To resample stretches of neighbouring images within these groups: "
                '--blocks auto (in Python blocks="auto"); that says nothing about other groups.'
            ]
        said = self.dependence.sentences(p=p) if self.unsafe and self.dependence else []
        coverage = MEASURED_COVERAGE[self.unit, self.method]
        measured = [share for least, share in coverage if least <= self.units]
        if has_width and measured and measured[-1] < _LEAST_COVERAGE:
            said.append(
                f"With {units}, intervals are too narrow: in simulations, 95 % intervals held the "
                f"true value in {text.roughly(measured[-1])} of cases."
            )
        return [*said, f"{units} are few: {few}"] if self.units < FEW_UNITS else said


@dataclass(frozen=True, slots=True)
class Intervals(OverUnits):
    """Bootstrap intervals of a score and of its classes.

    Attributes
    ----------
    metric, aggregate, protocol : str
        What was averaged, and how.
    level : float
    method : {"percentile", "bca"}
    resamples, seed : int
    unit : {"image", "group", "block"}
        What was resampled.
    units : int
        How many there are.
    overall : Interval
    classes : tuple of Interval
        Empty for a metric of all classes at once.
    dependence : Dependence or None
        How far the images are from independent; None where groups were given,
        the images said to be independent, or nothing is known of their order.
    block_length : float or None
        Mean length of the blocks that were drawn, if they were.
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
    dependence: Dependence | None = None
    block_length: float | None = None

    def __iter__(self) -> Iterator[Interval]:
        yield self.overall
        yield from self.classes

    @property
    def resampled(self) -> str:
        """What was resampled, in words."""
        units = text.plural(self.units, self.unit)
        if self.block_length is None:
            return units
        return f"{units} of {self.block_length:.1f} images on average"

    @property
    def few(self) -> tuple[str, ...]:
        """Classes in the truth of at least one and fewer than :data:`FEW_UNITS` units."""
        return tuple(c.name for c in self.classes if c.few and c.units)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = text.plain(self)
        for row in (found["overall"], *found["classes"]):
            row["vanished"] = row.pop("undefined_share")
        found["few"] = list(self.few)
        found["cautions"] = self.cautions()
        found["dependence"] = None if self.dependence is None else self.dependence.to_dict()
        return found

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        heads = ("", "score", f"{100 * self.level:g} % interval", f"{self.unit}s")
        rows = table(heads, [_cells(self.overall)], [_cells(c) for c in self.classes])
        return f'<div class="segiou-intervals">{sentence_list(self.sentences())}{rows}</div>'

    def sentences(self) -> list[str]:
        """Say it in words, rounded to a hundredth of a point."""
        return [_overall_sentence(self), *self.cautions()]

    def cautions(self) -> list[str]:
        """Say what makes the intervals unsafe, if anything does."""
        few = "the interval is only a hint and more likely too narrow than too wide."
        said = self._doubts(few, has_width=self.overall.low < self.overall.high)
        if self.unit == "group" and self.units < FEW_UNITS:
            return said
        if self.few and self.units >= FEW_UNITS:
            said.append(
                f"Seen in fewer than {FEW_UNITS} {self.unit}s, so do not rely on the intervals "
                f"of: {text.classes(self.few)}."
            )
        undefined = [
            f"{text.called(c.name)} ({text.percent(c.undefined_share)})"
            for c in self.classes
            if 0 < c.undefined_share < 1
        ]
        if undefined:
            said.append(f"Without a value in some resamples: {text.listed(undefined)}.")
        return said


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
        ``"boundary_iou"``, at the first width that was measured, and
        ``"surface_dice"``, at the first tolerance, of each structure.
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
        Number of resamples; seed of the random numbers.
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
    images: Any = scored_images(counts, metric, protocol, ids)
    images = replace(
        images,
        class_names=images.class_names if class_names is None else class_names,
        include=images.include if include is None else include,
    )
    design = design_of([images], groups, blocks)
    prepared = images.over(design.units, aggregate)
    drawn = images.over(design.images, aggregate) if design.blocks else prepared
    (values,) = resampled([drawn], resamples, seed, design.blocks)
    without = prepared.left_out if method == "bca" else None
    overall, *classes = intervals_of(prepared, values, prepared.values, without, level)
    return Intervals(
        metric=prepared.metric,
        aggregate=prepared.aggregate,
        protocol=prepared.protocol,
        level=level,
        method=method,
        resamples=resamples,
        seed=seed,
        unit=design.units.kind,
        units=len(design.units),
        overall=overall,
        classes=tuple(classes),
        dependence=design.dependence,
        block_length=design.block_length,
    )


def check_method(method: str, level: float) -> None:
    """Refuse an unknown method or a level that is no probability."""
    check_choice("method", method, get_args(Method))
    if not 0 < check_number("level", level) < 1:
        msg = f"level must be between 0 and 1, such as 0.95, got {level}"
        raise ValueError(msg)


def resampled(
    statistics: Sequence[Statistic], resamples: int, seed: int, blocks: Blocks | None = None
) -> list[Floats]:
    """Values (B, 1 + C) of statistics on the same resamples, however these fall into batches."""
    units = len(statistics[0].units)
    draw = independent_draw(seed, units) if blocks is None else blocks.draw(seed)
    tables = [statistic.products for statistic in statistics]
    features = sum(table.shape[1] for table in tables)
    found: list[list[Floats]] = [[] for _ in statistics]
    for size in batches(resamples, units, features):
        weights = draw(size)
        for one, sums, parts in zip(statistics, tables, found, strict=True):
            parts.append(one.evaluate(weighted(weights, sums)))
    return [np.concatenate(parts) for parts in found]


def batches(resamples: int, units: int, features: int) -> Iterator[int]:
    """Split resamples so that the arrays of one batch stay within 8 MiB."""
    most = max(1, _BATCH_BYTES // (8 * (3 * units + 6 * features)))
    for start in range(0, resamples, most):
        yield min(most, resamples - start)


def intervals_of(
    prepared: Statistic, values: Floats, points: Floats, left_out: Floats | None, level: float
) -> Iterator[Interval]:
    """Intervals from resampled ``values`` (B, K) around ``points`` (K,), named as a statistic.

    With ``left_out``, the values without each unit, (U, K), they are made by BCa.
    """
    without = [None] * len(points) if left_out is None else left_out.T
    columns = prepared.names, values.T, points.tolist(), without, prepared.seen.tolist()
    for name, column, value, left, units in zip(*columns, strict=True):
        undefined = np.isnan(column)
        low = high = error = float("nan")
        # A handful of groups is no sample of groups: what their resamples say is no interval.
        if not prepared.units.few_groups:
            if not np.isnan(value):
                low, high = limits_of(column, level, value, left)
            if (~undefined).sum() > 1:
                error = float(column[~undefined].std(ddof=1))
        yield Interval(name, value, low, high, error, units, float(undefined.mean()))


def limits_of(
    values: Floats, level: float, value: float = 0.0, left_out: Floats | None = None
) -> tuple[float, float]:
    """Ends of an interval: the (1 ∓ level)/2 quantiles of the defined resamples.

    With the values without each unit, they are corrected for bias and skew (BCa) around the
    value, and undefined where that is.
    """
    defined = values[~np.isnan(values)]
    shares: Sequence[float] = ((1 - level) / 2, (1 + level) / 2)
    if left_out is not None:
        shares = _corrected(shares, defined, value, left_out)
    if not shares or not defined.size:
        return float("nan"), float("nan")
    low, high = np.quantile(defined, shares).tolist()
    return low, high


def _corrected(
    shares: Sequence[float], defined: Floats, value: float, left_out: Floats
) -> Sequence[float]:
    """The quantiles of the resamples that BCa takes; none where it is undefined."""
    # B. Efron, J. Amer. Statist. Assoc. 82 (1987), 171-185: quantiles at
    # Φ(z₀ + (z₀ + z_α) / (1 − a (z₀ + z_α))) for the two z_α. z₀ = Φ⁻¹ of the share of
    # resamples below the value, ties counted half; a = Σ d³ / (6 (Σ d²)^1.5) of the deviations
    # d of the leave-one-out values, 0 where nothing varies. Undefined where a value without a
    # unit is (a class in one unit), or where all resamples lie on one side of the value.
    deviations = left_out.mean() - left_out
    if not defined.size or np.isnan(deviations).any():
        return ()
    below = float((defined < value).mean() + (defined <= value).mean()) / 2
    if not 0 < below < 1:
        return ()
    bias = _NORMAL.inv_cdf(below)
    spread = float((deviations**2).sum()) ** 1.5
    skew = float((deviations**3).sum()) / (6 * spread) if spread > 0 else 0.0
    reached = (bias + _NORMAL.inv_cdf(share) for share in shares)
    return [_NORMAL.cdf(bias + z / (1 - skew * z)) for z in reached]


def _cells(found: Interval) -> tuple[str, ...]:
    number = escape(text.percent(found.value, "–"))
    ends = "–"
    if not np.isnan(found.low):
        ends = escape(f"{text.points(found.low)} to {text.percent(found.high)}")
    return escape(found.name), number, ends, f"{found.units}{' (few)' if found.few else ''}"


def _overall_sentence(found: Intervals) -> str:
    score = found.overall
    start = (
        f"{score.name[:1].upper()}{score.name[1:]} is {text.percent(score.value)} over "
        f"{text.plural(found.units, found.unit)}"
    )
    if np.isnan(score.low):
        return f"{start}; it has no interval."
    if score.low == score.high:
        return (
            f"{start}, and in each of {found.resamples} resamples of these {found.unit}s: an "
            f"interval of no width, which does not show that other {found.unit}s would give the "
            "same."
        )
    between = f"between {text.points(score.low)} and {text.percent(score.high)}"
    kind = f"{100 * found.level:g} % {_METHOD_WORDS[found.method]} bootstrap interval"
    made = f"{found.resamples} resamples, seed {found.seed}"
    if found.block_length is not None and found.dependence is not None:
        return (
            f"{start}; over other stretches of {found.dependence.where} it is plausibly {between} "
            f"({kind} over blocks of {found.block_length:.1f} images on average, {made})."
        )
    over = f"over all {found.unit}s of this kind it is plausibly {between}"
    if found.unsafe:
        over = f"if the images were independent, {over}"
    return f"{start}; {over} ({kind} over {found.unit}s, {made})."


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """Scores without each unit in turn.

    Attributes
    ----------
    metric : str
    unit : {"image", "group"}
    names : tuple of str
        The units.
    columns : tuple of str
        The score, then the classes.
    values : ndarray of float, shape (1 + C,)
        With all units.
    left_out : ndarray of float, shape (U, 1 + C)
        Without each.
    """

    metric: str
    unit: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats
    left_out: Floats

    @property
    def effect(self) -> Floats:
        """How much higher each value is for having the unit, (U, 1 + C)."""
        return self.values - self.left_out

    @property
    def standard_error(self) -> Floats:
        """Jackknife standard error of each value, √((U − 1)/U Σ (θ₍ᵢ₎ − θ̄)²), (1 + C,)."""
        number = len(self.names)
        spread = ((self.left_out - self.left_out.mean(0)) ** 2).sum(0)
        return np.asarray(np.sqrt((number - 1) / number * spread))

    def strongest(self, count: int = 5, column: int = 0) -> tuple[list[int], list[int]]:
        """Units that raise a value most, and those that lower it most.

        Parameters
        ----------
        count : int, default 5
            How many of either kind.
        column : int, default 0
            Index of the value, one of :attr:`columns`.

        Returns
        -------
        raising : list of int
            Indices into :attr:`names`, the strongest first.
        lowering : list of int
            The same of those that lower it.
        """
        effect = self.effect[:, column]
        order = np.argsort(effect, kind="stable")
        order = order[~np.isnan(effect[order])]
        lowering = [int(i) for i in order[:count] if effect[i] < 0]
        raising = [int(i) for i in order[::-1][:count] if effect[i] > 0]
        return raising, lowering

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = text.plain(self)
        return found | {"effect": text.plain(self.effect)}


def influence(
    counts: Counts,
    metric: Metric = "iou",
    *,
    ids: Sequence[str] | None = None,
    groups: Sequence[Hashable] | None = None,
    class_names: Sequence[str] | None = None,
    include: Any = None,
    protocol: Protocol | str = "segiou",
    aggregate: Aggregate | None = None,
) -> Influence:
    """Jackknife: the score and every class without each image or group in turn.

    All of them in one pass, from the counts: the sums without a unit are the
    sums less its own.

    Parameters
    ----------
    counts : Counts of shape (N, C)
        Counts per class, (..., C).
    metric, groups, class_names, include, protocol, aggregate
        As for :func:`segiou.analysis.bootstrapping.bootstrap`.
    ids : sequence of str, length N, optional
        Names of the images.

    Returns
    -------
    Influence

    References
    ----------
    B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993),
    chapter 11.

    Examples
    --------
    >>> counts = Counts(tp=[[9], [1]], fp=[[0], [5]], fn=[[1], [4]], tn=[[0], [0]])
    >>> found = influence(counts, ids=["clear", "fog"])
    >>> found.values, found.left_out[:, 0], found.strongest(1)
    (array([0.5, 0.5]), array([0.1, 0.9]), ([0], [1]))
    """
    protocol, parts = load_protocol(protocol), CountParts.of(counts)
    images = ScoredImages(parts, metric, None, class_names, include, protocol)
    prepared = images.over(units_of(parts.num_images, groups, ids), aggregate)
    return Influence(
        prepared.metric,
        prepared.units.kind,
        prepared.units.names,
        prepared.names,
        prepared.values,
        prepared.left_out,
    )
