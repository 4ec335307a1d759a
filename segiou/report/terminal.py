"""What every text for a terminal is made of, and reports as such text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from segiou._support.files import printable
from segiou._support.text import called, listed, plural, points
from segiou.report.measured import MeasuredTable, measured_tables
from segiou.report.wording import (
    cell,
    ignored_text,
    in_unit,
    interval_text,
    pairs_text,
    range_text,
    score_text,
    skipped_text,
    verdict,
)

if TYPE_CHECKING:
    from segiou.report.report import ClassRow, Report

#: Narrower than this nothing can be read.
_NARROWEST = 24
#: Stands for a blank that is kept; rich breaks lines at no-break spaces too.
_TIE = "\ue000"
#: From this width on, what a fact means stands beside it, else below.
_BESIDE_FROM = 64
#: Columns between two columns of a table.
_GAP = 2
#: Wider heads are broken inside a word.
_LONGEST_HEAD = 16
_BAR_CELLS = 16
_ABSENT_SHOWN = 8
#: Protocols of tools that leave the background out.
_FOREGROUND = ("nnunet", "totalsegmentator", "flare22")
_NAMED = 5
#: Percentage of the images whose mean stands for the worst case.
_WORST = 10

#: Blanks at the end of a line, and colours between them.
_END = re.compile(r"(?:\s|\x1b\[[\d;]*m)+$")

#: A name, its value, and what it means.
Fact = tuple[str, str, str]


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
    """What was printed, without blanks at the ends of lines and empty lines at the end."""
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue().replace(_TIE, " ")
    lines = (_END.sub(lambda end: "".join(end[0].split()), line) for line in text.splitlines())
    return "\n".join(lines).rstrip("\n") + "\n"


def say(console: Console, text: str, style: str = "", *, lead: str = "") -> None:
    """Print a sentence, broken at words; what leads it stands before its lines."""
    lines = Text(_tied(printable(text)), style=style).wrap(console, console.width - len(lead))
    for number, line in enumerate(lines):
        console.print(Text(" " * len(lead) if number else lead) + line)


def _tied(text: str) -> str:
    """A text that is not broken between a number and its per cent sign."""
    return text.replace(" %", f"{_TIE}%")


def facts(console: Console, rows: Iterable[Fact]) -> None:
    """Print facts, what each means beside it, or below where the terminal is narrow."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column()
    for name, value, about in rows:
        style = "bold" if name == "mean IoU" else ""
        if console.width >= _BESIDE_FROM:
            grid.add_row(Text(name, style), Text(value, style), Text(_tied(about), "dim"))
            continue
        if name:
            say(console, f"{name} {value}", style)
        say(console, about, "dim", lead="  ")
    if grid.row_count:
        console.print(grid)


