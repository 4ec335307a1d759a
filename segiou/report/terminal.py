"""Reports as text for a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from segiou._support.files import printable
from segiou._support.text import called, listed, plural, points
from segiou.report.wording import (
    boundary_lines,
    boundary_note,
    cell,
    interval_text,
    pairs_text,
    range_text,
    score_text,
    skipped_text,
)

if TYPE_CHECKING:
    from segiou.report.report import ClassRow, Report, WorstImages

__all__ = ["console_of", "render_text", "simple_table", "text_of"]

#: Narrower than this nothing can be read.
_NARROWEST = 24
#: Stands for a blank that is kept; rich breaks lines at no-break spaces too.
_TIE = "\ue000"
#: Columns that give way first where the terminal is narrow: name, width needed.
_COLUMNS = (("IoU", 0), ("Dice", 65), ("precision", 54), ("recall", 43), ("share", 35))
_BAR_FROM = 90
_BESIDE_FROM = 64
_BAR_CELLS = 16
_NOTES_FROM = 78
_INTERVALS_FROM = 74
#: What an interval takes of the width, its padding included.
_INTERVAL_CELLS = 21
_ABSENT_SHOWN = 8
_NAMED = 5
#: Percentage of the images whose mean stands for the worst case.
_WORST = 10


def render_text(report: Report, rows: Sequence[ClassRow], width: int, *, color: bool) -> str:
    """Render a report for ``width`` columns."""
    console = console_of(width, color=color)
    if report.title:
        console.print(Text(printable(report.title), style="bold"))
    console.print(Group(*_headline(report, width)))
    console.print()
    absent = [row for row in rows if row.status == "absent"]
    if len(absent) > _ABSENT_SHOWN:
        rows = [row for row in rows if row.status != "absent"]
    between = report.intervals is not None and width >= _INTERVALS_FROM
    space = width - _INTERVAL_CELLS * between
    console.print(_class_table(report, rows, space, between=between))
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
    for line in _footer(report, notes=space >= _NOTES_FROM):
        console.print(Text(tied(line), style="dim"))
    return text_of(console)


def console_of(width: int, *, color: bool) -> Console:
    """A console of ``width`` columns that keeps what is printed."""
    return Console(
        file=io.StringIO(),
        width=max(width, _NARROWEST),
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def text_of(console: Console) -> str:
    """What was printed, without blanks at the ends of lines."""
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue().replace(_TIE, " ")
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def tied(text: str) -> str:
    """A text that is not broken between a number and its per cent sign."""
    return text.replace(" %", f"{_TIE}%")


def simple_table(heading: str, heads: Iterable[str] = ()) -> Table:
    """A table with a column of names, and columns of numbers under their heads."""
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column(heading, overflow="fold", min_width=8)
    for head in heads:
        table.add_column(Text(head), justify="right", overflow="fold")
    return table


def _headline(report: Report, width: int) -> Iterator[RenderableType]:
    """Scores of the data set, what each is beside it, or below where it is narrow."""
    rows = [(name, value, tied(about)) for name, value, about in _headline_rows(report)]
    if width < _BESIDE_FROM:
        for name, value, about in rows:
            if name:
                yield Text(tied(f"{name} {value}"), style="bold" if name == "mean IoU" else "")
            yield Padding(Text(about, style="dim"), (0, 0, 0, 2))
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="dim")
    for name, value, about in rows:
        style = "bold" if name == "mean IoU" else ""
        grid.add_row(Text(name, style=style), Text(value, style=style), about)
    yield grid


def _headline_rows(report: Report) -> list[tuple[str, str, str]]:
    total = plural(len(report.class_names), "class", "classes")
    majority = report.majority
    answer = printable(called(str(majority["class"])))
    accuracy = cell(majority["pixel_accuracy"])
    return [
        ("mean IoU", cell(report.mean_iou), f"over {report.mean_iou_classes} of {total}"),
        *([("", "", interval_text(report))] if report.intervals is not None else []),
        ("pixel accuracy", cell(report.pixel_accuracy), _gap_text(report.gap)),
        ("mean accuracy", cell(report.mean_accuracy), "mean recall of the classes"),
        (
            "majority baseline",
            cell(majority["mean_iou"]),
            f"mean IoU of predicting {answer} everywhere; pixel accuracy {accuracy}",
        ),
        *_means_over_images(report),
    ]


def _gap_text(gap: float) -> str:
    if gap != gap:
        return ""
    return f"{points(abs(gap))} points {'above' if gap >= 0 else 'below'} mean IoU"


def _means_over_images(report: Report) -> list[tuple[str, str, str]]:
    found = report.fine_grained
    if found is None or found.images < 2:
        return []
    worst = f"worst {_WORST} % of images:"
    return [
        (
            "mean over images",
            cell(found.image),
            f"I: mean IoU of each image, averaged; {worst} {cell(found.worst_image[_WORST])}",
        ),
        (
            "mean over images per class",
            cell(found.class_mean),
            f"C: mean over the images that have the class, averaged; {worst} "
            f"{cell(found.worst_class[_WORST])}",
        ),
    ]


def _class_table(
    report: Report,
    rows: Sequence[ClassRow],
    space: int,
    *,
    heading: str = "class",
    between: bool = False,
) -> Table:
    shown = [name for name, needed in _COLUMNS if space >= needed]
    table = simple_table(heading)
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    if between and report.intervals is not None:
        head = f"IoU, {100 * report.intervals.level:g} % interval"
        table.add_column(head, justify="right", no_wrap=True)
    bar = space >= _BAR_FROM
    note = space >= _NOTES_FROM and any(row.status for row in rows)
    if bar:
        table.add_column("", no_wrap=True)
    if note:
        table.add_column("", style="dim")
    excluded = {n for n, kept in zip(report.class_names, report.include, strict=True) if not kept}
    for row in rows:
        values = [cell(getattr(row, name.lower())) for name in shown]
        cells = [Text(printable(row.name)), *map(Text, values)]
        if between:
            cells.append(Text(range_text(report.interval_of(row.name))))
        if bar:
            cells.append(Text(_bar(row.iou), style=_tone(row.iou)))
        if note:
            cells.append(Text(row.status or ("not in the mean" if row.name in excluded else "")))
        table.add_row(*cells)
    return table


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


def _boundary_table(report: Report) -> Table:
    heads, *body, means, covered = boundary_lines(report)
    table = simple_table(heads[0], heads[1:])
    for line in body:
        if any(value != "–" for value in line[1:]):
            table.add_row(*map(Text, line))
    table.add_section()
    table.add_row(*(Text(value, style="bold") for value in means))
    table.add_row(*(Text(value, style="dim") for value in covered))
    return table


def _worst_table(worst: WorstImages) -> Table:
    table = simple_table("worst images", [printable(worst.by)])
    if not worst.rows:
        table.add_row("none", "–")
    for row in worst.rows:
        table.add_row(Text(printable(row["id"])), score_text(row[worst.by]))
    return table


def _footer(report: Report, *, notes: bool) -> list[str]:
    from segiou._support import __version__

    share = report.ignored / report.pixels if report.pixels else float("nan")
    lines = [f"protocol {report.protocol.name}: {report.protocol.description}"]
    if report.unassigned.any():
        missed = plural(int(report.unassigned.sum()), "valid pixel")
        lines.append(f"predicted as no class, so missed: {missed}")
    never = [printable(row.name) for row in report.classes if row.status == "never predicted"]
    if never and not notes:
        lines.append(f"never predicted: {', '.join(never)}")
    if report.iou_mean.skipped:
        lines.append(f"not in the mean: {skipped_text(report)}")
    if report.boundary:
        lines.append(boundary_note(report))
    if report.intervals is not None:
        lines += report.intervals.cautions()
    lines += _not_in_their_truth(report)
    lines.append(
        f"{pairs_text(report)}, {report.pixels} {report.unit}, "
        f"{report.ignored} ignored ({cell(share)}); segiou {__version__} ({report.backend})"
    )
    return lines


def _not_in_their_truth(report: Report) -> list[str]:
    """What no mean over images counts: classes predicted where the truth has none of them."""
    found = report.fine_grained
    if found is None or found.images < 2 or not found.false_positive_images.any():
        return []
    numbers = zip(found.false_positive_images.tolist(), report.class_names, strict=True)
    most = sorted(((n, name) for n, name in numbers if n), key=lambda item: -item[0])
    named = listed([f"{printable(name)} in {n}" for n, name in most], _NAMED)
    return [f"predicted in images whose truth has none, which I and C do not count: {named}"]
