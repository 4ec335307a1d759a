"""Accuracy and area of a map as parts of a document, rows and an HTML page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from segiou._support.numbers import cell, grouped, percent, short_percent, shown_range
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


def notes(accuracy: MapAccuracy) -> list[str]:
    """The unit, the level, and why numbers are undefined or have no interval."""
    rows = [("overall accuracy", accuracy.overall), ("kappa", accuracy.kappa)]
    for attribute, title in _SCORES.values():
        estimates = zip(accuracy.class_names, getattr(accuracy, attribute), strict=True)
        rows += [(f"{name}, {title}", estimate) for name, estimate in estimates]
    reasons: dict[str, list[str]] = {}
    for title, estimate in rows:
        if estimate.reason:
            reasons.setdefault(estimate.reason, []).append(title)
    level = short_percent(accuracy.level)
    start = (
        f"in brackets: {level} Wilson intervals with the effective sample size of the design; "
        f"kappa ±: half the width of its {level} normal interval"
    )
    return [start, *(f"{'; '.join(titles)}: {reason}" for reason, titles in reasons.items())]


def map_parts(accuracy: MapAccuracy) -> list[Part]:
    """The verdict, the classes and notes."""
    heads, *rows = _table(accuracy)
    columns = map(Column, heads, zip(*rows, strict=True), (9, 7, 6, 3, 8, 4, 2))
    names, *others = columns
    table = Table([names._replace(is_text=True), *others], notes(accuracy))
    return [Line(verdict(accuracy), "bold"), GAP, table]


def map_rows(accuracy: MapAccuracy) -> Iterator[dict[str, Any]]:
    """One row per score and class, those of the whole map first."""
    for score, whole in (("overall_accuracy", accuracy.overall), ("kappa", accuracy.kappa)):
        yield {"class": "", "score": score, **_cells(whole)}
    sampled = accuracy.counts.sum(0).tolist()
    for c, name in enumerate(accuracy.class_names):
        yield {"class": name, "score": "sample_units", "value": sampled[c]}
        yield {"class": name, "score": "mapped_area", "value": accuracy.mapped[c]}
        for score, (attribute, _) in _SCORES.items():
            yield {"class": name, "score": score, **_cells(getattr(accuracy, attribute)[c])}


def map_html(accuracy: MapAccuracy, facts: dict[str, str]) -> str:
    """The page: scores as bars with whiskers, areas as mapped and as estimated."""
    ends = [area.high for area in accuracy.areas if not math.isnan(area.high)]
    _, *rows = _table(accuracy)
    context = {
        "accuracy": accuracy,
        "verdict": verdict(accuracy),
        "rows": rows,
        "most": max(
            [*ends, *accuracy.mapped, *(area.value for area in accuracy.areas if area.value > 0)]
        ),
        "unit": accuracy.unit,
        "estimates": map_parts(accuracy)[-1],
        "facts": facts,
        "table": None,
        "pixel": "sample",
    }
    names = list(accuracy.class_names)
    data = {"names": names, "unit": "pixels", "confusion": None, "images": None}
    return assemble("segiou.maps:page.html", context, data)


def _table(accuracy: MapAccuracy) -> Iterator[tuple[str, ...]]:
    unit = accuracy.unit and f", {accuracy.unit}"
    yield (
        *("class", "user's accuracy", "producer's accuracy", "F1"),
        *(f"area{unit}", f"mapped{unit}", "sample units"),
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


def _ratio(estimate: Estimate) -> str:
    if math.isnan(estimate.low):
        return cell(estimate.value)
    return f"{percent(estimate.value)} ({shown_range(estimate.low, estimate.high)})"


def _area(value: float) -> str:
    """An area without its unit: integers from 1000 on, three digits below."""
    if math.isnan(value):
        return "–"
    return grouped(round(value)) if abs(value) >= 1000 else f"{value:.3g}"


def _cells(estimate: Estimate) -> dict[str, Any]:
    names = ("value", "standard_error", "low", "high", "reason")
    return {name: plain(getattr(estimate, name)) for name in names}
