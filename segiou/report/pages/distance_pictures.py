"""Distances of surfaces as pages draw them: box plots, and a line per image of the viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.text import called, cell, did_you_mean
from segiou.metrics.ratio import Floats
from segiou.report.measured import distance_text
from segiou.report.pages.page import plural

if TYPE_CHECKING:
    from segiou.report.report import Report


def first_distance(report: Report) -> str:
    """The distance to show: the first percentile, if there is one."""
    names = (name for name in report.scores_by_name if name.startswith("hausdorff_"))
    return next(names, "hausdorff")


def values_of_cases(report: Report, measure: str = "") -> dict[str, tuple[Floats, int]]:
    """The finite values of a measure by structure, and the number of cases without one."""
    cases: Any = report.measures["surface_cases"]
    names = dict.fromkeys(name for row in cases for name in row)
    known = [name for name in names if name not in ("case", "label", "state")]
    measure = measure or first_distance(report)
    if measure not in known:
        msg = f"{measure!r} was not measured{did_you_mean(measure, known)}"
        raise ValueError(msg)
    measured: dict[str, list[float]] = {}
    for row in cases:
        if measure in row and row["state"] != "absent":
            measured.setdefault(str(row["label"]), []).append(row[measure])
    by_label = {label: np.array(values) for label, values in measured.items()}
    return {
        label: (np.sort(values[np.isfinite(values)]), int((~np.isfinite(values)).sum()))
        for label, values in by_label.items()
    }


def texts_of_cases(report: Report) -> dict[str, str]:
    """Dice and the first distance percentile of every structure of each case, as text."""
    measures: Any = report.measures
    cases = measures.get("surface_cases")
    if not cases:
        return {}
    measure = first_distance(report)
    texts: dict[str, list[str]] = {}
    for row in cases:
        score = row["state"]
        if score == "found":
            score = f"{cell(row['dice'])}, {distance_text(row[measure])}"
        if score != "absent":
            texts.setdefault(row["case"], []).append(f"{called(str(row['label']))} {score}")
    unit = measures["surface_plan"]["unit"]
    title = f"Dice and {measure.replace('hausdorff_', 'HD')} in {unit or 'units of the spacing'}"
    return {case: f"{title}: {'; '.join(parts)}" for case, parts in texts.items()}


def distance_boxes(report: Report) -> dict[str, Any]:
    """Box plots of each structure's distances over its cases, as fractions of the longest."""
    measures: Any = report.measures
    states = report.scores_by_name.get("surfaces_found")
    if states is None or not states.value:
        return {"boxes": []}
    of_cases = {name: pair for name, pair in values_of_cases(report).items() if pair[0].size}
    longest = max(float(values[-1]) for values, _ in of_cases.values()) or 1.0
    boxes = []
    for name, (values, lost) in of_cases.items():
        boxes.append(
            {
                "name": name,
                **box_of(values, longest),
                "text": f"median {np.median(values):.2f}",
                "cases": f"{values.size} of {plural(values.size + lost, 'case')}",
            }
        )
    measure, unit = first_distance(report), measures["surface_plan"]["unit"]
    return {
        "boxes": boxes,
        "boxes_of": ", ".join(filter(None, (f"HD{measure[10:]}", unit))),
        "longest": f"{longest:.4g} {unit}".strip(),
    }


def box_of(values: Floats, reach: float) -> dict[str, Any]:
    """Quartiles, ends of the whiskers and outliers of values, as fractions of the reach."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    far = (values < low - 1.5 * (high - low)) | (values > high + 1.5 * (high - low))
    ends = np.array([low, middle, high, values[~far].min(), values[~far].max()])
    return {"ends": (ends / reach).tolist(), "beyond": (values[far] / reach).tolist()}
