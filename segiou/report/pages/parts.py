"""Parts of pages as data for their templates: cases, slices, origin, and sections of features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from segiou._support import __version__
from segiou._support.files import printable
from segiou._support.numbers import COUNT, cell, count, p_text, shown, shown_change, unit_text
from segiou._support.optional import find_plugin
from segiou._support.text import nouns
from segiou.analysis.slices.text import changes, interval_text, mark, mixes, notes, trends, verdict
from segiou.inference.scored_runs import clusters_of, unit_of_pixels
from segiou.labels.label_set import LabelSet
from segiou.labels.loading import load_labels
from segiou.report.pages.image_table import LISTED
from segiou.report.pages.page import plural
from segiou.report.pages.picture_masks import Reader
from segiou.report.wording import aligned_text, ignored_text
from segiou.runs.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from segiou.analysis.slices.result import Slice, Slices
    from segiou.measures.plan import Plan
    from segiou.measures.score import Quantity
    from segiou.report.report import Report


class Section(NamedTuple):
    """A template as ``PACKAGE:PATH``, which reads ``part.section.context``, and its styles."""

    template: str
    context: Mapping[str, Any]
    styles: tuple[str, ...] = ()


def sections_of(
    run: Run | None, *, images: str | Path | None, read: Reader | None
) -> dict[str, Section]:
    """The sections of a run by the key of their measure."""
    makers = {plan.key: find_plugin("sections", plan.key) for plan in run.plans} if run else {}
    return {key: make(run, images=images, read=read) for key, make in makers.items() if make}


#: Images of a table, and cells of all tables of a measure, at most.
_ROWS, _CELLS = 500, 20_000


class CaseTable(NamedTuple):
    """One score of a measure in every image."""

    key: str
    title: str
    heads: tuple[str, ...]
    first: str
    rows: list[tuple[str, list[tuple[str, str]]]]
    """The id of each image, and for each column a value to sort by and its text."""
    left: int


def case_tables(run: Run, plan: Plan) -> list[CaseTable]:
    """A table per score, the worst images first; none for very many images."""
    if len(run) > LISTED:
        return []
    parts = run.parts(plan.key)
    values = plan.columns(parts)
    groups: dict[str, list[Quantity]] = {}
    for column in plan.image_columns:
        groups.setdefault(column.name.partition(":")[0], []).append(column)
    most = max(1, min(_ROWS, _CELLS // max(1, len(values))))
    image = nouns(unit_of_pixels(run)).image
    return [
        _table(run.ids, f"{plan.key}-{name}", columns, values, most, image)
        for name, columns in groups.items()
        if any(":" in column.name for column in columns)
    ]


def _table(
    ids: tuple[str, ...],
    key: str,
    columns: list[Quantity],
    values: dict[str, NDArray[Any]],
    most: int,
    image: str,
) -> CaseTable:
    lower = columns[0].better == "lower"
    means = [c for c in columns if ":" not in c.name] or columns
    worst = [_worst([values[c.name][i] for c in means], lower=lower) for i in range(len(ids))]
    order = sorted(range(len(ids)), key=lambda i: worst[i])[:most]
    rows = [(ids[i], [_cell(c, values[c.name][i]) for c in columns]) for i in order]
    unit = f", {text}" if (text := unit_text(columns[0].unit)) else ""
    return CaseTable(
        key,
        f"{columns[0].title or columns[0].name.partition(':')[0]} per {image}{unit}",
        tuple(printable(c.name.partition(":")[2] or c.overall) for c in columns),
        "descending" if lower else "ascending",
        rows,
        len(ids) - len(order),
    )


def _worst(values: list[np.floating[Any]], *, lower: bool) -> tuple[bool, float]:
    """Sort key: the worst images first, those without a score last."""
    known = [float(value) for value in values if not math.isnan(value)]
    if not known:
        return True, 0.0
    mean = sum(known) / len(known)
    return False, -mean if lower else mean


def _cell(column: Quantity, value: Any) -> tuple[str, str]:
    number = float(value)
    if math.isnan(number):
        return "nan", "–"
    if column.unit == COUNT:
        return str(int(number)), str(int(number))
    text = "∞" if math.isinf(number) else f"{number:.2f}"
    return repr(number), text if column.unit else cell(number)


def sliced_part(sliced: Slices) -> dict[str, Any]:
    """The slices by one score as a page shows them."""
    ends = [x for row in sliced for x in (*row.scores, row.high if len(sliced.names) < 2 else 0)]
    reach = max([x for x in ends if np.isfinite(x)], default=1.0) if sliced.score_unit else 1.0
    is_one = len(sliced.names) == 1
    return {
        "metric": sliced.metric,
        "title": sliced.title,
        "names": sliced.names,
        "verdict": verdict(sliced),
        "mixes": [*mixes(sliced)],
        "notes": [*notes(sliced)],
        "trends": trends(sliced) if sliced.trends else None,
        "rows": [_row(sliced, row, reach or 1.0) for row in sliced],
        "whole": sliced.score / (reach or 1.0) if is_one else None,
        "whole_text": shown(sliced.score, sliced.score_unit),
        "level": f"{100 * sliced.level:g}\N{NO-BREAK SPACE}%",
    }


def _row(sliced: Slices, row: Slice, reach: float) -> dict[str, Any]:
    unit, gap = sliced.score_unit, row.gap
    is_one = len(sliced.names) == 1
    ends = (row.low / reach, row.high / reach) if is_one and row.low == row.low else None
    return {
        "name": row.name,
        "images": row.images,
        "score": row.score,
        "text": (shown if is_one else shown_change)(row.score, unit),
        "interval": interval_text(sliced, row.low, row.high),
        "places": [score / reach for score in row.scores],
        "ends": ends,
        "gap": gap.value,
        "gap_text": "" if np.isnan(gap.value) else shown_change(gap.value, unit),
        "gap_interval": changes(gap.low, gap.high, sliced),
        "p": gap.p_holm,
        "p_text": "" if np.isnan(gap.p_holm) else p_text(gap.p_holm),
        "mark": mark(sliced, row).text,
    }


_SKIPPED_SHOWN = 50
_UNASSIGNED = {"error": "an error", "count": "counted as missed"}


def making(report: Report, run: Run | None) -> dict[str, Any]:
    """Origin of a report; ``toml`` is the label set unless it is a preset."""
    problems = () if run is None else run.skipped
    first = next(iter(report.provenance.get("merged", ())), report.provenance)
    return {
        "facts": _facts(report, run),
        "skipped": list(map(str, problems[:_SKIPPED_SHOWN])),
        "skipped_more": max(0, len(problems) - _SKIPPED_SHOWN),
        "command": first.get("command", ""),
        "toml": "" if run is None or is_preset(run.labels) else run.labels.to_toml(),
    }


def _facts(report: Report, run: Run | None) -> list[tuple[str, str]]:
    """Origin of a report and its options, without empty ones."""
    protocol, unit, source = report.protocol, report.unit, report.provenance
    left = f", {count(report.left_out)} skipped" if report.left_out else ""
    ignored = f"{count(report.ignored)} ignored ({ignored_text(report)})"
    unassigned = int(report.unassigned.sum())
    facts = {
        "Protocol": f"{protocol.name}: {protocol._description(unit)}",
        "Protocol source": "" if protocol.name == "segiou" else protocol.whose,
        "Pairs": f"{count(report.pairs)}{left}{aligned_text(report)}",
        unit.capitalize(): f"{count(report.pixels)}, {ignored}",
        "Unassigned": plural(unassigned, unit.removesuffix("s")) if unassigned else "",
        "Truth": source.get("truth"),
        "Predictions": source.get("pred"),
        "Paired by": source.get("pairing"),
        "Clusters": clusters_of(source),
        "Unfinished": source.get("unfinished"),
        "Missing parts": source.get("partial"),
        "Unread measures": source.get("unread"),
        "Intervals": report.intervals and report.intervals.method_text("interval"),
        **({} if run is None else _run_facts(run)),
        "Made with": f"segiou {__version__}, {report.backend} kernel",
    }
    return [(name, str(text)) for name, text in facts.items() if text]


def _run_facts(run: Run) -> dict[str, str]:
    options, labels = run.options, run.labels
    number = plural(labels.num_classes, "class", "classes")
    return {
        "Labels": f"{labels.name}, {number}",
        "Prediction labels": options.pred_labels.name if options.pred_labels != labels else "",
        "Ignored values": ", ".join(map(str, options.ignore)) or "none",
        "Excluded from means": ", ".join(run.class_names[i] for i in options.exclude) or "none",
        "Predictions outside all classes": _UNASSIGNED[options.unassigned],
    }


def is_preset(labels: LabelSet) -> bool:
    """Whether a label set equals the preset of its name."""
    try:
        return load_labels(labels.name) == labels
    except (ValueError, OSError):
        return False
