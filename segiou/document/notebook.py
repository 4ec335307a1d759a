"""Parts of a document as a fragment of HTML for notebooks.

Fragments use inline styles and set no text colour, because notebooks drop style sheets and may
have a dark theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from segiou._support.files import printable
from segiou.document.parts import Cell, Facts, Html, Line, Part, Table

MUTED = "opacity:.75"
NAME = "padding:.15em .8em;text-align:left"
_LINE = "border-top:1px solid rgba(128,128,128,.35)"
_CELL = "padding:.15em .8em;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"
_STYLES = {"dim": MUTED, **dict.fromkeys(("title", "lead", "bold"), "font-weight:bold")}
#: Tables with at least this many rows can be sorted.
_SORTED = 3
_BUTTON = "background:none;border:0;padding:0;margin:0;font:inherit;color:inherit;cursor:pointer"
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


def notebook_of(parts: Iterable[Part], name: str) -> str:
    """Parts as an element of class ``segiou-NAME``, in which notebooks read no ``$`` as formula."""
    classes = f"segiou-{name} tex2jax_ignore mathjax_ignore"  # of MathJax 2 and 3
    return f'<div class="{classes}">{"".join(map(_html, parts))}</div>'


#: Text of a page, in the colours of the system.
_PAGE = """:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word }"""


def page_of(parts: Iterable[Part], name: str) -> str:
    """Parts as a page of HTML with this title."""
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)}</title><style>{_PAGE}</style></head>\n"
        f"<body>{notebook_of(parts, name.lower())}</body>\n</html>\n"
    )


def _html(part: Part) -> str:
    if isinstance(part, Html):
        return part.text
    if isinstance(part, Line):
        look = f' style="{_STYLES[part.style]}"' if part.style in _STYLES else ""
        text = _text(part.text)
        return f"<div{look}>{part.lead}{text}</div>" if text else ""
    if isinstance(part, Facts):
        return f"<div>{_text(part.line)}</div>"
    if isinstance(part, Table):
        notes = (f'<div style="{MUTED}">{_text(note)}</div>' for note in part.notes if note)
        return _table(part) + "".join(notes)
    body = "".join(map(_html, part.parts))
    opened, style = " open" if part.shown else "", 'style="margin-top:.5em"'
    summary = f'<summary style="cursor:pointer">{_text(part.title)}</summary>'
    return f"<details {style}{opened}>{summary}{body}</details>" if body else ""


def _text(text: str) -> str:
    return escape(printable(text.strip(), blanks=True))


def _table(part: Table) -> str:
    """A table with lines between its parts; long ones scroll, and a click on a heading sorts."""
    columns = part.filled
    if not columns:
        return ""
    rows = [tuple(map(_cell, row)) for row in part.rows]
    last = len(rows) - part.last
    bodies = [rows[: part.first], rows[part.first : last], rows[last:]]
    left = [c.is_text for c in columns]
    sortable = max(map(len, bodies)) >= _SORTED
    heads = [_head(c.head, sortable=sortable) for c in columns]
    script = f' onclick="{escape(_SORT)}"' if sortable else ""
    parts = [_rows(body, "td", left) for body in bodies if body]
    lines = ("", *[f' style="{_LINE}"'] * len(parts))
    both = zip(lines, parts, strict=False)
    inside = "".join(f"<tbody{line}>{rows}</tbody>" for line, rows in both)
    return (
        '<div style="max-height:34em;overflow:auto"><table style="border-collapse:collapse">'
        f"<thead{script}>{_rows([heads], 'th', left)}</thead>{inside}</table></div>"
    )


def _head(head: str, *, sortable: bool) -> str:
    if not (sortable and head):
        return _text(head)
    mark = '<span aria-hidden="true"></span>'
    return f'<button type="button" title="sort" style="{_BUTTON}">{_text(head)}{mark}</button>'


def _cell(cell: Cell) -> str:
    if cell.share is None:
        return f"<b>{_text(cell.text)}</b>" if cell.tone not in ("", "dim") else _text(cell.text)
    width = 0.0 if cell.share != cell.share else 100 * cell.share
    return (
        '<div style="width:8em;height:.7em;background:rgba(128,128,128,.2)">'
        f'<div style="width:{width:.1f}%;height:100%;background:rgb(38,148,128)"></div></div>'
    )


def _rows(rows: Iterable[Sequence[str]], tag: str, left: Sequence[bool]) -> str:
    cells = []
    for row in rows:
        for cell, is_left in zip(row, left, strict=True):
            name = tag if cell else "td"  # an empty th confuses screen readers
            words = " data-words" if is_left else ""
            cells.append(f'<{name} style="{NAME if is_left else _CELL}"{words}>{cell}</{name}>')
        cells[-len(row)] = "<tr>" + cells[-len(row)]
        cells[-1] += "</tr>"
    return "".join(cells)
