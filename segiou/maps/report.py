"""Accuracy and area of a map as text, CSV, Markdown and an HTML page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from segiou._support.csv_text import csv_text
from segiou._support.numbers import grouped, percent, shown_range
from segiou._support.text import plain, plural
from segiou.document.parts import GAP, Column, Line, Part, Table
from segiou.report.pages.page import assemble

if TYPE_CHECKING:
    from segiou.maps.estimates import Estimate, MapAccuracy

_SCORES = {
    "users_accuracy": ("users", "user's accuracy"),
    "producers_accuracy": ("producers", "producer's accuracy"),
    "f1": ("f1", "F1"),
    "area": ("areas", "area"),
}


def verdict(accuracy: MapAccuracy) -> str:
    """Overall accuracy and kappa in a sentence."""
    kappa = accuracy.kappa.value
    coefficient = "" if math.isnan(kappa) else f"; kappa {kappa:.4f} ± {accuracy.kappa.margin:.4f}"
    units = plural(int(accuracy.counts.sum()), "sample unit")
    overall = accuracy.overall
    limits = "" if math.isnan(overall.low) else f"{shown_range(overall.low, overall.high)}, "
    return f"Overall accuracy {percent(overall.value)} ({limits}{units}){coefficient}"


def notes(accuracy: MapAccuracy, unit: str) -> list[str]:
    """The unit, the level, and why numbers are undefined or have no interval."""
    rows = [("overall accuracy", accuracy.overall), ("kappa", accuracy.kappa)]
    for attribute, title in _SCORES.values():
        estimates = zip(accuracy.class_names, getattr(accuracy, attribute), strict=True)
        rows += [(f"{name}, {title}", estimate) for name, estimate in estimates]
    reasons: dict[str, list[str]] = {}
    for title, estimate in rows:
        if estimate.reason:
            reasons.setdefault(estimate.reason, []).append(title)
    level = f"{100 * accuracy.level:g} %"
    start = (
        f"in brackets: {level} Wilson intervals with the effective sample size of the design; "
        f"kappa ±: half the width of its {level} normal interval"
    )
    return [start, *(f"{'; '.join(titles)}: {reason}" for reason, titles in reasons.items())]


def map_parts(accuracy: MapAccuracy, unit: str) -> list[Part]:
    """The verdict, the classes and notes."""
    heads, *rows = _table(accuracy, unit)
    columns = map(Column, heads, zip(*rows, strict=True), (9, 7, 6, 3, 8, 4, 2))
    names, *others = columns
    table = Table([names._replace(is_text=True), *others], notes(accuracy, unit))
    return [Line(verdict(accuracy), "bold"), GAP, table]


def map_csv(accuracy: MapAccuracy) -> str:
    """One row per score and class; undefined numbers are empty cells."""
    rows: list[list[Any]] = [["class", "score", "value", "standard_error", "low", "high", "reason"]]
    rows += [
        ["", "overall_accuracy", *_cells(accuracy.overall)],
        ["", "kappa", *_cells(accuracy.kappa)],
    ]
    sampled = accuracy.counts.sum(0).tolist()
    for c, name in enumerate(accuracy.class_names):
        rows.append([name, "sample_units", sampled[c], "", "", "", ""])
        rows.append([name, "mapped_area", accuracy.mapped[c], "", "", "", ""])
        for key, (attribute, _) in _SCORES.items():
            rows.append([name, key, *_cells(getattr(accuracy, attribute)[c])])
    return csv_text(rows)


def map_html(accuracy: MapAccuracy, unit: str, facts: dict[str, str]) -> str:
    """The page: scores as bars with whiskers, areas as mapped and as estimated."""
    ends = [one.high for one in accuracy.areas if not math.isnan(one.high)]
    _, *rows = _table(accuracy, unit)
    context = {
        "accuracy": accuracy,
        "verdict": verdict(accuracy),
        "rows": rows,
        "most": max(
            [*ends, *accuracy.mapped, *(one.value for one in accuracy.areas if one.value > 0)]
        ),
        "unit": unit,
        "estimates": map_parts(accuracy, unit)[-1],
        "facts": facts,
        "table": None,
        "pixel": "sample",
    }
    names = list(accuracy.class_names)
    data = {"names": names, "unit": "pixels", "confusion": None, "images": None}
    return assemble("segiou.maps:page.html", context, data)


def _table(accuracy: MapAccuracy, unit: str) -> Iterator[tuple[str, ...]]:
    yield (
        *("class", "user's accuracy", "producer's accuracy", "F1"),
        *(f"area, {unit}", f"mapped, {unit}", "sample units"),
    )
    sampled = accuracy.counts.sum(0).tolist()
    for c, name in enumerate(accuracy.class_names):
        users, producers, f1 = (
            _ratio(getattr(accuracy, k)[c]) for k in ("users", "producers", "f1")
        )
        area, mapped = accuracy.areas[c], _area(accuracy.mapped[c])
        shown = _area(area.value)
        if not math.isnan(area.low):
            shown = f"{shown} ({_area(area.low)} to {_area(area.high)})"
        yield name, users, producers, f1, shown, mapped, str(sampled[c])


def _ratio(one: Estimate) -> str:
    if math.isnan(one.low):
        return percent(one.value, "–")
    return f"{percent(one.value)} ({shown_range(one.low, one.high)})"


def _area(value: float) -> str:
    """An area without its unit: integers from 1000 on, three digits below."""
    if math.isnan(value):
        return "–"
    return grouped(round(value)) if abs(value) >= 1000 else f"{value:.3g}"


def _cells(one: Estimate) -> list[Any]:
    numbers = (one.value, one.standard_error, one.low, one.high)
    return [*plain(list(numbers)), one.reason]
