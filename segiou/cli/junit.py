"""Results of thresholds as JUnit XML, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from segiou._support.files import printable

if TYPE_CHECKING:
    from segiou.cli.thresholds import ThresholdResult


def junit_of_results(results: Sequence[ThresholdResult], name: str) -> str:
    """Outcomes as JUnit XML, one test case per threshold.

    A threshold is a failure if the exit code is 1 because of it, and is skipped if it passes within
    noise.
    """
    cases = []
    for result in results:
        sign = "<=" if result.better == "lower" else ">="
        kind = "" if result.state == "passed" else "skipped"
        kind = kind if result.passed else "failure"
        cases.append((f"{result.name} {sign} {result.limit}", kind, result.words))
    kinds = [kind for _, kind, _ in cases]
    return _text(name, cases, failures=kinds.count("failure"), skipped=kinds.count("skipped"))


def junit_of_error(error: Exception) -> str:
    """An error before any threshold was tried, as JUnit XML."""
    return _text("", [("score", "error", str(error))], errors=1)


def _text(name: str, cases: Sequence[tuple[str, str, str]], **numbers: int) -> str:
    """Test cases as XML: title, element of the result (empty if it passes) and message of each."""
    from xml.etree import ElementTree

    about = {key: str(number) for key, number in {"tests": len(cases), **numbers}.items()}
    suites = ElementTree.Element("testsuites")
    title = printable(f"segiou {name}".strip())
    suite = ElementTree.SubElement(suites, "testsuite", about, name=title)
    for case_title, kind, message in cases:
        about = {"classname": "segiou", "name": printable(case_title)}
        case = ElementTree.SubElement(suite, "testcase", about)
        if kind:
            ElementTree.SubElement(case, kind, message=printable(message))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
