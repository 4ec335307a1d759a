"""Terminal rendering: shared building blocks, and reports as text."""

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
from segiou._support.text import called, count, listed, plural, points
from segiou.report.class_columns import COUNTS, ClassColumns, is_map
from segiou.report.measured import MeasuredTable, measured_tables
from segiou.report.wording import (
    cell,
    counts_text,
    in_unit,
    interval_text,
    range_text,
    skipped_text,
    worst_score,
)

if TYPE_CHECKING:
    from segiou.report.class_rows import ClassRow
    from segiou.report.report import Report

#: Least width.
_NARROWEST = 24
#: Replaces blanks at which lines are not broken; rich breaks lines at no-break spaces.
TIE = "\ue000"
#: From this width on, explanations are printed beside facts, else below.
_BESIDE_FROM = 64
#: Columns between two columns of a table.
_GAP = 2
#: Longer words in headers are broken.
_LONGEST_HEAD = 16
_BAR_CELLS = 16
_ABSENT_SHOWN = 8
#: Protocols of tools that exclude the background.
_FOREGROUND = ("nnunet", "totalsegmentator", "flare22")
_NAMED = 5
#: Percentage of images in worst-case means.
_WORST = 10
#: Columns of classes with a lower rank are hidden first.
_RANKS = {"dice": 3, "precision": 4, "recall": 5, "share": 6, "iou": 7}

#: Trailing blanks of a line, with colours between them.
_END = re.compile(r"(?:\s|\x1b\[[\d;]*m)+$")

#: A name, its value, and an explanation.
Fact = tuple[str, str, str]


def console_of(width: int, *, color: bool) -> Console:
    """A console of ``width`` columns that records its output."""
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
    """The recorded output, without trailing blanks and empty lines at the end."""
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue().replace(TIE, " ")
    lines = (_END.sub(lambda end: "".join(end[0].split()), line) for line in text.splitlines())
    return "\n".join(lines).rstrip("\n") + "\n"


def say(console: Console, text: str, style: str = "", *, lead: str = "") -> None:
    """Print a sentence, wrapped at words and indented by ``lead``."""
    lines = Text(_tied(printable(text)), style=style).wrap(console, console.width - len(lead))
    for number, line in enumerate(lines):
        console.print(Text(" " * len(lead) if number else lead) + line)


def head(console: Console, text: str) -> None:
    """Print the heading of a section."""
    say(console, text, "bold")
    console.print()


def _tied(text: str) -> str:
    """Do not break numbers at thousands or before a per cent sign."""
    return text.replace(" %", f"{TIE}%").replace("\N{NARROW NO-BREAK SPACE}", TIE)


