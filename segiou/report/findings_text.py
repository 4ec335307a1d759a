"""What is found about imbalance, masks, label sets and two models, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from segiou._support.files import printable, problem_lines
from segiou._support.text import p_text, percent, plural, points, signed_points
from segiou.report.terminal import Column, console_of, facts, say, show, text_of, tone_of
from segiou.report.wording import cell, difference_cells, influences, range_text, top_steps

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison, PairComparison
    from segiou.analysis.imbalance import ClassBalance, Imbalance
    from segiou.analysis.steps import NextStep
    from segiou.labels.label_set import LabelSet
    from segiou.scoring.inspection import Inspection


def render_imbalance(
    found: Imbalance, width: int, *, color: bool, steps: Sequence[NextStep] = ()
) -> str:
    """Render next steps, sentences, the split of the gap and the classes for ``width`` columns."""
    console = console_of(width, color=color)
    for number, step in enumerate(top_steps(steps), 1):
        say(console, str(step), lead=f"{number}. ")
    if steps:
        console.print()
    for sentence in found.sentences():
        say(console, sentence)
    console.print()
    _print_split(console, found)
    console.print()
    rows = sorted(found.classes, key=lambda row: (math.isnan(row.gap_part), -row.gap_part))
    note = "if lost: what each score would fall by, in percentage points, like the part of the gap"
    show(console, _balance_columns(rows), note=note)
    return text_of(console)


def _print_split(console: Console, found: Imbalance) -> None:
    rows = [("pixel accuracy", cell(found.pixel_accuracy), "")]
    for name, score, lost, why in (
        ("mean accuracy", found.mean_accuracy, found.gap_imbalance, "imbalance"),
        ("mean IoU", found.mean_iou, found.gap_false_positives, "false positives"),
    ):
        rows.append((name, cell(score), f"{signed_points(-lost)} points: {why}"))
    for name, base in (("majority baseline", found.majority), ("random by share", found.random)):
        rows.append(
            (name, cell(base.mean_iou), f"mean IoU; pixel accuracy {cell(base.pixel_accuracy)}")
        )
    facts(console, rows)


def _balance_columns(rows: Sequence[ClassBalance]) -> list[Column]:
    return [
        Column("class", [printable(row.name) for row in rows], 9, is_text=True),
        Column("share", [cell(row.share) for row in rows], 7),
        Column("recall", [cell(row.recall) for row in rows], 4),
        Column("IoU", [Text(cell(row.iou), tone_of(row.iou)) for row in rows], 8),
        Column("if lost: accuracy", [_points(row.accuracy_cost) for row in rows], 2),
        Column("if lost: mean IoU", [_points(row.mean_iou_cost) for row in rows], 3),
        Column("part of gap", [_points(row.gap_part) for row in rows], 5),
    ]


def _points(value: float) -> str:
    return "–" if math.isnan(value) else points(value)


_SHOWN = 40
_OF_VOLUMES = "nnU-Net's dataset.json is a label set, too: --labels dataset.json"
_OWN_PROPOSAL = "With --propose FILE, a label set of these names is written."
_OWN_SET = "For a set of your own, segiou labelsets NAME prints one as TOML, to edit."


def render_inspection(found: Inspection, width: int, *, color: bool) -> str:
    """Render the findings for ``width`` columns."""
    console = console_of(width, color=color)
    facts = _file_facts(found)
    width = max(8, *(len(name) + 1 for name, _ in facts), 0)
    for name, text in facts:
        say(console, text, lead=f"{name:<{width}}")
    if found.files:
        console.print()
    _show_pixels(console, found)
    _print_fits(console, found)
    if found.pred is not None and found.pred.files:
        console.print("\nthe predictions hold:\n")
        _show_pixels(console, replace(found.pred, fits=found.fits))
    for side, lead in ((found, ""), (found.pred, " in the predictions")):
        for text in () if side is None else side.suspicions:
            say(console, f"suspicious{lead}: {printable(text)}", "yellow")
    for line in found.problem_lines:
        say(console, f"unreadable: {line}", "red")
    for line in problem_lines(found.disagreements):
        say(console, f"disagrees: {line}", "red")
    return text_of(console)


def _show_pixels(console: Console, found: Inspection) -> None:
    tables: Any = {"value": found.values, "colour": found.colors, "name": found.names}
    for head, pixels in tables.items():
        if pixels:
            show(console, _pixel_columns(found, head, pixels))


def _file_facts(found: Inspection) -> list[tuple[str, str]]:
    counted = {
        "format": found.kinds,
        "mode": found.modes,
        "dtype": found.dtypes,
        "size": found.sizes,
        "spacing": found.spacings,
        "orientation": found.orientations,
    }
    facts = [(name, _listed(numbers)) for name, numbers in counted.items() if numbers]
    if found.pairs:
        compared = "size, spacing, affine and orientation" if found.spacings else "size"
        alike = "" if found.disagreements or found.problems else f", all alike in {compared}"
        facts.append(("pairs", f"{found.pairs}{alike}"))
    return [("files", str(found.files)), *facts] if found.files else []


def _listed(counted: Mapping[str, int]) -> str:
    shown = [f"{name} ({n})" if len(counted) > 1 else name for name, n in list(counted.items())[:6]]
    return ", ".join(shown) + (f" and {len(counted) - 6} more" if len(counted) > 6 else "")


def _pixel_columns(found: Inspection, head: str, pixels: Mapping[Any, int]) -> list[Column]:
    """Values, colours or names, the first of many, with their shares and what they mean."""
    shown, total = list(pixels)[:_SHOWN], sum(pixels.values())
    more = len(pixels) - len(shown)

    def column(
        head: str, cells: Iterable[str | Text], rank: int, rest: str = "", **how: Any
    ) -> Column:
        return Column(head, [*cells, *([rest] if more else [])], rank, **how)

    names = [Text(f"■ {name}", style=name) if head == "colour" else str(name) for name in shown]
    unit = _unit(found) if head == "value" else "pixels"
    columns = [
        column(head, names, 9, "…"),
        column("share", [percent(pixels[name] / total) for name in shown], 7),
        column(unit, [str(pixels[name]) for name in shown], 4, f"{more} more"),
    ]
    if head == "value":
        columns.append(column("files", [str(found.value_files[value]) for value in shown], 5))
    # Names of the first label set that fits, or of the only one that was asked for.
    fit = next(iter(found.fitting or (found.fits if len(found.fits) == 1 else ())), None)
    if fit is not None and head != "name":
        title = f"{'in' if fit.undeclared else 'fits'} {fit.name}"
        meanings = [printable(fit.meanings.get(name, "–")) for name in shown]
        columns.append(column(title, meanings, 8, is_text=True, style="dim"))
    return columns


def _unit(found: Inspection) -> str:
    return "voxels" if found.spacings else "pixels"


def _print_fits(console: Console, found: Inspection) -> None:
    from segiou.scoring.inspection import LISTED

    if found.proposal:
        say(console, "the values alone fit:")
        say(console, found.proposal, lead="  ")
    if found.fitting:
        say(console, "label sets that declare every value, the one that fits best first:")
        for fit in found.fitting[:LISTED]:
            say(console, str(fit), lead="  ")
        if others := len(found.fitting[LISTED:]):
            say(console, f"and {others} more, of which few classes occur.")
        if len(found.fitting) > 1:
            say(console, "Equal values mean other classes in each: choose the one that was used.")
            say(console, _OWN_SET)
    elif found.fits:
        name = found.fits[0].name
        pixels = plural(found.fits[0].undeclared, _unit(found).removesuffix("s"))
        if len(found.fits) == 1:
            say(console, f"label set {name} does not fit: it does not declare {pixels}")
        else:
            say(console, f"no label set fits; nearest is {name}, which does not declare {pixels}")
        say(console, _OWN_SET)
    elif found.files:
        say(console, "no label set declares any of these values")
        say(console, _OWN_PROPOSAL if found.names else _OWN_SET)
    if found.spacings:
        say(console, _OF_VOLUMES)


def render_labelsets(sets: Sequence[LabelSet], width: int, *, color: bool) -> str:
    """Render the names, sizes and titles of label sets for ``width`` columns."""
    console = console_of(width, color=color)
    columns = [
        Column("label set", [labels.name for labels in sets], 9, is_text=True),
        Column("classes", [str(labels.num_classes) for labels in sets], 1),
        Column("title", [labels.title for labels in sets], 2, is_text=True),
    ]
    show(console, columns)
    hint = "segiou labelsets NAME prints one as TOML, to edit and give as --labels FILE.toml"
    say(console, hint, "dim")
    return text_of(console)


def render_comparison(found: Comparison, width: int, *, color: bool) -> str:
    """Render sentences, the classes and the images that matter for ``width`` columns."""
    console = console_of(width, color=color)
    if sentences := found.ranking_sentences():
        for sentence in sentences:
            say(console, sentence)
        console.print()
        show(console, _ranking_columns(found))
    for pair in found.pairs:
        _say_pair(console, found, pair)
        console.print()
        show(console, _pair_columns(found, pair))
        if pair.for_a or pair.for_b:
            show(console, _image_columns(pair))
    for sentence in found.closing_sentences():
        say(console, sentence, "dim")
    return text_of(console)


def render_baseline(found: Comparison, width: int, *, color: bool) -> str:
    """Render how a run stands against its baseline, the first of two models."""
    console = console_of(width, color=color)
    _say_pair(console, found, found.pairs[0])
    return text_of(console)


def _say_pair(console: Console, found: Comparison, pair: PairComparison) -> None:
    for number, sentence in enumerate(found.pair_sentences(pair)):
        say(console, sentence, "" if number else "bold")


def _ranking_columns(found: Comparison) -> list[Column]:
    rows = found.ranking
    return [
        Column("model", [printable(row.name) for row in rows], 9, is_text=True),
        Column(found.pairs[0].overall.name, [cell(row.value) for row in rows], 8),
        Column("interval", [range_text((row.low, row.high)) for row in rows], 7),
        Column("best in", [cell(row.best) for row in rows], 6),
    ]


def _pair_columns(found: Comparison, pair: PairComparison) -> list[Column]:
    rows = (pair.overall, *pair.classes)
    names, first, second, deltas, intervals = zip(*map(difference_cells, rows), strict=True)
    # Coloured where two models differ, whichever is ahead.
    tones = [
        ("green" if row.delta > 0 else "red") if row.differs(found.level) else "" for row in rows
    ]
    return [
        Column("class", names, 9, is_text=True),
        Column(printable(pair.a), first, 6),
        Column(printable(pair.b), second, 5),
        Column("difference", list(map(Text, deltas, tones)), 8),
        Column("interval", intervals, 7),
        Column("p", [p_text(row.p) for row in rows], 2),
        Column("p Holm", [p_text(row.p_holm) for row in rows], 3),
        Column("units", [f"{row.units}{' (few)' if row.few else ''}" for row in rows], 1),
    ]


def _image_columns(pair: PairComparison) -> list[Column]:
    rows = influences(pair)
    return [
        Column("image", [printable(image.id) for image, _ in rows], 9, is_text=True),
        Column("moves it to", [printable(towards) for _, towards in rows], 6, is_text=True),
        Column("by points", [signed_points(image.effect) for image, _ in rows], 8),
        Column(printable(pair.a), [cell(image.a) for image, _ in rows], 5),
        Column(printable(pair.b), [cell(image.b) for image, _ in rows], 4),
    ]
