"""Thresholds (``--fail-under``, ``--fail-if-worse``): read, checked, compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from segiou._support.files import printable
from segiou._support.text import did_you_mean, percent, plural, signed_points

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison
    from segiou.report.report import Report

_ALIASES = {"miou": "mean_iou"}
_SCORES = (
    "mean_iou",
    "mean_dice",
    "pixel_accuracy",
    "mean_accuracy",
    "frequency_weighted_iou",
    "cohen_kappa",
    "boundary_iou",
    "surface_dice",
    "pq",
)
_CLASS_SCORES = ("iou", "dice", "precision", "recall")


class Threshold(NamedTuple):
    """The least value that a score may have; ``class_name`` where it is the score of a class."""

    score: str
    class_name: str | None
    least: float

    @property
    def name(self) -> str:
        """The score as the option names it."""
        return self.score if self.class_name is None else f"{self.score}:{self.class_name}"


def read_thresholds(texts: Sequence[str]) -> list[Threshold]:
    """Read ``NAME=VALUE`` texts; refuse unknown names, and values that no score reaches."""
    return [_read(text) for text in texts]


def _read(text: str) -> Threshold:
    name, _, value = text.rpartition("=")
    name = _ALIASES.get(name.strip(), name.strip())
    score, colon, class_name = name.partition(":")
    if name in _SCORES:
        return Threshold(name, None, _least(text, value))
    if colon and score in _CLASS_SCORES:
        return Threshold(score, class_name, _least(text, value))
    known = ("miou", *_SCORES[1:], *(f"{score}:CLASS" for score in _CLASS_SCORES))
    hint = did_you_mean(name, known)
    msg = f"--fail-under {text!r}: write NAME=VALUE with a name of {', '.join(known)}{hint}"
    raise ValueError(msg)


def _least(text: str, value: str) -> float:
    try:
        least = float(value)
    except ValueError:
        least = math.nan
    if math.isnan(least):
        msg = f"--fail-under {text!r}: {value!r} is not a number"
        raise ValueError(msg)
    if least > 1:
        hint = f"; for {least:g} % write {least / 100:g}" if least <= 100 else ""
        msg = f"--fail-under {text!r}: no score is above 1{hint}"
        raise ValueError(msg)
    return least


def check_thresholds(
    thresholds: Sequence[Threshold],
    class_names: Sequence[str],
    *,
    boundary: bool,
    surfaces: bool,
    objects: bool,
) -> None:
    """Refuse thresholds of scores that a report will not have."""
    measured = {
        "boundary_iou": ("boundaries", "--boundary", boundary),
        "surface_dice": ("surfaces", "--surface", surfaces),
        "pq": ("objects", "--objects", objects),
    }
    for threshold in thresholds:
        what, option, is_there = measured.get(threshold.score, ("", "", True))
        if not is_there:
            why = f"{what} are not measured; score with {option}"
            msg = f"--fail-under {threshold.name}: {why}"
            raise ValueError(msg)
        if threshold.class_name is not None and threshold.class_name not in class_names:
            known = ", ".join(class_names) + did_you_mean(threshold.class_name, class_names)
            msg = f"--fail-under {threshold.name}: no such class; there are {known}"
            raise ValueError(msg)


class Outcome(NamedTuple):
    """What came of a threshold; an undefined value fails it."""

    name: str
    value: float
    at_least: float
    #: The outcome in words, where it is not that of a score.
    words: str = ""

    @property
    def passed(self) -> bool:
        """Whether the value is as high as asked."""
        return self.value >= self.at_least

    @property
    def text(self) -> str:
        """The outcome in words, with as many digits as show the difference."""
        if self.words:
            return self.words
        if math.isnan(self.value):
            return f"{self.name} is undefined, and so not at least {percent(self.at_least)}"
        value, least = self.numbers
        return f"{self.name} is {value}, {'at least' if self.passed else 'below'} {least}"

    @property
    def numbers(self) -> tuple[str, str]:
        """The value and the least value; kappa, which is no ratio of pixels, as a number."""
        factor, unit = (1, "") if self.name == "cohen_kappa" else (100, " %")
        pair = (factor * self.value, factor * self.at_least)
        for digits in range(2, 16):
            shown = [f"{number:.{digits}f}{unit}" for number in pair]
            if pair[0] == pair[1] or shown[0] != shown[1]:
                break
        return shown[0], shown[1]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; null where the value is undefined."""
        value = None if math.isnan(self.value) else self.value
        return {
            "name": self.name,
            "value": value,
            "at_least": self.at_least,
            "passed": self.passed,
        }


def outcomes(report: Report, thresholds: Sequence[Threshold]) -> list[Outcome]:
    """Compare the scores of a report with thresholds."""
    return [Outcome(t.name, _value(report, t), t.least) for t in thresholds]


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
    suite = ElementTree.Element("testsuite", name=printable(f"segiou {name}"))
    suite.set("tests", str(len(found)))
    suite.set("failures", str(sum(not outcome.passed for outcome in found)))
    for outcome in found:
        title = printable(f"{outcome.name} >= {outcome.at_least}")
        case = ElementTree.SubElement(suite, "testcase", classname="segiou", name=title)
        if not outcome.passed:
            ElementTree.SubElement(case, "failure", message=printable(outcome.text))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _value(report: Report, threshold: Threshold) -> float:
    if threshold.class_name is None:
        return float(getattr(report, threshold.score))
    row = report.classes[report.class_names.index(threshold.class_name)]
    return float(getattr(row, threshold.score))
