"""A report for other programs: JSON, CSV, Markdown, data frame, flat names, nnU-Net's summary."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou import metrics
from segiou._support.files import printable
from segiou._support.optional import compiled_parts, import_extra
from segiou._support.text import called, csv_text, percent, plain, plural
from segiou.measures.registry import measure_of_score
from segiou.report.measured import measured_cells, measured_tables
from segiou.report.wording import accuracy_text, cell, difference_cells, pairs_text, score_text

if TYPE_CHECKING:
    import pandas

    from segiou.analysis.comparison import Comparison
    from segiou.report.report import ClassRow, Report
    from segiou.runs.run import Run

#: Of more classes than this, plain data hold only the cells of the matrix that are not zero.
_DENSE = 2000

#: Classes of a comparison that Markdown shows.
_CHANGES = 10
#: One number for the data set.
SCALARS = ("mean_iou", "mean_dice", "mean_accuracy", "pixel_accuracy", "frequency_weighted_iou")
#: One number a class, under the class's name.
PER_CLASS = ("iou", "dice", "precision", "recall")
DEFAULT = ("mean_iou", "mean_accuracy", "pixel_accuracy", "frequency_weighted_iou", "iou")

#: The longest part of a class's name in a key: MLflow takes keys of up to 250 characters.
_LONGEST = 100

#: Formats by name, with the file endings that mean them.
FORMATS: dict[str, tuple[str, ...]] = {
    "table": (".txt", ""),
    "json": (".json",),
    "csv": (".csv",),
    "markdown": (".md", ".markdown"),
    "html": (".html", ".htm"),
}


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
    ordered = {"csv": report.to_csv, "markdown": report.to_markdown, "table": report.to_text}
    if format in ordered:
        return ordered[format](sort=sort, reverse=reverse)
    return report.to_json() if format == "json" else report.to_html()


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
        **_named(report, "pairs", "left_out", "pixels", "ignored", "mean_iou", "mean_iou_classes"),
        "num_classes": len(report.class_names),
        "skipped": skipped,
        "never_predicted": [r.name for r in report.classes if r.status == "never predicted"],
        **_named(report, "mean_dice", "pixel_accuracy", "mean_accuracy", "gap"),
        **_named(report, "frequency_weighted_iou", "cohen_kappa", "majority"),
        "fine_grained": None
        if report.image_level_means is None
        else report.image_level_means.to_dict(),
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
        **_named(report, "surface_plan", "objects", "worst_images", "provenance"),
        **{key: part for table in report.tables for key, part in table.to_dict().items()},
    }
    defined: dict[str, Any] = plain(data)
    return defined


def _named(report: Report, *names: str) -> dict[str, Any]:
    return {name: getattr(report, name) for name in names}


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
    if indent is None or not data["matrix"]:
        return json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)
    rows = data.pop("matrix")
    text = json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)
    pad = " " * indent
    lines = ",\n".join(f"{pad * 2}{json.dumps(row)}" for row in rows)
    return f'{text[:-2]},\n{pad}"matrix": [\n{lines}\n{pad}]\n}}\n'


def to_csv(report: Report, rows: Sequence[ClassRow]) -> str:
    """One row a class; an undefined ratio is an empty cell."""
    lines = []
    for row in rows:
        line = asdict(row)
        if report.intervals is not None:
            limits = report.interval_of(row.name) or (math.nan, math.nan)
            line |= dict(zip(("iou_low", "iou_high"), limits, strict=True))
        lines.append(line | measured_cells(report, row.name))
    return csv_text([list(lines[0]), *(plain(list(line.values())) for line in lines)])


def to_pandas(report: Report) -> pandas.DataFrame:
    """One row a class, indexed by name."""
    pd = import_extra("pandas", "to_pandas needs pandas", "pandas")
    table: pandas.DataFrame = pd.DataFrame([asdict(row) for row in report.classes])
    return table.set_index("name")


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
    parts = [
        f"**{_escaped(report.verdict)}**",
        accuracy_text(report),
    ]
    if outcomes:
        passed = [(text, "passed" if good else "**failed**") for text, good in outcomes]
        parts.append(_table(("threshold", "outcome"), passed, left=2))
    if change is not None:
        parts += [*_change_part(change), "<details><summary>All scores of the classes</summary>"]
    named = [(row.name, row) for row in rows]
    named += [(f"{row.name} (group)", row) for row in report.group_rows]
    heads = ("class", "IoU", "Dice", "precision", "recall", "share")
    ratios = [[name, *(cell(getattr(row, x.lower())) for x in heads[1:])] for name, row in named]
    parts.append(_table(heads, ratios))
    for found in measured_tables(report):
        parts += [_table(found.heads, [*found.rows, *found.summary]), found.note]
    if change is not None:
        parts.append("</details>")
    parts.append(_footer(report))
    if report.intervals is not None:
        parts += map(_escaped, report.intervals.cautions())
    if (worst := report.worst_images) is not None:
        images = [(row["id"], score_text(row[worst.by])) for row in worst.rows]
        parts.append(_table(("worst images", worst.by), images))
    return "\n\n".join(parts) + "\n"


def _change_part(change: Comparison) -> list[str]:
    """What changed against the baseline: the mean, and the classes that changed most."""
    pair = change.pairs[0]
    moved = sorted((row for row in pair.classes if row.delta), key=lambda row: -abs(row.delta))
    rows = [
        (*difference_cells(row), "yes" if row.differs(change.level) else "")
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


def _footer(report: Report) -> str:
    majority = report.majority
    return (
        f"{pairs_text(report)}, {report.pixels} {report.unit}, {report.ignored} ignored. "
        f"Protocol `{report.protocol.name}`: {report.protocol.description}. "
        f"A model that says {_escaped(called(str(majority['class'])))} everywhere (the majority "
        f"baseline) has pixel accuracy {percent(majority['pixel_accuracy'])} and mean IoU "
        f"{percent(majority['mean_iou'])}."
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    lines = [heads, [":--" if i < left else "--:" for i in range(len(heads))], *rows]
    return "\n".join(f"| {' | '.join(map(_escaped, line))} |" for line in lines)


def _escaped(text: str) -> str:
    text = printable(" ".join(text.split()))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def check_scores(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names of scores, or of one; refuses those that there are not."""
    several = (names,) if isinstance(names, str) else tuple(names)
    if unknown := [
        name
        for name in several
        if name not in SCALARS + PER_CLASS and measure_of_score(name) is None
    ]:
        msg = f"there is no score {unknown[0]!r}; choose from {', '.join(SCALARS + PER_CLASS)}"
        raise ValueError(msg)
    return several


