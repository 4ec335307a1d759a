"""Reports as JSON, CSV, Markdown, data frames, flat names and nnU-Net's summary."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou._support.arguments import check_indent, check_kind, read_several
from segiou._support.csv_text import csv_of
from segiou._support.optional import compiled_parts
from segiou._support.text import plain
from segiou.document.renderers import RENDERERS, rendered
from segiou.measures.score_names import ScoreName, read_name
from segiou.measures.spellings import is_whole
from segiou.metrics.pixel_scores import OF_CLASSES
from segiou.report.measured import cells_by_row

if TYPE_CHECKING:
    from segiou.document.report_dict import ReportDict
    from segiou.measures.score_table import ScoreTable
    from segiou.report.report import Report
    from segiou.runs.run import Run

#: Number of classes above which plain data contain only the non-zero cells of the matrix.
_DENSE = 2000
DEFAULT = ("mean_iou", "mean_accuracy", "pixel_accuracy", "frequency_weighted_iou", "iou")

#: Longest class name in a key, because MLflow accepts keys of up to 250 characters.
_LONGEST = 100

#: Formats of data and of pages, with their file extensions; documents have others.
FORMATS: dict[str, tuple[str, ...]] = {
    "json": (".json",),
    "csv": (".csv",),
    "html": (".html", ".htm"),
}


def formats() -> dict[str, tuple[str, ...]]:
    """Every format of a report by name, with its file extensions."""
    return {name: renderer.endings for name, renderer in RENDERERS.items()} | FORMATS


def format_of(path: Path) -> str:
    """The format of a file by its extension."""
    for name, endings in formats().items():
        if path.suffix.lower() in endings:
            return name
    msg = f"{path}: unknown extension {path.suffix!r}; use {', '.join(formats())}"
    raise ValueError(msg)


def render(report: Report, format: str) -> str:
    """The report in a format by name."""
    check_kind("format", format, str, "the name of a format")
    if format in RENDERERS:
        return rendered(report._parts(means=format == "latex"), format)
    others: dict[str, Callable[[], str]] = {
        "json": report.to_json,
        "csv": report.to_csv,
        "html": report.to_html,
    }
    if format not in others:
        msg = f"unknown format {format!r}; choose from {', '.join(formats())}"
        raise ValueError(msg)
    return others[format]()


def to_dict(report: Report) -> ReportDict:
    """A report as plain data; undefined numbers are None."""
    from segiou._support import __version__
    from segiou.document.report_dict import MeasuresDict

    skipped = {report.class_names[c]: why for c, why in report.iou_mean.skipped.items()}
    data = {
        "format": "segiou report",
        "format_version": 1,
        "segiou_version": __version__,
        "backend": report.backend,
        "compiled": compiled_parts(),
        "title": report.title,
        "protocol": report.protocol.name,
        "rule": report.protocol._description(report.unit),
        **_values(report, "pairs", "left_out", "pixels", "ignored", "mean_iou", "mean_iou_classes"),
        "num_classes": len(report.class_names),
        "skipped": skipped,
        "never_predicted": [r.name for r in report.classes if r.status == "never predicted"],
        **_values(report, "mean_dice", "pixel_accuracy", "mean_accuracy", "gap"),
        **_values(report, "frequency_weighted_iou", "cohen_kappa", "majority"),
        "fine_grained": _image_level_means(report),
        "next_steps": [step.to_dict() for step in report.next_steps],
        "threshold_gains": [gain.to_dict() for gain in report.threshold_gains],
        "image_cautions": [caution.to_dict() for caution in report.image_cautions],
        "scores": {
            name: replace(score, intervals=report.intervals_of(name)).to_dict()
            for name, score in report.scores_by_name.items()
        },
        "classes": [row.to_dict() for row in report.classes],
        "groups": [row.to_dict() for row in report.group_rows],
        **_matrix_part(report),
        "unassigned": report.unassigned,
        **_values(report, "ignored_predictions"),
        "intervals": None if report.intervals is None else report.intervals.to_dict(),
        **_values(report, "worst_images", "provenance"),
        **dict.fromkeys(MeasuresDict.__annotations__),
        **report.measures,
    }
    defined: ReportDict = plain(data)
    return defined


def _values(report: Report, *names: str) -> dict[str, Any]:
    return {name: getattr(report, name) for name in names}


def _image_level_means(report: Report) -> dict[str, Any] | None:
    if report.image_level_means is None:
        return None
    intervals = {str(q): list(ends) for q, ends in report.worst_image_intervals.items()}
    return report.image_level_means.to_dict() | {"worst_image_intervals": intervals}


def _matrix_part(report: Report) -> dict[str, Any]:
    """The confusion matrix; with very many classes, its cells ``[truth, pred, pixels]``."""
    columns = len(report.class_names) + 1
    if columns <= _DENSE + 1 or not report.has_matrix:
        return {"matrix": report.matrix}
    cells = report.tally.cells
    truth, pred = np.divmod(cells.indices, columns)
    declared = pred < columns - 1
    rows = np.stack([truth, pred, cells.values], axis=1)[declared]
    return {"matrix": None, "matrix_cells": rows}


def to_json(
    report: Report, indent: int | None, also: Mapping[str, Any] = MappingProxyType({})
) -> str:
    """Strict JSON with one line per row of the matrix, and additional keys."""
    check_indent(indent)
    data: dict[str, Any] = {**to_dict(report), **also}
    if indent is None or not data["matrix"]:
        return json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)
    rows = data.pop("matrix")
    text = json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)
    pad = " " * indent
    lines = ",\n".join(f"{pad * 2}{json.dumps(row)}" for row in rows)
    return f'{text[:-2]},\n{pad}"matrix": [\n{lines}\n{pad}]\n}}\n'


def to_csv(report: Report, classes: ScoreTable, also: Iterable[Mapping[str, Any]] = ()) -> str:
    """One row per class, group or structure, and additional rows; undefined cells are empty."""
    return csv_of([*cells_by_row(report, classes), *also])


def check_scores(names: str | Sequence[str], measured: Iterable[str] = ()) -> tuple[str, ...]:
    """Check the names of scores; ``measured`` are those of measures."""
    wanted = "names of scores, such as ['mean_iou', 'iou']"
    several = (names,) if isinstance(names, str) else tuple(read_several("names", names, wanted))
    for name in several:
        read_name(name, measured)
    return several


def score_keys(
    names: Sequence[str],
    rows_of: Callable[[str], Sequence[str]],
    separator: str = "/",
    measured: Iterable[str] = (),
) -> dict[str, ScoreName]:
    """Score and class under each key.

    mean_NAME is the mean only, NAME:ROW one row; NAME of pixels the classes, and of a measure both.
    """
    by_key: dict[str, ScoreName] = {}
    for name in names:
        score_name = read_name(name, measured)
        of_classes = score_name.score in OF_CLASSES
        if score_name.row:
            (part,) = _key_parts([score_name.row])
            by_key[f"{name.partition(':')[0]}{separator}{part}"] = score_name
            continue
        if is_whole(name) or not of_classes:
            by_key[name] = score_name
        if not is_whole(name):
            for part, row in _key_parts(rows_of(score_name.score)).items():
                by_key[f"{name}{separator}{part}"] = ScoreName(score_name.score, row)
    return by_key


def _key_parts(names: Sequence[str]) -> dict[str, str]:
    """Names by letters, digits and underscores, different for each."""
    parts: dict[str, str] = {}
    for i, name in enumerate(names):
        plain_name = re.sub(r"\W+", "_", name)[:_LONGEST].strip("_") or f"class_{i}"
        numbered = (plain_name if n == 1 else f"{plain_name}_{n}" for n in count(1))
        parts[next(part for part in numbered if part not in parts)] = name
    return parts


def nnunet_summary(run: Run) -> str:
    """Per-case scores and their means in the format of nnU-Net.

    Scores the groups of the label set as regions, or else every included class
    except the background (value 0). A label that is absent from truth and
    prediction of a case is NaN and skipped in the mean over cases. Counts are
    also averaged over cases.

    References
    ----------
    nnU-Net v2, ``nnunetv2/evaluation/evaluate_predictions.py``.
    """
    structures = run.options.structures
    keys = [_nnunet_key(run, name, members) for name, members in structures.items()]
    counts = run.structure_counts([*structures.values()])
    columns = {
        "Dice": metrics.dice(counts),
        "IoU": metrics.iou(counts),
        "TP": counts.tp,
        "FP": counts.fp,
        "FN": counts.fn,
        "TN": counts.tn,
        "n_pred": counts.pred,
        "n_ref": counts.truth,
    }
    means = {name: metrics.mean(column.T.astype(np.float64)) for name, column in columns.items()}
    summary = {
        "foreground_mean": {name: float(np.mean(mean)) for name, mean in means.items() if keys},
        "mean": _structure_lists(keys, means),
        "metric_per_case": [
            {
                "metrics": _structure_lists(keys, {n: column[i] for n, column in columns.items()}),
                "prediction_file": image.pred,
                "reference_file": image.truth,
            }
            for i, image in enumerate(run)
        ],
    }
    return json.dumps(summary, indent=4, sort_keys=True) + "\n"


def _nnunet_key(run: Run, name: str, members: Sequence[int]) -> str:
    """A label or region, by its values in the files."""
    values = tuple(value for c in members for value in run.labels.classes[c].values)
    # A label has the name of its class; a region with one value does not.
    is_label = len(values) == 1 and name == run.class_names[members[0]]
    return str(values[0] if is_label else values)


def _structure_lists(keys: Sequence[str], columns: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    lists = {name: column.tolist() for name, column in columns.items()}
    return {key: {name: cells[at] for name, cells in lists.items()} for at, key in enumerate(keys)}
