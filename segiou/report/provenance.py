"""How a report was produced, and how to reproduce it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segiou._support import __version__
from segiou._support.text import count, digits
from segiou.labels.class_options import class_word
from segiou.labels.label_set import LabelSet, load_labels
from segiou.measures.registry import KEYWORDS
from segiou.report.image_table import EXAMPLES
from segiou.report.page import plural
from segiou.report.wording import ignored_text, in_unit
from segiou.scoring.job import PAIR_ARGUMENTS

if TYPE_CHECKING:
    from segiou.report.report import Report
    from segiou.runs.run import Run

_SKIPPED_SHOWN = 50
_UNASSIGNED = {"error": "an error", "count": "counted as missed"}


def making(
    report: Report, run: Run | None, images: str | Path | None, examples: int, path: str
) -> dict[str, Any]:
    """How a report was produced; ``toml`` is the label set unless it is a preset."""
    problems = () if run is None else run.skipped
    page = {"images": None if images is None else str(images), "examples": examples, "html": path}
    usual = {"images": None, "examples": EXAMPLES}
    asked = {name: value for name, value in page.items() if value != usual.get(name)}
    return {
        "facts": _facts(report, run),
        "skipped": list(map(str, problems[:_SKIPPED_SHOWN])),
        "skipped_more": max(0, len(problems) - _SKIPPED_SHOWN),
        "recipes": [] if run is None else _recipes(run, report, asked),
        "toml": "" if run is None or is_preset(run.labels) else run.labels.to_toml(),
    }


def _facts(report: Report, run: Run | None) -> list[tuple[str, str]]:
    """Origin of a report and its options, without empty ones."""
    protocol, unit, source = report.protocol, report.unit, report.provenance
    left = f", {count(report.left_out)} skipped" if report.left_out else ""
    ignored = f"{count(report.ignored)} ignored ({ignored_text(report)})"
    unassigned = int(report.unassigned.sum())
    facts = {
        "Protocol": f"{protocol.name}: {in_unit(protocol.description, unit)}",
        "Protocol source": "" if protocol.name == "segiou" else protocol.whose,
        "Pairs": f"{count(report.pairs)}{left}",
        unit.capitalize(): f"{count(report.pixels)}, {ignored}",
        "Unassigned": plural(unassigned, unit.removesuffix("s")) if unassigned else "",
        "Truth": source.get("truth"),
        "Predictions": source.get("pred"),
        "Paired by": source.get("pairing"),
        "Unfinished": source.get("unfinished"),
        "Missing parts": source.get("partial"),
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


def _recipes(run: Run, report: Report, page: dict[str, Any]) -> list[tuple[str, str]]:
    """A command and Python code that reproduce a run of files."""
    masks = [str(run.provenance.get(name) or "") for name in ("truth", "pred")]
    if not all(masks):
        return []
    # Runs do not store how images were grouped.
    grouped = report.intervals is not None and report.intervals.unit == "group"
    command = shlex.join(["segiou", "score", *masks, *_options(run, report, page)])
    code = "\n".join(_python(masks, run, report, **page))
    add = ("; add your --group-by", "; add your groups= to intervals") if grouped else ("", "")
    return [(f"on the command line{add[0]}", command), (f"in Python{add[1]}", code)]


def _asked(run: Run, report: Report) -> dict[str, Any]:
    """Options of a run, as named by both ``segiou score`` and ``score_folder``."""
    options, labels = run.options, run.labels
    other = options.pred_labels != labels
    every: dict[str, Any] = {
        "labels": _labels_text(labels),
        "pred_labels": _labels_text(options.pred_labels) if other else None,
        "ignore": [value for value in options.ignore if value not in labels.ignore] or None,
        "exclude": [run.class_names[index] for index in options.exclude] or None,
        "unassigned": None if options.unassigned == "error" else options.unassigned,
        "protocol": None if report.protocol.name == "segiou" else report.protocol.name,
        **{name: run.provenance.get(name) for name in PAIR_ARGUMENTS},
    }
    return {name: value for name, value in every.items() if value is not None}


def _labels_text(labels: LabelSet) -> str:
    if is_preset(labels):
        return labels.name
    numbered = labels == LabelSet.numbered(labels.num_classes)
    return str(labels.num_classes) if numbered else f"{labels.name}.toml"


def _options(run: Run, report: Report, page: dict[str, Any]) -> list[str]:
    """Options of the command line."""
    words = []
    for name, value in _asked(run, report).items():
        values = value if isinstance(value, list) else [value]
        if name == "exclude":
            values = [class_word(v, run.class_names.index(v)) for v in values]
        option = f"--{name.replace('_', '-')}"
        words += [option if v is True else f"{option}={v}" for v in values]
    for plan in run.plans:
        words += plan.words(run.plans)
    if (spacing := _given_spacing(run)) is not None:
        words.append(f"--spacing={','.join(map(digits, spacing))}")
    if report.intervals is not None:
        words.append("--intervals")
    named = _interval_options(report) | page
    return [*words, *(f"--{name}={value}" for name, value in named.items())]


def _given_spacing(run: Run) -> tuple[float, ...] | None:
    """Passed pixel size, which overrides the spacing of the files."""
    found = (plan.given_spacing for plan in run.plans)
    return next((spacing for spacing in found if spacing is not None), None)


def _interval_options(report: Report) -> dict[str, Any]:
    found = report.intervals
    if found is None:
        return {}
    usual = {"level": 0.95, "resamples": 10_000, "seed": 0, "method": "jackknife"}
    own = {name: getattr(found, name) for name in usual if getattr(found, name) is not None}
    chosen = {name: value for name, value in own.items() if value != usual[name]}
    return chosen if found.block_length is None else chosen | {"blocks": found.block_length}


def _python(masks: list[str], run: Run, report: Report, html: str, **page: Any) -> list[str]:
    """Lines of Python."""
    arguments = {
        name: int(value) if name.endswith("labels") and value.isdecimal() else value
        for name, value in _asked(run, report).items()
    }
    imports = ["import segiou"]
    lines = [*map(repr, masks), *_keywords(arguments)]
    others = []
    for plan in run.plans:
        kind, code = type(plan.measure), plan.measure.code()
        home = kind.__module__
        home = home.rpartition(".")[0] if home.startswith("segiou.") else home
        imports.append(f"from {home} import {kind.__name__}")
        if plan.key in KEYWORDS:
            lines.append(f"{plan.key}={code}")
        else:
            others.append(code)
    if others:
        lines.append(f"measures=[{', '.join(others)}]")
    if (spacing := _given_spacing(run)) is not None:
        lines.append(f"spacing={spacing!r}")
    imports.append("from segiou.report import write_html")
    made = ["report = run.report()"]
    if report.intervals is not None:
        own = ", ".join(_keywords(_interval_options(report)))
        made = [f"intervals = run.intervals({own})", "report = run.report(intervals=intervals)"]
    shown = ", ".join(["run=run", *_keywords(page)])
    return [
        *(*imports, "", "run = segiou.score_folder("),
        *(f"    {line}," for line in lines),
        *(")", *made, "print(report)", f"write_html({html!r}, report, {shown})"),
    ]


def _keywords(arguments: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in arguments.items()]
