"""Thresholds: parsing, validation and evaluation of ``--fail-under`` and ``--fail-if-worse``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from segiou._support.numbers import (
    COEFFICIENT,
    InPercent,
    fraction_in,
    p_equals,
    signed_points,
    unit_text,
)
from segiou._support.text import did_you_mean, plain
from segiou.measures.registry import better_of, flag_of, measure_of, measure_of_score
from segiou.measures.score_names import ScoreName, read_name, rows_of_score
from segiou.metrics.pixel_scores import scale_of, unit_of

if TYPE_CHECKING:
    from segiou.analysis.comparison.result import Comparison
    from segiou.labels.class_options import ClassOptions
    from segiou.measures.plan import Plan
    from segiou.measures.score import Better, Score
    from segiou.report.report import Report
    from segiou.runs.run import Run


class Threshold(NamedTuple):
    """The worst value of a score that passes: its minimum, or maximum if lower is better."""

    name: str
    score: ScoreName
    limit: float
    better: Better = "higher"
    unit: str = ""
    where: str = ""
    """The column of slices, or one slice: COLUMN=VALUE."""
    option: str = "--fail-under"

    def result(
        self, value: float, bounds: tuple[float, float], *, confident: bool, more: str = ""
    ) -> ThresholdResult:
        """The result for a value with these bounds; ``more`` ends its text."""
        text = compared(self, value) + more
        return ThresholdResult(self.name, value, self.limit, text, self.better, bounds, confident)


#: The option of a threshold, by which values of the score are better.
_OPTIONS: dict[Better, str] = {"higher": "--fail-under", "lower": "--fail-over"}
#: The option for both.
REQUIRE = "--require"


def read_threshold(
    text: str, plans: Sequence[Plan], option: str = "--fail-under", *, sliced: bool = False
) -> Threshold:
    """Parse ``NAME=VALUE``; ValueError for unknown names and impossible values."""
    name, where, value = _split_threshold(text, sliced=sliced)
    if not name:
        msg = f"{option} {text!r}: expected NAME=VALUE"
        raise ValueError(msg)
    try:
        score = read_name(name.strip(), [n for plan in plans for n in plan.scores])
    except ValueError as error:
        needs = "; slices (SCORE@COLUMN=VALUE) need --slices" if "@" in name else ""
        msg = f"{option} {text!r}: {error}{needs}"
        raise ValueError(msg) from None
    definition = _definition(score, plans)
    key = measure_of_score(score.score, plans)
    unit = unit_of(score.score) if definition is None else definition.unit
    better: Better = "higher" if definition is None else definition.better
    if definition is None and key is not None:
        better = better_of(key, score.score)
    if option not in (_OPTIONS[better], REQUIRE):
        msg = f"{option} {text!r}: {better} values of {score.score} are better; use "
        raise ValueError(msg + f"{_OPTIONS[better]} or {REQUIRE}")
    is_free = definition is None is not key
    ends = (-math.inf, math.inf) if is_free else _range_of(score.score, definition)
    limit = _limit(option, text, value, *ends)
    check_percent(f"{option} {text!r}", limit, score.score, unit)
    return Threshold(
        name=score.column,
        score=score,
        limit=limit,
        better=better,
        unit=unit,
        where=where,
        option=option,
    )


def _definition(score: ScoreName, plans: Sequence[Plan]) -> Score | None:
    """The score in the plans of measures; None if it is a score of pixels, or not measured."""
    return next((p.scores[score.score] for p in plans if score.score in p.scores), None)


def _split_threshold(text: str, *, sliced: bool = True) -> tuple[str, str, str]:
    """The score, the slice or column after its last "@", and the limit of a threshold."""
    name, _, limit = text.rpartition("=")
    name, _, where = name.rpartition("@") if sliced and "@" in name else (name, "", "")
    return name, where.strip(), limit


def check_where(option: str, text: str, known: Mapping[str, Sequence[str]]) -> None:
    """ValueError if a threshold is of a slice or a column that the metadata lack."""
    where = _split_threshold(text)[1]
    column, _, value = where.partition("=")
    if where and column not in known:
        msg = f"{option} {text}: no slices by {column!r}; columns: {', '.join(known)}"
        raise ValueError(msg + did_you_mean(column, known))
    if value and value not in known[column]:
        msg = f"{option} {text}: {where} does not occur; values: {', '.join(known[column])}"
        raise ValueError(msg + did_you_mean(value, known[column]))


def _range_of(name: str, score: Score | None) -> tuple[float, float]:
    """The range of a score of pixels, or of a measure: that of the scale of its intervals."""
    from segiou.inference.limits import SCALES

    known = scale_of(name) if score is None else score.scale
    if score is not None and not known:
        known = "logit" if not score.unit else "log" if score.better == "lower" else "identity"
    return SCALES[known].least, SCALES[known].most


def _limit(option: str, text: str, value: str, least: float, most: float) -> float:
    try:
        limit = fraction_in(value)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        msg = f"{option} {text!r}: {value!r} is not a finite number"
        raise ValueError(msg)
    if not least <= limit <= most:
        is_percent = most == 1 and 1 < limit <= 100 and not isinstance(limit, InPercent)
        hint = f"; for {limit:g} %, use {limit / 100:g}" if is_percent else ""
        span = f"from {least:g} to {most:g}" if most < math.inf else f"at least {least:g}"
        msg = f"{option} {text!r}: threshold must be {span}, the range of the score{hint}"
        raise ValueError(msg)
    return limit or type(limit)(0)  # -0 is 0


def check_percent(where: str, number: float | None, score: str, unit: str) -> None:
    """ValueError for a number in per cent of a score that is neither ratio nor coefficient."""
    if isinstance(number, InPercent) and unit not in ("", COEFFICIENT):
        unit = f" in {unit_text(unit)}" if unit_text(unit) else ""
        msg = f"{where}: {score} is not a ratio; pass a number{unit} without %"
        raise ValueError(msg)


def check_thresholds(
    thresholds: Sequence[Threshold], classes: ClassOptions, plans: Sequence[Plan]
) -> None:
    """ValueError for thresholds of scores or classes that a report lacks."""
    for threshold in thresholds:
        start = f"{threshold.option} {threshold.name}"
        key = measure_of_score(threshold.score.score, plans)
        if key is not None and _definition(threshold.score, plans) is None:
            noun = measure_of(key).noun
            flag = flag_of(key, threshold.score.score)
            msg = f"{start}: {noun} are not measured; score with {flag}"
            raise ValueError(msg)
        names = rows_of_score(threshold.score.score, classes, plans)
        name = threshold.score.row
        if name and name not in names:
            hint = did_you_mean(name, names)
            msg = f"{start}: unknown class; classes: {', '.join(names)}{hint}"
            raise ValueError(msg)


class ThresholdResult(NamedTuple):
    """The result of a threshold; an undefined value fails."""

    name: str
    value: float
    limit: float
    text: str
    better: Better = "higher"
    bounds: tuple[float, float] = (math.nan, math.nan)
    """One-sided 95 % bounds of the value; NaN if there is no interval."""
    confident: bool = False
    """Whether the bounds decide."""
    tolerant: bool = False
    """Whether without ``confident`` only a state of failed fails."""

    @property
    def state(self) -> Literal["passed", "failed", "undecided"]:
        """Whether other images would give the same result; without bounds, that of the value."""
        sign = -1 if self.better == "lower" else 1
        low, high = sorted(sign * (self.value if x != x else x) for x in self.bounds)
        limit = sign * self.limit
        return "passed" if low >= limit else "failed" if not high >= limit else "undecided"

    @property
    def passed(self) -> bool:
        """Whether the value satisfies the threshold, or with ``confident`` its bound."""
        if self.confident:
            return self.state == "passed"
        if self.tolerant:
            return self.state != "failed"
        return self.value <= self.limit if self.better == "lower" else self.value >= self.limit

    @property
    def words(self) -> str:
        """The text, and whether the result is within noise."""
        return f"{self.text}, within noise" if self.state == "undecided" else self.text

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data; None for undefined values."""
        value, low, high = plain([self.value, *self.bounds])
        limit = "at_most" if self.better == "lower" else "at_least"
        return {
            "name": self.name,
            "value": value,
            limit: self.limit,
            "passed": self.passed,
            "state": self.state,
            "low": low,
            "high": high,
        }


