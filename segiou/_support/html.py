"""Fragments of HTML for notebooks, which take their colours from the notebook's theme.

Only inline styles and no colour for text: a notebook's sanitizer drops style
sheets, and its theme may be dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["LINE", "MUTED", "NAME", "sentence_list", "table"]

MUTED = "opacity:.75"
LINE = "border-top:1px solid rgba(128,128,128,.35)"
_CELL = "padding:.15em .8em;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"
NAME = "padding:.15em .8em;text-align:left"


def table(
    heads: Iterable[str],
    *parts: Iterable[Sequence[str]],
    left: Sequence[int] = (0,),
) -> str:
    """A table of cells that are HTML already, a line between its parts; long ones scroll.

    Parameters
    ----------
    heads : iterable of str
        Text.
    *parts : iterable of sequence of str
        Rows.
    left : sequence of int
        Columns that are aligned left.
    """
    first, *others = ("".join(_row(cells, "td", left) for cells in part) for part in parts)
    more = "".join(f'<tbody style="{LINE}">{rows}</tbody>' for rows in others if rows)
    return (
        '<div style="max-height:34em;overflow:auto"><table style="border-collapse:collapse">'
        f"<thead>{_row(map(escape, heads), 'th', left)}</thead><tbody>{first}</tbody>{more}"
        "</table></div>"
    )


def _row(cells: Iterable[str], tag: str, left: Sequence[int]) -> str:
    styled = (
        f'<{tag} style="{NAME if i in left else _CELL}">{cell}</{tag}>'
        for i, cell in enumerate(cells)
    )
    return f"<tr>{''.join(styled)}</tr>"


def sentence_list(sentences: Iterable[str]) -> str:
    """Sentences as a list."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in sentences)}</ul>"
