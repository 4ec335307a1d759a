"""Number of images for intervals of a given width, estimated from a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support import text
from segiou._support.arguments import check_number, names_options
from segiou._support.numbers import grouped, interval_name, points, shown
from segiou._support.text import Json
from segiou.counting.counts import Counts
from segiou.document.findings import Finding
from segiou.document.parts import GAP, Column, Line, Part, Table
from segiou.inference.count_scores import Aggregate
from segiou.inference.dependence import BlockLength
from segiou.inference.intervals import OverUnits, unit_attributes
from segiou.inference.leave_one_out import Jackknife
from segiou.inference.limits import SCALES
from segiou.inference.resampling import Resampling
from segiou.inference.scored_runs import scored_images
from segiou.inference.statistics import Statistic
from segiou.inference.student import student
from segiou.inference.units import FEWEST_COMPARED, ROUNDING, Groups, HasCounts, Metric
from segiou.measures.plan import Plan
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats

#: Most units that an answer names.
_MOST_UNITS = 10_000_000
#: Answers from fewer units are too low and uncertain, because rare classes are missing.
_RELIABLE_FROM = 50


@dataclass(frozen=True, slots=True)
class SampleSize:
    """The number of units that gives a score an interval of the given width.

    Attributes
    ----------
    name : str
        Name of the class, or of the score over all classes.
    value : float
    half_width : float
        Half-width over the units of the run, the standard error times Student's t; NaN if
        there is none.
    units : int
        Units of the run whose truth contains the class; for the score, those with a value.
    design_effect : float
        Variance over these units relative to that over as many independent images; NaN if
        the units are images.
    needed : int or None
        Units with and without the class; None if the run does not show it, because the class
        is in fewer than two units or its score is the same in all, and above ten million.
    low, high : int or None
        Limits of the needed units, from the uncertainty of the variance; None as above, or if
        nearly all of the variance is that of a single unit.
    images : int or None
        Images in the needed units.
    """

    name: str
    value: float
    half_width: float
    units: int
    design_effect: float
    needed: int | None
    low: int | None
    high: int | None
    images: int | None

    @property
    def _varies(self) -> bool:
        """Whether the units of the run have an interval, so that only more units are lacking."""
        return math.isfinite(self.half_width) and self.half_width > ROUNDING


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SampleSizes(OverUnits, Finding):
    """Numbers of units that give intervals of a given width.

    Attributes
    ----------
    metric, protocol, aggregate : str
        The score, and how it is averaged.
    half_width : float
        Wanted half-width of the intervals.
    level : float
        Confidence level of the intervals, and of the limits of the numbers.
    unit : {"image", "group", "sequence", "batch"}
    units, images : int
        Numbers of units and images of the run.
    overall : SampleSize
    classes : tuple of SampleSize
        Empty for a metric without per-class values.
    score_unit : str
        Unit of the score, such as ``"mm"``; empty for a ratio.
    """

    metric: str
    protocol: str
    half_width: float
    images: int
    overall: SampleSize
    classes: tuple[SampleSize, ...]

    _index = ("name",)

    def __iter__(self) -> Iterator[SampleSize]:
        yield self.overall
        yield from self.classes

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        data = self._plain()
        for name in ("method", "resamples", "seed"):
            del data[name]
        return data | {"sentences": self.sentences()}

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def rows(self) -> Iterator[dict[str, Json]]:
        """The score, then its classes.

        Yields
        ------
        dict
            The values of a row by column.
        """
        for row in self:
            yield {name: getattr(row, name) for name in SampleSize.__slots__}

    def sentences(self) -> list[str]:
        """The answer for the score, and its limits as sentences."""
        return [*_answer(self), *self.units_sentences(), *_cautions(self)]

    def _parts(self) -> Iterable[Part]:
        rows, unit, grouped = [*self], self.score_unit, self.unit != "image"
        images = [_number(row.images) for row in rows]
        effects = ["" if math.isnan(e := row.design_effect) else f"{e:.2f}" for row in rows]
        columns = (
            Column("name", [row.name for row in rows], 5, is_text=True),
            Column("score", [shown(row.value, unit) for row in rows], 2),
            Column("now ±", [_width(row.half_width, unit, "–") for row in rows], 3),
            Column(f"{self._kind} now", [str(row.units) for row in rows], 1),
            Column(f"{self._kind} needed", [_number(row.needed) for row in rows], 4),
            Column(interval_name(self.level), [*map(_range, rows)], 3),
            Column(f"{self._image}s needed", images if grouped else [], 2),
            Column("design effect", effects, 1),
        )
        return [*map(Line, self.sentences()), GAP, Table(columns, first=1)]


@names_options
def sample_sizes(
    counts: Counts | HasCounts,
    half_width: float,
    metric: Metric = "iou",
    *,
    ids: Sequence[str] | None = None,
    groups: Groups | None = None,
    blocks: BlockLength | None = None,
    level: float = 0.95,
    class_names: Sequence[str] | None = None,
    include: Any = None,
    protocol: Protocol | str | None = None,
    aggregate: Aggregate | None = None,
) -> SampleSizes:
    """Numbers of images of the same kind that give intervals of a given width.

    The answer for a score, and for each class, is the least n with t √(U/n) e ≤ h, where e is the
    jackknife standard error over the U units of the run, h the wanted half-width, and t Student's
    quantile with the degrees of freedom of n units (classes are then in n/U times as many).
    Its limits follow from the variance of the run, e², whose logarithm has a jackknife standard
    error and Student's distribution. Answers from few units are too low, because rare classes and
    rare failures are missing in most of them.

    Parameters
    ----------
    counts : Run, Report or Counts of shape (N, C)
        A pilot: per-image counts, or an object that has them.
    half_width : float
        Target half-width: 0.02 is ± 2 percentage points. In the unit of the score if it has one.
    metric : str or callable
        As for :func:`segiou.confidence_intervals`; neither a median nor a percentile.
    ids, groups, blocks, level, class_names, include, protocol, aggregate
        As for :func:`segiou.confidence_intervals`.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or ``counts`` has no per-image counts.
    ValueError
        If a value is out of range, the score is a median, or there are fewer than two units.

    Examples
    --------
    >>> import numpy as np
    >>> tp = np.array([[90], [80], [85], [95], [70], [88]])
    >>> counts = Counts(tp, 0 * tp, 100 - tp, 0 * tp)
    >>> found = sample_sizes(counts, 0.05, class_names=["road"])
    >>> found.overall.needed, found.overall.low, found.overall.high
    (17, 6, 78)
    >>> print(found.sentences()[0])
    Mean IoU has a 95 % interval of ± 5.00 points with about 17 images (95 % interval 6 to 78).
    """
    how = Resampling.of(locals())
    scored = scored_images(counts, metric, protocol, ids, class_names, include)
    number = scored.images.number
    design = how.design(scored.ids, number, lambda: [scored.of_images(finite=True)])
    prepared = scored.over(design.units, aggregate)
    _check(half_width, prepared, getattr(counts, "score_plans", {}))
    left_out = Jackknife.of(prepared)
    error = left_out.errors()
    effect = np.full(len(error), np.nan)
    if design.units.kind != "image":
        with np.errstate(invalid="ignore", divide="ignore"):
            effect = (error / Jackknife.of(scored.over(design.images, aggregate)).errors()) ** 2
    plan = _Plan(left_out, error, level, float(half_width))
    overall, *classes = _rows(plan, np.where(np.isfinite(effect), effect, np.nan), number)
    return SampleSizes(
        metric=prepared.score.name,
        aggregate=prepared.aggregate,
        protocol=prepared.score.rule,
        level=level,
        method="jackknife",
        resamples=None,
        seed=None,
        half_width=float(half_width),
        images=number,
        overall=overall,
        classes=tuple(classes),
        score_unit=prepared.score.unit,
        **unit_attributes(design, blocks, counts),
    )


def _check(half_width: object, score: Statistic, plans: Mapping[str, Plan]) -> None:
    """Reject a half-width that is not a distance, and scores without a standard error."""
    width, name = check_number("half_width", half_width), score.score.name
    if not score.is_smooth:
        plan = plans.get(name.partition(":")[0])
        scores = plan.scores.values() if plan else ()
        others = [own.name for own in scores if own.is_smooth and own.median_of is None]
        msg = (
            f"{name} is a median or percentile, and the width of its interval does not follow from "
            f"a standard error; plan by {text.listed(others or ['iou', 'dice'], last=' or ')}"
        )
        raise ValueError(msg)
    if not 0 < width < math.inf:
        msg = f"half_width must be above 0, got {width:g}"
        raise ValueError(msg)
    if width >= 1 and SCALES[score.scale].most == 1:
        msg = (
            f"half_width must be below 1, got {width:g} ({100 * width:g} percentage points); for "
            f"{width:g} percentage points, pass {width / 100:g} (--half-width {width:g}%)"
        )
        raise ValueError(msg)


@dataclass(frozen=True, eq=False)
class _Plan:
    """A score over the units of a run, and the wanted half-width of its interval."""

    left_out: Jackknife
    error: Floats
    level: float
    wanted: float

    @property
    def units(self) -> int:
        """Units of the run."""
        return len(self.left_out.statistic.units)

    @property
    def fewest(self) -> int:
        """Fewer units have no interval."""
        is_group = self.left_out.statistic.units.kind in ("group", "sequence")
        return FEWEST_COMPARED if is_group else 2

    def half_width(self, error: Floats, numbers: NDArray[Any]) -> Floats:
        """Half-widths over other numbers of units; infinite if there is no interval."""
        share = numbers / self.units
        freedom = self.left_out.freedom(share)
        # A class has an interval from two units on.
        known = (freedom > 1 - ROUNDING) & (numbers >= self.fewest)
        t = student(np.where(known, freedom, 1.0), (1 - self.level) / 2)
        return np.where(known, t * error / np.sqrt(share), np.inf)

    def needed(self, error: Floats) -> NDArray[np.int64]:
        """The least numbers of units, by bisection; 0 if there is none."""
        low, high = np.ones(error.shape, np.int64), np.full(error.shape, _MOST_UNITS + 1)
        while (high - low > 1).any():
            middle = (low + high) // 2
            enough = self.half_width(error, middle) <= self.wanted * (1 + ROUNDING)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        shown = (error > ROUNDING) & (self.units >= self.fewest)
        return np.where(shown & (high <= _MOST_UNITS), high, 0)

    def relative_errors(self) -> Floats:
        """Standard errors of the logarithm of the variance, (1 + C,), by the jackknife."""
        units, variance = self.units, self.left_out.variance
        sums = np.zeros((2, len(variance)))
        with np.errstate(divide="ignore", invalid="ignore"):
            for step in self.left_out.steps():
                # The logarithm without a unit.
                logs = np.log1p(-np.minimum(step**2 / variance, 1.0))
                sums += logs.sum(0), (logs**2).sum(0)
            spread = sums[1] - sums[0] ** 2 / units
            # Two units contribute the same.
            spread = spread if units > 2 else np.full(len(variance), np.nan)
        return np.sqrt(np.maximum((units - 1) / units * spread, 0.0))


def _rows(plan: _Plan, effect: Floats, images: int) -> list[SampleSize]:
    """The answers for the score and its classes."""
    left_out, error = plan.left_out, plan.error
    freedom = left_out.freedom()
    t = student(np.where(freedom > 0, freedom, 1.0), (1 - plan.level) / 2)
    reach = t * plan.relative_errors() / 2
    with np.errstate(over="ignore", invalid="ignore"):
        limits = [plan.needed(error * np.exp(sign * reach)) for sign in (-1, 1)]
    ends = np.where(np.isfinite(reach), limits, 0)
    needed, each = plan.needed(error), images / plan.units
    now = plan.half_width(error, np.full(len(error), plan.units))
    rows = text.records(
        name=left_out.statistic.names,
        value=left_out.values,
        half_width=np.where(np.isfinite(now), now, np.nan),
        units=left_out.seen,
        design_effect=effect,
        needed=needed,
        low=ends[0],
        high=ends[1],
        images=np.ceil(needed * each - ROUNDING).astype(np.int64),
    )
    numbers = ("needed", "low", "high", "images")
    return [SampleSize(**row | {name: row[name] or None for name in numbers}) for row in rows]


def _width(value: float, unit: str, undefined: str) -> str:
    """A half-width: in points, or in the unit of the score."""
    if not math.isfinite(value):
        return undefined
    return shown(value, unit) if unit else f"{points(value)} points"


def _number(value: int | None) -> str:
    return "–" if value is None else grouped(value)


def _too_many(found: SampleSizes) -> str:
    return f"More than {grouped(_MOST_UNITS)} {found._kind}"


def _range(row: SampleSize) -> str:
    """The limits of the number."""
    if row.low is None:
        return "–"
    return f"{_number(row.low)} to {_number(row.high)}" if row.high else f"from {_number(row.low)}"


def _answer(sizes: SampleSizes) -> list[str]:
    """The answer for the score."""
    row, unit, share = sizes.overall, sizes.score_unit, interval_name(sizes.level)
    wanted = f"{share} of ± {_width(sizes.half_width, unit, '')}"
    if row.needed is None and row._varies:
        return [f"{_too_many(sizes)} are needed to give {row.name} a {wanted}."]
    if row.needed is None:
        return [f"The run does not determine the {sizes._kind} for a {wanted} of {row.name}."]
    limits = "" if row.low is None else f" ({share} {_range(row)})"
    number = f"{sizes._several(row.needed)}{limits}"
    now = f"{sizes._several(sizes.units)} of the run"
    sentences = [f"{text.capital(row.name)} has a {wanted} with about {number}."]
    if math.isfinite(row.half_width):
        sentences.append(f"The {now} give ± {_width(row.half_width, unit, '')}.")
    return sentences + ([] if sizes.unit == "image" else _images(sizes))


def _images(sizes: SampleSizes) -> list[str]:
    """The images in the units that are needed, and how much information those of the run carry."""
    row, image = sizes.overall, sizes._image
    share = sizes.images / sizes.units
    each = grouped(round(share)) if share >= 100 else f"{share:.3g}"
    each = f"{each} {image if each == '1' else f'{image}s'} per {sizes.unit}"
    sentences = [f"With {each}, this is {text.plural(row.images or 0, image)}."]
    if sizes.dependence is None and row.design_effect > 1:
        alone = f"{sizes.images / row.design_effect:.0f} independent ones"
        sentences.append(
            f"Design effect {row.design_effect:.2f}: the {sizes.images} {image}s of the run carry "
            f"as much information as about {alone}, so new {sizes._kind} add more than further "
            f"{image}s of the same {sizes._kind}."
        )
    return sentences


def _cautions(sizes: SampleSizes) -> list[str]:
    """Why answers are uncertain or missing."""
    sentences = [] if sizes._limit is None else [text.capital(str(sizes._limit))]
    if sizes.units < _RELIABLE_FROM and sizes.overall.needed is not None:
        sentences.append(
            f"Caution: estimates from {sizes._several(sizes.units)} are usually too low, because "
            f"most small samples lack rare classes and rare failures. {text.see('intervals')}"
        )
    unknown = [row for row in sizes.classes if row.needed is None]
    for rows, why in (
        ([row for row in sizes.classes if row.units < 2], f"Fewer than two {sizes._kind} contain"),
        ([r for r in unknown if r.units > 1 and not r._varies], "Scores do not vary for"),
        ([r for r in unknown if r.units > 1 and r._varies], f"{_too_many(sizes)} are needed for"),
    ):
        names = tuple(row.name for row in rows)
        if names:
            sentences.append(f"{why}: {text.classes(names)}.")
    return sentences
