"""Thresholds: parsing, validation and evaluation of ``--fail-under`` and ``--fail-if-worse``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from segiou._support.files import printable
from segiou._support.text import did_you_mean, percent, plural, signed_points
from segiou.measures.registry import measure_keys, measure_of, measure_of_score, score_names

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison
    from segiou.report.report import Report

_SCORES = (
    "mean_iou",
    "mean_dice",
    "pixel_accuracy",
    "mean_accuracy",
    "frequency_weighted_iou",
    "cohen_kappa",
)
_CLASS_SCORES = ("iou", "dice", "precision", "recall")


class Threshold(NamedTuple):
    """The minimum of a score, or of a score of one class."""

    score: str
    class_name: str | None
    least: float

    @property
    def of_class(self) -> bool:
        """Whether the score belongs to one class."""
        return self.class_name is not None

    @property
    def name(self) -> str:
        """The name of the score as in the option."""
        return f"{self.score}:{self.class_name}" if self.of_class else self.score


def read_thresholds(texts: Sequence[str]) -> list[Threshold]:
    """Parse ``NAME=VALUE`` texts; ValueError for unknown names and impossible values."""
    found = []
    for text in texts:
        name, _, value = text.rpartition("=")
        score, colon, class_name = name.strip().partition(":")
        score = "mean_iou" if score == "miou" else score
        key = measure_of_score(score)
        if key is None and score not in (_CLASS_SCORES if colon else _SCORES):
            others = [n for k in measure_keys() for n in score_names(k)]
            known = (*_SCORES, *others, *(f"{score}:CLASS" for score in _CLASS_SCORES))
            hint = did_you_mean(name.strip(), known)
            msg = (
                f"--fail-under {text!r}: expected NAME=VALUE, where NAME is one of "
                f"{', '.join(known)}{hint}"
            )
            raise ValueError(msg)
        of = class_name if colon else None
        found.append(Threshold(score, of, _least(text, value, is_free=key is not None)))
    return found


def _least(text: str, value: str, *, is_free: bool) -> float:
    try:
        least = float(value)
    except ValueError:
        least = math.nan
    if math.isnan(least):
        msg = f"--fail-under {text!r}: {value!r} is not a number"
        raise ValueError(msg)
    if least > 1 and not is_free:
        hint = f"; for {least:g} %, use {least / 100:g}" if least <= 100 else ""
        msg = f"--fail-under {text!r}: threshold must be at most 1{hint}"
        raise ValueError(msg)
    return least


#: Options whose names differ from their measure.
_FLAGS = {"surfaces": "surface"}


def check_thresholds(
    thresholds: Sequence[Threshold], class_names: Sequence[str], measured: Mapping[str, object]
) -> None:
    """ValueError for thresholds of scores that a report lacks (None in ``measured``)."""
    for threshold in thresholds:
        key = measure_of_score(threshold.score)
        if key is not None and measured.get(key) is None:
            msg = (
                f"--fail-under {threshold.name}: {measure_of(key).noun} are not measured; "
                f"score with --{_FLAGS.get(key, key)}"
            )
            raise ValueError(msg)
        name = threshold.class_name
        if name is not None and name not in class_names:
            known = ", ".join(class_names) + did_you_mean(name, class_names)
            msg = f"--fail-under {threshold.name}: unknown class; classes: {known}"
            raise ValueError(msg)


class Outcome(NamedTuple):
    """The result of a threshold; an undefined value fails."""

    name: str
    value: float
    at_least: float
    text: str
    better: str = "higher"

    @property
    def passed(self) -> bool:
        """Whether the value satisfies the threshold."""
        if self.better == "lower":
            return self.value <= self.at_least
        return self.value >= self.at_least

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data; None for undefined values."""
        value = None if math.isnan(self.value) else self.value
        return {"name": self.name, "value": value, "at_least": self.at_least, "passed": self.passed}


def outcomes(report: Report, thresholds: Sequence[Threshold]) -> list[Outcome]:
    """Compare the scores of a report with thresholds."""
    rows = dict(zip(report.class_names, report.classes, strict=True))
    found = []
    for threshold in thresholds:
        if measure_of_score(threshold.score) is not None:
            value = report.score(threshold.score, threshold.class_name or "")
            if report.better(threshold.score) == "lower":
                text = f"{threshold.name} is {value:.4g}; required: at most {threshold.least:g}"
                found.append(Outcome(threshold.name, value, threshold.least, text, "lower"))
                continue
        else:
            name = threshold.class_name
            where: Any = report if name is None else rows[name]
            value = float(getattr(where, threshold.score))
        text = _compared(threshold.name, value, threshold.least)
        found.append(Outcome(threshold.name, value, threshold.least, text))
    return found


def _compared(name: str, value: float, least: float) -> str:
    """Describe a score and its minimum, with enough digits to show the difference."""
    if math.isnan(value):
        return f"{name} is undefined; required: at least {percent(least)}"
    # Kappa is not a percentage.
    factor, unit = (1, "") if name == "cohen_kappa" else (100, " %")
    for digits in range(2, 16):
        shown = [f"{factor * number:.{digits}f}{unit}" for number in (value, least)]
        if value == least or shown[0] != shown[1]:
            break
    return f"{name} is {shown[0]}, {'at least' if value >= least else 'below'} {shown[1]}"


def not_worse(found: Comparison) -> Outcome:
    """Whether the second of two models is not significantly worse than the first."""
    change = found.pairs[0].overall
    ends = f"{signed_points(change.low)} to {signed_points(change.high)}"
    said = f"{signed_points(change.delta)} points, {100 * found.level:g} % interval {ends}"
    if math.isnan(change.high):
        units = plural(found.units, found.unit)
        words = (
            f"no interval for the change in mean IoU ({units}), so the check is inconclusive and "
            "fails"
        )
    elif change.high < 0:
        words = f"mean IoU is lower than the baseline: {said}"
    else:
        words = f"mean IoU is not significantly lower than the baseline: {said}"
    return Outcome("mean_iou:change", change.high, 0.0, words)


def to_junit(found: Sequence[Outcome], name: str) -> str:
    """Outcomes as JUnit XML, one test case per threshold."""
    failed = sum(not outcome.passed for outcome in found)
    about = {"tests": str(len(found)), "failures": str(failed)}
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", about, name=printable(f"segiou {name}"))
    for outcome in found:
        title = printable(f"{outcome.name} >= {outcome.at_least}")
        case = ElementTree.SubElement(suite, "testcase", classname="segiou", name=title)
        if not outcome.passed:
            ElementTree.SubElement(case, "failure", message=printable(outcome.text))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
