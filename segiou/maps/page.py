"""Accuracy and areas of a map as an HTML page."""

from __future__ import annotations

import math
from typing import Any

from segiou._support.text import unbroken
from segiou.maps.result import MapAccuracy, table_rows, verdict
from segiou.report.pages.page import feature_page


def map_html(accuracy: MapAccuracy, facts: dict[str, str]) -> str:
    """The page: scores as bars with whiskers, areas as mapped and as estimated."""
    ends = [area.high for area in accuracy.areas if not math.isnan(area.high)]
    _, *rows = table_rows(accuracy)
    table: Any = [*accuracy._parts()][-1]
    # On paper, intervals are broken between their limits.
    columns = [c._replace(cells=[unbroken(cell) for cell in c.cells]) for c in table.columns]
    context = {
        "accuracy": accuracy,
        "verdict": verdict(accuracy),
        "rows": rows,
        "most": max(
            [*ends, *accuracy.mapped, *(area.value for area in accuracy.areas if area.value > 0)]
        ),
        "unit": accuracy.unit,
        "estimates": table._replace(columns=columns),
        "facts": facts,
        "pixel": "sample",
    }
    return feature_page("segiou.maps:page.html", context, accuracy.class_names, "pixels")
