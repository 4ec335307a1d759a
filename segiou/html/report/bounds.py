"""Intervals in the one form that the pages draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from segiou.html.report.numbers import count, plural

if TYPE_CHECKING:
    from segiou.uncertainty import Interval, Intervals

__all__ = ["Bounds", "Range", "bounds_of"]

Range = tuple[float, float]

#: The report's names of the scores over all classes, by the metric that is averaged.
_OVERALL = {"iou": "mean_iou", "dice": "mean_dice", "recall": "mean_accuracy"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower and upper ends of what is shown.

    Attributes
    ----------
    level : str
        Such as ``"95 %"``.
    about : str
        Level, method, unit and seed, in words.
    cautions : tuple of str
        What makes them unsafe, in sentences.
    overall : mapping of str to (float, float)
        By name of the score: ``"mean_iou"``, ``"pixel_accuracy"``, …
    classes : mapping of str to (float, float)
        IoU by name of the class.
    unsure : mapping of str to str
        Classes that are in few of the units, and in how many.
    """

    level: str = ""
    about: str = ""
    cautions: tuple[str, ...] = ()
    overall: Mapping[str, Range] = field(default_factory=dict)
    classes: Mapping[str, Range] = field(default_factory=dict)
    unsure: Mapping[str, str] = field(default_factory=dict)


def bounds_of(intervals: Iterable[Intervals]) -> Bounds:
    """Take what the pages show from bootstrap intervals of several metrics."""
    level = about = ""
    cautions: list[str] = []
    overall: dict[str, Range] = {}
    classes: dict[str, Range] = {}
    unsure: dict[str, str] = {}
    for found in intervals:
        level = level or f"{100 * found.level:g}\N{NO-BREAK SPACE}%"
        about = about or _about(found)
        _take(found.overall, _OVERALL.get(found.metric, found.metric), overall)
        if found.metric != "iou":
            continue
        cautions = found.cautions()
        for interval in found.classes:
            _take(interval, interval.name, classes)
            if interval.few and 0 < interval.units < found.units:
                unsure[interval.name] = f"in {plural(interval.units, found.unit)} only"
    return Bounds(level, about, tuple(cautions), overall, classes, unsure)


def _take(interval: Interval, name: str, into: dict[str, Range]) -> None:
    if not math.isnan(interval.low):
        into[name] = (interval.low, interval.high)


def _about(found: Intervals) -> str:
    return (
        f"{100 * found.level:g} % bootstrap intervals over {plural(found.units, found.unit)}, "
        f"{count(found.resamples)} resamples, seed {found.seed}"
    )
