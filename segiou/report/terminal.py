"""Reports as text for a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from segiou._support.files import printable
from segiou._support.text import called, plural
from segiou.report.formats import (
    between_text,
    boundary_lines,
    boundary_note,
    interval_text,
    number,
    pairs_text,
    percent,
    score_text,
)

if TYPE_CHECKING:
    from segiou.report.report import ClassRow, Report, WorstImages

__all__ = [
    "console_of",
    "render_text",
    "text_of",
]

#: Narrower than this nothing can be read.
NARROWEST = 24


def console_of(width: int, *, color: bool) -> Console:
    """A console of ``width`` columns that keeps what is printed."""
    return Console(
        file=io.StringIO(),
        width=max(width, NARROWEST),
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def text_of(console: Console) -> str:
    """What was printed, without blanks at the ends of lines."""
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


#: Columns that give way first where the terminal is narrow: name, width needed.
_COLUMNS = (("IoU", 0), ("Dice", 62), ("precision", 50), ("recall", 40), ("share", 34))
_BAR_FROM = 84
_BAR_CELLS = 16
_NOTES_FROM = 72
_INTERVALS_FROM = 74
#: What an interval takes of the width, its padding included.
_INTERVAL_CELLS = 21
_ABSENT_SHOWN = 8
_NAMED = 4
#: Percentage of the images whose mean stands for the worst case.
_WORST = 10


def render_text(report: Report, rows: Sequence[ClassRow], width: int, *, color: bool) -> str:
    """Render a report for ``width`` columns."""
    console = console_of(width, color=color)
    if report.title:
        console.print(Text(printable(report.title), style="bold"))
    console.print(_headline(report))
    console.print()
    absent = [row for row in rows if row.status == "absent"]
    if len(absent) > _ABSENT_SHOWN:
        rows = [row for row in rows if row.status != "absent"]
    console.print(_class_table(report, rows, width))
    if len(absent) > _ABSENT_SHOWN:
        console.print(Text(f"and {len(absent)} classes that do not occur at all", style="dim"))
    console.print()
    if report.group_rows:
        console.print(_class_table(report, report.group_rows, width, heading="group"))
        console.print()
    if report.boundary:
        console.print(_boundary_table(report))
        console.print()
    if report.worst_images is not None:
        console.print(_worst_table(report.worst_images))
        console.print()
    for line in _footer(report, notes=_shows_notes(report, width)):
        console.print(Text(line, style="dim"))
    return text_of(console)


def _headline(report: Report) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="dim")
    total = len(report.class_names)
    majority = report.majority
    grid.add_row(
        Text("mean IoU", style="bold"),
        Text(number(report.mean_iou), style="bold"),
        f"over {report.mean_iou_classes} of {plural(total, 'class', 'classes')}",
    )
    if report.intervals is not None:
        grid.add_row("", "", interval_text(report))
    grid.add_row("pixel accuracy", number(report.pixel_accuracy), _gap_text(report.gap))
    grid.add_row("mean accuracy", number(report.mean_accuracy), "mean recall of the classes")
    grid.add_row(
        "all-majority",
        number(majority["mean_iou"]),
        f"mean IoU, and {number(majority['pixel_accuracy'])} pixel accuracy, of always "
        f"answering {called(str(majority['class']))}",
    )
    for row in _image_by_image(report):
        grid.add_row(*row)
    return grid


def _gap_text(gap: float) -> str:
    if gap != gap:
        return ""
    return f"{number(abs(gap))} {'above' if gap >= 0 else 'below'} mean IoU"


def _image_by_image(report: Report) -> list[tuple[str, str, str]]:
    found = report.fine_grained
    if found is None or found.images < 2:
        return []
    worst = f"worst {_WORST} %"
    worst_image, worst_class = (
        number(values[_WORST]) for values in (found.worst_image, found.worst_class)
    )
    return [
        (
            "image by image",
            number(found.image),
            f"each image's mean over its classes (I); {worst} of images {worst_image}",
        ),
        (
            "class by class",
            number(found.class_mean),
            f"each class's mean over its images (C); {worst} of each {worst_class}",
        ),
    ]


def _class_table(
    report: Report, rows: Sequence[ClassRow], width: int, heading: str = "class"
) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column(heading, overflow="fold", min_width=8)
    between = _shows_intervals(report, width) and rows is not report.group_rows
    room = width - (_INTERVAL_CELLS if between else 0)
    shown = [name for name, needed in _COLUMNS if room >= needed]
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    if between and report.intervals is not None:
        table.add_column(
            f"IoU, {100 * report.intervals.level:g} % interval", justify="right", no_wrap=True
        )
    bar = room >= _BAR_FROM
    note = room >= _NOTES_FROM and any(row.status for row in rows)
    if bar:
        table.add_column("", no_wrap=True)
    if note:
        table.add_column("", style="dim")
    excluded = {n for n, kept in zip(report.class_names, report.include, strict=True) if not kept}
    for row in rows:
        values = {
            "IoU": number(row.iou),
            "Dice": number(row.dice),
            "precision": number(row.precision),
            "recall": number(row.recall),
            "share": percent(row.share),
        }
        cells = [Text(row.name), *(Text(values[name]) for name in shown)]
        if between:
            cells.append(Text(between_text(report.interval_of(row.name))))
        if bar:
            cells.append(Text(_bar(row.iou), style=_tone(row.iou)))
        if note:
            cells.append(Text(row.status or ("not in the mean" if row.name in excluded else "")))
        table.add_row(*cells)
    return table


def _shows_intervals(report: Report, width: int) -> bool:
    return report.intervals is not None and width >= _INTERVALS_FROM


def _shows_notes(report: Report, width: int) -> bool:
    return width - _INTERVAL_CELLS * _shows_intervals(report, width) >= _NOTES_FROM


def _boundary_table(report: Report) -> Table:
    heads, *body, means, covered = boundary_lines(report)
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column(heads[0], overflow="fold", min_width=8)
    for head in heads[1:]:
        table.add_column(head, justify="right")
    for line in body:
        if any(cell != "–" for cell in line[1:]):
            table.add_row(*map(Text, line))
    table.add_section()
    table.add_row(*(Text(cell, style="bold") for cell in means))
    table.add_row(*(Text(cell, style="dim") for cell in covered))
    return table


def _worst_table(worst: WorstImages) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("worst images", overflow="fold", min_width=8)
    table.add_column(Text(worst.by), justify="right", overflow="fold")
    if not worst.rows:
        table.add_row("none", "–")
    for row in worst.rows:
        table.add_row(Text(printable(row["id"])), score_text(row[worst.by]))
    return table


def _unseen(report: Report) -> list[str]:
    """What no mean over images charges: classes predicted where the truth has none of them."""
    found = report.fine_grained
    if found is None or found.images < 2 or not found.false_positive_images.any():
        return []
    numbers = sorted(
        zip(found.false_positive_images.tolist(), report.class_names, strict=True),
        key=lambda item: -item[0],
    )
    named = [f"{name} in {number}" for number, name in numbers if number]
    if len(named) > _NAMED + 1:
        named[_NAMED:] = [f"{len(named) - _NAMED} more classes"]
    return [f"predicted in images whose truth has none, unseen by I and C: {', '.join(named)}"]


def _skipped_text(report: Report) -> str:
    by_reason: dict[str, list[str]] = {}
    for index, why in report.iou_mean.skipped.items():
        by_reason.setdefault(why, []).append(report.class_names[index])
    return "; ".join(
        f"{len(names)} {why}" if len(names) > _ABSENT_SHOWN else f"{', '.join(names)} ({why})"
        for why, names in by_reason.items()
    )


def _bar(value: float) -> str:
    if value != value:
        return ""
    eighths = round(value * _BAR_CELLS * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]


def _tone(value: float) -> str:
    if value != value:
        return ""
    return "red" if value < 1 / 3 else "yellow" if value < 2 / 3 else "green"


def _footer(report: Report, *, notes: bool) -> list[str]:
    from segiou._support import __version__

    share = report.ignored / report.pixels if report.pixels else float("nan")
    lines = [f"rule {report.protocol.name}: {report.protocol.description}"]
    if report.unassigned.any():
        missed = plural(int(report.unassigned.sum()), "valid pixel")
        lines.append(f"predicted as no class, so missed: {missed}")
    never = [row.name for row in report.classes if row.status == "never predicted"]
    if never and not notes:
        lines.append(f"never predicted: {', '.join(never)}")
    skipped = report.iou_mean.skipped
    if skipped:
        lines.append(f"not in the mean: {_skipped_text(report)}")
    if report.boundary:
        lines.append(boundary_note(report))
    if report.intervals is not None:
        lines += report.intervals.cautions()
    lines += _unseen(report)
    lines.append(
        f"{pairs_text(report)}, {report.pixels} {report.unit}, "
        f"{report.ignored} ignored ({percent(share)}); segiou {__version__} ({report.backend})"
    )
    return lines