@dataclass(frozen=True)
class Column:
    """A column of a table: numbers, or texts that may be broken into lines.

    Where the terminal is narrow, columns of the lowest ``rank`` are left out.
    """

    head: str
    cells: Sequence[str | Text]
    rank: int
    is_text: bool = False
    style: str = ""

    @property
    def texts(self) -> list[Text]:
        """The cells with their styles."""
        return [Text(cell) if isinstance(cell, str) else cell for cell in self.cells]

    @property
    def full(self) -> int:
        """Columns at which nothing is broken."""
        return max(text.cell_len for text in (Text(self.head), *self.texts))

    def least(self, width: int) -> int:
        """Columns at which it can still be read, in a table of ``width`` columns."""
        words = self.head.split()
        halves = [(words[:i], words[i:]) for i in range(1, len(words))] or [(words, [])]
        # A head is broken into two lines at most.
        head = min(max(len(" ".join(half)) for half in both) for both in halves)
        texts = [text.plain for text in self.texts]
        parts = [word for text in texts for word in (text.split() if self.is_text else [text])]
        longest = max(map(cell_len, parts), default=0)
        return max(
            min(head, _LONGEST_HEAD), min(longest, width * 3 // 5) if self.is_text else longest
        )


def show(
    console: Console, columns: Iterable[Column], *, note: str = "", section_before: int = -1
) -> list[str]:
    """Print a table of the columns for which there is room, what is noted, and an empty line.

    Gives the heads of these columns. Numbers that are left out are named.
    """
    gone: list[str] = []
    kept = [column for column in columns if any(text.plain for text in column.texts)]
    width = console.width
    least = [column.least(width) for column in kept]
    while len(kept) > 1 and _table_width(least) > width:
        lowest = min(range(len(kept)), key=lambda i: kept[i].rank)
        gone += [] if kept[lowest].is_text else [kept[lowest].head]
        del kept[lowest], least[lowest]
    spare = width - _table_width(least)
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for column, needed in zip(kept, least, strict=True):
        more = max(0, min(column.full - needed, spare))
        spare -= more
        table.add_column(
            Text(column.head),
            justify="left" if column.is_text else "right",
            overflow="fold",
            width=min(needed + more, width),
            style=column.style,
        )
    for number, texts in enumerate(zip(*(column.texts for column in kept), strict=True)):
        if number == section_before:
            table.add_section()
        # Numbers are not broken.
        table.add_row(*(Text(_tied(text.plain), text.style) for text in texts))
    console.print(table)
    if note:
        say(console, note, "dim")
    if gone:
        say(console, f"a wider terminal also shows {listed(gone)}", "dim")
    console.print()
    return [column.head for column in kept]


def _table_width(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _tables_of(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """All columns in as few tables as there is room for, each of which has the first column.

    Heads are broken into lines only where that saves a table.
    """
    first, *others = columns
    narrow = first.least(width)

    def packed(widths: Iterable[int]) -> list[list[Column]]:
        tables, taken = [[first]], [narrow]
        for column, needed in zip(others, widths, strict=True):
            if len(taken) > 1 and _table_width([*taken, needed]) > width:
                tables.append([first])
                taken = [narrow]
            tables[-1].append(column)
            taken.append(needed)
        return tables

    whole = packed(column.full for column in others)
    return min(whole, packed(column.least(width) for column in others), key=len)


def render_text(
    report: Report, rows: Sequence[ClassRow], width: int, *, color: bool, detail: bool
) -> str:
    """Render a report for ``width`` columns; ``detail`` adds means over images."""
    console = console_of(width, color=color)
    if report.title:
        console.print(Text(printable(report.title), style="bold"))
    # The interval stands beside the mean.
    say(console, verdict(report, None))
    console.print()
    facts(console, _headline(report, detail=detail))
    console.print()
    absent = [row for row in rows if row.status == "absent"]
    note = ""
    if len(absent) > _ABSENT_SHOWN:
        rows = [row for row in rows if row.status != "absent"]
        note = f"and {len(absent)} classes that do not occur at all"
    heads = show(console, _class_columns(report, rows, "class"), note=note)
    if report.group_rows:
        show(console, _class_columns(report, report.group_rows, "group"))
    for measured in measured_tables(report):
        lines = len(measured.filled) if measured.summary else -1
        for columns in _tables_of([*_measured_columns(measured)], console.width):
            show(console, columns, section_before=lines)
    if (worst := report.worst_images) is not None:
        names = [printable(row["id"]) for row in worst.rows] or ["none"]
        scores = [score_text(row[worst.by]) for row in worst.rows] or ["–"]
        images = Column("worst images", names, 1, is_text=True)
        show(console, [images, Column(printable(worst.by), scores, 0)])
    for line in _footer(report, notes="note" in heads, detail=detail):
        say(console, line, "dim")
    return text_of(console)


def _headline(report: Report, *, detail: bool) -> Iterator[Fact]:
    """Scores of the data set, and what each is."""
    total = plural(len(report.class_names), "class", "classes")
    yield "mean IoU", cell(report.mean_iou), f"over {report.mean_iou_classes} of {total}"
    if report.shown_intervals is not None:
        yield "", "", interval_text(report.shown_intervals)
    if report.unit == "voxels":
        yield "mean Dice", cell(report.mean_dice), "over the same classes"
    yield "pixel accuracy", cell(report.pixel_accuracy), _gap_text(report)
    if detail:
        yield "mean accuracy", cell(report.mean_accuracy), "mean recall of the classes"
    majority = report.majority
    answer, accuracy = printable(called(str(majority["class"]))), cell(majority["pixel_accuracy"])
    about = f"a model that says {answer} everywhere; its pixel accuracy is {accuracy}"
    yield "majority baseline", cell(majority["mean_iou"]), about
    if detail:
        yield from _means_over_images(report)


def _gap_text(report: Report) -> str:
    """How far pixel accuracy is from mean IoU, and by which two parts."""
    gap = report.gap
    if gap != gap:
        return ""
    text = f"{points(abs(gap))} points {'above' if gap >= 0 else 'below'} mean IoU"
    if not report.has_matrix:
        return text
    imbalance = report.pixel_accuracy - report.mean_accuracy
    false_positives = report.mean_accuracy - report.mean_iou
    return f"{text}: {points(imbalance)} by imbalance, {points(false_positives)} by false positives"


def _means_over_images(report: Report) -> Iterator[Fact]:
    found = report.image_level_means
    if found is None or found.images < 2:
        return
    per_image = "I: mean IoU of each image over the classes in its truth, then the mean over images"
    per_class = "C: mean IoU of each class over the images that have it, then the mean over classes"
    worst = f"  worst {_WORST} % of images"
    lowest = "the same over the images that score least"
    yield "mean over images", cell(found.image), per_image
    yield worst, cell(found.worst_image[_WORST]), lowest
    yield "mean over images per class", cell(found.class_mean), per_class
    lowest = "the same over the images on which each class scores least"
    yield worst, cell(found.worst_class[_WORST]), lowest


def _class_columns(report: Report, rows: Sequence[ClassRow], heading: str) -> Iterator[Column]:
    yield Column(heading, [printable(row.name) for row in rows], 9, is_text=True)
    yield Column("IoU", [Text(cell(row.iou), tone_of(row.iou)) for row in rows], 8)
    for name, rank in (("Dice", 3), ("precision", 4), ("recall", 5), ("share", 6)):
        yield Column(name, [cell(getattr(row, name.lower())) for row in rows], rank)
    if report.intervals is not None and heading == "class":
        ranges = [range_text(report.interval_of(row.name)) for row in rows]
        yield Column(f"IoU, {100 * report.intervals.level:g} % interval", ranges, 7)
    yield Column("", [Text(_bar(row.iou), tone_of(row.iou)) for row in rows], 1, is_text=True)
    excluded = {n for n, kept in zip(report.class_names, report.include, strict=True) if not kept}
    notes = [row.status or ("not in the mean" if row.name in excluded else "") for row in rows]
    whole = [note.replace(" ", _TIE) for note in notes]
    yield Column("note", whole, 2, is_text=True, style="dim")


def _bar(value: float) -> str:
    if value != value:
        return ""
    full, rest = divmod(round(value * _BAR_CELLS * 8), 8)
    return "█" * full + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]


def tone_of(value: float) -> str:
    """The colour of a score."""
    if value != value:
        return ""
    return "red" if value < 1 / 3 else "yellow" if value < 2 / 3 else "green"


def _measured_columns(measured: MeasuredTable) -> Iterator[Column]:
    lines = measured.filled
    for i, head in enumerate(measured.heads):
        summary = zip(measured.summary, ("bold", "dim", "dim"), strict=False)
        cells: list[str | Text] = [line[i] for line in lines]
        cells += [Text(row[i], style) for row, style in summary]
        yield Column(head, cells, rank=-i, is_text=i == 0)


def _footer(report: Report, *, notes: bool, detail: bool) -> list[str]:
    from segiou._support import __version__

    rule = in_unit(report.protocol.description, report.unit)
    lines = [f"protocol {report.protocol.name}: {rule}"]
    if report.protocol.needs_images:
        lines.append(
            f"only means follow it: in tables of classes, the {report.unit} of all images are added"
        )
    if report.protocol.name in _FOREGROUND and report.include[0]:
        first = printable(report.class_names[0])
        lines.append(f"the mean has {first} in it, which is left out there: --exclude {first}")
    if report.unassigned.any():
        missed = plural(int(report.unassigned.sum()), f"valid {report.unit.removesuffix('s')}")
        lines.append(f"predicted as no class, so missed: {missed}")
    never = [row.name for row in report.classes if row.status == "never predicted"]
    if never and not notes:
        lines.append(f"never predicted: {', '.join(map(printable, never))}")
    if report.iou_mean.skipped:
        lines.append(f"not in the mean: {skipped_text(report)}")
    lines += [table.note for table in measured_tables(report)]
    if report.intervals is not None:
        lines += report.intervals.cautions()
    if detail:
        lines += _not_in_their_truth(report)
    lines.append(
        f"{pairs_text(report)}, {report.pixels} {report.unit}, {report.ignored} ignored "
        f"({ignored_text(report)}); segiou {__version__} ({report.backend})"
    )
    return lines


def _not_in_their_truth(report: Report) -> list[str]:
    """What no mean over images counts: classes predicted where the truth has none of them."""
    found = report.image_level_means
    if found is None or found.images < 2 or not found.false_positive_images.any():
        return []
    numbers = zip(found.false_positive_images.tolist(), report.class_names, strict=True)
    most = sorted(((n, name) for n, name in numbers if n), key=lambda item: -item[0])
    named = listed([f"{printable(name)} in {n}" for n, name in most], _NAMED)
    return [f"predicted in images whose truth has none, which I and C do not count: {named}"]