def facts(console: Console, rows: Iterable[Fact]) -> None:
    """Print facts with their explanations."""
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
    """A column of numbers or of text that may wrap; the lowest ``rank`` is hidden first."""

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
        """Width at which nothing wraps."""
        return max(text.cell_len for text in (Text(self.head), *self.texts))

    def least(self, width: int) -> int:
        """Least readable width in a table of ``width`` columns."""
        words = self.head.split()
        halves = [(words[:i], words[i:]) for i in range(1, len(words))] or [(words, [])]
        # Headers have at most two lines.
        head = min(max(len(" ".join(half)) for half in both) for both in halves)
        texts = [text.plain for text in self.texts]
        parts = [word for text in texts for word in (text.split() if self.is_text else [text])]
        longest = max(map(cell_len, parts), default=0)
        return max(
            min(head, _LONGEST_HEAD), min(longest, width * 3 // 5) if self.is_text else longest
        )


def show(
    console: Console,
    columns: Iterable[Column],
    *,
    notes: Iterable[str] = (),
    section_before: int = -1,
) -> list[str]:
    """Print a table of the columns that fit, and notes; returns their headers."""
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
    for note in filter(None, notes):
        say(console, note, "dim")
    if gone:
        say(console, f"Hidden columns (widen the terminal): {listed(gone)}", "dim")
    console.print()
    return [column.head for column in kept]


def _table_width(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _tables_of(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """All columns in as few tables as possible, each with the first column."""
    # Headers wrap only if that saves a table.
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
    report: Report,
    rows: Sequence[ClassRow],
    width: int,
    *,
    color: bool,
    detail: bool,
    columns: ClassColumns,
) -> str:
    """Render a report for ``width`` columns; ``detail`` adds means over images."""
    console = console_of(width, color=color)
    if report.title:
        console.print(Text(printable(report.title), style="bold"))
    say(console, report.verdict)
    console.print()
    facts(console, _headline(report, detail=detail, of_map=is_map(columns)))
    intervals = report.intervals_or_default
    if intervals is not None and (caution := intervals.caution()) is not None:
        say(console, f"Caution: {caution}", "yellow")
    console.print()
    absent = [row for row in rows if row.status == "absent"]
    note = ""
    if len(absent) > _ABSENT_SHOWN:
        rows = [row for row in rows if row.status != "absent"]
        note = f"{len(absent)} absent classes not shown"
    heads = show(console, _class_columns(report, rows, "class", columns), notes=[note])
    if report.group_rows:
        show(console, _class_columns(report, report.group_rows, "group", columns))
    for measured in measured_tables(report):
        lines = len(measured.filled) if measured.summary else -1
        for part in _tables_of([*_measured_columns(measured)], console.width):
            show(console, part, section_before=lines)
    if (worst := report.worst_images) is not None:
        names = [printable(row["id"]) for row in worst.rows] or ["none"]
        scores = [worst_score(report, row, worst.by) for row in worst.rows] or ["–"]
        images = Column("worst images", names, 1, is_text=True)
        show(console, [images, Column(printable(worst.by), scores, 0)])
    for line in _footer(report, notes="note" in heads, detail=detail):
        say(console, line, "dim")
    if report.intervals is not None:
        console.print()
        head(console, "Interval method")
        for line in [*report.intervals.interval_method(), *report.intervals.class_cautions()]:
            say(console, line)
    return text_of(console)


def _headline(report: Report, *, detail: bool, of_map: bool) -> Iterator[Fact]:
    """Scores of the data set, with explanations."""
    intervals = report.intervals_or_default
    total = plural(len(report.class_names), "class", "classes")
    about = f"{report.mean_iou_classes} of {total}"
    yield (
        "mean IoU",
        cell(report.mean_iou),
        about if intervals is None else interval_text(intervals),
    )
    if report.unit == "voxels":
        yield "mean Dice", cell(report.mean_dice), "same classes"
    accuracy_name = "overall accuracy" if of_map else "pixel accuracy"
    yield accuracy_name, cell(report.pixel_accuracy), _gap_text(report)
    if of_map:
        yield "kappa", f"{report.cohen_kappa:.4f}", ""
    if detail:
        yield "mean accuracy", cell(report.mean_accuracy), "mean per-class recall"
    majority = report.majority
    answer, accuracy = printable(called(str(majority["class"]))), cell(majority["pixel_accuracy"])
    about = f"always predicting {answer}; pixel accuracy {accuracy}"
    yield "majority baseline", cell(majority["mean_iou"]), about
    if detail:
        yield from _means_over_images(report)


def _gap_text(report: Report) -> str:
    """The gap between pixel accuracy and mean IoU, with its two parts."""
    gap = report.gap
    if gap != gap:
        return ""
    if not gap:
        return "equal to mean IoU"
    text = f"{points(abs(gap))} points {'above' if gap >= 0 else 'below'} mean IoU"
    if not report.has_matrix:
        return text
    imbalance = report.pixel_accuracy - report.mean_accuracy
    false_positives = report.mean_accuracy - report.mean_iou
    parts = f"{points(imbalance)} from class imbalance, {points(false_positives)} from"
    return f"{text} ({parts} false positives)"


def _means_over_images(report: Report) -> Iterator[Fact]:
    found = report.image_level_means
    if found is None or found.images < 2:
        return
    worst = f"  worst {_WORST} % of images"
    image = "per-image mean IoU (classes in the image's truth), averaged over images"
    yield "image-wise mean IoU (I)", cell(found.image), image
    yield worst, cell(found.worst_image[_WORST]), _worst_interval(report)
    per_class = "per-class mean IoU (images that contain the class), averaged over classes"
    yield "class-wise mean IoU (C)", cell(found.class_mean), per_class
    yield worst, cell(found.worst_class[_WORST]), "each class's lowest-scoring images"


def _worst_interval(report: Report) -> str:
    ends, intervals = report.worst_image_intervals.get(_WORST), report.intervals_or_default
    if ends is None or intervals is None:
        return ""
    return f"{100 * intervals.level:g} % interval {range_text(ends)}"


def _class_columns(
    report: Report, rows: Sequence[ClassRow], heading: str, columns: ClassColumns
) -> Iterator[Column]:
    yield Column(heading, [printable(row.name) for row in rows], 9, is_text=True)
    for i, (key, title) in enumerate(columns.items()):
        values = [getattr(row, key) for row in rows]
        if key in COUNTS:
            yield Column(title, [count(value) for value in values], 2)
        elif i == 0:
            yield Column(title, [Text(cell(value), tone_of(value)) for value in values], 8)
        else:
            yield Column(title, list(map(cell, values)), _RANKS[key])
    if report.intervals is not None and heading == "class" and "iou" in columns:
        ranges = [range_text(report.iou_interval(row.name)) for row in rows]
        yield Column(f"IoU, {100 * report.intervals.level:g} % interval", ranges, 7)
    yield Column("", [Text(_bar(row.iou), tone_of(row.iou)) for row in rows], 1, is_text=True)
    excluded = {n for n, kept in zip(report.class_names, report.include, strict=True) if not kept}
    notes = [row.status or ("excluded from mean" if row.name in excluded else "") for row in rows]
    whole = [note.replace(" ", TIE) for note in notes]
    yield Column("note", whole, 2, is_text=True, style="dim")


def _bar(value: float) -> str:
    if value != value:
        return ""
    full, rest = divmod(round(value * _BAR_CELLS * 8), 8)
    return "█" * full + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]


def tone_of(value: float) -> str:
    """Colour for a score."""
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
            f"the protocol applies to means only; per-class rows pool {report.unit} over all images"
        )
    if report.protocol.name in _FOREGROUND and report.include[0]:
        first = printable(report.class_names[0])
        excludes = f"which this protocol leaves out; use --exclude {first}"
        lines.append(f"the mean includes {first}, {excludes}")
    if report.unassigned.any():
        missed = f"{count(int(report.unassigned.sum()))} {report.unit}"
        lines.append(f"predictions outside all classes, counted as missed: {missed}")
    never = [row.name for row in report.classes if row.status == "never predicted"]
    if never and not notes:
        lines.append(f"never predicted: {', '.join(map(printable, never))}")
    if report.iou_mean.skipped:
        lines.append(f"excluded from the mean: {skipped_text(report)}")
    lines += [table.note for table in measured_tables(report)]
    if detail:
        lines += _not_in_their_truth(report)
    lines.append(f"{counts_text(report)}; segiou {__version__} ({report.backend})")
    return lines


def _not_in_their_truth(report: Report) -> list[str]:
    """False positives in images without the class, which means over images ignore."""
    found = report.image_level_means
    if found is None or found.images < 2 or not found.false_positive_images.any():
        return []
    numbers = zip(found.false_positive_images.tolist(), report.class_names, strict=True)
    most = sorted(((n, name) for n, name in numbers if n), key=lambda item: -item[0])
    first, *others = [f"{printable(name)} in {n}" for n, name in most]
    named = listed([f"{first} {'image' if most[0][0] == 1 else 'images'}", *others], _NAMED)
    ignored = "false positives that I and C ignore (class absent from the image's truth)"
    return [f"{ignored}: {named}"]
