"""Scores of slices of a data set, by metadata of its images, against the rest of the data set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support import numbers, text
from segiou._support.arguments import (
    check_flag,
    check_kind,
    check_level,
    check_number,
    names_options,
)
from segiou._support.table_files import check_columns
from segiou.analysis.slices.result import (
    FEWEST,
    FEWEST_OF_PAIRS,
    FEWEST_TESTED,
    TIMES,
    Gap,
    Mix,
    Slice,
    Slices,
    Trend,
)
from segiou.analysis.slices.sums import SliceSums
from segiou.inference.dependence import design_of
from segiou.inference.leave_one_out import Jackknife, Side, correlation
from segiou.inference.limits import tail_of, with_width
from segiou.inference.metadata import Metadata, MetadataColumn, metadata_of, told_apart
from segiou.inference.order_statistics import median_limits
from segiou.inference.paired import Change, Paired
from segiou.inference.paired_runs import Common, check_runs, names_of, same_images
from segiou.inference.scored_runs import unit_of_pixels
from segiou.inference.significance import holm_adjust
from segiou.inference.statistics import Statistic
from segiou.inference.student import student, student_below
from segiou.inference.units import (
    MOST_RESAMPLED,
    ROUNDING,
    Groups,
    HasRunCounts,
    Metric,
    Units,
)
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats

#: Batches that a slice of one or two sequences is divided into, at least.
_BATCHES = 5
#: Slices that share this part of their images are the same for a test.
_ALIKE = 0.8


@names_options
def slices(
    *runs: HasRunCounts,
    by: Any,
    columns: Sequence[str] | None = None,
    metric: Metric = "iou",
    key: str | None = None,
    bins: Mapping[str, Any] | None = None,
    against: str | None = None,
    search: bool = False,
    by_class: bool = False,
    mix: Mapping[str, Mapping[str, float]] | None = None,
    groups: Groups | None = None,
    protocol: Protocol | str | None = None,
    level: float = 0.95,
) -> Slices:
    """Compare each slice of one run, or of the difference of two, with the rest of the images.

    The rest are the images with another value of the column. The difference is over the classes
    that at least two units of both contain. Its limits combine the distances of the limits of
    both sides from their values (MOVER):

        low = s − r − √((s − l_s)² + (u_r − r)² − 2ρ (s − l_s)(u_r − r)), and high likewise,

    for slice s in (l_s, u_s) and rest r in (l_r, u_r), each with its own degrees of freedom, and
    with the jackknife correlation ρ of units that lie in both. p is the level at which the
    interval ends at 0. Slices with at least five units on both sides are tested. More than 20 000
    single images are summed over 20 000 random groups of them, which changes limits by about 1 %.

    Parameters
    ----------
    *runs : Run
        One run, or two on the same images.
    by : str, Path, mapping, sequence of mappings or DataFrame
        See :func:`segiou.inference.metadata.metadata_of`.
    columns : sequence of str, optional
        By default, all columns with 2 to 50 values.
    metric : str or callable
        See :func:`segiou.confidence_intervals`.
    key : str, optional
        Regular expression whose match in an id is the key of its row, such as the patient.
    bins : mapping of str to int or sequence of float, optional
        Number of quantiles, or edges, of numeric columns. Quantiles (4 by default) are shown,
        and a trend is tested; between edges are slices like others.
    against : str, optional
        A value, such as ``"day"``: slices are compared with its images instead of the rest.
    search : bool
        Also compare combinations of values of two columns, of at least 20 units.
    by_class : bool
        Also compare each class on each slice.
    mix : mapping of str to mapping of str to float, optional
        Shares of the values of columns, which sum to 1, such as those of a deployment:
        ``{"time": {"day": 0.7, "night": 0.3}}``. The score in this mix is the weighted mean of
        the scores of the slices, each over its own classes (post-stratification).
    groups, protocol
        See :func:`segiou.confidence_intervals`.
    level : float
        Between 0 and 1.

    Returns
    -------
    Slices

    References
    ----------
    G. Y. Zou, Psychological Methods 12 (2007), 399-413; G. Y. Zou and A. Donner, Statist. Med. 27
    (2008), 1693-1702 (MOVER); S. Holm, Scand. J. Statist. 6 (1979), 65-70; J. G. MacKinnon and
    H. White, J. Econometrics 29 (1985), 305-325 (errors of the trend).

    Examples
    --------
    >>> from segiou import score
    >>> truth = {f"{time}_{i}": [[0, 0, 1, 1]] for time in ("day", "night") for i in range(6)}
    >>> pred = {id: [[0, 0, 1, int("day" in id)]] for id in truth}
    >>> run = score(truth, pred, labels=2)
    >>> found = slices(run, by="(?P<time>[a-z]+)_")
    >>> [(one.name, round(one.score, 3)) for one in found]
    [('time=day', 1.0), ('time=night', 0.583)]
    """
    level = check_level("level", level)
    check_flag("search", search)
    check_flag("by_class", by_class)
    check_kind("mix", mix, (Mapping, type(None)), "a mapping from columns to shares of values")
    check_kind("against", against, (str, type(None)), "a value of a column")
    if not 1 <= len(check_runs("slices", runs)) <= 2:
        msg = f"slices expects one run, or two on the same images, got {len(runs)}"
        raise TypeError(msg)
    names = names_of(runs, None)
    images = same_images(runs, names, protocol).scored(metric)
    cases = [model.of_images(finite=True) for model in images]
    design = design_of(images[0].ids, len(cases[0]), lambda: cases, groups)
    table = metadata_of(by, images[0].ids or (), columns, key=key, bins=bins)
    alone = Common.of(images, design.images, None).scores
    scored = _Scored(alone, images[0].present(), design.units, level, against, by_class)
    first = alone[0]
    _check_against(against, table)
    mix = check_mix(mix or {}, table)
    pairs = _pairs(table.columns) if search else ()
    tested_slices, trends, tests = _tested(scored, [*table.columns, *pairs])
    return Slices(
        metric=first.score.name,
        title=first.names[0],
        names=names,
        score=scored.whole,
        images=len(cases[0]),
        unit=design.units.kind,
        units=len(design.units),
        level=level,
        better=first.score.better,
        score_unit=first.score.unit,
        tests=tests,
        slices=tested_slices,
        trends=trends,
        mixes=tuple(scored.mix(c, mix[c.name]) for c in table.columns if c.name in mix),
        missing=table.missing,
        skipped=table.skipped,
        alike=_alike(table),
        key=table.key,
        against=against or "",
        _table=table,
        _is_median=first.median_of is not None,
        _pixel_unit=unit_of_pixels(runs[0]),
    )


def _check_against(against: str | None, table: Metadata) -> None:
    known = [value for column in table.columns for value in column.values]
    if against is not None and against not in known:
        msg = f"no column has the value {against!r}; values: {text.listed(known)}"
        raise ValueError(msg + text.did_you_mean(against, known))


def check_mix(
    mix: Mapping[str, Mapping[str, float]], table: Metadata
) -> dict[str, dict[str, float]]:
    """The shares, with a sum of 1; ValueError if this is not due to rounding to per cent.

    ValueError also for unknown columns and values.
    """
    known = {column.name: column for column in table.columns}
    check_columns("the metadata", mix, [*known])
    for name, shares in mix.items():
        check_kind(f"mix[{name!r}]", shares, Mapping, "a mapping from values to shares")
        column = known[name]
        for value, share in shares.items():
            check_number(f"mix[{name!r}][{value!r}]", share)
        for value in shares:
            if value not in column.values or not column.inside(column.values.index(value)).any():
                hint = text.did_you_mean(value, column.values)
                msg = f"{name}={value} does not occur; values: {text.listed(column.values)}{hint}"
                raise ValueError(msg)
        total, rounding = sum(shares.values()), 0.005 * len(shares) + 1e-9
        if min(shares.values(), default=-1) < 0 or not abs(total - 1) <= rounding:
            msg = f"shares of {name} must be at least 0 and sum to 1, got {dict(shares)}"
            raise ValueError(msg)
    return {
        name: {value: share / sum(shares.values()) for value, share in shares.items()}
        for name, shares in mix.items()
    }


def _pairs(columns: Sequence[MetadataColumn]) -> Iterator[MetadataColumn]:
    """Combinations of the values of two columns; those of columns with lists are not defined."""
    for a, b in combinations([column for column in columns if not column.more], 2):
        values = tuple(f"{x}{TIMES}{y}" for x in a.values for y in b.values)
        codes = np.where((a.codes < 0) | (b.codes < 0), -1, a.codes * len(b.values) + b.codes)
        yield MetadataColumn(f"{a.name}{TIMES}{b.name}", values, codes)


def _tested(
    scored: _Scored, columns: Sequence[MetadataColumn]
) -> tuple[tuple[Slice, ...], tuple[Trend, ...], int]:
    """Slices and trends, p adjusted for all tests; two complements are one test."""
    every: list[tuple[tuple[Any, ...], Slice]] = []
    trends: list[tuple[tuple[Any, ...], Trend]] = []
    for at, column in enumerate(columns):
        is_halved = len(column.values) == 2 and not column.more
        for place, one in enumerate(scored.column(column)):
            every.append(((at, one.row if is_halved else place), one))
        trends += [((at,), trend) for trend in scored.trend(column)]
    p = {test: one.gap.p for test, one in every if not math.isnan(one.gap.p)}
    p |= {test: trend.p for test, trend in trends if not math.isnan(trend.p)}
    adjusted = dict(zip(p, holm_adjust(np.array([*p.values()])).tolist(), strict=True))
    return (
        tuple(
            replace(one, gap=replace(one.gap, p_holm=adjusted.get(test, math.nan)))
            for test, one in every
        ),
        tuple(replace(trend, p_holm=adjusted.get(test, math.nan)) for test, trend in trends),
        len(p),
    )


class _Median:
    """The median of cases, with limits by order statistics, as a side of a difference."""

    bounds = -math.inf, math.inf
    freedom = math.nan
    moves = np.zeros(0)  # units in both sides cause no correlation that is known

    def __init__(self, score: Statistic) -> None:
        assert score.median_of is not None
        self.cases = score.median_of[:, 0]
        self.value = float(score.values[0])
        # Over groups, and of several structures, limits would need a bootstrap.
        self.is_plain = score.median_of.shape[1] == 1 and score.units.kind == "image"

    def reach(self, level: float) -> tuple[float, float]:
        """Distances of the limits from the value."""
        if not self.is_plain:
            return math.nan, math.nan
        low, high = median_limits(self.cases, level=level)
        return self.value - low, high - self.value


#: A score on some images, or its difference between two models.
_Side = Side | Change | _Median


@dataclass(frozen=True, eq=False)
class _Images:
    """Scores on some images, over their units."""

    number: int
    num_units: int
    units: NDArray[np.intp]
    """The units, in order; none if images are summed over random groups."""
    values: list[Floats]
    """Values of each model: the score, then the classes."""
    models: list[Statistic]
    """Empty for fewer than two units."""
    left_out: Jackknife | Paired | None

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Classes with a value of every model."""
        return np.asarray(np.isfinite([values[1:] for values in self.values]).all(0))

    def side(self, classes: NDArray[np.bool_] | None) -> _Side:
        """The score, or its mean over some classes."""
        if self.left_out is None:
            return _Median(self.models[0])
        return self.left_out.score if classes is None else self.left_out.mean_of(classes)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores over single images, to be summed over the units of slices."""

    models: list[Statistic]
    present: NDArray[np.bool_]
    units: Units
    level: float
    against: str | None = None
    by_class: bool = False

    def __post_init__(self) -> None:
        if len(self.models) > 1 and self.models[0].median_of is not None:
            msg = (
                f"{self.models[0].score.name} is a median, and differences of medians have no "
                "slices; pass one run at a time"
            )
            raise ValueError(msg)

    @property
    def whole(self) -> float:
        """The score, or the difference, on all images."""
        values = [numbers.number_of(model.values[0]) for model in self.models]
        return values[-1] - values[0] if len(values) > 1 else values[0]

    @property
    def taken(self) -> NDArray[np.bool_] | None:
        """Classes of the mean; None if the score is not a mean of classes."""
        score = self.models[0].score
        if self.models[0].median_of is not None or self.models[0].weights is None:
            return None
        return np.ones(len(score.names), bool) if score.include is None else score.include

    def column(self, column: MetadataColumn) -> Iterator[Slice]:
        """The slices of a column, and the classes on them."""
        others = column.codes >= 0
        if self.against in column.values:
            others = column.inside(column.values.index(self.against))
        whole = self._sums(others)
        for code, value in enumerate(column.values):
            inside = column.inside(code)
            mine = self._sums(inside)
            part = self.images(inside, mine)
            if not part.number or (TIMES in column.name and part.num_units < FEWEST_OF_PAIRS):
                continue
            rest = None
            if part.num_units >= FEWEST:
                if whole is not None and not others[inside].all():
                    mine = self._sums(others & inside)
                less = None if whole is None or mine is None else whole - mine
                rest = self.images(others & ~inside, less)
            yield self._slice(column, value, part, rest)
            if self.by_class and self.taken is not None and rest is not None:
                for place in np.flatnonzero(part.defined & self.taken).tolist():
                    yield self._slice(column, value, part, rest, place)

    def _units_in(self, inside: NDArray[np.bool_]) -> NDArray[np.intp]:
        """The unit of each image; batches of neighbours are made within the slice."""
        if self.units.kind != "batch":
            return np.asarray(self.units.index[inside])
        number = int(inside.sum())
        share = round(number * len(self.units) / len(inside))
        batches = min(max(share, _BATCHES), number)
        return np.arange(number) * batches // max(number, 1)

    def _sums(self, inside: NDArray[np.bool_]) -> SliceSums | None:
        """Sums over units, of which those of all images are kept."""
        return self._of_all if inside.all() else self._sums_of(inside)

    @cached_property
    def _of_all(self) -> SliceSums | None:
        return self._sums_of(np.ones(len(self.units.index), bool))

    def _sums_of(self, inside: NDArray[np.bool_]) -> SliceSums | None:
        return SliceSums.of(self.models, self.present, self.units, inside)

    def images(self, inside: NDArray[np.bool_], sums: SliceSums | None = None) -> _Images:
        """Some images with their scores, from sums over their units if these are known."""
        number = int(inside.sum())
        if sums is None or (sums.is_grouped and number <= MOST_RESAMPLED):
            names, models = self._parts(inside, number)
        else:
            names = sums.units
            several = self.models if len(names) > 1 else ()
            models = [sums.part(i, model, inside) for i, model in enumerate(several)]
        if len(names) < 2:
            values = [model.of_unit(inside) for model in self.models]
            return _Images(number, len(names), names, values, [], None)
        left_out: Jackknife | Paired | None = None
        if models[0].median_of is None:
            left_out = (
                Paired.of(models[0], models[1]) if len(models) > 1 else Jackknife.of(models[0])
            )
        values, units = [model.values for model in models], len(names)
        if sums is not None and sums.is_grouped and number > MOST_RESAMPLED:
            names, units = names[:0], number
        return _Images(number, units, names, values, models, left_out)

    def _parts(
        self, inside: NDArray[np.bool_], number: int
    ) -> tuple[NDArray[np.intp], list[Statistic]]:
        """The units of some images, and the scores over them if there are several."""
        names, index = self._units_in(inside), np.arange(number)
        if self.units.kind != "image":
            names, index = np.unique(names, return_inverse=True)
        if len(names) < 2:
            return names, []
        kind = "image" if self.units.kind == "image" else "group"
        units = Units(kind, ("",) * len(names), index)
        return names, [model.part(inside, units, self.present) for model in self.models]

    def _slice(
        self,
        column: MetadataColumn,
        value: str,
        part: _Images,
        rest: _Images | None,
        place: int | None = None,
    ) -> Slice:
        """A slice, or one class on it."""
        taken, row, at = self.taken, "", 0
        if place is not None:
            taken = np.arange(len(part.defined)) == place
            row, at = self.models[0].score.names[place], 1 + place
        gap = Gap()
        if rest is not None:
            gap = self._gap(part, rest, taken, is_tested=column.numbers is None)
        score, side = self._score(part, place)
        low, high = _ends(score, side, self.level)
        scores = tuple(numbers.number_of(values[at]) for values in part.values)
        classes = int((part.defined if taken is None else part.defined & taken).sum())
        return Slice(
            column=column.name,
            value=value,
            images=part.number,
            units=part.num_units,
            score=score,
            low=low,
            high=high,
            scores=scores,
            classes=classes,
            gap=gap,
            row=row,
            p=side.p if isinstance(side, Change) else math.nan,
        )

    def _score(self, part: _Images, place: int | None = None) -> tuple[float, _Side | None]:
        """The score of some images, or of a class, and its side unless units are too few."""
        first, last = part.values[0], part.values[-1]
        change = last - first if len(self.models) > 1 else last
        score = numbers.number_of(change[0 if place is None else 1 + place])
        there = None
        if len(self.models) > 1 and place is None and self.taken is not None:
            there = part.defined & self.taken
            score = float(change[1:][there].mean()) if there.any() else math.nan
        if part.num_units < FEWEST or math.isnan(score):
            return score, None
        if place is None or part.left_out is None:
            return score, part.side(there)
        return score, part.left_out.of_class(place)

    def mix(self, column: MetadataColumn, shares: Mapping[str, float]) -> Mix:
        """The score in another mix of the slices of a column."""
        images = [self.images(column.inside(column.values.index(value))) for value in shares]
        scores, sides = zip(*map(self._score, images), strict=True)
        weights = np.array([*shares.values()])
        rho = np.eye(len(weights))
        for i, j in combinations(range(len(weights)), 2):
            rho[i, j] = rho[j, i] = self._shared(images[i], images[j], sides[i], sides[j])[1]
        none = (math.nan, math.nan)
        reach = np.array([none if side is None else side.reach(self.level) for side in sides])
        arms = weights[:, None] * reach
        down, up = np.sqrt(np.maximum(np.einsum("ik,ij,jk->k", arms, rho, arms), 0)).tolist()
        score = float(weights @ scores)
        low, high, value = map(numbers.number_of, (score - down, score + up, score))
        return Mix(column.name, dict(shares), value, low, high)

    def _gap(
        self, part: _Images, rest: _Images, common: NDArray[np.bool_] | None, *, is_tested: bool
    ) -> Gap:
        """A slice minus the rest, over some classes that both have."""
        fewer = min(part.num_units, rest.num_units)
        if fewer < FEWEST:
            return Gap()
        if common is not None:
            every = [*part.models, *rest.models]
            common = common & (np.minimum.reduce([side.seen[1:] for side in every]) >= 2)
            common = common & part.defined & rest.defined
            if not common.any():
                return Gap()
        a, b = part.side(common), rest.side(common)
        shared, rho = self._shared(part, rest, a, b)
        delta = a.value - b.value

        def reach(level: float) -> tuple[float, float]:
            (down_a, up_a), (down_b, up_b) = a.reach(level), b.reach(level)
            return _mover(down_a, up_b, rho), _mover(up_a, down_b, rho)

        down, up = reach(self.level)
        p = math.nan
        if is_tested and fewer >= FEWEST_TESTED:
            p = 2 * tail_of(reach, delta)
        classes = 0 if common is None else int(common.sum())
        low, high, value = map(numbers.number_of, (delta - down, delta + up, delta))
        return Gap(
            value=value,
            low=low,
            high=high,
            p=numbers.number_of(p),
            p_holm=math.nan,
            classes=classes,
            shared=shared,
        )

    def _shared(
        self, part: _Images, rest: _Images, a: _Side | None, b: _Side | None
    ) -> tuple[int, float]:
        """Number of units in both, and the correlation that they cause."""
        if self.units.kind == "batch":  # of the slice, and of the rest
            return 0, 0.0
        shared, mine, theirs = np.intersect1d(part.units, rest.units, return_indices=True)
        if not len(shared) or a is None or b is None:
            return len(shared), 0.0
        return len(shared), correlation(a.moves, b.moves, mine, theirs)

    def trend(self, column: MetadataColumn) -> Iterator[Trend]:
        """Slope of the units' influence on the score, with errors for unequal variances (HC3)."""
        if column.numbers is None:
            return
        known = ~np.isnan(column.numbers)
        images = self.images(known)
        if images.num_units < FEWEST_TESTED or images.left_out is None:
            return
        classes = self.taken
        if classes is not None:
            classes = classes & images.defined & (images.left_out.seen[1:] >= 2)
            if not classes.any():
                return
        side = images.side(classes)
        index = images.models[0].units.index
        x = np.bincount(index, column.numbers[known]) / np.bincount(index)
        if np.ptp(x) == 0:
            return
        slope, error = _slope(x, side.moves * len(x))
        if error < ROUNDING:  # all units agree
            return
        freedom = min(len(x) - 2.0, side.freedom)
        reach = float(student(freedom, (1 - self.level) / 2)) * error
        p = 2 * float(student_below(-abs(slope) / error, freedom))
        start, end = np.quantile(x, [0.1, 0.9]).tolist()
        change, low, high = ((end - start) * (slope + side * reach) for side in (0, -1, 1))
        first, last = told_apart([start, end], are_dates=True) if column.is_date else (start, end)
        yield Trend(
            column=column.name, start=first, end=last, change=change, low=low, high=high, p=p
        )


