"""What ``segiou inspect`` found, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from segiou.report.console import console_of, text_of
from segiou.report.formats import percent

if TYPE_CHECKING:
    from segiou.inspection import Inspection

__all__ = ["render_inspection"]

_SHOWN = 40


def render_inspection(found: Inspection, width: int, *, color: bool) -> str:
    """Render the findings for ``width`` columns."""
    console = console_of(width, color=color)
    console.print(_facts(found))
    if found.values:
        console.print(_value_table(found))
    if found.colors:
        console.print(_color_table(found))
    _print_fits(console, found)
    for text in found.suspicions:
        console.print(Text(f"suspicious: {text}", style="yellow"))
    for problem in found.problems:
        console.print(Text(f"unreadable: {problem}", style="red"))
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
    best = next((fit.name for fit in found.fits if not fit.undeclared), "")
    names = _names(best)
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    table.add_column("value", justify="right")
    table.add_column("share", justify="right")
    table.add_column("pixels", justify="right")
    table.add_column("files", justify="right")
    if names:
        table.add_column(f"in {best}", style="dim")
    for value, pixels in list(found.values.items())[:_SHOWN]:
        row = [str(value), percent(pixels / total), str(pixels), str(found.value_files[value])]
        table.add_row(*row, *([names.get(value, "–")] if names else []))
    if len(found.values) > _SHOWN:
        table.add_row("…", "", f"{len(found.values) - _SHOWN} more", "")
    return table


def _names(best: str) -> dict[int, str]:
    from segiou.labels import labelset_names, load_labels

    if best not in labelset_names():
        return {}
    labels = load_labels(best)
    names = {v: c.name for c in labels.classes for v in c.values}
    return names | dict.fromkeys(labels.ignore, "ignored")


def _color_table(found: Inspection) -> Table:
    total = sum(found.colors.values())
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    table.add_column("colour")
    table.add_column("share", justify="right")
    table.add_column("pixels", justify="right")
    for name, pixels in list(found.colors.items())[:_SHOWN]:
        table.add_row(Text("■ ", style=name) + name, percent(pixels / total), str(pixels))
    if len(found.colors) > _SHOWN:
        table.add_row("…", "", f"{len(found.colors) - _SHOWN} more")
    return table


def _print_fits(console: Any, found: Inspection) -> None:
    whole = [fit for fit in found.fits if not fit.undeclared]
    if whole:
        console.print("label sets that declare every value:")
        for fit in whole[:6]:
            seen = f"{fit.classes_seen} of {fit.num_classes} classes occur"
            console.print(f"  --labels {fit.name}  ({seen})")
    elif found.fits:
        nearest = found.fits[0]
        console.print(
            f"no label set declares every value; nearest is {nearest.name}, "
            f"with {nearest.undeclared} undeclared pixels"
        )
    elif found.files:
        console.print("no preset declares any of these values")
