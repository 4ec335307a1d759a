"""Terminal text for explain, inspect, labelsets and compare."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from segiou._support.files import printable, problem_lines
from segiou._support.text import (
    count,
    p_text,
    percent,
    plural,
    points,
    see,
    shown,
    shown_change,
    shown_range,
    signed_points,
)
from segiou.analysis import comparison_text
from segiou.analysis.units import plural_of
from segiou.measures.registry import flag_of
from segiou.report.terminal import TIE, Column, console_of, facts, head, say, show, text_of, tone_of
from segiou.report.wording import (
    cell,
    difference_cells,
    difference_head,
    influences,
    significant_text,
    top_steps,
)

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison, PairComparison
    from segiou.analysis.imbalance import ClassBalance, Imbalance
    from segiou.analysis.ranking import Ranking
    from segiou.analysis.steps import NextStep
    from segiou.labels.label_set import LabelSet
    from segiou.measures.listing import ListedMeasure
    from segiou.scoring.inspection import Inspection, LabelSetMatch


def render_imbalance(
    found: Imbalance, width: int, *, color: bool, steps: Sequence[NextStep] = ()
) -> str:
    """Render next steps, findings, the split of the gap and the classes."""
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
    note = "loss: points that each score would drop if the model stopped finding the class"
    show(console, _balance_columns(rows), notes=[note])
    return text_of(console)


def _print_split(console: Console, found: Imbalance) -> None:
    rows = [("pixel accuracy", cell(found.pixel_accuracy), "")]
    for name, score, lost, why in (
        ("mean accuracy", found.mean_accuracy, found.gap_imbalance, "imbalance"),
        ("mean IoU", found.mean_iou, found.gap_false_positives, "false positives"),
    ):
        rows.append((name, cell(score), f"{signed_points(-lost)} points: {why}"))
    for name, base in (("majority baseline", found.majority), ("random baseline", found.random)):
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
        Column("accuracy loss", [_points(row.accuracy_cost) for row in rows], 2),
        Column("mean IoU loss", [_points(row.mean_iou_cost) for row in rows], 3),
        Column("gap points", [_points(row.gap_part) for row in rows], 5),
    ]


def _points(value: float) -> str:
    return "–" if math.isnan(value) else points(value)


_SHOWN = 40
_OF_VOLUMES = "nnU-Net's dataset.json also works: --labels dataset.json"
_OWN_PROPOSAL = "To write a label set with these names, use --propose FILE."
_OWN_SET = "To start your own, edit a preset: segiou labelsets NAME > mine.toml"


def render_inspection(found: Inspection, width: int, *, color: bool) -> str:
    """Render what inspect found."""
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
        console.print("\nValues in the predictions:\n")
        _show_pixels(console, replace(found.pred, fits=found.fits))
    for side, lead in ((found, ""), (found.pred, " in the predictions")):
        for text in () if side is None else side.suspicions:
            say(console, f"suspicious{lead}: {printable(text)}", "yellow")
    for line in found.problem_lines:
        say(console, f"unreadable: {line}", "red")
    for line in problem_lines(found.disagreements):
        say(console, f"mismatch: {line}", "red")
    return text_of(console)


def _show_pixels(console: Console, found: Inspection) -> None:
    tables: Any = {"value": found.values, "colour": found.colors, "name": found.names}
    for title, pixels in tables.items():
        if pixels:
            show(console, _pixel_columns(found, title, pixels))


def _file_facts(found: Inspection) -> list[tuple[str, str]]:
    counted = {
        "format": found.kinds,
        "mode": found.modes,
        "dtype": found.dtypes,
        "size": {size.replace("x", " × "): n for size, n in found.sizes.items()},
        "spacing": found.spacings,
        "orientation": found.orientations,
    }
    facts = [(name, _listed(numbers)) for name, numbers in counted.items() if numbers]
    if found.pairs:
        compared = "size, spacing, affine and orientation" if found.spacings else "size"
        same = f", all with the same {compared}"
        if found.disagreements or found.problems:
            same = ""
        facts.append(("pairs", f"{found.pairs}{same}"))
    return [("files", str(found.files)), *facts] if found.files else []


def _listed(counted: Mapping[str, int]) -> str:
    shown = [f"{name} ({n})" if len(counted) > 1 else name for name, n in list(counted.items())[:6]]
    return ", ".join(shown) + (f" and {len(counted) - 6} more" if len(counted) > 6 else "")


def _pixel_columns(found: Inspection, head: str, pixels: Mapping[Any, int]) -> list[Column]:
    """The most frequent values, colours or names, with shares and class names."""
    kept, total = list(pixels)[:_SHOWN], sum(pixels.values())
    more = len(pixels) - len(kept)

    def column(
        head: str, cells: Iterable[str | Text], rank: int, rest: str = "", **how: Any
    ) -> Column:
        return Column(head, [*cells, *([rest] if more else [])], rank, **how)

    names = [Text(f"■ {name}", style=name) if head == "colour" else str(name) for name in kept]
    unit = _unit(found) if head == "value" else "pixels"
    columns = [
        column(head, names, 9, "…"),
        column("share", [percent(pixels[name] / total) for name in kept], 7),
        column(unit, [count(pixels[name]) for name in kept], 4, f"{count(more)} more"),
    ]
    if head == "value":
        columns.append(column("files", [str(found.value_files[value]) for value in kept], 5))
    # Class names of the best match, or of the only label set that was asked for.
    fit = next(iter(found.fitting or (found.fits if len(found.fits) == 1 else ())), None)
    if fit is not None and head != "name":
        title = f"{'in' if fit.undeclared else 'fits'} {fit.name}" if fit.is_named else "class"
        meanings = [printable(fit.meanings.get(name, "–")) for name in kept]
        columns.append(column(title, meanings, 8, is_text=True, style="dim"))
    return columns


def _unit(found: Inspection) -> str:
    return "voxels" if found.spacings else "pixels"


def _subject(fit: LabelSetMatch) -> str:
    return f"Label set {fit.name}" if fit.is_named else "The label set"


def _print_fits(console: Console, found: Inspection) -> None:
    from segiou.scoring.inspection import LISTED

    if found.proposal:
        say(console, "The values match:")
        say(console, found.proposal, lead="  ")
    if found.fitting and len(found.fits) == 1:
        say(console, f"{_subject(found.fits[0])} matches: {found.fits[0].occurring}.")
    elif found.fitting:
        say(console, "Label sets that cover every value, best match first:")
        for fit in found.fitting[:LISTED]:
            say(console, str(fit), lead="  ")
        if others := len(found.fitting[LISTED:]):
            say(console, f"and {others} more with few matching classes.")
        if len(found.fitting) > 1:
            say(
                console,
                "The same value means a different class in each set: pick the one your masks use.",
            )
            say(console, _OWN_SET)
    elif found.fits:
        closest = found.fits[0]
        pixels = plural(closest.undeclared, _unit(found).removesuffix("s"))
        if len(found.fits) == 1:
            have = "has" if closest.undeclared == 1 else "have"
            lacks = f"{pixels} {have} undeclared values"
            say(console, f"{_subject(closest)} does not match: {lacks}.")
        else:
            leaves = f"which leaves {pixels} undefined"
            say(console, f"No label set matches. Closest: {closest.name}, {leaves}.")
        say(console, _OWN_SET)
    elif found.files:
        say(console, "No preset defines any of these values.")
        say(console, _OWN_PROPOSAL if found.names else _OWN_SET)
    if found.spacings:
        say(console, _OF_VOLUMES)


def render_labelsets(sets: Sequence[LabelSet], width: int, *, color: bool) -> str:
    """Render a list of label sets."""
    console = console_of(width, color=color)
    columns = [
        Column("label set", [labels.name for labels in sets], 9, is_text=True),
        Column("classes", [str(labels.num_classes) for labels in sets], 1),
        Column("title", [labels.title for labels in sets], 2, is_text=True),
    ]
    show(console, columns)
    hint = "To customise a set: segiou labelsets NAME > FILE.toml, edit it, then --labels FILE.toml"
    say(console, hint, "dim")
    return text_of(console)


def render_measures(found: Sequence[ListedMeasure], width: int, *, color: bool) -> str:
    """Render a list of measures: a line about each, its scores and its options."""
    console = console_of(width, color=color)
    for one in found:
        head(console, f"{one.key} ({flag_of(one.key)})")
        say(console, one.about)
        columns = [
            Column("score", [score.name for score in one.scores], 9, is_text=True),
            Column("title", [score.title for score in one.scores], 4, is_text=True),
            Column("unit", [score.unit or "ratio" for score in one.scores], 5, is_text=True),
            Column("better", [score.better for score in one.scores], 7, is_text=True),
        ]
        show(console, columns)
        options = ", ".join(f"{name}={value}" for name, value in one.options.items())
        say(console, f"options: {options}" if options else "no options", "dim")
        console.print()
    say(console, "To measure one: segiou score … OPTION, or measures=[KEY] in Python", "dim")
    return text_of(console)


def render_comparison(found: Comparison, width: int, *, color: bool) -> str:
    """Render verdicts, evidence, classes, images and the method of a comparison."""
    console = console_of(width, color=color)
    if found.stability is not None:
        _say_ranking(console, found.stability)
    method: dict[str, None] = {}
    for pair in found.pairs:
        _say_pair(console, found, pair)
        console.print()
        if pair.images_differing:
            _say_details(console, found, pair)
            method |= dict.fromkeys(comparison_text.method(found, pair))
    if method:
        head(console, "Method")
        # What holds for all pairs comes first, then the power of each.
        for line in sorted(method, key=lambda line: line.startswith("Power (")):
            say(console, line, "dim")
    return text_of(console)


def render_baseline(found: Comparison, width: int, *, color: bool) -> str:
    """Render verdict, evidence and caution of a run against its baseline."""
    console = console_of(width, color=color)
    _say_pair(console, found, found.pairs[0])
    return text_of(console)


def _say_pair(console: Console, found: Comparison, pair: PairComparison) -> None:
    for number, sentence in enumerate(found.pair_sentences(pair)):
        style = "yellow" if sentence.startswith("Caution:") else ""
        say(console, sentence, style if number else "bold")


def _say_details(console: Console, found: Comparison, pair: PairComparison) -> None:
    """Classes, why pixel accuracy disagrees, and the most influential images."""
    if pair.classes:
        head(console, f"Classes ({significant_text(found, pair)})")
        notes = [comparison_text.contributions(found, pair)]
        if any(row.differs(found.level) for row in (pair.overall, *pair.classes)):
            alpha = f"{1 - found.level:.3g}"
            notes.insert(0, f"* interval excludes 0 and Holm-adjusted p < {alpha}")
        show(console, _pair_columns(found, pair), notes=notes)
    if pair.imbalance.disagree:
        head(console, "Why pixel accuracy disagrees")
        say(console, " ".join([*pair.imbalance.sentences(), see("imbalance")]))
        console.print()
    if pair.favours_a or pair.favours_b:
        head(console, "Most influential images")
        show(console, _image_columns(found, pair))


def render_ranking(found: Ranking, width: int, *, color: bool) -> str:
    """Render a ranking and its stability."""
    console = console_of(width, color=color)
    _say_ranking(console, found)
    return text_of(console)


def _say_ranking(console: Console, found: Ranking) -> None:
    rows, unit = found.models, found.score_unit
    columns = [
        Column("rank", [f"{row.rank:g}" for row in rows], 7),
        Column("model", [printable(row.name) for row in rows], 9, is_text=True),
        Column(found.value_name, [shown(row.value, unit) for row in rows], 8),
        Column("interval", [shown_range(row.low, row.high, unit) for row in rows], 4),
        Column("P(best)", [cell(row.best) for row in rows], 6),
        Column(found.sets_name, [row.possible_ranks for row in rows], 5),
    ]
    head(console, "Ranking")
    show(console, columns, notes=found.sentences())


def _pair_columns(found: Comparison, pair: PairComparison) -> list[Column]:
    rows, unit = (pair.overall, *pair.classes), found.score_unit
    cells = zip(*(difference_cells(row, unit) for row in rows), strict=True)
    names, first, second, deltas, intervals = cells
    marked = [
        Text(f"{delta}{TIE}*", "green" if (row.delta > 0) == (found.better == "higher") else "red")
        if row.differs(found.level)
        else Text(f"{delta}{TIE * 2}")
        for row, delta in zip(rows, deltas, strict=True)
    ]
    return [
        Column("class", names, 9, is_text=True),
        Column(printable(pair.a), first, 6),
        Column(printable(pair.b), second, 5),
        Column(f"{difference_head(pair, unit)}{TIE * 2}", marked, 8),
        Column("interval", intervals, 7),
        Column("p (Holm)", [p_text(row.p_holm) for row in rows], 3),
        Column(plural_of(found.unit), [str(row.units) for row in rows], 1),
    ]


def _image_columns(found: Comparison, pair: PairComparison) -> list[Column]:
    rows, unit = influences(pair), found.score_unit
    effects = [shown_change(image.effect, unit) for image, _ in rows]
    return [
        Column("image", [printable(image.id) for image, _ in rows], 9, is_text=True),
        Column("shifts toward", [printable(name) for _, name in rows], 6, is_text=True),
        Column(f"effect ({unit or 'points'})", effects, 8),
        Column(printable(pair.a), [shown(image.a, unit) for image, _ in rows], 5),
        Column(printable(pair.b), [shown(image.b, unit) for image, _ in rows], 4),
    ]