def _ends(value: float, side: _Side | None, level: float) -> tuple[float, float]:
    """The interval of a value; none if all units agree away from a bound."""
    if side is None:
        return math.nan, math.nan
    down, up = side.reach(level)
    low, high = with_width(value - down, value + up, side.bounds)
    return numbers.number_of(low), numbers.number_of(high)


def _slope(x: Floats, y: Floats) -> tuple[float, float]:
    """The slope of y on x, and its HC3 error."""
    centred = x - x.mean()
    square = float(centred @ centred)
    slope = float(centred @ y) / square
    leverage = 1 / len(x) + centred**2 / square
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = (y - y.mean() - slope * centred) / (1 - leverage)
    return slope, math.sqrt(float(centred**2 @ errors**2)) / square


def _mover(a: float, b: float, rho: float) -> float:
    return math.sqrt(max(a * a + b * b - 2 * rho * a * b, 0.0)) if a == a and b == b else math.nan


def _alike(table: Metadata) -> tuple[tuple[str, str], ...]:
    """Slices of different columns that share at least 80 % of their images."""
    every = [
        (column.name, f"{column.name}={value}", column.inside(code))
        for column in table.columns
        for code, value in enumerate(column.values)
    ]
    return tuple(
        (name, other)
        for (first, name, a), (second, other, b) in combinations(every, 2)
        if first != second and (a & b).sum() >= _ALIKE * max(int((a | b).sum()), 1)
    )
