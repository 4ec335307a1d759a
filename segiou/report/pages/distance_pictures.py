"""Distances of cases as pages draw them: box plots, and a line per image of the viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.numbers import NUMBER, cell
from segiou._support.text import called, capital, did_you_mean
from segiou.metrics.ratio import Floats
from segiou.report.pages.page import plural

if TYPE_CHECKING:
    from segiou.measures.score_table import CaseScores
    from segiou.report.report import Report


def cases_of(report: Report) -> CaseScores | None:
    """The scores of cases of the first table that has any."""
    return next((table.cases for table in report.tables if table.cases is not None), None)


def values_of_cases(cases: CaseScores, score: str = "") -> dict[str, tuple[Floats, int]]:
    """The finite values of a score by structure, and the number of cases without one."""
    names = dict.fromkeys(name for row in cases.rows for name in row)
    known = [name for name in names if name not in ("case", "label", "state")]
    score = score or cases.first
    if score not in known:
        hint = did_you_mean(score, known) or f"; choose from {', '.join(known)}"
        msg = f"{score!r} was not measured{hint}"
        raise ValueError(msg)
    measured: dict[str, list[float]] = {}
    for row in cases.rows:
        if score in row and row["state"] != "absent":
            measured.setdefault(str(row["label"]), []).append(row[score])
    by_label = {label: np.array(values) for label, values in measured.items()}
    return {
        label: (np.sort(values[np.isfinite(values)]), int((~np.isfinite(values)).sum()))
        for label, values in by_label.items()
    }


def texts_of_cases(report: Report) -> dict[str, str]:
    """The share and the distance of every structure of each case, as text."""
    cases = cases_of(report)
    if cases is None:
        return {}
    texts: dict[str, list[str]] = {}
    for row in cases.rows:
        score = row["state"]
        if score == "found":
            score = f"{cell(row[cases.share])}, {cell(row[cases.first], NUMBER)}"
        if score != "absent":
            texts.setdefault(row["case"], []).append(f"{called(str(row['label']))} {score}")
    unit = cases.unit or "units of the spacing"
    title = f"{capital(cases.share)} and {cases.title} in {unit}"
    return {case: f"{title}: {'; '.join(parts)}" for case, parts in texts.items()}


def distance_boxes(report: Report) -> dict[str, Any]:
    """Box plots of each structure's distances over its cases, as fractions of the longest."""
    cases = cases_of(report)
    if cases is None or all(row["state"] != "found" for row in cases.rows):
        return {"boxes": []}
    of_cases = {name: pair for name, pair in values_of_cases(cases).items() if pair[0].size}
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
    return {
        "boxes": boxes,
        "boxes_of": ", ".join(filter(None, (cases.title, cases.unit))),
        "longest": f"{longest:.4g} {cases.unit}".strip(),
    }


def box_of(values: Floats, reach: float) -> dict[str, Any]:
    """Quartiles, ends of the whiskers and outliers of values, as fractions of the reach."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    far = (values < low - 1.5 * (high - low)) | (values > high + 1.5 * (high - low))
    ends = np.array([low, middle, high, values[~far].min(), values[~far].max()])
    return {"ends": (ends / reach).tolist(), "beyond": (values[far] / reach).tolist()}
