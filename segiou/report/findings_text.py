"""What is found about imbalance and about masks, as text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from segiou._support.files import printable
from segiou._support.text import percent, plural, points, signed_points, wrapped
from segiou.report.terminal import console_of, simple_table, text_of
from segiou.report.wording import cell, top_steps

if TYPE_CHECKING:
    from segiou.analysis.imbalance import ClassBalance, Imbalance
    from segiou.analysis.steps import NextStep
    from segiou.scoring.inspection import Inspection

__all__ = ["render_imbalance", "render_inspection"]

#: Columns that give way first where the terminal is narrow: name, width needed.
_COLUMNS = (
    ("share", 0),
    ("recall", 44),
    ("IoU", 34),
    ("costs accuracy", 70),
    ("costs mean IoU", 60),
    ("part of gap", 86),
)


def render_imbalance(
    found: Imbalance, width: int, *, color: bool, steps: Sequence[NextStep] = ()
) -> str:
    """Render next steps, sentences, the split of the gap and the classes for ``width`` columns."""
    console = console_of(width, color=color)
    for number, step in enumerate(top_steps(steps), 1):
        console.print(wrapped(f"{number}. {step}", console.width))
    if steps:
        console.print()
    for sentence in found.sentences():
        console.print(wrapped(sentence, console.width))
    console.print()
    console.print(_split(found))
    console.print()
    console.print(_classes(found, width))
    console.print(Text("costs and parts of the gap are in percentage points", style="dim"))
    return text_of(console)


def _split(found: Imbalance) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="dim")
    grid.add_row("pixel accuracy", cell(found.pixel_accuracy), "")
    steps = (
        ("mean accuracy", found.mean_accuracy, found.gap_imbalance, "imbalance"),
        ("mean IoU", found.mean_iou, found.gap_false_positives, "false positives"),
    )
    for name, score, lost, why in steps:
        grid.add_row(name, cell(score), f"{signed_points(-lost, '–')} points: {why}")
    for name, base in (("majority baseline", found.majority), ("random by share", found.random)):
        scores = f"accuracy {cell(base.pixel_accuracy)}, mean IoU {cell(base.mean_iou)}"
        grid.add_row(name, "", scores)
    return grid


def _classes(found: Imbalance, width: int) -> Table:
    shown = [name for name, needed in _COLUMNS if width >= needed]
    table = simple_table("class", shown)
    for row in sorted(found.classes, key=_largest_first):
        values = {
            "share": cell(row.share),
            "recall": cell(row.recall),
            "IoU": cell(row.iou),
            "costs accuracy": _points(row.accuracy_cost),
            "costs mean IoU": _points(row.mean_iou_cost),
            "part of gap": _points(row.gap_part),
        }
        table.add_row(Text(printable(row.name)), *(values[name] for name in shown))
    return table


def _points(value: float) -> str:
    return "–" if math.isnan(value) else points(value)


def _largest_first(row: ClassBalance) -> tuple[bool, float]:
    return math.isnan(row.gap_part), -row.gap_part


_SHOWN = 40
_OWN_SET = "For a set of your own, segiou labelsets NAME prints one as TOML, to edit."


def render_inspection(found: Inspection, width: int, *, color: bool) -> str:
    """Render the findings for ``width`` columns."""
    console = console_of(width, color=color)
    if found.files:
        console.print(_facts(found))
    if found.values:
        console.print(_value_table(found))
    if found.colors:
        console.print(_color_table(found))
    _print_fits(console, found)
    for text in found.suspicions:
        console.print(Text(printable(f"suspicious: {text}"), style="yellow"))
    for line in found.problem_lines:
        console.print(Text(f"unreadable: {line}", style="red"))
    return text_of(console)


def _facts(found: Inspection) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_row("files", str(found.files))
    for name, facts in (
        ("format", found.kinds),
        ("mode", found.modes),
        ("dtype", found.dtypes),
        ("size", found.sizes),
    ):
        grid.add_row(name, _listed(facts))
    return grid


def _listed(facts: Mapping[str, int]) -> str:
    shown = [f"{name} ({n})" if len(facts) > 1 else name for name, n in list(facts.items())[:6]]
    return ", ".join(shown) + (f" and {len(facts) - 6} more" if len(facts) > 6 else "")


def _value_table(found: Inspection) -> Table:
    total = sum(found.values.values())
    rows: list[list[str | Text]] = [
        [str(value), percent(pixels / total), str(pixels), str(found.value_files[value])]
        for value, pixels in list(found.values.items())[:_SHOWN]
    ]
    heads = ("value", "share", "pixels", "files")
    return _table(heads, rows, list(found.values), found)


def _color_table(found: Inspection) -> Table:
    total = sum(found.colors.values())
    rows: list[list[str | Text]] = [
        [Text("■ ", style=name) + name, percent(pixels / total), str(pixels)]
        for name, pixels in list(found.colors.items())[:_SHOWN]
    ]
    return _table(("colour", "share", "pixels"), rows, list(found.colors), found)


def _table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    values: Sequence[int | str],
    found: Inspection,
) -> Table:
    """What occurs, with the names of the first label set that fits, or the only one asked for."""
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    for head in heads:
        table.add_column(head, justify="right")
    fit = next(iter(found.fitting or (found.fits if len(found.fits) == 1 else ())), None)
    if fit is not None:
        table.add_column(f"{'in' if fit.undeclared else 'fits'} {fit.name}", style="dim")
    for row, value in zip(rows, values, strict=False):
        table.add_row(*row, *([printable(fit.meanings.get(value, "–"))] if fit is not None else []))
    if len(values) > len(rows):
        table.add_row("…", "", f"{len(values) - len(rows)} more")
    return table


def _print_fits(console: Any, found: Inspection) -> None:
    from segiou.scoring.inspection import LISTED

    if found.proposal:
        console.print(f"the values alone fit:\n  {found.proposal}")
    if found.fitting:
        console.print("label sets that declare every value, the one that fits best first:")
        for fit in found.fitting[:LISTED]:
            console.print(f"  {fit}")
        if others := len(found.fitting[LISTED:]):
            console.print(f"and {others} more, of which few classes occur.")
        if len(found.fitting) > 1:
            console.print("Equal values mean other classes in each: choose the one that was used.")
            console.print(_OWN_SET)
    elif found.fits:
        name, pixels = found.fits[0].name, plural(found.fits[0].undeclared, "pixel")
        if len(found.fits) == 1:
            console.print(f"label set {name} does not fit: it does not declare {pixels}")
        else:
            console.print(f"no label set fits; nearest is {name}, which does not declare {pixels}")
        console.print(_OWN_SET)
    elif found.files:
        console.print("no label set declares any of these values")
        console.print(_OWN_SET)
