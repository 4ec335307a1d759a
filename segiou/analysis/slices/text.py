"""Scores of slices in sentences and a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from segiou._support.numbers import (
    change,
    change_range,
    interval_name,
    p_equals,
    p_text,
    short_percent,
    shown,
    shown_change,
    shown_range,
)
from segiou._support.text import capital, listed, nouns, plural
from segiou.analysis.slices.result import FEWEST, FEWEST_TESTED
from segiou.document.parts import GAP, Cell, Column, Line, Part, Table
from segiou.inference.metadata import told_apart

if TYPE_CHECKING:
    from segiou.analysis.slices.result import Slice, Slices

_TONES = {"worse": "red", "better": "green"}
_LISTED = 4


def slices_parts(slices: Slices) -> Iterator[Part]:
    """The verdict, a row per slice, trends and what limits them."""
    yield Line(verdict(slices), "bold")
    yield from map(Line, mixes(slices))
    yield GAP
    yield Table(_columns(slices), tuple(notes(slices)))
    if slices.trends:
        yield trends(slices)


def verdict(slices: Slices) -> str:
    """The slice with the largest confirmed deficit, or a sentence that there is none."""
    subject = capital(_subject(slices))
    if not slices.tests:
        return f"{subject} cannot be compared between slices: {_why_not(slices)}."
    tests = f" among {plural(slices.tests, 'comparison')}" if slices.tests > 1 else ""
    if not (worst := slices.worst(len(slices))):
        differs = any(row.differs(slices.level) for row in slices)
        which = "is worse than" if differs else "differs from"
        return f"No slice {which} the rest beyond chance{tests and f' ({tests.strip()})'}."
    first, *others = worst
    reference = f"{first.column}={slices.against}"
    rest = reference if reference in [row.name for row in slices] else "the rest"
    size = change(abs(first.gap.value), slices.score_unit).lstrip("+")
    way = "lower" if first.gap.value < 0 else "higher"
    limits = f"{interval_name(slices.level)} {changes(first.gap.low, first.gap.high, slices)}"
    also = listed([row.name for row in others])
    more = f" Also worse: {also}." if others else ""
    return (
        f"{subject} is {size} {way} on {first.name} than on {rest} ({limits}, "
        f"{p_equals(first.gap.p_holm)}{tests}).{more}"
    )


def _subject(slices: Slices) -> str:
    """The score of the run, or its change from the first to the second."""
    if len(slices.names) < 2:
        return f"{slices.title} of {slices.names[0]}"
    return f"the change of {slices.title} from {slices.names[0]} to {slices.names[1]}"


def _why_not(slices: Slices) -> str:
    """Why nothing is tested."""
    units = slices._kind
    if not any(math.isnan(row.gap.low) and not math.isnan(row.gap.value) for row in slices):
        return f"fewer than {FEWEST_TESTED} {units} on a side"
    if slices._is_median and all(math.isnan(row.low) for row in slices):
        independent = f"independent {slices._image}s"
        return f"medians need one structure ({slices.metric}:NAME) and {independent}"
    return f"all {units} of a side agree"


def mixes(slices: Slices) -> Iterator[str]:
    """The score in each mix."""
    value = shown if len(slices.names) < 2 else shown_change
    subject = capital(_subject(slices))
    for mix in slices.mixes:
        shares = listed([f"{short_percent(share)} {name}" for name, share in mix.shares.items()], 9)
        limits = interval_text(slices, mix.low, mix.high)
        limits = f" ({interval_name(slices.level)} {limits})" if limits else ""
        yield (
            f"{subject} is {value(mix.score, slices.score_unit)}{limits} in a mix of {shares} "
            f"({mix.column})."
        )


def notes(slices: Slices) -> Iterator[str]:
    """Notes on the table and on missing values."""
    yield _reference(slices)
    if slices.key:
        yield f"Rows were matched with {slices._image}s by the column {slices.key!r}."
    yield from _small_slices(slices)
    yield from _values(slices)
    yield from _paradoxes(slices)
    if slices.tests > 1:
        yield f"p is adjusted for all {slices.tests} comparisons (Holm)."


def _reference(slices: Slices) -> str:
    """The images that slices are compared with."""
    mean = any(row.gap.classes for row in slices)
    units = slices._kind
    over = f", over the classes that at least two {units} of both have" if mean else ""
    if not slices.against:
        return f"The rest are the other {slices._image}s that have a value in the column{over}."
    return (
        f"The difference is from {slices.against} in columns with this value, otherwise from the "
        f"rest{over}."
    )


def _small_slices(slices: Slices) -> Iterator[str]:
    """Slices of too few units, and of fewer classes."""
    units = slices._kind
    if few := [row.name for row in slices if row.units < FEWEST]:
        yield f"Fewer than {FEWEST} {units}, so no interval: {listed(few, _LISTED)}."
    if few := [row.name for row in slices if FEWEST <= row.units < FEWEST_TESTED]:
        yield f"Fewer than {FEWEST_TESTED} {units}, so not tested: {listed(few, _LISTED)}."
    untold = (s for s in slices if math.isnan(s.gap.low) and math.isfinite(s.gap.value))
    if slices.tests and not slices._is_median and (agree := [row.name for row in untold]):
        yield f"All {units} of a side agree, so not tested: {listed(agree, _LISTED)}."
    fewer = [
        f"{row.name} ({row.gap.classes} of {row.classes})"
        for row in slices
        if 0 < row.gap.classes < row.classes
    ]
    if fewer:
        yield f"Differences over fewer classes than the slice has: {listed(fewer, _LISTED)}."


def _values(slices: Slices) -> Iterator[str]:
    """Missing and similar values of columns, and columns without slices."""
    for column, number in slices.missing.items():
        images = plural(number, slices._image)
        yield f"{column}: {images} without a value, excluded."
    for column, reason in slices.skipped.items():
        yield f"{column} {reason}: no slices."
    seen: dict[str, Slice] = {}
    for row in slices:
        if (same := seen.setdefault(row.name.casefold(), row)) is not row:
            yield f"{same.name} and {row.name} differ only in case; are they one value?"
    for first, second in slices.alike:
        alike = f"nearly the same {slices._image}s"
        yield f"{first} and {second} are {alike}: their effects cannot be separated."


def _paradoxes(slices: Slices) -> Iterator[str]:
    """Slices that all say the opposite of the whole, or are all on one side of it."""
    pixel, image = nouns(slices._pixel_unit)
    for column in slices.reversed:
        each = listed(
            [
                f"{change(s.score, slices.score_unit)} on {s.value}"
                for s in slices
                if s.column == column
            ],
            _LISTED,
        )
        yield (
            f"Simpson's paradox: the change is {change(slices.score, slices.score_unit)} on all "
            f"{image}s, but {each} ({column}), because the whole weighs slices by their "
            f"{pixel}s."
        )
    for column in slices.outside:
        own_scores = [s.score for s in slices if s.column == column]
        way = "below" if max(own_scores) < slices.score else "above"
        yield (
            f"All slices of {column} are {way} the whole "
            f"({shown(slices.score, slices.score_unit)}), which sums their {pixel}s and is not "
            "their average."
        )


def _columns(slices: Slices) -> list[Column]:
    unit, rows, two = slices.score_unit, slices.slices, len(slices.names) > 1
    columns = [
        Column("slice", [row.name for row in rows], 9, is_text=True),
        Column(f"{slices._image}s", [str(row.images) for row in rows], 3),
    ]
    if slices.unit != "image":
        columns.append(Column(slices._kind, [str(row.units) for row in rows], 2))
    if two:
        for i, name in enumerate(slices.names):
            scores = [shown(row.scores[i], unit) for row in rows]
            columns.append(Column(name, scores, 4, group="models"))
    value = shown_change if two else shown
    limits = [interval_text(slices, row.low, row.high) for row in rows]
    gaps = [row.gap for row in rows]
    level = interval_name(slices.level)
    return [
        *columns,
        Column("change" if two else slices.title, [value(row.score, unit) for row in rows], 8),
        Column(level, limits, 5),
        Column(
            "difference" if slices.against else "minus rest",
            [shown_change(gap.value, unit) for gap in gaps],
            7,
        ),
        Column(level, [changes(gap.low, gap.high, slices) for gap in gaps], 6),
        Column("p", ["" if math.isnan(g.p_holm) else p_text(g.p_holm) for g in gaps], 6),
        Column("result", [mark(slices, row) for row in rows], 8, is_text=True),
    ]


def trends(slices: Slices) -> Table:
    """Trends, a row per numeric column."""
    rows, unit = slices.trends, slices.score_unit
    level = interval_name(slices.level)
    ends = [_told_apart(trend.start, trend.end) for trend in rows]
    return Table(
        [
            Column("trend", [trend.column for trend in rows], 9, is_text=True),
            Column("from", [start for start, _ in ends], 4),
            Column("to", [end for _, end in ends], 4),
            Column("change", [shown_change(trend.change, unit) for trend in rows], 8),
            Column(level, [changes(trend.low, trend.high, slices) for trend in rows], 6),
            Column("p", [p_text(trend.p_holm) for trend in rows], 7),
        ],
        ("Trends are from the 10th to the 90th percentile.",),
    )


def _told_apart(*ends: float | str) -> list[str]:
    """The ends of a trend as text, which those of dates are already."""
    numbers = [end for end in ends if not isinstance(end, str)]
    return told_apart(numbers) if numbers else [*map(str, ends)]


def mark(slices: Slices, row: Slice) -> Cell:
    """Whether a slice is worse or better than the rest beyond chance."""
    if not row.differs(slices.level):
        return Cell("")
    word = "worse" if (row.gap.value < 0) == (slices.better == "higher") else "better"
    return Cell(word, _TONES[word])


def interval_text(slices: Slices, low: float, high: float) -> str:
    """The interval of a score, or of a change."""
    if len(slices.names) > 1:
        return changes(low, high, slices)
    return "" if math.isnan(low) else shown_range(low, high, slices.score_unit)


def changes(low: float, high: float, slices: Slices) -> str:
    """An interval of a difference."""
    return "" if math.isnan(low) else change_range(low, high, slices.score_unit)
