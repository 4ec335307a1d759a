"""What pixel accuracy hides, for a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from segiou.imbalance.wording import wrapped
from segiou.report.console import console_of, text_of
from segiou.report.formats import number, percent

if TYPE_CHECKING:
    from segiou.imbalance import ClassBalance, Imbalance

__all__ = ["render_imbalance"]

#: Columns that give way first where the terminal is narrow: name, width needed.
_COLUMNS = (
    ("share", 0),
    ("recall", 44),
    ("IoU", 34),
    ("costs accuracy", 70),
    ("costs mean IoU", 60),
    ("part of gap", 86),
)


def render_imbalance(found: Imbalance, width: int, *, color: bool) -> str:
    """Render sentences, the split of the gap and a row a class for ``width`` columns."""
    console = console_of(width, color=color)
    for sentence in found.sentences():
        console.print(wrapped(sentence, console.width))
    console.print()
    console.print(_split(found))
    console.print()
    console.print(_classes(found, width))
    return text_of(console)


def _split(found: Imbalance) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="dim")
    grid.add_row("pixel accuracy", number(found.pixel_accuracy), "")
    grid.add_row("mean accuracy", number(found.mean_accuracy), _signed(-found.gap_imbalance))
    grid.add_row("mean IoU", number(found.mean_iou), _signed(-found.gap_false_positives))
    for name, base in (("all-majority", found.majority), ("random by share", found.random)):
        scores = f"accuracy {number(base.pixel_accuracy)}, mean IoU {number(base.mean_iou)}"
        grid.add_row(name, "", scores)
    return grid


def _signed(value: float) -> str:
    return "" if math.isnan(value) else f"{value:+.4f}"


def _classes(found: Imbalance, width: int) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("class", overflow="fold", min_width=8)
    shown = [name for name, needed in _COLUMNS if width >= needed]
    for name in shown:
        table.add_column(name, justify="right")
    for row in sorted(found.classes, key=_largest_first):
        values = {
            "share": percent(row.share),
            "recall": number(row.recall),
            "IoU": number(row.iou),
            "costs accuracy": number(row.accuracy_cost),
            "costs mean IoU": number(row.mean_iou_cost),
            "part of gap": number(row.gap_part),
        }
        table.add_row(Text(row.name), *(values[name] for name in shown))
    return table


def _largest_first(row: ClassBalance) -> tuple[bool, float]:
    return math.isnan(row.gap_part), -row.gap_part
