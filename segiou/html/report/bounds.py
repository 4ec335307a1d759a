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
    about : str
        Level, method, unit and seed, in words.
    overall : mapping of str to (float, float)
        By name of the score: ``"mean_iou"``, ``"pixel_accuracy"``, …
    classes : mapping of str to (float, float)
        IoU by name of the class.
    unsure : mapping of str to str
        Classes whose interval says little, and why.
    """

    about: str = ""
    overall: Mapping[str, Range] = field(default_factory=dict)
    classes: Mapping[str, Range] = field(default_factory=dict)
    unsure: Mapping[str, str] = field(default_factory=dict)


def bounds_of(intervals: Iterable[Intervals]) -> Bounds:
    """Take what the pages show from bootstrap intervals of several metrics."""
    about = ""
    overall: dict[str, Range] = {}
    classes: dict[str, Range] = {}
    unsure: dict[str, str] = {}
    for found in intervals:
        about = about or _about(found)
        _take(found.overall, _OVERALL.get(found.metric, found.metric), overall)
        if found.metric != "iou":
            continue
        for interval in found.classes:
            _take(interval, interval.name, classes)
            if interval.few and interval.units:
                unsure[interval.name] = f"in {interval.units} {found.unit}s only"
    return Bounds(about, overall, classes, unsure)


def _take(interval: Interval, name: str, into: dict[str, Range]) -> None:
    if not math.isnan(interval.low):
        into[name] = (interval.low, interval.high)


def _about(found: Intervals) -> str:
    return (
        f"{100 * found.level:g} % bootstrap intervals over {plural(found.units, found.unit)}, "
        f"{count(found.resamples)} resamples, seed {found.seed}"
    )
