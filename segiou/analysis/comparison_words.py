"""A comparison in sentences and tables; only here is anything rounded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from segiou._support.files import printable
from segiou._support.text import (
    called,
    classes,
    listed,
    p_text,
    percent,
    plural,
    points,
    roughly,
    signed_points,
    wrapped,
)
from segiou.analysis.intervals import coverage_sentences, few_groups_sentence
from segiou.analysis.units import FEW_UNITS

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison, Difference, InfluentialImage, PairComparison


def sentences(found: Comparison) -> list[str]:
    """Say what was found, for every pair and for the ranking."""
    pairs = (text for pair in found.pairs for text in pair_sentences(found, pair))
    return [*ranking_sentences(found), *pairs, *closing_sentences(found)]


def ranking_sentences(found: Comparison) -> list[str]:
    """Say in which order the models come, where there are more than two."""
    return [_ranking_sentence(found)] if len(found.names) > 2 else []


def closing_sentences(found: Comparison) -> list[str]:
    """Say how far all of it can be relied on."""
    said = []
    if found.unsafe and found.dependence is not None:
        said.extend(found.dependence.sentences())
    if found.unit != "group" or found.units >= FEW_UNITS:
        said += coverage_sentences(found.unit, found.method, found.units)
    if found.unit == "group" and found.units < FEW_UNITS:
        said.append(few_groups_sentence(found.units))
    elif found.units < FEW_UNITS:
        said.append(
            f"{plural(found.units, found.unit)} are few: take intervals and p for hints, and "
            "more likely too sure than too cautious."
        )
    return [*said, _limits_sentence(found)]


def pair_sentences(found: Comparison, pair: PairComparison) -> list[str]:
    """Say what was found of two models."""
    if math.isnan(pair.overall.delta):
        return [f"{pair.a} and {pair.b} cannot be compared: one of the scores is undefined."]
    said = [_lead_sentence(found, pair), _verdict_sentence(found, pair)]
    if pair.overall.delta and found.units >= FEW_UNITS:
        said.append(_power_sentence(found, pair))
    if pair.classes:
        said.append(_classes_sentence(found, pair))
    if pair.imbalance.disagree:
        said += pair.imbalance.sentences()
    if pair.one_sided:
        said.append(
            f"{classes(pair.one_sided)}: only one of the two has a value, so the means cover "
            "different classes."
        )
    return said


def _ranking_sentence(found: Comparison) -> str:
    places = [f"{r.name} {percent(r.value)} ({_best(r.best)})" for r in found.ranking]
    order = f"In order of {found.pairs[0].overall.name}"
    if math.isnan(found.ranking[0].best):
        return f"{order}: {listed([f'{r.name} {percent(r.value)}' for r in found.ranking], 10)}."
    return (
        f"{order}, with the share of {found.resamples} resamples of the {found.unit}s in which "
        f"each is best: {listed(places, 10)}."
    )


def _best(share: float) -> str:
    return {0.0: "none", 1.0: "all"}.get(share, percent(share))


def _ahead(pair: PairComparison) -> tuple[str, str]:
    return (pair.b, pair.a) if pair.overall.delta > 0 else (pair.a, pair.b)


def _lead_sentence(found: Comparison, pair: PairComparison) -> str:
    score = pair.overall
    first, second = _ahead(pair)
    values = (score.b, score.a) if score.delta > 0 else (score.a, score.b)
    if score.delta == 0:
        return f"{pair.a} and {pair.b} have the same {score.name}, {percent(score.a)}."
    low, high = (score.low, score.high) if score.delta > 0 else (-score.high, -score.low)
    ends = f"{points(low)} to {points(high)} points"
    interval = f"{100 * found.level:g} % interval of the lead {ends}, "
    if math.isnan(low):
        interval = "no interval, "
    adjusted = f", {p_text(score.p_holm)} after Holm" if len(found.pairs) > 1 else ""
    swaps = f"all {pair.permutations}" if pair.exact else f"{pair.permutations}"
    return (
        f"{first} is {points(abs(score.delta))} points of {score.name} ahead of {second} "
        f"({percent(values[0])} against {percent(values[1])}); {interval}p = {p_text(score.p)}"
        f"{adjusted} "
        f"({swaps} swaps of the two on {found.unit}s)."
    )


def _verdict_sentence(found: Comparison, pair: PairComparison) -> str:
    score = pair.overall
    first, _ = _ahead(pair)
    others = _others(found)
    outside = score.low > 0 or score.high < 0 or math.isnan(score.low)
    unlikely = score.p_holm < 1 - found.level
    if score.delta == 0:
        return f"On {others} either could be ahead."
    if 2.0 ** (1 - found.units) >= 1 - found.level:
        return (
            f"With {plural(found.units, found.unit)} no p below {2.0 ** (1 - found.units):.2f} is "
            f"possible, so nothing can be said about other {found.unit}s."
        )
    if outside and unlikely and found.unsafe:
        return (
            "If the images were independent, the difference would be unlikely to be one of these "
            f"images alone. They may not be, so it is not shown that {first} would be ahead on "
            f"{others}."
        )
    if outside and unlikely:
        return (
            f"The difference is unlikely to be one of these {found.unit}s alone: on {others} "
            f"{first} would probably be ahead again."
        )
    if outside or unlikely:
        return f"Borderline: interval and test disagree on whether {first} is ahead on {others}."
    return (
        f"The difference may be one of {found.unit}s, not of models: on {others} it could well "
        "be gone or reversed."
    )


def _others(found: Comparison) -> str:
    """What a comparison is about, apart from the images at hand."""
    if found.block_length is not None and found.dependence is not None:
        return f"other stretches of {found.dependence.where}"
    if found.unsafe and found.dependence is not None:
        few = found.dependence.few_sequences
        return "images of other sequences" if few else "other images"
    return f"another {plural(found.units, found.unit)} of this kind"


def _power_sentence(found: Comparison, pair: PairComparison) -> str:
    power = pair.power
    if math.isnan(power.now):
        return "How many images a difference of this size needs cannot be said from this run."
    chance = f"with {power.units}, as here, {roughly(power.now)}"
    if power.needed is None:
        return (
            f"No number of {power.unit}s tried, up to {power.grid[-1][0]}, shows a difference of "
            f"this size four times in five; {chance} of such comparisons would."
        )
    few = " or fewer" if power.needed == power.grid[0][0] else ""
    if_independent = ", if they are independent" if found.unsafe else ""
    return (
        f"To see a difference of this size four times in five takes about "
        f"{plural(power.needed, power.unit)}{few}{if_independent}; {chance} of such comparisons "
        "would."
    )


def _classes_sentence(found: Comparison, pair: PairComparison) -> str:
    shown = [f"{called(c.name)} {signed_points(c.delta)}" for c in pair.different(found.level)]
    head = "The class that differs" if len(shown) == 1 else "Classes that differ"
    if not shown:
        return f"No single class differs between {pair.a} and {pair.b} after Holm's correction."
    return (
        f"{head} after Holm's correction, in points, {pair.b} minus {pair.a}: {listed(shown, 8)}."
    )


def _limits_sentence(found: Comparison) -> str:
    about = f"other {found.unit}s of the same kind"
    if found.block_length is not None:
        about = _others(found)
    elif found.unsafe and found.dependence is not None and found.dependence.few_sequences:
        about = f"other images of {found.dependence.where}"
    return (
        f"All of this is about {about}, scored with these same models. It says nothing of "
        "training them again, nor of other kinds of images."
    )


def text(found: Comparison, width: int) -> str:
    """Write sentences, tables and the images that matter as plain text."""
    parts = ["\n".join(wrapped(line, width) for line in sentences(found))]
    if len(found.names) > 2:
        rows = [
            (r.name, _cell(r.value), _range(r.low, r.high), _cell(r.best)) for r in found.ranking
        ]
        parts.append(_table(("model", "%", "interval", "best %"), rows))
    for pair in found.pairs:
        parts.append(_pair_table(pair))
        parts.append(_influential_table(pair))
    return "\n\n".join(part for part in parts if part) + "\n"


def _pair_table(pair: PairComparison) -> str:
    head = ("class", pair.a, pair.b, "difference", "interval", "p", "p Holm", "units")
    return _table(head, [_row(d) for d in (pair.overall, *pair.classes)])


def _row(d: Difference) -> tuple[str, ...]:
    few = " (few)" if d.few else ""
    return (
        d.name,
        _cell(d.a),
        _cell(d.b),
        signed_points(d.delta),
        _range(d.low, d.high),
        p_text(d.p),
        p_text(d.p_holm),
        f"{d.units}{few}",
    )


def _influential_table(pair: PairComparison) -> str:
    rows = [_influential_row(m, towards) for towards, ms in _sides(pair) for m in ms]
    if not rows:
        return ""
    return _table(("image", "moves it to", "by points", pair.a, pair.b), rows)


def _sides(pair: PairComparison) -> tuple[tuple[str, tuple[InfluentialImage, ...]], ...]:
    return ((pair.b, pair.for_b), (pair.a, pair.for_a))


def _influential_row(m: InfluentialImage, towards: str) -> tuple[str, ...]:
    return (m.id, towards, signed_points(m.effect), _cell(m.a), _cell(m.b))


def _cell(value: float) -> str:
    return "–" if math.isnan(value) else points(value)


def _range(low: float, high: float) -> str:
    return "–" if math.isnan(low) else f"{signed_points(low)} to {signed_points(high)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align the first column left and the others right, under their heads."""
    lines = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(size) if i == 0 else cell.rjust(size)
            for i, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    )
