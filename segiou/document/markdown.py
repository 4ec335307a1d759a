"""Parts of a document as GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from segiou._support.files import printable
from segiou.document.parts import Cell, Facts, Line, Part, Section, Table

#: Starts of automatic links on GitHub, which a backslash before the next sign prevents.
_ADDRESS = re.compile(r"(?:https?|ftp)(?=://)|www(?=\.)", re.IGNORECASE)
#: Characters that GitHub interprets: markup, formulas, emphasis around words, and entities.
_SIGNS = re.compile(r"[\\|\[\]`*~$]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")


def markdown_of(parts: Iterable[Part]) -> str:
    """Parts as GitHub's Markdown."""
    return "\n\n".join(_blocks(parts)) + "\n"


def _blocks(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Line) and part.text:
            bold = "**" if part.style in ("title", "lead", "bold") else ""
            yield f"{bold}{part.lead}{_escaped(part.text)}{bold}"
        elif isinstance(part, Facts):
            yield _escaped(part.line)
        elif isinstance(part, Table):
            columns = [c for c in part.filled if c.head]
            lines = [[_escaped(column.head) for column in columns]]
            lines += [[":--" if column.is_text else "--:" for column in columns]]
            lines += [[*map(_cell, row)] for row in Table(columns).rows]
            if columns:
                yield "\n".join(f"| {' | '.join(line)} |" for line in lines)
            yield from map(_escaped, filter(None, part.notes))
        elif isinstance(part, Section) and not part.only_notebook:
            fold = () if part.shown else (f"<details><summary>{_escaped(part.title)}</summary>",)
            yield from (*fold, *_blocks(part.parts), *["</details>"][: len(fold)])


def _cell(cell: Cell) -> str:
    text = _escaped(cell.text)
    return f"**{text}**" if cell.tone == "bold" and text else text


def _escaped(text: str) -> str:
    text = _SIGNS.sub(r"\\\g<0>", printable(" ".join(text.split())))
    return _ADDRESS.sub(r"\g<0>\\", text).replace("<", "&lt;")