def score_keys(
    names: Sequence[str], class_names: Sequence[str], separator: str = "/"
) -> dict[str, tuple[str, int | None]]:
    """The score and the index of the class, None for a number of the data set, under each key."""
    parts: dict[str, int] = {}
    for i, name in enumerate(class_names):
        # Letters, digits and underscores, different for each class.
        plain_name = re.sub(r"\W+", "_", name)[:_LONGEST].strip("_") or f"class_{i}"
        numbered = (plain_name if n == 1 else f"{plain_name}_{n}" for n in count(1))
        parts[next(part for part in numbered if part not in parts)] = i
    found: dict[str, tuple[str, int | None]] = {}
    for name in names:
        if name not in PER_CLASS:
            found[name] = (name, None)
        else:
            found |= {f"{name}{separator}{part}": (name, i) for part, i in parts.items()}
    return found


def nnunet_summary(run: Run) -> str:
    """Write the scores of each case and their means as nnU-Net does.

    Scored are the label set's groups, as regions, if it has any; else every
    class but those left out of means and the one of value 0, the background.
    A label that a case has neither in truth nor in prediction is NaN there and
    skipped in the mean over cases. The counts are averaged over cases, too.

    Parameters
    ----------
    run : Run

    Returns
    -------
    str
        JSON, in which NaN stands bare.

    References
    ----------
    nnU-Net v2, ``nnunetv2/evaluation/evaluate_predictions.py``.
    """
    scored = _nnunet_classes(run)
    cases: list[dict[str, Any]] = [
        {
            "metrics": _nnunet_metrics(run, index, scored),
            "prediction_file": image.pred,
            "reference_file": image.truth,
        }
        for index, image in enumerate(run)
    ]
    means = {key: _mean_of_defined([case["metrics"][key] for case in cases]) for key in scored}
    summary = {
        "foreground_mean": {
            name: float(np.mean([mean[name] for mean in means.values()]))
            for name in (next(iter(means.values())) if means else ())
        },
        "mean": means,
        "metric_per_case": cases,
    }
    return json.dumps(summary, indent=4, sort_keys=True) + "\n"


def _nnunet_classes(run: Run) -> dict[str, list[int]]:
    """Classes of each label or region, by the values it has in the files."""
    classes, names = run.labels.classes, run.class_names
    if run.labels.groups:
        regions = {name: [*map(names.index, of)] for name, of in run.labels.groups.items()}
    else:
        scored = np.flatnonzero(run.include).tolist()
        regions = {names[c]: [c] for c in scored if classes[c].values != (0,)}
    keys = {}
    for name, region in regions.items():
        values = tuple(value for c in region for value in classes[c].values)
        # A label has the name of its class; a region of one value has not.
        is_label = len(values) == 1 and name == names[region[0]]
        keys[str(values[0] if is_label else values)] = region
    return keys


def _nnunet_metrics(run: Run, index: int, scored: dict[str, list[int]]) -> dict[str, Any]:
    counts = run.tally(index).group_counts([*scored.values()])
    columns = {
        "Dice": metrics.dice(counts),
        "IoU": metrics.iou(counts),
        "TP": counts.tp,
        "FP": counts.fp,
        "FN": counts.fn,
        "TN": counts.tn,
        "n_pred": counts.tp + counts.fp,
        "n_ref": counts.tp + counts.fn,
    }
    return {
        key: {name: column[at].item() for name, column in columns.items()}
        for at, key in enumerate(scored)
    }


def _mean_of_defined(cases: list[dict[str, Any]]) -> dict[str, float]:
    """Mean over the cases in which a value is defined; NaN over none."""
    columns = {name: np.array([case[name] for case in cases], np.float64) for name in cases[0]}
    defined = {name: values[~np.isnan(values)] for name, values in columns.items()}
    return {name: float(np.mean(v)) if len(v) else math.nan for name, v in defined.items()}
