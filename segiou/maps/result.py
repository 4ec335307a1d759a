"""Accuracy and areas of a map: numbers, sentences and table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.numbers import (
    COEFFICIENT,
    cell,
    grouped,
    percent,
    short_percent,
    shown,
    shown_range,
)
from segiou._support.text import Json, plain, plural
from segiou.document.findings import Finding
from segiou.document.parts import GAP, Column, Line, Part, Table
from segiou.metrics.ratio import Floats

#: Scores of a class in JSON and CSV, with their attributes and titles.
_SCORES = {
    "users_accuracy": ("users", "user's accuracy"),
    "producers_accuracy": ("producers", "producer's accuracy"),
    "f1": ("f1", "F1"),
    "area": ("areas", "area"),
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number estimated from a sample.

    Attributes
    ----------
    value, standard_error : float
    low, high : float
        Ends of Wilson's interval with the effective sample size of the design; of kappa, the
        normal interval.
    reason : str
        Why a number is NaN or the standard error 0; empty otherwise.
    margin : float
        Half the width of the normal interval, as the papers report it (``0.95 ± 0.02``).
    """

    value: float
    standard_error: float
    low: float
    high: float
    reason: str = ""
    margin: float = math.nan


@dataclass(frozen=True, repr=False)
class MapAccuracy(Finding):
    """Accuracy of a map and area of its classes.

    Attributes
    ----------
    class_names : tuple of str
    overall, kappa : Estimate
        Overall accuracy and Cohen's kappa of the map.
    users, producers, f1 : tuple of Estimate
        User's accuracy (precision), producer's accuracy (recall) and F1 of each class.
    areas : tuple of Estimate
        Error-adjusted area of each class, in the unit of the mapped areas.
    mapped : tuple of float
        Mapped area of each class; estimated if the strata are not the map's classes.
    proportions : ndarray of float, shape (C, C)
        Estimated shares of the total area: reference class by map class.
    counts : ndarray of int, shape (C, C)
        The sample: reference class by map class.
    total : float
        Total area.
    level : float
        Confidence level.
    unit : str
        Unit of the areas, such as ``"ha"``; empty if unknown.
    """

    class_names: tuple[str, ...]
    overall: Estimate
    kappa: Estimate
    users: tuple[Estimate, ...]
    producers: tuple[Estimate, ...]
    f1: tuple[Estimate, ...]
    areas: tuple[Estimate, ...]
    mapped: tuple[float, ...]
    proportions: Floats
    counts: NDArray[np.int64]
    total: float
    level: float
    unit: str = ""

    _index = ("class", "score")

    def _parts(self) -> Iterator[Part]:
        heads, *rows = table_rows(self)
        columns = map(Column, heads, zip(*rows, strict=True), (9, 7, 6, 3, 8, 4, 2))
        names, *others = columns
        yield from (Line(verdict(self), "bold"), GAP)
        yield Table([names._replace(is_text=True), *others], notes(self), split=True)

    def rows(self) -> Iterator[dict[str, Json]]:
        """One row per score and class; the scores of the whole map first.

        Yields
        ------
        dict
            The values of a row by column.
        """
        for score, whole in (("overall_accuracy", self.overall), ("kappa", self.kappa)):
            yield {"class": "", "score": score, **_cells(whole)}
        sampled = self.counts.sum(0).tolist()
        for c, name in enumerate(self.class_names):
            yield {"class": name, "score": "sample_units", "value": sampled[c]}
            yield {"class": name, "score": "mapped_area", "value": self.mapped[c]}
            for score, (attribute, _) in _SCORES.items():
                yield {"class": name, "score": score, **_cells(getattr(self, attribute)[c])}

    def to_dict(self) -> dict[str, Json]:
        """The estimates as plain data; NaN becomes None."""
        scores = (getattr(self, attribute) for attribute, _ in _SCORES.values())
        rows = zip(self.class_names, *scores, self.mapped, strict=True)
        keys = ("name", *_SCORES, "mapped_area")
        data = {
            "level": self.level,
            "total_area": self.total,
            "overall_accuracy": self.overall,
            "kappa": self.kappa,
            "classes": [dict(zip(keys, row, strict=True)) for row in rows],
            "sample": self.counts,
            "proportions": self.proportions,
        }
        converted: dict[str, Json] = plain(data)
        return converted


def verdict(accuracy: MapAccuracy) -> str:
    """Overall accuracy and kappa in a sentence."""
    kappa, margin = (shown(x, COEFFICIENT) for x in (accuracy.kappa.value, accuracy.kappa.margin))
    coefficient = "" if math.isnan(accuracy.kappa.value) else f"; kappa {kappa}"
    coefficient += "" if math.isnan(accuracy.kappa.margin) else f" ± {margin}"
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
    return [start, *(f"{reason}: {'; '.join(titles)}" for reason, titles in reasons.items())]


def table_rows(accuracy: MapAccuracy) -> Iterator[tuple[str, ...]]:
    """The table as text, its heads first."""
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
