"""Intervals of a score and of its classes over images, groups, sequences or batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np

from segiou._support import numbers, text
from segiou._support.arguments import names_options
from segiou._support.text import Json
from segiou.counting.counts import Counts
from segiou.document.findings import Finding
from segiou.document.parts import Column, Line, Part, Table
from segiou.inference.bootstrapping import bootstrap_limits, limits_of
from segiou.inference.count_scores import Aggregate
from segiou.inference.dependence import BlockLength, Caution, Dependence, Design
from segiou.inference.leave_one_out import jackknife
from segiou.inference.limits import Limits, rows_of_limits, wide_limits
from segiou.inference.order_statistics import median_limits
from segiou.inference.resampling import Method, PairedMethod, Resampling
from segiou.inference.scored_runs import scored_images, unit_of_pixels
from segiou.inference.statistics import ScoredImages, Statistic
from segiou.inference.units import (
    FEW_UNITS,
    Groups,
    HasCounts,
    Metric,
    Units,
    are_too_few,
    plural_of,
)
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats

#: Method of medians, which cannot be chosen.
_MEDIANS: Any = "order_statistics"

METHOD_WORDS: dict[str, str] = {
    "jackknife": "jackknife-t",
    "permutation": "permutation",
    "percentile": "percentile bootstrap",
    "bca": "BCa bootstrap",
    _MEDIANS: "order-statistic",
}
#: Number of images below which classes that occur only in predictions lower a mean noticeably.
_BIASED_BELOW = 100
#: With fewer units, the bootstrap of a mean of medians covers too little.
_ENOUGH_FOR_MEDIANS = 20


@dataclass(frozen=True, slots=True)
class Interval:
    """A score with its interval.

    Attributes
    ----------
    name : str
        Name of the class, or of the score over all classes.
    value : float
        On the data itself.
    low, high : float
        Ends of the interval; NaN if undefined.
    standard_error : float
        Jackknife standard error, or the standard deviation over the resamples.
    units : int
        Units whose truth contains the class; for the score, those with a value.
    freedom : float
        Degrees of freedom of Student's t; NaN for the bootstrap.
    undefined_share : float
        Share of the resamples in which the value was undefined because no
        resampled image contained the class; NaN if nothing was resampled.
    """

    name: str
    value: float
    low: float
    high: float
    standard_error: float
    units: int
    freedom: float = float("nan")
    undefined_share: float = float("nan")

    @property
    def few(self) -> bool:
        """Whether fewer than :data:`FEW_UNITS` units contain the class."""
        return self.units < FEW_UNITS


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OverUnits:
    """Shared by intervals, comparisons and rankings over units."""

    aggregate: str
    level: float
    method: Method | PairedMethod
    resamples: int | None
    seed: int | None
    unit: str
    units: int
    score_unit: str = ""
    dependence: Dependence | None = None
    block_length: float | None = None
    independence: str = ""
    limit: Caution | None = None
    _pixel_unit: str = field(default="pixels", repr=False, compare=False)
    #: Whether sentences name arguments instead of options of the command line.
    _python: bool = field(default=False, repr=False, compare=False)
    #: The pattern that would group independent images by their names.
    _related: str = field(default="", repr=False, compare=False)

    def _python_parts(self) -> Iterable[Part]:
        changed: Any = replace(self, _python=True)
        parts: Iterable[Part] = changed._parts()
        return parts

    @property
    def _limit(self) -> Caution | None:
        """The limit, with the argument or option that removes it."""
        return self.limit.in_python if self.limit is not None and self._python else self.limit

    @property
    def _image(self) -> str:
        """Noun for an image."""
        return text.nouns(self._pixel_unit)[1]

    @property
    def _unit(self) -> str:
        """Noun for a unit."""
        return self._image if self.unit == "image" else self.unit

    @property
    def _kind(self) -> str:
        """The plural of the unit."""
        return plural_of(self.unit, self._image)

    def _several(self, number: int) -> str:
        """A number of units in words."""
        return text.plural(number, self._unit, self._kind)

    @property
    def units_text(self) -> str:
        """The units in words."""
        if self.unit == "batch":
            return text.plural(
                self.units,
                f"batch of neighbouring {self._image}s",
                f"batches of neighbouring {self._image}s",
            )
        single = 0 if self.dependence is None else self.dependence.single
        if self.unit != "sequence" or not single:
            return self._several(self.units)
        rest = text.plural(single, f"single {self._image}")
        return f"{text.plural(self.units - single, 'sequence')} and {rest}"

    def _shown(self, value: float) -> str:
        """A score in a sentence."""
        return numbers.shown(value, self.score_unit, "undefined")

    @property
    def too_few(self) -> bool:
        """Whether there are too few groups or sequences for an interval."""
        return are_too_few(self.unit, self.units)

    def method_text(self, kind: str = "intervals") -> str:
        """How the intervals were computed.

        Parameters
        ----------
        kind : str
            Kind of intervals.
        """
        drawn = ""
        if self.resamples is not None:
            drawn = f", {numbers.count(self.resamples)} resamples, seed {self.seed}"
            if self.overall_method != self.method:
                drawn = f"; of the mean of the medians: {METHOD_WORDS[self.overall_method]}{drawn}"
        level = numbers.short_percent(self.level)
        return f"{level} {METHOD_WORDS[self.method]} {kind} over {self.units_text}{drawn}"

    @property
    def overall_method(self) -> str:
        """Method of the interval of the score; a mean of several medians has a bootstrap."""
        is_mean = self.method == _MEDIANS and self.resamples is not None
        return "percentile" if is_mean else self.method

    def units_sentences(self) -> list[str]:
        """Reasons for the choice of units."""
        if self.dependence is not None:
            return self.dependence.sentences(self._image)
        said = [self.independence] if self.independence else []
        if self._related:
            option = ("--group-by ", "groups=")[self._python] + f"'{self._related}'"
            said.append(f"If {self._image}s with the same prefix are related, use {option}.")
        return said

    def _plain(self) -> dict[str, Any]:
        data: dict[str, Any] = text.plain(self)
        del data["limit"]
        return data | {"dependence": self.dependence and self.dependence.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Intervals(OverUnits, Finding):
    """Intervals of a score and of its classes.

    Attributes
    ----------
    metric, aggregate, protocol : str
        The score, how it was aggregated, and the protocol of its mean.
    level : float
    method : {"jackknife", "percentile", "bca", "order_statistics"}
        Medians of cases, such as those of distances, have order statistics; the
        mean of several medians, and medians over groups, a bootstrap.
    resamples, seed : int or None
        None if nothing was drawn.
    unit : {"image", "group", "sequence", "batch"}
        Unit that is omitted or resampled.
    units : int
        Number of units.
    overall : Interval
    classes : tuple of Interval
        Empty for a metric without per-class values.
    dependence : Dependence or None
        Correlation of neighbouring images; None if groups were passed, the
        images were declared independent, or their order is unknown.
    block_length : float or None
        Mean number of images per batch, if batches were asked for.
    score_unit : str
        Unit of the score, such as ``"mm"``; empty for a ratio.
    independence : str
        Why images are treated as independent, if they are.
    limit : Caution or None
        Why the interval of the score is unreliable, if it is.
    unseen_classes : tuple of str
        Classes of the mean that are predicted but occur in no truth mask.
    truth_mean : float
        The mean without them.
    """

    metric: str
    protocol: str
    overall: Interval
    classes: tuple[Interval, ...]
    unseen_classes: tuple[str, ...] = ()
    truth_mean: float = float("nan")
    _over: Units | None = field(default=None, repr=False, compare=False)

    _index = ("name",)

    def __iter__(self) -> Iterator[Interval]:
        yield self.overall
        yield from self.classes

    @property
    def unreliable_classes(self) -> tuple[str, ...]:
        """Classes that at least one but fewer than :data:`FEW_UNITS` units contain."""
        return tuple(c.name for c in self.classes if c.few and c.units)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        data = self._plain()
        data["unreliable_classes"] = list(self.unreliable_classes)
        return data | {"cautions": self.sentences()[1:]}

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def rows(self) -> Iterator[dict[str, Json]]:
        """The score, then its classes.

        Yields
        ------
        dict
            The values of a row by column.
        """
        names = ("name", "value", "low", "high", "standard_error", "units")
        for row in self:
            yield {name: getattr(row, name) for name in names}

    def _parts(self) -> Iterable[Part]:
        rows, unit = [*self], self.score_unit
        columns = (
            Column("name", [row.name for row in rows], 4, is_text=True),
            Column("score", [numbers.shown(row.value, unit) for row in rows], 3),
            Column(
                numbers.interval_name(self.level),
                [numbers.shown_range(row.low, row.high, unit) for row in rows],
                2,
            ),
            Column(self._kind, [str(row.units) for row in rows], 1),
        )
        return [*map(Line, self.sentences()), Table(columns, first=1)]

    def sentences(self) -> list[str]:
        """Return the score, its interval and its limits as sentences."""
        return [_overall_sentence(self), *self.cautions()]

    def caution(self) -> Caution | None:
        """Main limit of the interval of the score, if any."""
        if self._limit is not None:
            return self._limit
        if self.overall_method != self.method and self.units < _ENOUGH_FOR_MEDIANS:
            return Caution(
                "the interval of a mean of medians is probably too narrow with fewer than "
                f"{_ENOUGH_FOR_MEDIANS} {self._kind}"
            )
        if not self.unseen_classes:
            return None
        number = len(self.unseen_classes)
        are, occur, counts, them = (
            ("class is", "occurs", "counts", "it")
            if number == 1
            else ("classes are", "occur", "count", "them")
        )
        truth = numbers.shown(self.truth_mean, self.score_unit)
        return Caution(
            f"{number} {are} predicted but never {occur} in the truth and {counts} as 0; without "
            f"{them}, the mean is {truth}"
        )

    def cautions(self, *, options: bool = True) -> list[str]:
        """Limits of the intervals of the score and of the classes.

        Parameters
        ----------
        options : bool
            Whether to name the options that remove a limit.
        """
        first = self.caution()
        said = [] if first is None else [str(first) if options else f"{first.text}."]
        return [*map(text.capital, said), *self.class_cautions()]

    def class_cautions(self) -> list[str]:
        """Limits of bootstrap intervals of single classes."""
        if self.method not in ("percentile", "bca") or self.too_few:
            return []
        said: list[str] = []
        if self.unreliable_classes:
            few = f"fewer than {FEW_UNITS} {self._kind} contain the class"
            classes = text.classes(self.unreliable_classes)
            said.append(f"Unreliable intervals ({few}): {classes}.")
        undefined = [
            f"{text.called(c.name)} ({numbers.percent(c.undefined_share)})"
            for c in self.classes
            if 0 < c.undefined_share < 1
        ]
        if undefined:
            said.append(
                f"Undefined in some resamples (share in brackets): {text.listed(undefined)}."
            )
        return said

    def interval_method(self) -> list[str]:
        """How the intervals were computed, and why over these units."""
        method = f"No intervals over {self.units_text}" if self.too_few else self.method_text()
        return [f"{method}.", *self.units_sentences()]


@names_options
def confidence_intervals(
    counts: Counts | HasCounts,
    metric: Metric = "iou",
    *,
    ids: Sequence[str] | None = None,
    groups: Groups | None = None,
    blocks: BlockLength | None = None,
    level: float = 0.95,
    method: Method = "jackknife",
    resamples: int = 10_000,
    seed: int = 0,
    class_names: Sequence[str] | None = None,
    include: Any = None,
    protocol: Protocol | str | None = None,
    aggregate: Aggregate | None = None,
) -> Intervals:
    """Interval of a score and of each class.

    By default, a delete-one jackknife-t interval
    (:func:`segiou.inference.leave_one_out.jackknife`). It is deterministic; its measured
    coverage is 93 to 97 % with five or more independent images. It generalises to similar
    images scored with the same trained model, not to retraining or to other kinds of
    images.

    Parameters
    ----------
    counts : Run, Report or Counts of shape (N, C)
        Per-image counts, or an object that has them. A confusion matrix has
        none because it is their sum.
    metric : str or callable
        See :func:`segiou.inference.statistics.statistic`; for a run also any
        score of its measures, such as ``"boundary_iou"``. For a function of
        counts that is not smooth, such as a median, pass
        ``method="percentile"``.
    ids : sequence of str, length N, optional
        Names of the images, for bare counts; runs and reports have their own.
    groups : str, mapping, callable or sequence, optional
        Groups of dependent images (frames of one video, slices of one patient,
        tiles of one scene), which become the units; see
        :func:`segiou.inference.units.groups_of`. An interval needs at least three
        groups. ``"none"`` declares the images independent; ids are then
        ignored. By default, three or more sequences in the ids are the units,
        and one or two are divided into 4 to 20 batches of neighbouring images.
    blocks : "auto" or float, optional
        Divide each sequence into batches of this many neighbouring images. The
        sequences are the groups, or those that the numbers in the ids suggest,
        or all images in the given order. ``"auto"`` estimates the number of
        batches from the correlation of neighbouring scores. The interval then
        generalises to other parts of these sequences only.
    level : float
        Between 0 and 1.
    method : {"jackknife", "percentile", "bca"}
        Jackknife-t, or a bootstrap over the units: percentiles of the
        resamples, or corrected for bias and skew (BCa).
    resamples, seed : int
        Number of resamples and seed of the random numbers of a bootstrap.
    class_names, include, protocol, aggregate
        See :func:`segiou.inference.statistics.statistic`; by default those of
        the run or report.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or ``counts`` has no per-image counts.
    ValueError
        If a value is out of range or there are fewer than two units.

    References
    ----------
    Jackknife-t: see :func:`segiou.inference.leave_one_out.jackknife`. Bootstrap:
    B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993),
    chapters 13 and 14. Batches: R. Ibragimov and U. Müller, J. Bus. Econ.
    Statist. 28 (2010); their number from the block length of D. N. Politis and
    H. White, Econometric Reviews 23 (2004).

    Examples
    --------
    >>> import numpy as np
    >>> tp = np.array([[90, 8], [80, 9], [85, 2], [95, 1]])
    >>> miss = np.array([[1, 1], [9, 2], [9, 4], [2, 2]])
    >>> counts = Counts(tp, miss[:, ::-1], miss, tp[:, ::-1])
    >>> found = confidence_intervals(counts, class_names=["road", "pole"])
    >>> found.overall.name, round(found.overall.value, 4), found.unit, found.units
    ('mean IoU', 0.6605, 'image', 4)
    >>> round(found.overall.low, 3), round(found.overall.high, 3)
    (0.461, 0.869)
    """
    how = Resampling.of(locals())
    scored = scored_images(counts, metric, protocol, ids, class_names, include)
    number = scored.images.number
    design = how.design(scored.ids, number, lambda: [scored.of_images(finite=True)])
    prepared = scored.over(design.units, aggregate)
    method = _applicable(method, prepared)
    drawn = method in ("percentile", "bca") or (method == _MEDIANS and len(prepared.names) > 2)
    values = how.drawn([prepared])[0] if drawn else None
    limits = limits_by(method, prepared, values, level=level)
    rows = rows_of_limits(limits, name=prepared.names, value=limits.values, units=prepared.seen)
    overall, *classes = (Interval(**row) for row in rows)
    return Intervals(
        metric=prepared.score.name,
        aggregate=prepared.aggregate,
        protocol=prepared.score.rule,
        level=level,
        method=method,
        resamples=resamples if drawn else None,
        seed=seed if drawn else None,
        overall=overall,
        classes=tuple(classes),
        score_unit=prepared.score.unit,
        _over=design.units,
        **unit_attributes(design, blocks, counts),
        **_unseen(scored, prepared, aggregate),
    )


def _applicable(method: Method, prepared: Statistic) -> Method:
    """The method, or that of scores to which the jackknife does not apply."""
    if prepared.is_smooth or method != "jackknife":
        return method
    is_ordered = prepared.median_of is not None and prepared.units.kind == "image"
    return _MEDIANS if is_ordered else "percentile"


def bootstrap(
    counts: Counts | HasCounts,
    metric: Metric = "iou",
    *,
    method: Method = "percentile",
    **options: Any,
) -> Intervals:
    """Bootstrap interval of a score and of each class.

    Parameters
    ----------
    counts : Run, Report or Counts of shape (N, C)
        Per-image counts, or an object that has them.
    metric : str or callable
        As for :func:`confidence_intervals`.
    method : {"percentile", "bca"}
        Percentiles of the resamples, or corrected for bias and skew (BCa).
    **options
        Other options of :func:`confidence_intervals`, whose jackknife is more
        accurate on few images and faster.

    Examples
    --------
    >>> counts = Counts([[9], [6], [7]], [[0], [1], [1]], [[1], [4], [3]], [[0], [0], [0]])
    >>> found = bootstrap(counts, resamples=1000)
    >>> found.method, found.resamples, found.seed
    ('percentile', 1000, 0)
    """
    return confidence_intervals(counts, metric, method=method, **options)


def unit_attributes(design: Design, blocks: BlockLength | None, source: Any) -> dict[str, Any]:
    """Attributes of :class:`OverUnits` that follow from the units and their source, as a run."""
    pixel_unit = unit_of_pixels(source)
    _, image = text.nouns(pixel_unit)
    length = None if blocks is None else len(design.images) / len(design.units)
    return {
        "unit": design.units.kind,
        "units": len(design.units),
        "dependence": design.dependence,
        "block_length": length,
        "independence": design.independence.format(images=f"{image}s"),
        "limit": design.caution(image),
        "_related": design.related,
        "_pixel_unit": pixel_unit,
    }


def limits_by(method: str, score: Statistic, drawn: Floats | None, *, level: float) -> Limits:
    """Limits of a score, from ``drawn`` values of resamples, if any; none over too few groups."""
    if method == _MEDIANS:
        limits = _limits_of_medians(score, level, drawn)
    elif method in ("percentile", "bca") and drawn is not None:
        limits = bootstrap_limits(drawn, score, level=level, method=method)
    else:
        limits = jackknife(score, level=level)
    return limits.undefined_limits() if score.units.too_few else limits


def _limits_of_medians(score: Statistic, level: float, drawn: Floats | None) -> Limits:
    """Order statistics of each structure; a bootstrap of their mean if there are several."""
    assert score.median_of is not None
    ends = [median_limits(column, level=level) for column in score.median_of.T]
    if score.names[1:]:
        ends.insert(0, ends[0] if drawn is None else limits_of(drawn[:, 0], level))
    ends = ends or [(np.nan, np.nan)]  # no structure is left
    unknown = np.full(len(ends), np.nan)
    return Limits(score.values, *wide_limits(*np.array(ends).T), unknown, unknown, unknown)


def _unseen(
    scored: ScoredImages, prepared: Statistic, aggregate: Aggregate | None
) -> dict[str, Any]:
    """Classes of the mean that occur in no truth, and the mean without them; on few images."""
    if scored.images.number >= _BIASED_BELOW or (weights := prepared.weights) is None:
        return {}
    unseen = (weights > 0) & (prepared.seen[1:] == 0)
    if not unseen.any() or unseen.all():
        return {}
    names = tuple(compress(prepared.names[1:], unseen))
    rest = scored.over_classes(~unseen).over(prepared.units, aggregate)
    return {"unseen_classes": names, "truth_mean": float(rest.values[0])}


def _overall_sentence(intervals: Intervals) -> str:
    score = intervals.overall
    value = f"{text.capital(score.name)} is {intervals._shown(score.value)}"
    start = f"{value} on {intervals.units_text}"
    if np.isnan(score.low):
        return f"{start} (no interval)."
    level, method = numbers.short_percent(intervals.level), METHOD_WORDS[intervals.overall_method]
    kind = f"{level} {method} interval"
    return f"{start} ({kind} {numbers.shown_range(score.low, score.high, intervals.score_unit)})."
