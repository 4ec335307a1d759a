"""Results of thresholds as JUnit XML, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from segiou._support.files import printable

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from segiou.cli.thresholds import Outcome


def to_junit(outcomes: Sequence[Outcome], name: str) -> str:
    """Outcomes as JUnit XML, one test case per threshold.

    A threshold is a failure if the exit code is 1 because of it, and is skipped if it passes within
    noise.
    """
    passed = [outcome.passed for outcome in outcomes]
    undecided = [outcome.passed and outcome.state == "undecided" for outcome in outcomes]
    suite = _suite(name, len(outcomes), failures=passed.count(False), skipped=sum(undecided))
    for outcome in outcomes:
        sign = "<=" if outcome.better == "lower" else ">="
        kind = "" if outcome.state == "passed" else "skipped"
        kind = kind if outcome.passed else "failure"
        _add(suite, f"{outcome.name} {sign} {outcome.limit}", kind, outcome.words)
    return _text(suite)


def junit_of_error(error: Exception) -> str:
    """An error before any threshold was tried, as JUnit XML."""
    suite = _suite("", 1, errors=1)
    _add(suite, "score", "error", str(error))
    return _text(suite)


def _suite(name: str, tests: int, **numbers: int) -> Element:
    from xml.etree import ElementTree

    about = {key: str(number) for key, number in {"tests": tests, **numbers}.items()}
    title = printable(f"segiou {name}".strip())
    return ElementTree.Element("testsuite", about, name=title)


def _add(suite: Element, title: str, kind: str, message: str) -> None:
    """Add a test case; ``kind`` is the element of its result, empty if it passes."""
    from xml.etree import ElementTree

    case = ElementTree.SubElement(suite, "testcase", classname="segiou", name=printable(title))
    if kind:
        ElementTree.SubElement(case, kind, message=printable(message))


def _text(suite: Element) -> str:
    from xml.etree import ElementTree

    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
