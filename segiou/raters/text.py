"""Agreement of raters in sentences and tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from segiou._support.text import (
    called,
    capital,
    change_range,
    listed,
    p_text,
    percent,
    plural,
    points,
    shown_range,
    signed_points,
)
from segiou.document.parts import GAP, Column, Facts, Line, Part, Table
from segiou.inference.units import plural_of

if TYPE_CHECKING:
    from segiou.raters.scores import Estimate, ModelAgreement, RaterAgreement


def rater_parts(result: RaterAgreement) -> Iterator[Part]:
    """The verdict on the model, agreement of the experts, pairs per class, and scope."""
    verdicts = [verdict(row, result) for row in result.against_model]
    yield from (Line(text, "bold") for text in filter(None, verdicts))
    if any(verdicts):
        yield GAP
    yield Facts(
        [
            ("pairwise agreement", _ratio(result.agreement), _over(result.agreement)),
            ("all agree", _ratio(result.unanimity), _over(result.unanimity)),
            ("Fleiss' kappa", *_coefficient(result.fleiss_kappa)),
            ("Krippendorff's alpha", *_coefficient(result.krippendorff_alpha)),
        ]
    )
    if result.against_model:
        yield GAP
        yield _model_table(result)
    for name in result.class_names:
        yield GAP
        yield _pair_table(result, name)
    yield GAP
    yield from map(Line, notes(result))


def verdict(row: ModelAgreement, result: RaterAgreement) -> str:
    """Whether the model disagrees with the experts more than they do among themselves."""
    value, low, high, cases = row.difference
    if math.isnan(value) or math.isnan(low):
        return ""
    model, size = called(result.model), points(abs(value))
    way = "lower" if value > 0 else "higher"
    ends = (low, high) if value > 0 else (-high, -low)
    if low > 0 or high < 0:
        more = "more" if low > 0 else "less"
        claim = f"{model} disagrees with these experts {more} than they do among themselves"
    else:
        claim = f"no difference is shown between {model} and these experts"
    limits = f"{100 * result.level:g} % interval {change_range(*ends)}"
    evidence = f"{limits}, {plural(cases, 'case')}"
    return (
        f"{capital(called(row.class_name))}: {claim}. Its Dice with them is {size} points {way} "
        f"than theirs with each other ({evidence})."
    )


def notes(result: RaterAgreement) -> list[str]:
    """Missing cases, the scope of the numbers, and their limits."""
    lines = [
        f"{called(name)} lacks {plural(len(ids), 'case')} ({listed(ids)}), left out of its pairs."
        for name, ids in result.missing.items()
    ]
    units = plural_of(result.unit) if result.unit == "group" else "cases"
    lines.append(
        f"{plural(len(result.raters), 'expert')}, {plural(len(result.ids), 'case')}. Intervals are "
        f"over {units}, never pixels. Pairs count the pixels that both marked; mean Dice and IoU "
        "are means over the cases in which either has the class."
    )
    if result.against_model:
        lines.append(
            "The difference speaks for these experts only; an interval that contains 0 does not "
            "show agreement, so state the margin that matters. The test as one more expert "
            "generalises to other experts and assumes that each name is one person."
        )
    return lines


def _ratio(one: Estimate) -> str:
    return percent(one.value, "–")


def _range(one: Estimate) -> str:
    return "" if math.isnan(one.low) else shown_range(one.low, one.high)


def _over(one: Estimate) -> str:
    """The interval and its cases, which exclude those that an expert lacks."""
    return ", ".join(filter(None, (_range(one), plural(one.cases, "case"))))


def _changes(one: Estimate) -> str:
    """The interval of the difference of Dice, which is that of distances turned around."""
    return "" if math.isnan(one.low) else change_range(-one.high, -one.low)


def _coefficient(one: Estimate) -> tuple[str, str]:
    if math.isnan(one.value):
        return "–", ""
    ends = "" if math.isnan(one.low) else f"{one.low:.3f} to {one.high:.3f}, "
    return f"{one.value:.3f}", f"{ends}{plural(one.cases, 'case')}"


def _pair_table(result: RaterAgreement, name: str) -> Table:
    """One row per pair of raters for one class."""
    rows = [pair for pair in result.pairs if pair.class_name == name]
    scored = ("dice", "Dice"), ("mean_dice", "mean Dice"), ("iou", "IoU"), ("mean_iou", "mean IoU")
    columns = [
        Column(name, [f"{pair.first}, {pair.second}" for pair in rows], 9, is_text=True),
        Column("cases", [str(pair.mean_dice.cases) for pair in rows], 3),
    ]
    for rank, (key, title) in zip((8, 7, 5, 4), scored, strict=True):
        ones = [getattr(pair, key) for pair in rows]
        columns.append(Column(title, [*map(_ratio, ones)], rank))
        if title.endswith("Dice"):
            columns.append(Column("interval", [*map(_range, ones)], rank - 5))
    return Table(columns)


def _model_table(result: RaterAgreement) -> Table:
    """One row per class: the difference, its interval, and the test as one more expert."""
    rows = result.against_model
    changes = [signed_points(-row.difference.value) for row in rows]
    tests = [
        row.expert.reason or f"p {p_text(row.expert.p)}, t({row.expert.freedom})" for row in rows
    ]
    return Table(
        [
            Column("class", [row.class_name for row in rows], 9, is_text=True),
            Column("cases", [str(row.difference.cases) for row in rows], 4),
            Column("Dice minus experts'", changes, 8),
            Column("interval", [_changes(row.difference) for row in rows], 7),
            Column("as one more expert", tests, 6, is_text=True),
        ]
    )
