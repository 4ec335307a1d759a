"""A report as data for other programs: JSON, CSV, Markdown."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from segiou._support.compiled import compiled_parts
from segiou._support.text import called, plural

if TYPE_CHECKING:
    from segiou.report.report import ClassRow, Report

import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from segiou._support.files import write_whole

if TYPE_CHECKING:
    from segiou.report.report import ClassRow, Report

__all__ = [
    "FORMATS",
    "boundary_cells",
    "boundary_lines",
    "boundary_note",
    "row_dict",
    "save",
    "shown_rows",
    "to_csv",
    "to_dict",
    "to_json",
    "to_markdown",
    "to_pandas",
]

#: Formats by name, with the file endings that mean them.
FORMATS = {
    "table": (".txt", ""),
    "json": (".json",),
    "csv": (".csv",),
    "markdown": (".md", ".markdown"),
    "html": (".html", ".htm"),
}


def row_dict(row: ClassRow) -> dict[str, Any]:
    """A class as plain data."""
    return asdict(row)


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
        "classes": [row_dict(row) for row in report.classes],
        "groups": [row_dict(row) for row in report.group_rows],
        "matrix": report.matrix.tolist(),
        "unassigned": report.unassigned.tolist(),
        "intervals": None if report.intervals is None else report.intervals.to_dict(),
        "boundary": [dict(row) for row in report.boundary] or None,
        "boundary_options": report.boundary_options,
        "worst_images": None if (worst := report.worst_images) is None else asdict(worst),
        "provenance": report.provenance,
    }
    defined: dict[str, Any] = _none_for_nan(data)
    return defined


def _none_for_nan(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _none_for_nan(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_none_for_nan(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def to_json(report: Report, indent: int | None) -> str:
    """Strict JSON, with the matrix one row a line."""
    data = to_dict(report)
    rows = data.pop("matrix")
    text = json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)
    if indent is None:
        return json.dumps({**data, "matrix": rows}, allow_nan=False, ensure_ascii=False)
    pad = " " * indent
    lines = ",\n".join(f"{pad * 2}{json.dumps(row)}" for row in rows)
    return f'{text[:-2]},\n{pad}"matrix": [\n{lines}\n{pad}]\n}}\n'


def to_csv(report: Report, rows: Sequence[ClassRow]) -> str:
    """One row a class; an undefined ratio is an empty cell."""
    out = io.StringIO()
    lines = [
        row_dict(row) | _interval_cells(report, row.name) | boundary_cells(report, row.name)
        for row in rows
    ]
    writer = csv.DictWriter(out, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_none_for_nan(line) for line in lines)
    return out.getvalue()


def to_pandas(report: Report) -> Any:
    """One row a class, indexed by name."""
    try:
        import pandas as pd
    except ImportError as error:
        msg = "to_pandas needs pandas: pip install 'segiou[pandas]'"
        raise ImportError(msg) from error
    return pd.DataFrame([row_dict(row) for row in report.classes]).set_index("name")


def _interval_cells(report: Report, name: str) -> dict[str, Any]:
    if report.intervals is None:
        return {}
    low, high = report.interval_of(name) or (math.nan, math.nan)
    return {"iou_low": low, "iou_high": high}


def to_markdown(report: Report, rows: Sequence[ClassRow]) -> str:
    """Headline, table of the classes and the rule, as GitHub renders them."""
    lines = [
        f"**Mean IoU {number(report.mean_iou)}** over {report.mean_iou_classes} of "
        f"{plural(len(report.class_names), 'class', 'classes')}{_between(report)} · "
        f"pixel accuracy {number(report.pixel_accuracy)} · "
        f"mean accuracy {number(report.mean_accuracy)}",
        "",
        "| class | IoU | Dice | precision | recall | share |",
        "| :-- | --: | --: | --: | --: | --: |",
    ]
    named = [(row.name, row) for row in rows]
    named += [(f"{row.name} (group)", row) for row in report.group_rows]
    for name, row in named:
        cells = [number(x) for x in (row.iou, row.dice, row.precision, row.recall)]
        lines.append(f"| {_cell(name)} | {' | '.join(cells)} | {percent(row.share)} |")
    lines += _boundary_section(report)
    lines += [
        "",
        f"{pairs_text(report)}, {report.pixels} {report.unit}, {report.ignored} ignored. "
        f"Rule `{report.protocol.name}`: {report.protocol.description}. "
        f"Always answering {_cell(called(str(report.majority['class'])))} would score pixel "
        f"accuracy {number(report.majority['pixel_accuracy'])} and mean IoU "
        f"{number(report.majority['mean_iou'])}.",
    ]
    return "\n".join(lines) + _worst_images(report) + "\n"


def _worst_images(report: Report) -> str:
    found = report.worst_images
    if found is None:
        return ""
    rows = "".join(f"\n| {_cell(r['id'])} | {score_text(r[found.by])} |" for r in found.rows)
    return f"\n\n| worst images | {_cell(found.by)} |\n| :-- | --: |{rows}"


def _boundary_section(report: Report) -> list[str]:
    if not report.boundary:
        return []
    heads, *body = boundary_lines(report)
    table = [heads, (":--", *["--:"] * (len(heads) - 1)), *body]
    return [
        "",
        *(f"| {' | '.join(map(_cell, line))} |" for line in table),
        "",
        boundary_note(report),
    ]


def _between(report: Report) -> str:
    if report.intervals is None:
        return ""
    return f", {interval_text(report)}"


def pairs_text(report: Report) -> str:
    """How many pairs were counted, and what is missing of them."""
    left_out = f" ({report.left_out} left out)" if report.left_out else ""
    unfinished = report.provenance.get("unfinished")
    rest = f", not finished: {unfinished}" if unfinished else ""
    return f"{plural(report.pairs, 'pair')}{left_out}{rest}"


def interval_text(report: Report) -> str:
    """The interval of the mean in words; empty where there is none."""
    found = report.intervals
    if found is None:
        return ""
    between = between_text(report.interval_of())
    few = " (few)" if found.overall.few else ""
    return f"{100 * found.level:g} % interval {between} over {found.units} {found.unit}s{few}"


def between_text(limits: tuple[float, float] | None) -> str:
    """Two limits for reading; a dash where undefined."""
    if limits is None or math.isnan(limits[0]):
        return "–"
    return f"{number(limits[0])} to {number(limits[1])}"


def _cell(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return " ".join(escaped.split())


def number(value: float) -> str:
    """A ratio for reading, four places; a dash where undefined."""
    return "–" if math.isnan(value) else f"{value:.4f}"


def score_text(value: float) -> str:
    """A score or a difference for reading: two digits at least where it is tiny."""
    return f"{value:.2g}" if 0 < abs(value) < 0.0001 else number(value)


def percent(value: float) -> str:
    """A share for reading; what is not all or nothing never looks so."""
    if math.isnan(value):
        return "–"
    if value and value < 0.001:
        return "<0.1 %"
    if 0.9995 <= value < 1:
        return ">99.9 %"
    return f"{100 * value:.1f} %"


def render(report: Report, format: str, *, sort: str = "order", reverse: bool = False) -> str:
    """The report in a format by name.

    Raises
    ------
    ValueError
        If there is no such format.
    """
    if format == "json":
        return report.to_json()
    if format == "csv":
        return report.to_csv(sort=sort, reverse=reverse)
    if format == "markdown":
        return report.to_markdown(sort=sort, reverse=reverse)
    if format == "table":
        return report.to_text(sort=sort, reverse=reverse)
    if format == "html":
        return report.to_html()
    msg = f"no format {format!r}; there are {', '.join(FORMATS)}"
    raise ValueError(msg)


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


def save(report: Report, path: Path, format: str | None) -> Path:
    """Write the report, whole or not at all."""
    return write_whole(path, render(report, format or format_of(path)))


_TITLES = {
    "boundary_iou": "Boundary IoU",
    "boundary_f1": "boundary F1",
    "surface_dice": "surface Dice",
    "hausdorff_95": "HD95",
}


def shown_rows(report: Report) -> list[Mapping[str, Any]]:
    """The rows that a compact table shows.

    Boundary IoU at every width; F1 and surface Dice at the first tolerance and
    the 95th percentile of the distances, of the first kind of contour.
    """
    rows = [row for row in report.boundary if row["measure"] == "boundary_iou"]
    for measure in ("boundary_f1", "surface_dice", "hausdorff_95"):
        rows += [row for row in report.boundary if row["measure"] == measure][:1]
    return rows


def boundary_lines(report: Report) -> list[tuple[str, ...]]:
    """A table of text: heads, a line a class, the means, and how many classes they cover."""
    rows = shown_rows(report)
    heads = ("class", *(_head(report, row) for row in rows))
    classes = [
        (name, *(_shown(row, row["classes"][name]) for row in rows)) for name in report.class_names
    ]
    means = ("mean", *(_shown(row, row["mean"]) for row in rows))
    covered = ("classes", *(str(row["mean_classes"]) for row in rows))
    return [heads, *classes, means, covered]


def boundary_note(report: Report) -> str:
    """What was measured, in a line."""
    options: Mapping[str, Any] = report.boundary_options or {}
    parts = [f"boundaries: widths {_listed(options['widths'])}"]
    if options["contours"]:
        parts += [
            f"contours of {' and '.join(options['contours'])}",
            f"tolerances {_listed(options['tolerances'])}",
        ]
    height, width = options["spacing"]
    square = (height, width) == (1.0, 1.0)
    if not square:
        parts.append(f"pixels of {height:g} × {width:g}")
    if options["border"] != "reference":
        parts.append(f"image border: {options['border']}")
    if any(row["measure"] == "hausdorff_95" for row in shown_rows(report)):
        parts.append(f"HD95 in {'pixels' if square else 'these units'}")
    return "; ".join(parts)


def boundary_cells(report: Report, name: str) -> dict[str, Any]:
    """Columns of a class in a CSV; infinite distances are written so."""
    cells = {}
    for row in report.boundary:
        if row["classes"]:
            parts = (row["measure"], row["tolerance"], row["contour"])
            value = row["classes"][name]
            cells[":".join(filter(None, parts))] = "inf" if math.isinf(value) else value
    return cells


def _head(report: Report, row: Mapping[str, Any]) -> str:
    if row["tolerance"] is None:
        return _TITLES[row["measure"]]
    spacing = (report.boundary_options or {})["spacing"]
    of_pixels = row["contour"] is None or tuple(spacing) == (1.0, 1.0)
    unit = " px" if of_pixels and not row["tolerance"].endswith("%") else ""
    return f"{_TITLES[row['measure']]} {row['tolerance']}{unit}"


def _shown(row: Mapping[str, Any], value: float) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    return f"{value:.1f}" if row["measure"] == "hausdorff_95" else f"{value:.4f}"


def _listed(tolerances: list[Mapping[str, Any]]) -> str:
    shown = (
        f"{100 * t['value']:g} %" if t["unit"] == "diagonal" else f"{t['value']:g}"
        for t in tolerances
    )
    return ", ".join(shown) or "none"
