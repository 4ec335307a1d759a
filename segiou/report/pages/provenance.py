"""Origin of a report, and the commands that reproduce it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from segiou._support import __version__
from segiou._support.numbers import count
from segiou.inference.scored_runs import clusters_of
from segiou.labels.label_set import LabelSet
from segiou.labels.loading import load_labels
from segiou.report.pages.page import plural
from segiou.report.wording import aligned_text, ignored_text

if TYPE_CHECKING:
    from segiou.report.report import Report
    from segiou.runs.run import Run

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
