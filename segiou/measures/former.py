"""Former attributes of runs and reports, each of one measure; they warn, and will be removed."""

from __future__ import annotations

import math
from typing import Any

from segiou._support import RenamedAttribute


def _counts(key: str, without: Any = None) -> RenamedAttribute:
    def read(run: Any) -> Any:
        return without if run.plan(key) is None else run.counts_of(key)

    return RenamedAttribute(f"counts_of({key!r})", read)


def _options(key: str) -> RenamedAttribute:
    return RenamedAttribute(
        f"plan({key!r}).measure", lambda run: run.plan(key) and run.plan(key).measure
    )


def _entry(key: str, without: Any = None) -> RenamedAttribute:
    return RenamedAttribute(f"measures[{key!r}]", lambda report: report.measures.get(key, without))


def _mean(name: str) -> RenamedAttribute:
    def read(report: Any) -> float:
        found = report.scores_by_name.get(name)
        return math.nan if found is None else float(found.value)

    return RenamedAttribute(f"score({name!r})", read)


OF_RUNS = {
    "boundary": _counts("boundary"),
    "boundary_options": _options("boundary"),
    "surfaces": _counts("surfaces", ()),
    "surface_plan": RenamedAttribute("plan('surfaces')", lambda run: run.plan("surfaces")),
    "objects": _counts("objects"),
    "object_options": _options("objects"),
}
OF_REPORTS = {
    "boundary": _entry("boundary", ()),
    "boundary_options": _entry("boundary_options"),
    "boundary_iou": _mean("boundary_iou"),
    "surfaces": _entry("surfaces", ()),
    "surface_cases": _entry("surface_cases", ()),
    "surface_plan": _entry("surface_plan"),
    "surface_dice": _mean("surface_dice"),
    "objects": _entry("objects"),
    "pq": _mean("pq"),
}


def add_former(owner: type, attributes: dict[str, RenamedAttribute]) -> None:
    """Add former attributes to a class."""
    for name, attribute in attributes.items():
        attribute.__set_name__(owner, name)
        setattr(owner, name, attribute)
