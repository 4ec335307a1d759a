"""A report as data for other programs: JSON, CSV, Markdown, a data frame."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.files import printable, write_whole
from segiou._support.optional import compiled_parts
from segiou._support.text import called, csv_text, percent, plain, plural, signed_points
from segiou.report.wording import (
    cell,
    measured_tables,
    pairs_text,
    score_text,
    signed_range,
)

if TYPE_CHECKING:
    import pandas

    from segiou.analysis.comparison import Comparison
    from segiou.report.report import ClassRow, Report

#: Of more classes than this, plain data hold only the cells of the matrix that are not zero.
_DENSE = 2000

#: Classes of a comparison that Markdown shows.
_CHANGES = 10
#: Formats by name, with the file endings that mean them.
FORMATS: dict[str, tuple[str, ...]] = {
    "table": (".txt", ""),
    "json": (".json",),
    "csv": (".csv",),
    "markdown": (".md", ".markdown"),
    "html": (".html", ".htm"),
}


def save(report: Report, path: Path, format: str | None) -> Path:
    """Write the report, whole or not at all."""
    return write_whole(path, render(report, format or format_of(path)))


def format_of(path: Path) -> str:
    """The format that a file's ending means.

    Raises
    ------
    ValueError
        If it means none.
    """
    for name, endings in FORMATS.items():
        if path.suffix.lower() in endings:
            return name
    msg = f"{path}: the ending {path.suffix!r} means no format; use {', '.join(FORMATS)}"
    raise ValueError(msg)


def render(report: Report, format: str, *, sort: str = "order", reverse: bool = False) -> str:
    """The report in a format by name.

    Raises
    ------
    ValueError
        If there is no such format.
    """
    if format not in FORMATS:
        msg = f"no format {format!r}; there are {', '.join(FORMATS)}"
        raise ValueError(msg)
    if format == "json":
        return report.to_json()
    if format == "html":
        return report.to_html()
    ordered = {"csv": report.to_csv, "markdown": report.to_markdown, "table": report.to_text}
    return ordered[format](sort=sort, reverse=reverse)


def to_dict(report: Report) -> dict[str, Any]:
    """A report as plain data; undefined numbers are None."""
    from segiou._support import __version__

    skipped = {report.class_names[c]: why for c, why in report.iou_mean.skipped.items()}
    data = {
        "format": "segiou report",
        "format_version": 1,
        "segiou_version": __version__,
        "backend": report.backend,
        "compiled": compiled_parts(),
        "title": report.title,
        "protocol": report.protocol.name,
        "rule": report.protocol.description,
        "pairs": report.pairs,
        "left_out": report.left_out,
        "pixels": report.pixels,
        "ignored": report.ignored,
        "mean_iou": report.mean_iou,
        "mean_iou_classes": report.mean_iou_classes,
        "num_classes": len(report.class_names),
        "skipped": skipped,
        "never_predicted": [r.name for r in report.classes if r.status == "never predicted"],
        "mean_dice": report.mean_dice,
        "pixel_accuracy": report.pixel_accuracy,
        "mean_accuracy": report.mean_accuracy,
        "gap": report.gap,
        "frequency_weighted_iou": report.frequency_weighted_iou,
        "cohen_kappa": report.cohen_kappa,
        "majority": report.majority,
        "fine_grained": None if report.fine_grained is None else report.fine_grained.to_dict(),
        "next_steps": [step.to_dict() for step in report.next_steps],
        "classes": report.classes,
        "groups": report.group_rows,
        **_matrix_part(report),
        "unassigned": report.unassigned,
        "intervals": None if report.intervals is None else report.intervals.to_dict(),
        "boundary": report.boundary or None,
        "boundary_options": report.boundary_options,
        "surfaces": report.surfaces or None,
        "surface_cases": report.surface_cases or None,
        "surface_plan": report.surface_plan,
        "objects": report.objects,
        "worst_images": report.worst_images,
        "provenance": report.provenance,
    }
    defined: dict[str, Any] = plain(data)
    return defined


def _matrix_part(report: Report) -> dict[str, Any]:
    """The confusion matrix; of very many classes its cells, ``[truth, pred, pixels]`` each."""
    columns = len(report.class_names) + 1
    if columns <= _DENSE + 1 or not report.has_matrix:
        return {"matrix": report.matrix}
    cells = report.tally.cells
    truth, pred = np.divmod(cells.indices, columns)
    named = pred < columns - 1
    rows = np.stack([truth, pred, cells.values], axis=1)[named]
    return {"matrix": None, "matrix_cells": rows}


def to_json(
    report: Report, indent: int | None, also: Mapping[str, Any] = MappingProxyType({})
) -> str:
    """Strict JSON, with the matrix one row a line, and other keys beside the report's."""
    data = {**to_dict(report), **also}
    rows = data["matrix"]
    if indent is None or not rows:
        return json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)
    del data["matrix"]
    text = json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)
    pad = " " * indent
    lines = ",\n".join(f"{pad * 2}{json.dumps(row)}" for row in rows)
    return f'{text[:-2]},\n{pad}"matrix": [\n{lines}\n{pad}]\n}}\n'


def to_csv(report: Report, rows: Sequence[ClassRow]) -> str:
    """One row a class; an undefined ratio is an empty cell."""
    lines = [
        asdict(row) | _interval_cells(report, row.name) | _measured_cells(report, row.name)
        for row in rows
    ]
    return csv_text([list(lines[0]), *(plain(list(line.values())) for line in lines)])


