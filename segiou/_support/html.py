"""HTML fragments for notebooks, and the content security policy of single-file pages.

Fragments use inline styles and set no text colour, because notebooks drop style
sheets and may have a dark theme.
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


#: Sorts the rows of a table by the column whose header was clicked, undefined numbers last.
_SORT = """
const head = event.target.closest('th'), mark = head && head.querySelector('span');
if (!mark) return;
const up = head.getAttribute('aria-sort') !== 'ascending';
for (const other of this.querySelectorAll('th[aria-sort]')) {
  other.removeAttribute('aria-sort');
  other.querySelector('span').textContent = '';
}
head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
mark.textContent = up ? ' ▲' : ' ▼';
const words = 'words' in head.dataset;
const key = (row) => {
  const text = row.cells[head.cellIndex].innerText.replace('−', '-');
  return words ? text : parseFloat((text.match(/-?[0-9.]+/) || [])[0]);
};
const order = (a, b) => (words ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
const body = [...this.parentNode.tBodies].reduce((a, b) => (b.rows.length > a.rows.length ? b : a));
body.append(...[...body.rows].map((row) => [key(row), row]).sort(([a], [b]) =>
  Number.isNaN(a) - Number.isNaN(b) || (up ? order(a, b) : order(b, a))).map(([, row]) => row));
"""
_BUTTON = "background:none;border:0;padding:0;margin:0;font:inherit;color:inherit;cursor:pointer"
#: Tables with at least this many rows can be sorted.
_SORTED = 3


def table(heads: Iterable[str], *parts: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """A table of HTML cells with a line between its parts; long tables scroll.

    A click on a column header sorts the largest part, if scripts are allowed.
    """
    bodies = [list(part) for part in parts]
    first, *others = ("".join(_row(cells, "td", left) for cells in part) for part in bodies)
    more = "".join(f'<tbody style="{LINE}">{rows}</tbody>' for rows in others if rows)
    sortable = max(map(len, bodies)) >= _SORTED
    script = f' onclick="{escape(_SORT)}"' if sortable else ""
    titles = [_sorting(head) if sortable and head else escape(head) for head in heads]
    return (
        '<div style="max-height:34em;overflow:auto"><table style="border-collapse:collapse">'
        f"<thead{script}>{_row(titles, 'th', left)}</thead><tbody>{first}</tbody>{more}"
        "</table></div>"
    )


def _sorting(head: str) -> str:
    return (
        f'<button type="button" title="sort" style="{_BUTTON}">{escape(head)}'
        '<span aria-hidden="true"></span></button>'
    )


def _row(cells: Iterable[str], tag: str, left: Sequence[int]) -> str:
    styled = []
    for i, cell in enumerate(cells):
        own = tag if cell else "td"  # an empty th confuses screen readers
        words = " data-words" if i in left else ""
        styled.append(f'<{own} style="{NAME if i in left else _CELL}"{words}>{cell}</{own}>')
    return f"<tr>{''.join(styled)}</tr>"


def section(title: str, body: str, *, shown: bool = False) -> str:
    """A collapsible section, closed unless ``shown``; empty if the body is empty."""
    if not body:
        return ""
    opened = " open" if shown else ""
    return (
        f'<details style="margin-top:.5em"{opened}><summary style="cursor:pointer">'
        f"{escape(title)}</summary>{body}</details>"
    )


def sentence_list(sentences: Iterable[str]) -> str:
    """Sentences as a list; empty if there are none."""
    items = "".join(f"<li>{escape(text)}</li>" for text in sentences)
    return f"<ul>{items}</ul>" if items else ""


def script_of(parts: Iterable[str]) -> str:
    """Join several files into one script with its own scope."""
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();"


def content_policy(style: str, script: str, *, more: bool = False) -> str:
    """A content security policy for one style sheet and one script, without network access.

    Both are identified by their SHA-256, so injected code does not run. With
    ``more``, the script may load others.
    """
    style_source, script_source = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in (style, script)
    )
    others = " 'strict-dynamic'" if more else ""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {style_source}; script-src {script_source}{others}"
    )
