"""Thresholds (``--fail-under``, ``--fail-if-worse``): read, checked, compared."""

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
    """The least value that a score, or one of a class, may have."""

    score: str
    class_name: str | None
    least: float

    @property
    def of_class(self) -> bool:
        """Whether it is the score of a class."""
        return self.class_name is not None

    @property
    def name(self) -> str:
        """The score as the option names it."""
        return f"{self.score}:{self.class_name}" if self.of_class else self.score


def read_thresholds(texts: Sequence[str]) -> list[Threshold]:
    """Read ``NAME=VALUE`` texts; refuse unknown names, and values that no score reaches."""
    found = []
    for text in texts:
        name, _, value = text.rpartition("=")
        score, colon, class_name = name.strip().partition(":")
        score = "mean_iou" if score == "miou" else score
        key = measure_of_score(score)
        if key is None and score not in (_CLASS_SCORES if colon else _SCORES):
            others = [n for k in measure_keys() for n in score_names(k)]
            known = ("miou", *_SCORES[1:], *others, *(f"{score}:CLASS" for score in _CLASS_SCORES))
            hint = did_you_mean(name.strip(), known)
            msg = f"--fail-under {text!r}: write NAME=VALUE with a name of {', '.join(known)}{hint}"
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
        hint = f"; for {least:g} % write {least / 100:g}" if least <= 100 else ""
        msg = f"--fail-under {text!r}: no score is above 1{hint}"
        raise ValueError(msg)
    return least


#: Options that have another name than their measure.
_FLAGS = {"surfaces": "surface"}


def check_thresholds(
    thresholds: Sequence[Threshold], class_names: Sequence[str], measured: Mapping[str, object]
) -> None:
    """Refuse thresholds of scores that a report will not have; ``measured`` has None for those."""
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
            msg = f"--fail-under {threshold.name}: no such class; there are {known}"
            raise ValueError(msg)


class Outcome(NamedTuple):
    """What came of a threshold, in words too; an undefined value fails it."""

    name: str
    value: float
    at_least: float
    text: str
    better: str = "higher"

    @property
    def passed(self) -> bool:
        """Whether the value is as high as asked."""
        if self.better == "lower":
            return self.value <= self.at_least
        return self.value >= self.at_least

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; null where the value is undefined."""
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
                text = f"{threshold.name} is {value:.4g}, and is to be at most {threshold.least:g}"
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
    """A score and its least value in words, with as many digits as show the difference."""
    if math.isnan(value):
        return f"{name} is undefined, and so not at least {percent(least)}"
    # Kappa is no ratio of pixels.
    factor, unit = (1, "") if name == "cohen_kappa" else (100, " %")
    for digits in range(2, 16):
        shown = [f"{factor * number:.{digits}f}{unit}" for number in (value, least)]
        if value == least or shown[0] != shown[1]:
            break
    return f"{name} is {shown[0]}, {'at least' if value >= least else 'below'} {shown[1]}"


def not_worse(found: Comparison) -> Outcome:
    """Whether the second of two models may be as good as the first: the interval reaches 0."""
    change = found.pairs[0].overall
    ends = f"{signed_points(change.low)} to {signed_points(change.high)}"
    said = f"{signed_points(change.delta)} points, {100 * found.level:g} % interval {ends}"
    if math.isnan(change.high):
        units = plural(found.units, found.unit)
        words = f"the change of mean IoU has no interval over {units}, so nothing is decided"
    elif change.high < 0:
        words = f"mean IoU is worse than the baseline's: {said}"
    else:
        words = f"mean IoU is not shown to be worse than the baseline's: {said}"
    return Outcome("mean_iou:change", change.high, 0.0, words)


def to_junit(found: Sequence[Outcome], name: str) -> str:
    """Outcomes as a JUnit file: a test case each, as continuous integration reads it."""
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
