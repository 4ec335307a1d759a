"""Bootstrap over images, groups or blocks: resamples, intervals and their text."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np

from segiou._support import RenamedAttribute, text
from segiou._support.arguments import check_choice, check_integer, check_number
from segiou._support.html import sentence_list, table
from segiou._support.text import Json
from segiou.analysis.dependence import (
    BlockLength,
    Blocks,
    Caution,
    Dependence,
    design_of,
    independent_draw,
)
from segiou.analysis.statistics import (
    Aggregate,
    ScoredImages,
    Statistic,
    scored_images,
)
from segiou.analysis.units import (
    FEW_UNITS,
    CountParts,
    Groups,
    HasCounts,
    Metric,
    units_of,
    weighted,
)
from segiou.counting.counts import Counts
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats

#: Batches that fit into the cache are a quarter faster.
_BATCH_BYTES = 1 << 23
_NORMAL = NormalDist()

Method = Literal["percentile", "bca"]

#: Coverage of 95 % intervals from this many units on, as measured by benchmarks/coverage.py.
MEASURED_COVERAGE: dict[tuple[str, str], tuple[tuple[int, float], ...]] = {
    ("image", "percentile"): ((10, 0.889), (20, 0.911), (50, 0.924), (100, 0.944)),
    ("image", "bca"): ((10, 0.870), (20, 0.904), (50, 0.921), (100, 0.933)),
    ("group", "percentile"): ((10, 0.893), (20, 0.915), (40, 0.926), (80, 0.947)),
    ("group", "bca"): ((10, 0.892), (20, 0.918), (40, 0.925), (80, 0.945)),
    ("block", "percentile"): ((2, 0.60), (20, 0.82), (40, 0.87), (70, 0.91), (150, 0.92)),
    ("block", "bca"): ((2, 0.60), (20, 0.81), (40, 0.88), (70, 0.90), (150, 0.92)),
}
#: A lower coverage is reported.
_LEAST_COVERAGE = 0.93
_METHOD_WORDS = {"percentile": "percentile", "bca": "BCa"}


@dataclass(frozen=True, slots=True)
class Interval:
    """A score with its bootstrap interval.

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
        Units whose truth contains the class; for the score, all units.
    undefined_share : float
        Share of the resamples in which the value was undefined because no
        resampled image contained the class. They are otherwise skipped.
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
        """Whether fewer than :data:`FEW_UNITS` units contain the class."""
        return self.units < FEW_UNITS


class OverUnits:
    """Shared by intervals and comparisons over resampled units."""

    __slots__ = ()
    unit: str
    units: int
    method: Method
    resamples: int
    seed: int
    dependence: Dependence | None
    block_length: float | None

    @property
    def resampled(self) -> str:
        """The resampling units in words."""
        if self.block_length is None:
            return text.plural(self.units, self.unit)
        number = text.plural(self.units, "block of images", "blocks of images")
        return f"{number}, {self.block_length:.1f} images on average"

    @property
    def unsafe(self) -> bool:
        """Whether images were treated as independent although they may not be."""
        return self.unit == "image" and self.dependence is not None and self.dependence.noteworthy

    @property
    def few_groups(self) -> bool:
        """Whether there are too few groups for an interval."""
        return self.unit == "group" and self.units < FEW_UNITS

    def unit_caution(self, *, p: bool, has_width: bool = True) -> Caution | None:
        """The first of the cautions about the units that applies."""
        units = text.plural(self.units, self.unit)
        if self.few_groups:
            within = f" to resample blocks of neighbouring images within these {units}"
            rest = f"{within}; the result does not generalise to other groups"
            least = f"an interval needs at least {FEW_UNITS} groups"
            return Caution(least, "--blocks auto", rest)
        if self.units < FEW_UNITS:
            effect = "the interval is probably too narrow" + (" and p too small" if p else "")
            return Caution(f"only {units}, so {effect}")
        if self.unsafe and self.dependence is not None:
            return self.dependence.caution(p=p)
        coverage = MEASURED_COVERAGE[self.unit, self.method]
        measured = [share for least, share in coverage if least <= self.units]
        if has_width and measured and measured[-1] < _LEAST_COVERAGE:
            share = f"{text.roughly(measured[-1])} coverage in simulations"
            return Caution(f"with {units}, a 95 % interval is too narrow ({share})")
        return None


