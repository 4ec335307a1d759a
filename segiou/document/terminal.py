"""Parts of a document as text for a terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from segiou._support.arguments import check_flag
from segiou._support.files import printable
from segiou._support.text import listed
from segiou.document.parts import TIE, Column, Facts, Line, Part, Section, Table
from segiou.document.short_ids import least_width, shortened

#: Smallest width, and the width from which explanations are beside facts instead of below.
_NARROWEST, _BESIDE_FROM = 24, 64
#: Stands for a blank that is not broken: rich breaks lines at no-break spaces.
_WHOLE = "\ue000"
#: Trailing blanks of a line, with colours between them.
_END = re.compile(r"(?:\s|\x1b\[[\d;]*m)+$")
#: Columns between two columns of a table.
_GAP = 2
#: Longer words of headings, such as names of models, are broken.
_MOST_HEAD = 20
#: Shorter ids are never cut.
_LEAST_ID = 12


def text_of(parts: Iterable[Part], width: int = 100, *, color: bool = False) -> str:
    """Parts as text of some width, without trailing blanks and empty lines."""
    console = _console(width, color=color)
    for part in parts:
        _show(console, part)
    return _written(console)


def markdown_text(source: str, width: int = 100, *, color: bool = False) -> str:
    """A page of Markdown as text of some width."""
    from rich.markdown import CodeBlock, Markdown
    from rich.syntax import Syntax

    class Code(CodeBlock):
        """Code whose lines are not broken, so that they can be copied."""

        def __rich_console__(self, *_: object) -> Iterator[Text]:
            code = Syntax("", self.lexer_name, theme=self.theme).highlight(str(self.text).rstrip())
            for line in code.split("\n", allow_blank=True):
                yield Text.assemble(" ", line, no_wrap=True, overflow="ignore")

    class Page(Markdown):
        elements: ClassVar = {**Markdown.elements, "fence": Code, "code_block": Code}

    console = _console(width, color=color)
    console.print(Page(source, code_theme="ansi_dark", hyperlinks=False), crop=False)
    return _written(console)


def _console(width: int, *, color: bool) -> Console:
    check_flag("color", color)
    return Console(
        file=io.StringIO(),
        width=max(width, _NARROWEST),
        height=1,  # so that the size of the terminal is not read for each line
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def _written(console: Console) -> str:
    """Printed text without trailing blanks."""
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue().replace(_WHOLE, " ")
    lines = (_END.sub(lambda end: "".join(end[0].split()), line) for line in text.splitlines())
    return "\n".join(lines).rstrip("\n") + "\n"


def _show(console: Console, part: Part) -> None:
    if isinstance(part, Line):
        _say(console, part.text, part.style, part.lead)
    elif isinstance(part, Facts):
        _facts(console, part)
    elif isinstance(part, Table):
        _table(console, part)
    elif isinstance(part, Section) and not part.only_notebook:
        if part.headed:
            _say(console, part.title, "bold")
            console.print()
        for inner in part.parts:
            _show(console, inner)


def _say(console: Console, text: str, style: str = "", lead: str = "") -> None:
    """Print a sentence, wrapped at words and indented by ``lead``."""
    whole = Text(_tied(text), style={"title": "bold", "lead": ""}.get(style, style))
    for number, line in enumerate(whole.wrap(console, console.width - len(lead))):
        console.print(Text(" " * len(lead) if number else lead) + line)


def _tied(text: str) -> str:
    """Do not break numbers at thousands, before a per cent sign or after ±."""
    whole = printable(text).replace(" %", f"{_WHOLE}%").replace("± ", f"±{_WHOLE}")
    return whole.replace(TIE, _WHOLE)


def _facts(console: Console, part: Facts) -> None:
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column()
    for number, (name, value, about) in enumerate(part.rows):
        style = "" if number else "bold"
        if console.width >= _BESIDE_FROM:
            cells = (Text(_tied(name), style), Text(_tied(value), style), Text(_tied(about), "dim"))
            grid.add_row(*cells)
            continue
        _say(console, f"{name} {value}", style)
        if about:
            _say(console, about, "dim", "  ")
    if grid.row_count:
        console.print(grid)


def _table(console: Console, part: Table) -> None:
    """Print the columns that fit, or all in as few tables as possible, and notes."""
    kept, width = part.filled, console.width
    sizes = [_sizes(console, column) for column in kept]
    tables, hidden = [[*range(len(kept))]], []
    if part.split and kept:
        tables = min((_packed(_groups(kept), sizes, width, i) for i in (1, 0)), key=len)
    else:
        (places,) = tables
        while len(places) > 1 and _width(sizes[i][0] for i in places) > width:
            lowest = kept[min(places, key=lambda i: kept[i].rank)]
            together = [
                i for i in places if kept[i] is lowest or lowest.group == kept[i].group != ""
            ]
            places[:] = [i for i in places if i not in together]
            hidden += together
    for places in filter(None, tables):
        console.print(_drawn(part, [kept[i] for i in places], [sizes[i] for i in places], width))
        if len(tables) > 1:
            console.print()
    heads = [_hidden_head(kept, i) for i in hidden if kept[i].head and not kept[i].otherwise]
    for note in (*part.notes, *(kept[i].otherwise for i in hidden)):
        _say(console, note, "dim") if note else None
    if heads:
        _say(console, f"Hidden columns (widen the terminal): {listed(heads)}", "dim")
    console.print()


def _sizes(console: Console, column: Column) -> tuple[int, int]:
    """Least and full width of a column; text and headings may wrap, numbers may not."""
    head, *cells = (_tied(text) for text in (column.head, *(cell.text for cell in column.texts)))
    widths = [cell_len(text) for text in cells]
    full = max(cell_len(head), *widths)
    if column.is_text:
        least = max(map(_longest_word, (head, *cells)))
        if column.is_id and least > _LEAST_ID:
            least = max(_LEAST_ID, least_width(cells))
        return min(least, full, console.width * 3 // 5), full
    return max(min(_longest_word(head), _MOST_HEAD, console.width), *widths), full


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _width(widths: Iterable[int]) -> int:
    sizes = [*widths]
    return sum(sizes) + _GAP * (len(sizes) - 1)


def _groups(columns: Sequence[Column]) -> list[list[int]]:
    """The columns after the first; a score and its intervals, and groups, are together."""
    names = [column.score or column.group for column in columns]
    groups: list[list[int]] = []
    for i in range(1, len(columns)):
        if groups and names[i] and names[groups[-1][-1]] == names[i]:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _packed(
    groups: Sequence[Sequence[int]], sizes: Sequence[tuple[int, int]], width: int, which: int
) -> list[list[int]]:
    """All groups of columns in tables with the first column, by their least or full widths.

    A group that is wider than a table is divided.
    """
    first = sizes[0][0]
    tables, taken = [[0]], [first]
    for group in groups:
        widths = [sizes[i][which] for i in group]
        fits = _width([first, *widths]) <= width
        for several in [[*group]] if fits else [[i] for i in group]:
            widths = [sizes[i][which] for i in several]
            if len(taken) > 1 and _width([*taken, *widths]) > width:
                tables.append([0])
                del taken[1:]
            tables[-1] += several
            taken += widths
    return tables


def _hidden_head(columns: Sequence[Column], place: int) -> str:
    """The heading of a hidden column; if others have the same, with that of the column before."""
    head = columns[place].head
    is_unique = sum(other.head == head for other in columns) < 2
    return head if is_unique else f"{head} of {columns[place - 1].head}"


def _drawn(
    part: Table, columns: Sequence[Column], sizes: Sequence[tuple[int, int]], width: int
) -> RichTable:
    table = RichTable(box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    spare = width - _width(least for least, _ in sizes)
    cells: list[list[Text]] = []
    for column, (least, full) in zip(columns, sizes, strict=True):
        more = max(0, min(full - least, spare))
        spare -= more
        justify: Literal["left", "right"] = "left" if column.is_text else "right"
        size = min(least + more, width)
        table.add_column(Text(_tied(column.head)), justify=justify, overflow="fold", width=size)
        texts = [_tied(cell.text) for cell in column.texts]
        short = shortened(texts, size) if column.is_id else {}
        tones = (cell.tone for cell in column.texts)
        cells.append([Text(short.get(t, t), tone) for t, tone in zip(texts, tones, strict=True)])
    rows = [*zip(*cells, strict=True)]
    section = False
    for number, row in enumerate(rows):
        section |= number in (part.first, len(rows) - part.last)
        if part.split and not any(cell.plain.strip() for cell in row[1:]):
            continue  # this row has other columns
        if section and table.row_count:
            table.add_section()
        section = False
        table.add_row(*row)
    return table
