"""The boundary measures of a report as a table of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from segiou.report.boundaries import boundary_lines, boundary_note

if TYPE_CHECKING:
    from segiou.report import Report

__all__ = ["boundaries"]


def boundaries(report: Report) -> dict[str, Any] | None:
    """Heads, rows of the classes that have a value, summary and note; None without any."""
    if not report.boundary:
        return None
    heads, *rows, means, covered = boundary_lines(report)
    return {
        "heads": heads[1:],
        "rows": [row for row in rows if any(cell != "–" for cell in row[1:])],
        "summary": [means, covered],
        "note": boundary_note(report),
    }
