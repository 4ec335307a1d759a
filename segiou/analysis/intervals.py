"""Bootstrap intervals of a score and its classes, and what they say in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import numpy as np

from segiou._support import text
from segiou._support.html import sentence_list, table
from segiou._support.text import plain
from segiou.analysis.dependence import Dependence
from segiou.analysis.units import FEW_UNITS

Method = Literal["percentile", "bca"]

#: Share of 95 % intervals that held the truth, from this many units on: benchmarks/coverage.py.
MEASURED_COVERAGE: dict[tuple[str, str], tuple[tuple[int, float], ...]] = {
    ("image", "percentile"): ((10, 0.889), (20, 0.911), (50, 0.924), (100, 0.944)),
    ("image", "bca"): ((10, 0.870), (20, 0.904), (50, 0.921), (100, 0.933)),
    ("group", "percentile"): ((10, 0.893), (20, 0.915), (40, 0.926), (80, 0.947)),
    ("group", "bca"): ((10, 0.892), (20, 0.918), (40, 0.925), (80, 0.945)),
    ("block", "percentile"): ((2, 0.60), (20, 0.82), (40, 0.87), (70, 0.91), (150, 0.92)),
    ("block", "bca"): ((2, 0.60), (20, 0.81), (40, 0.88), (70, 0.90), (150, 0.92)),
}
#: What covers less is said to.
_LEAST_COVERAGE = 0.93
_METHOD_WORDS = {"percentile": "percentile", "bca": "BCa"}


@dataclass(frozen=True, slots=True)
class Interval:
    """A score and how far it could have come out otherwise.

    Attributes
    ----------
    name : str
        Of the class, or of the score over all classes.
    value : float
        On the data itself.
    low, high : float
        Ends of the interval; NaN where undefined.
    standard_error : float
        Standard deviation over the resamples.
    units : int
        Units whose truth has the class; for the score all units.
    undefined_share : float
        Share of the resamples in which there was no value, because the class
        was in no image drawn. They are left out of everything else.
    """

    name: str
    value: float
    low: float
    high: float
    standard_error: float
    units: int
    undefined_share: float

    @property
    def few(self) -> bool:
        """Seen in fewer than :data:`FEW_UNITS` units, so not to be relied on."""
        return self.units < FEW_UNITS


@dataclass(frozen=True, slots=True)
class Intervals:
    """Bootstrap intervals of a score and of its classes.

    Attributes
    ----------
    metric, aggregate, protocol : str
        What was averaged, and how.
    level : float
    method : {"percentile", "bca"}
    resamples, seed : int
    unit : {"image", "group", "block"}
        What was resampled.
    units : int
        How many there are.
    overall : Interval
    classes : tuple of Interval
        Empty for a metric of all classes at once.
    dependence : Dependence or None
        How far the images are from independent; None where groups were given,
        the images said to be independent, or nothing is known of their order.
    block_length : float or None
        Mean length of the blocks that were drawn, if they were.
    """

    metric: str
    aggregate: str
    protocol: str
    level: float
    method: Method
    resamples: int
    seed: int
    unit: str
    units: int
    overall: Interval
    classes: tuple[Interval, ...]
    dependence: Dependence | None = None
    block_length: float | None = None

    def __iter__(self) -> Iterator[Interval]:
        yield self.overall
        yield from self.classes

    @property
    def resampled(self) -> str:
        """What was resampled, in words."""
        units = text.plural(self.units, self.unit)
        if self.block_length is None:
            return units
        return f"{units} of {self.block_length:.1f} images on average"

    @property
    def unsafe(self) -> bool:
        """Whether the images were taken for independent although they may not be."""
        return self.unit == "image" and self.dependence is not None and self.dependence.noteworthy

    @property
    def few(self) -> tuple[str, ...]:
        """Classes in the truth of at least one and fewer than :data:`FEW_UNITS` units."""
        return tuple(c.name for c in self.classes if c.few and c.units)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = plain(self)
        for row in (found["overall"], *found["classes"]):
            row["vanished"] = row.pop("undefined_share")
        found["few"] = list(self.few)
        found["cautions"] = self.cautions()
        found["dependence"] = None if self.dependence is None else self.dependence.to_dict()
        return found

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        heads = ("", "score", f"{100 * self.level:g} % interval", f"{self.unit}s")
        rows = table(heads, [_cells(self.overall)], [_cells(c) for c in self.classes])
        return f'<div class="segiou-intervals">{sentence_list(self.sentences())}{rows}</div>'

    def sentences(self) -> list[str]:
        """Say it in words, rounded to a hundredth of a point."""
        return [_overall_sentence(self), *self.cautions()]

    def cautions(self) -> list[str]:
        """Say what makes the intervals unsafe, if anything does."""
        said = []
        if self.unit == "group" and self.units < FEW_UNITS:
            return [few_groups_sentence(self.units)]
        if self.unsafe and self.dependence is not None:
            said.extend(self.dependence.sentences())
        if self.overall.low < self.overall.high:
            said += coverage_sentences(self.unit, self.method, self.units)
        if self.units < FEW_UNITS:
            said.append(
                f"{text.plural(self.units, self.unit)} are few: the interval is only a hint "
                "and more likely too narrow than too wide."
            )
        elif self.few:
            said.append(
                f"Seen in fewer than {FEW_UNITS} {self.unit}s, so do not rely on the intervals "
                f"of: {text.classes(self.few)}."
            )
        undefined = [
            f"{text.called(c.name)} ({text.percent(c.undefined_share)})"
            for c in self.classes
            if 0 < c.undefined_share < 1
        ]
        if undefined:
            said.append(f"Without a value in some resamples: {text.listed(undefined)}.")
        return said


def coverage_sentences(unit: str, method: str, units: int) -> list[str]:
    """Say how often intervals over so few units hold the truth, where that is too seldom."""
    measured = [share for least, share in MEASURED_COVERAGE[unit, method] if least <= units]
    if not measured or measured[-1] >= _LEAST_COVERAGE:
        return []
    return [
        f"Over {text.plural(units, unit)} intervals are too narrow: in simulations such 95 % "
        f"intervals held the true value in {text.roughly(measured[-1])} of cases."
    ]


def few_groups_sentence(groups: int) -> str:
    """Say why there is no interval over a handful of groups, and what there is instead."""
    return (
        f"{text.plural(groups, 'group')} are too few for an interval over groups; from "
        f"{FEW_UNITS} groups on there is one. To resample stretches of neighbouring images within "
        'these groups: --blocks auto (in Python blocks="auto"); that says nothing about other '
        "groups."
    )


def _cells(found: Interval) -> tuple[str, ...]:
    number = escape(text.percent(found.value, "–"))
    ends = "–"
    if not np.isnan(found.low):
        ends = escape(f"{text.points(found.low)} to {text.percent(found.high)}")
    return escape(found.name), number, ends, f"{found.units}{' (few)' if found.few else ''}"


def _overall_sentence(found: Intervals) -> str:
    score = found.overall
    start = (
        f"{score.name[:1].upper()}{score.name[1:]} is {text.percent(score.value)} over "
        f"{text.plural(found.units, found.unit)}"
    )
    if np.isnan(score.low):
        return f"{start}; it has no interval."
    if score.low == score.high:
        return (
            f"{start}, and in each of {found.resamples} resamples of these {found.unit}s: an "
            f"interval of no width, which does not show that other {found.unit}s would give the "
            "same."
        )
    between = f"between {text.points(score.low)} and {text.percent(score.high)}"
    kind = f"{100 * found.level:g} % {_METHOD_WORDS[found.method]} bootstrap interval"
    made = f"{found.resamples} resamples, seed {found.seed}"
    if found.block_length is not None and found.dependence is not None:
        return (
            f"{start}; over other stretches of {found.dependence.where} it is plausibly {between} "
            f"({kind} over blocks of {found.block_length:.1f} images on average, {made})."
        )
    over = f"over all {found.unit}s of this kind it is plausibly {between}"
    if found.unsafe:
        over = f"if the images were independent, {over}"
    return f"{start}; {over} ({kind} over {found.unit}s, {made})."
