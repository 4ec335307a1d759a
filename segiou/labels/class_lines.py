"""Label sets from text files with one class per line: names, numbers and colours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from segiou._support.files import read_text
from segiou._support.numbers import is_digits
from segiou.labels.label_set import LabelClass, LabelSet

#: Default ignored value of MMSegmentation and Hugging Face.
IGNORED = 255
_VALUE = r"(?P<value>[0-9]{1,9})"
_RGB = r"(?P<r>[0-9]{1,3})[\s,]+(?P<g>[0-9]{1,3})[\s,]+(?P<b>[0-9]{1,3})"
#: The forms of lines by the tools that write them; a file has the first that all of its lines have.
_FORMS = (
    ("ITK-SNAP", rf'{_VALUE}\s+{_RGB}\s+[\d.]+\s+[01]\s+[01]\s+"(?P<name>.*)"'),
    ("FreeSurfer", rf"{_VALUE}\s+(?P<name>\S+)\s+{_RGB}\s+\d{{1,3}}"),
    ("value name r g b", rf"{_VALUE}[\s,]+(?P<name>\S.*?)[\s,]+{_RGB}"),
    ("r g b name", rf"{_RGB}[\s,]+(?P<name>\S.*)"),
    ("name r g b", rf"(?P<name>\D.*?)[\s,]+{_RGB}"),
    ("value name", rf"{_VALUE}[\s,;]+(?P<name>\D.*)"),
)
_SHAPES = (
    "one name per line, 'value name', 'value name r g b', 'r g b name', 'name r g b', the tables "
    "of FreeSurfer and ITK-SNAP, or name:red,green,blue:parts:actions"
)

#: Name, value, and colour (or None) of a class.
Row = tuple[str, int, Any]


def label_set_of(
    name: str,
    rows: Sequence[Row],
    source: str,
    ignore: int | None = None,
    *,
    is_of_colors: bool = False,
) -> LabelSet:
    """The label set of these classes; ``ignore`` is dropped if it is the value of a class.

    A colour of several classes, as FreeSurfer and GOOSE have them, identifies none of them. It is
    an error if the file is of colour masks, because it has no values.
    """
    classes = tuple(
        LabelClass(name, (value,), () if color is None else (color,)) for name, value, color in rows
    )
    if not is_of_colors:
        count = Counter(entry.colors for entry in classes)
        classes = tuple(
            entry if count[entry.colors] == 1 else replace(entry, colors=()) for entry in classes
        )
    ignored = () if ignore is None or any(ignore in c.values for c in classes) else (ignore,)
    return LabelSet(name, classes, ignore=ignored, source=source)


def folder_title(path: Path) -> str:
    """Name of the label set of a file with a general name: that of its folder."""
    return path.resolve().parent.name or path.stem


def read_lines(path: Path) -> LabelSet:
    """Names of classes with numbers and colours if all lines have them, or a labelmap.txt."""
    lines = [(n, line.strip()) for n, line in enumerate(read_text(path).splitlines(), 1)]
    lines = [(n, line) for n, line in lines if line and not line.startswith("#")]
    if not lines:
        msg = "has no class names; expected one per line"
        raise ValueError(msg)
    texts = [line for _, line in lines]
    for form, pattern in _FORMS:
        if None not in (matches := [re.fullmatch(pattern, line) for line in texts]):
            return _matched_labels(matches, f"{form}, {path.name}", path)
    if any(":" in line for line in texts):
        return _labelmap_labels(lines, path)
    return _listed_labels(lines, path)


def _matched_labels(matches: Sequence[Any], source: str, path: Path) -> LabelSet:
    """The classes of lines of one form; the lines number them if they have no values."""
    groups = [match.groupdict() for match in matches]
    colors = [tuple(int(g[part]) for part in "rgb") if "r" in g else None for g in groups]
    rows = [
        (g["name"].strip(), int(g.get("value", i)), color)
        for i, (g, color) in enumerate(zip(groups, colors, strict=True))
    ]
    has_values = "value" in groups[0]
    return label_set_of(folder_title(path), rows, source, is_of_colors=not has_values)


def _listed_labels(lines: Sequence[tuple[int, str]], path: Path) -> LabelSet:
    """One name per line; LabelMe's labels.txt begins with the ignored label."""
    has_ignored = lines[0][1] == "__ignore__"
    names = lines[has_ignored:]
    for number, line in names:
        if re.search(r"\s\d{1,3}\s+\d{1,3}\s+\d{1,3}$|^\d+\s+\d+\s+\d+\s", line):
            shape = f"line {number}: {line!r:.80} has numbers, but other lines differ in form"
            msg = f"{shape}; expected {_SHAPES}"
            raise ValueError(msg)
    rows: list[Row] = [(name, value, None) for value, (_, name) in enumerate(names)]
    if not rows:
        msg = "has no class names; expected one per line"
        raise ValueError(msg)
    return label_set_of(folder_title(path), rows, path.name, IGNORED if has_ignored else None)


def _labelmap_labels(lines: Sequence[tuple[int, str]], path: Path) -> LabelSet:
    """Lines ``name:red,green,blue:parts:actions``."""
    rows: list[Row] = []
    for number, line in lines:
        fields = line.rsplit(":", 3)
        parts = fields[1].split(",") if len(fields) == 4 else ["?"]
        if parts != [""] and not (len(parts) == 3 and all(is_digits(p.strip()) for p in parts)):
            msg = f"line {number}: expected name:red,green,blue:parts:actions, got {line!r:.80}"
            raise ValueError(msg)
        color = None if parts == [""] else tuple(int(part[:9]) for part in parts)
        rows.append((fields[0], len(rows), color))
    return label_set_of(folder_title(path), rows, "labelmap.txt", is_of_colors=True)
