"""Thresholds (``--fail-under``, ``--fail-if-worse``): read, checked, compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from segiou._support.files import printable
from segiou._support.text import did_you_mean, percent, plural, signed_points

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
    "boundary_iou",
    "surface_dice",
    "pq",
)
_CLASS_SCORES = ("iou", "dice", "precision", "recall")


class Threshold(NamedTuple):
    """The least value that a score, or one of a class, may have."""

    score: str
    class_name: str
    least: float

    @property
    def of_class(self) -> bool:
        """Whether it is the score of a class."""
        return self.score in _CLASS_SCORES

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
        if score not in (_CLASS_SCORES if colon else _SCORES):
            known = ("miou", *_SCORES[1:], *(f"{score}:CLASS" for score in _CLASS_SCORES))
            hint = did_you_mean(name.strip(), known)
            msg = f"--fail-under {text!r}: write NAME=VALUE with a name of {', '.join(known)}{hint}"
            raise ValueError(msg)
        found.append(Threshold(score, class_name, _least(text, value)))
    return found


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


#: What has to be measured for a score, and the option that asks for it.
_NEEDED = {
    "boundary_iou": "boundaries are not measured; score with --boundary",
    "surface_dice": "surfaces are not measured; score with --surface",
    "pq": "objects are not measured; score with --objects",
}


def check_thresholds(
    thresholds: Sequence[Threshold], class_names: Sequence[str], measured: Mapping[str, object]
) -> None:
    """Refuse thresholds of scores that a report will not have; ``measured`` has None for those."""
    for threshold in thresholds:
        if measured.get(threshold.score, "") is None:
            msg = f"--fail-under {threshold.name}: {_NEEDED[threshold.score]}"
            raise ValueError(msg)
        if threshold.of_class and threshold.class_name not in class_names:
            known = ", ".join(class_names) + did_you_mean(threshold.class_name, class_names)
            msg = f"--fail-under {threshold.name}: no such class; there are {known}"
            raise ValueError(msg)


class Outcome(NamedTuple):
    """What came of a threshold, in words too; an undefined value fails it."""

    name: str
    value: float
    at_least: float
    text: str

    @property
    def passed(self) -> bool:
        """Whether the value is as high as asked."""
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
        where = rows[threshold.class_name] if threshold.of_class else report
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