def threshold_results(
    run: Run, report: Report, thresholds: Sequence[Threshold], *, confident: bool, groups: Any
) -> list[ThresholdResult]:
    """Compare the scores of a report with thresholds."""
    return [
        threshold.result(
            report.score(str(threshold.score)),
            _bounds(run, report, threshold, groups),
            confident=confident,
        )
        for threshold in thresholds
        if not threshold.where
    ]


def _bounds(run: Run, report: Report, threshold: Threshold, groups: Any) -> tuple[float, float]:
    """One-sided 95 % bounds of a score; NaN over too few images."""
    try:
        options: Any = {"groups": groups, "level": 0.9, "protocol": report.protocol}
        interval = run.intervals(str(threshold.score), **options).overall
    except ValueError:
        return math.nan, math.nan
    return interval.low, interval.high


def compared(threshold: Threshold, value: float) -> str:
    """Describe a score and its limit, with enough digits to show the difference."""
    name, limit, is_lower = threshold.name, threshold.limit, threshold.better == "lower"
    factor, unit = (1, f" {unit_text(threshold.unit)}".rstrip()) if threshold.unit else (100, " %")
    if math.isnan(value):
        kept = "at most" if is_lower else "at least"
        return f"{name} is undefined; required: {kept} {factor * limit:.2f}{unit}"
    for digits in range(2, 16):
        shown = [
            f"{factor * number:.{digits}f}{unit}".replace("inf", "∞") for number in (value, limit)
        ]
        if value == limit or shown[0] != shown[1]:
            break
    inside, outside = ("at most", "above") if is_lower else ("at least", "below")
    passed = value <= limit if is_lower else value >= limit
    return f"{name} is {shown[0]}, {inside if passed else outside} {shown[1]}"