@dataclass(frozen=True, slots=True)
class Intervals(OverUnits):
    """Bootstrap intervals of a score and of its classes.

    Attributes
    ----------
    metric, aggregate, protocol : str
        The score, how it was aggregated, and the protocol of its mean.
    level : float
    method : {"percentile", "bca"}
    resamples, seed : int
    unit : {"image", "group", "block"}
        What was resampled.
    units : int
        Number of units.
    overall : Interval
    classes : tuple of Interval
        Empty for a metric without per-class values.
    dependence : Dependence or None
        Dependence between the images; None if groups were passed, the images
        were declared independent, or their order is unknown.
    block_length : float or None
        Mean length of the resampled blocks, if any.
    score_unit : str
        Unit of the score, such as ``"mm"``; empty for a ratio.
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
    score_unit: str = ""

    def __iter__(self) -> Iterator[Interval]:
        yield self.overall
        yield from self.classes

    few = RenamedAttribute("unreliable_classes")

    @property
    def unreliable_classes(self) -> tuple[str, ...]:
        """Classes that at least one but fewer than :data:`FEW_UNITS` units contain."""
        return tuple(c.name for c in self.classes if c.few and c.units)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = text.plain(self)
        for row in (found["overall"], *found["classes"]):
            row["vanished"] = row["undefined_share"]
        found["unreliable_classes"] = list(self.unreliable_classes)
        found = text.old_keys(found, few="unreliable_classes")
        found["cautions"] = self.cautions()
        found["dependence"] = None if self.dependence is None else self.dependence.to_dict()
        return found

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        heads = ("", "score", f"{100 * self.level:g} % interval", f"{self.unit}s")
        first, *others = (_cells(c, self.score_unit) for c in self)
        rows = table(heads, [first], others)
        return f'<div class="segiou-intervals">{sentence_list(self.sentences())}{rows}</div>'

    def sentences(self) -> list[str]:
        """Return the score, its interval and what limits it as sentences."""
        return [_overall_sentence(self), *self.cautions()]

    def caution(self) -> Caution | None:
        """What limits the interval of the score most, if anything does."""
        return self.unit_caution(p=False, has_width=self.overall.low < self.overall.high)

    def cautions(self) -> list[str]:
        """What limits the intervals of the score and of the classes."""
        first = self.caution()
        return ([] if first is None else [text.capital(str(first))]) + self.class_cautions()

    def class_cautions(self) -> list[str]:
        """What limits the intervals of single classes."""
        said: list[str] = []
        if self.few_groups:
            return said
        if self.unreliable_classes and self.units >= FEW_UNITS:
            said.append(
                f"Unreliable intervals (fewer than {FEW_UNITS} {self.unit}s contain the class): "
                f"{text.classes(self.unreliable_classes)}."
            )
        undefined = [
            f"{text.called(c.name)} ({text.percent(c.undefined_share)})"
            for c in self.classes
            if 0 < c.undefined_share < 1
        ]
        if undefined:
            said.append(
                f"Undefined in some resamples (share in brackets): {text.listed(undefined)}."
            )
        return said

    def interval_method(self) -> list[str]:
        """How the intervals were computed, and how independent the images are."""
        kind = f"{100 * self.level:g} % {_METHOD_WORDS[self.method]} bootstrap intervals"
        made = f"{text.count(self.resamples)} resamples, seed {self.seed}"
        return [
            f"{kind} over {self.resampled}; {made}.",
            *(self.dependence.sentences() if self.dependence else ()),
        ]


def bootstrap(
    counts: Counts | HasCounts,
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

    A resample has as many units as the data, drawn with replacement: weights
    w ~ Multinomial(U, 1/U). Its score is computed from the sums ``w @ counts``,
    so a batch of resamples is one integer matrix product, which is exact in
    float64 below 2^53 (int64 is used above). Time is proportional to U · C ·
    resamples; memory stays within some tens of MB besides the results.

    The interval generalises to similar images scored with the same trained
    model, not to retraining or to other kinds of images.

    Parameters
    ----------
    counts : Run, Report or Counts of shape (N, C)
        Per-image counts, or an object that has them. A confusion matrix has
        none because it is their sum.
    metric : str or callable
        See :func:`segiou.analysis.statistics.statistic`; for a run also any
        score of its measures, such as ``"boundary_iou"``.
    ids : sequence of str, length N, optional
        Names of the images, for bare counts; runs and reports have their own.
    groups : str, mapping, callable or sequence, optional
        Images of one group are resampled together, see
        :func:`segiou.analysis.units.groups_of`. Needed if images are not
        independent: frames of one video, slices of one patient, tiles of one
        scene. Fewer than ten groups have no interval. ``"none"`` declares the
        images independent; ids are then ignored.
    blocks : "auto" or float, optional
        Mean length of blocks of neighbouring images, resampled along each
        sequence by the stationary bootstrap. The sequences are the groups, or
        those that the numbers in the ids suggest, or all images in the given
        order. ``"auto"`` estimates the length from the correlation of
        neighbouring scores. The interval then generalises to other parts of
        these sequences only.
    resamples, seed : int
        Number of resamples; seed of the random numbers.
    level : float
        Between 0 and 1.
    method : {"percentile", "bca"}
        BCa corrects for bias and skew and needs an extra leave-one-out pass.
    class_names, include, protocol, aggregate
        See :func:`segiou.analysis.statistics.statistic`; by default those of
        the run or report.

    Returns
    -------
    Intervals

    Raises
    ------
    TypeError
        If an argument has the wrong type, or ``counts`` has no per-image counts.
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
    >>> found.unreliable_classes
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
        score_unit=prepared.score_unit,
    )


def check_method(method: str, level: float) -> None:
    """Reject an unknown method or a level outside (0, 1)."""
    check_choice("method", method, get_args(Method))
    if not 0 < check_number("level", level) < 1:
        msg = f"level must be between 0 and 1, e.g. 0.95, got {level}"
        raise ValueError(msg)


def resampled(
    statistics: Sequence[Statistic], resamples: int, seed: int, blocks: Blocks | None = None
) -> list[Floats]:
    """Values (B, 1 + C) of each statistic on the same resamples."""
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
    """Intervals from resampled values (B, K); BCa if leave-one-out values (U, K) are passed."""
    without = [None] * len(points) if left_out is None else left_out.T
    columns = prepared.names, values.T, points.tolist(), without, prepared.seen.tolist()
    for name, column, value, left, units in zip(*columns, strict=True):
        undefined = np.isnan(column)
        low = high = error = float("nan")
        # Resamples of a handful of groups do not represent other groups.
        if not prepared.units.few_groups:
            if not np.isnan(value):
                low, high = limits_of(column, level, value, left)
            if (~undefined).sum() > 1:
                error = float(column[~undefined].std(ddof=1))
        yield Interval(name, value, low, high, error, units, float(undefined.mean()))


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
    low, high = np.quantile(defined, shares).tolist()
    return low, high


def _corrected(
    shares: Sequence[float], defined: Floats, value: float, left_out: Floats
) -> Sequence[float]:
    """The quantile levels of BCa; empty if undefined."""
    # B. Efron, J. Amer. Statist. Assoc. 82 (1987), 171-185: quantiles at
    # Φ(z₀ + (z₀ + z_α) / (1 − a (z₀ + z_α))) for the two z_α. z₀ = Φ⁻¹ of the share of
    # resamples below the value, ties counted half; a = Σ d³ / (6 (Σ d²)^1.5) of the deviations
    # d of the leave-one-out values, 0 if nothing varies. Undefined if a leave-one-out value is (a
    # class in one unit), or if all resamples are on one side of the value.
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


def _cells(found: Interval, unit: str) -> tuple[str, ...]:
    ends = text.shown_range(found.low, found.high, unit)
    units = f"{found.units}{' (few)' if found.few else ''}"
    return escape(found.name), escape(text.shown(found.value, unit)), escape(ends), units


def _overall_sentence(found: Intervals) -> str:
    score, show = found.overall, partial(text.shown, unit=found.score_unit, undefined="undefined")
    start = (
        f"{text.capital(score.name)} is {show(score.value)} on "
        f"{text.plural(found.units, found.unit)}"
    )
    if np.isnan(score.low):
        return f"{start} (no interval)."
    if score.low == score.high:
        return (
            f"{start} and in all {text.count(found.resamples)} resamples of these {found.unit}s. "
            f"The interval has zero width; other {found.unit}s may still differ."
        )
    kind = f"{100 * found.level:g} % {_METHOD_WORDS[found.method]} bootstrap interval"
    ends = text.shown_range(score.low, score.high, found.score_unit)
    made = f"{text.count(found.resamples)} resamples, seed {found.seed}"
    return f"{start} ({kind} {ends}, {made})."


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """Leave-one-out scores for each unit.

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
        Without each unit.
    """

    metric: str
    unit: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats
    left_out: Floats

    @property
    def effect(self) -> Floats:
        """Change of each value when the unit is included, (U, 1 + C)."""
        return self.values - self.left_out

    @property
    def standard_error(self) -> Floats:
        """Jackknife standard error of each value, √((U − 1)/U Σ (θ₍ᵢ₎ − θ̄)²), (1 + C,)."""
        number = len(self.names)
        spread = ((self.left_out - self.left_out.mean(0)) ** 2).sum(0)
        return np.asarray(np.sqrt((number - 1) / number * spread))

    def strongest(self, count: int = 5, column: int = 0) -> tuple[list[int], list[int]]:
        """Units that raise a value most and units that lower it most.

        Parameters
        ----------
        count : int, default 5
            Number of units of either kind.
        column : int, default 0
            Index of the value, one of :attr:`columns`.

        Returns
        -------
        raising : list of int
            Indices into :attr:`names`, strongest first.
        lowering : list of int
            Likewise.
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
    """Jackknife: leave-one-out scores for each image or group.

    Computed in one pass: the counts without a unit are the total minus its own.

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
