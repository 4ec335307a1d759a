"""HTML: fragments for notebooks, and what makes a page safe that is one file.

The fragments take their colours from the notebook's theme: only inline styles
and no colour for text, since a notebook's sanitizer drops style sheets, and its
theme may be dark.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape

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


def script_of(parts: Iterable[str]) -> str:
    """One script of several files, whose names stay among themselves."""
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();"


def content_policy(style: str, script: str, *, more: bool = False) -> str:
    """A content security policy that allows one style sheet and one script, and no network.

    Each is named by the SHA-256 of its text, so that nothing that slipped into
    the page would run. With ``more``, that script may load others.
    """
    style_source, script_source = map(_source, (style, script))
    others = " 'strict-dynamic'" if more else ""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {style_source}; script-src {script_source}{others}"
    )


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