#: From so many units on, a margin has a one-sided error of at most 8 % (docs/comparison.md).
_FEWEST_OF_MARGIN = 20


def not_worse(
    comparison: Comparison, margin: float = 0.0, *, confident: bool = False
) -> ThresholdResult:
    """Whether the second of two models is not worse than the first by more than a margin.

    The bounds are one-sided, at 95 %; without a margin, the lower model is worse if and only if
    half of its p is below 5 %.
    """
    pair = comparison.pairs[0]
    bounds = bounds_of_change(pair.overall.delta, pair.overall.p, pair.bounds, 0.9)
    result = ThresholdResult(
        name="mean_iou:change",
        value=pair.overall.delta,
        limit=-margin,
        text="",
        better="higher",
        bounds=bounds,
        confident=confident,
        tolerant=not margin,
    )
    return result._replace(text=_change_text(comparison, margin, result.state))


def bounds_of_change(
    delta: float, p: float, bounds: tuple[float, float], level: float
) -> tuple[float, float]:
    """The limits of a difference, or those that its p implies if all units differ alike."""
    if not math.isnan(bounds[0]):
        return bounds
    from segiou.inference.significance import is_significant

    is_certain = delta == 0 or is_significant(p, level)
    return (delta, delta) if is_certain else (-math.inf, math.inf)


def _change_text(comparison: Comparison, margin: float, state: str) -> str:
    pair = comparison.pairs[0]
    change, (low, high) = pair.overall, pair.bounds
    verb = {
        "failed": "is lower",
        "undecided": "is not significantly lower",
        "passed": "is not lower",
    }[state]
    by = f" by more than {100 * margin:.2f} points" if margin else ""
    sentence = f"mean IoU {verb} than the baseline{by} ({signed_points(change.delta)} points"
    if math.isnan(low):
        p = "" if math.isnan(change.p) else f", one-sided {p_equals(change.p / 2)}"
        return f"{sentence}, no interval from {comparison.units_text}{p})"
    sentence = f"{sentence}, 90 % interval {signed_points(low)} to {signed_points(high)}"
    sentence = f"{sentence})" if margin else f"{sentence}, one-sided {p_equals(change.p / 2)})"
    # Rounded up, because the gate passes with this margin.
    least = math.ceil(-10000 * low) / 100
    if state != "failed" and least > 0:
        confirmed = f"{comparison.units_text} can confirm: {least:.2f} points"
        sentence = f"{sentence}; smallest margin that {confirmed}"
    if margin and comparison.units < _FEWEST_OF_MARGIN:
        sentence = (
            f"{sentence}; a margin should have at least {_FEWEST_OF_MARGIN} {comparison._kind}"
        )
    return sentence