def _interval_cells(report: Report, name: str) -> dict[str, Any]:
    if report.intervals is None:
        return {}
    low, high = report.interval_of(name) or (math.nan, math.nan)
    return {"iou_low": low, "iou_high": high}


def _measured_cells(report: Report, class_name: str) -> dict[str, Any]:
    """Columns of a class; infinite distances are written so."""
    cells: dict[str, Any] = {}
    for row in report.boundary:
        if row["classes"]:
            parts = (row["measure"], row["tolerance"], row["contour"])
            value = row["classes"][class_name]
            cells[":".join(filter(None, parts))] = "inf" if math.isinf(value) else value
    rows = [] if report.objects is None else report.objects["classes"]
    cells |= {
        name if name.startswith(("pq", "sq", "rq")) else f"objects_{name}": value
        for row in rows
        if row["name"] == class_name
        for name, value in row.items()
        if name not in ("name", "thing")
    }
    return cells


def to_pandas(report: Report) -> pandas.DataFrame:
    """One row a class, indexed by name."""
    try:
        import pandas as pd
    except ImportError as error:
        msg = "to_pandas needs pandas: pip install 'segiou[pandas]'"
        raise ImportError(msg) from error
    return pd.DataFrame([asdict(row) for row in report.classes]).set_index("name")


def to_markdown(
    report: Report,
    rows: Sequence[ClassRow],
    *,
    outcomes: Sequence[tuple[str, bool]] = (),
    change: Comparison | None = None,
) -> str:
    """Verdict, classes and protocol, as GitHub renders them.

    ``outcomes`` are those of thresholds, and whether each passed. With a ``change`` against a
    baseline the scores of the classes are folded away.
    """
    classes = [
        _class_table(report, rows),
        *(
            part
            for found in measured_tables(report)
            for part in (_table(found.heads, [*found.rows, *found.summary]), found.note)
        ),
    ]
    if change is not None:
        classes = _folded("All scores of the classes", classes)
    parts = [
        *_headline(report),
        *_outcome_part(outcomes),
        *(() if change is None else _change_part(change)),
        *classes,
        _footer(report),
        *(() if report.intervals is None else map(_escaped, report.intervals.cautions())),
        *_worst_images(report),
    ]
    return "\n\n".join(parts) + "\n"


def _headline(report: Report) -> list[str]:
    return [
        f"**{_escaped(report.verdict)}**",
        f"Pixel accuracy {percent(report.pixel_accuracy)} · "
        f"mean accuracy {percent(report.mean_accuracy)}",
    ]


def _outcome_part(outcomes: Sequence[tuple[str, bool]]) -> list[str]:
    rows = [(text, "passed" if passed else "**failed**") for text, passed in outcomes]
    return [_table(("threshold", "outcome"), rows, left=2)] if rows else []


def _change_part(change: Comparison) -> list[str]:
    """What changed against the baseline: the mean, and the classes that changed most."""
    pair = change.pairs[0]
    moved = sorted((row for row in pair.classes if row.delta), key=lambda row: -abs(row.delta))
    rows = [
        (
            row.name,
            cell(row.a),
            cell(row.b),
            signed_points(row.delta),
            signed_range(row.low, row.high),
            "yes" if row.differs(change.level) else "",
        )
        for row in (pair.overall, *moved[:_CHANGES])
    ]
    heads = ("", "baseline", "this run", "change", f"{100 * change.level:g} % interval", "clear")
    note = (
        "Changes are in percentage points; clear: the interval and the test, by Holm's correction, "
        "both speak for a change."
    )
    if more := len(pair.classes) - len(rows) + 1:
        note += f" {plural(more, 'class', 'classes')} changed less, or not at all."
    return [*map(_escaped, change.pair_sentences(pair)[:2]), _table(heads, rows), note]


def _folded(title: str, parts: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", *parts, "</details>"]


def _class_table(report: Report, rows: Sequence[ClassRow]) -> str:
    named = [(row.name, row) for row in rows]
    named += [(f"{row.name} (group)", row) for row in report.group_rows]
    body = [
        (name, *map(cell, (row.iou, row.dice, row.precision, row.recall, row.share)))
        for name, row in named
    ]
    return _table(("class", "IoU", "Dice", "precision", "recall", "share"), body)


def _footer(report: Report) -> str:
    majority = report.majority
    return (
        f"{pairs_text(report)}, {report.pixels} {report.unit}, {report.ignored} ignored. "
        f"Protocol `{report.protocol.name}`: {report.protocol.description}. "
        f"A model that says {_escaped(called(str(majority['class'])))} everywhere (the majority "
        f"baseline) has pixel accuracy {percent(majority['pixel_accuracy'])} and mean IoU "
        f"{percent(majority['mean_iou'])}."
    )


def _worst_images(report: Report) -> list[str]:
    found = report.worst_images
    if found is None:
        return []
    rows = [(row["id"], score_text(row[found.by])) for row in found.rows]
    return [_table(("worst images", found.by), rows)]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    lines = [heads, [":--" if i < left else "--:" for i in range(len(heads))], *rows]
    return "\n".join(f"| {' | '.join(map(_escaped, line))} |" for line in lines)


def _escaped(text: str) -> str:
    text = printable(" ".join(text.split()))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
