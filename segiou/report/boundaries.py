"""The boundary measures of a report: what is shown of them, and where."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from segiou.report.report import Report

__all__ = ["boundary_cells", "boundary_lines", "boundary_note", "shown_rows"]

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
