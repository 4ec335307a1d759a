"""How a report was made, and how to make it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from segiou._support import __version__
from segiou.labels.label_files import load_labels
from segiou.labels.label_set import LabelSet
from segiou.report.page import count, percent, plural

if TYPE_CHECKING:
    from segiou.report.report import Report
    from segiou.runs.run import Run

__all__ = ["Making", "making"]

_SKIPPED_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Making:
    """How it was made.

    Attributes
    ----------
    facts : tuple of (str, str)
    skipped : tuple of str
        Pairs that were left out, and why.
    skipped_more : int
        How many of them are not listed.
    command, python : str
        What makes it again; empty where it was not made from files.
    toml : str
        The label set, where no preset is the same.
    """

    facts: tuple[tuple[str, str], ...]
    skipped: tuple[str, ...]
    skipped_more: int
    command: str
    python: str
    toml: str


def making(report: Report, run: Run | None) -> Making:
    """Say how a report was made."""
    problems = () if run is None else run.skipped
    labels = None if run is None else run.labels
    preset = labels is not None and is_preset(labels)
    return Making(
        tuple(_facts(report, run)),
        tuple(map(str, problems[:_SKIPPED_SHOWN])),
        max(0, len(problems) - _SKIPPED_SHOWN),
        "" if run is None else _command(run, report),
        "" if run is None else _python(run, report),
        "" if labels is None or preset else labels.to_toml(),
    )


def is_preset(labels: LabelSet) -> bool:
    """Whether the preset of this name is the same label set."""
    try:
        return load_labels(labels.name) == labels
    except (ValueError, OSError):
        return False


def _facts(report: Report, run: Run | None) -> list[tuple[str, str]]:
    made_from = report.provenance
    share = report.ignored / report.pixels if report.pixels else float("nan")
    facts = [
        ("Rule", f"{report.protocol.name}: {report.protocol.description}"),
        ("Whose rule", report.protocol.whose),
        ("Pairs", _pairs(report)),
        ("Pixels", f"{count(report.pixels)}, of which {count(report.ignored)} ignored"),
        ("Ignored", percent(share)),
        ("Unassigned", plural(int(report.unassigned.sum()), "pixel")),
        ("Truth", str(made_from.get("truth", ""))),
        ("Predictions", str(made_from.get("pred", ""))),
        ("Paired by", str(made_from.get("pairing", ""))),
        ("Not finished", str(made_from.get("unfinished", ""))),
        ("Intervals", _intervals_text(report)),
    ]
    if run is not None:
        options = run.options
        excluded = ", ".join(run.class_names[i] for i in options.exclude)
        facts += [
            ("Labels", f"{run.labels.name}, {plural(run.labels.num_classes, 'class', 'classes')}"),
            ("Labels of the predictions", _other(options.pred_labels, run.labels)),
            ("Ignored values", ", ".join(map(str, options.ignore)) or "none"),
            ("Left out of means", excluded or "none"),
            ("A prediction of no class is", _UNASSIGNED[options.unassigned]),
        ]
    facts.append(("Made with", f"segiou {__version__}, {report.backend} kernel"))
    return [(name, text) for name, text in facts if text]


def _pairs(report: Report) -> str:
    left_out = f", {count(report.left_out)} left out" if report.left_out else ""
    return f"{plural(report.pairs, 'pair')}{left_out}"


def _intervals_text(report: Report) -> str:
    found = report.intervals
    if found is None:
        return ""
    return (
        f"{100 * found.level:g} % {found.method} bootstrap over {plural(found.units, found.unit)}, "
        f"{count(found.resamples)} resamples, seed {found.seed}"
    )


_UNASSIGNED = {"error": "an error", "count": "counted as missed"}


def _other(labels: LabelSet, truth: LabelSet) -> str:
    return "" if labels == truth else labels.name


def _files(run: Run) -> tuple[str, str] | None:
    truth, pred = run.provenance.get("truth"), run.provenance.get("pred")
    return None if not truth or not pred else (str(truth), str(pred))


def _labels_text(labels: LabelSet) -> str:
    if is_preset(labels):
        return labels.name
    numbered = labels == LabelSet.numbered(labels.num_classes)
    return str(labels.num_classes) if numbered else f"{labels.name}.toml"


def _own_ignore(run: Run) -> list[int]:
    return [v for v in run.options.ignore if v not in run.labels.ignore]


def _command(run: Run, report: Report) -> str:
    files = _files(run)
    if files is None:
        return ""
    words = ["segiou", "score", *files, "--labels", _labels_text(run.labels)]
    if run.options.pred_labels != run.labels:
        words += ["--pred-labels", _labels_text(run.options.pred_labels)]
    for value in _own_ignore(run):
        words.append(f"--ignore={value}")
    for index in run.options.exclude:
        words.append(f"--exclude={_named(run.class_names[index], index)}")
    if run.options.unassigned != "error":
        words += ["--unassigned", run.options.unassigned]
    if report.protocol.name != "segiou":
        words += ["--protocol", report.protocol.name]
    words += [f"--{name}={value}" for name, value in _skipping(run)]
    words += [*_boundary_words(run), *_interval_words(report)]
    return shlex.join([*words, "--html", "report.html"])


def _boundary_words(run: Run) -> list[str]:
    """What the command line can say of the boundary options; the rest is for Python."""
    if run.boundary_options is None:
        return []
    chosen = run.boundary_options.chosen()
    options = {"widths": "boundary", "tolerances": "boundary-tolerance"}
    words = [f"--{options[name]}={','.join(chosen[name])}" for name in options if chosen.get(name)]
    return words or ["--boundary"]


def _interval_words(report: Report) -> list[str]:
    found = report.intervals
    if found is None:
        return []
    usual = {"level": 0.95, "resamples": 10_000, "seed": 0, "method": "percentile"}
    own = {name: getattr(found, name) for name in usual if getattr(found, name) != usual[name]}
    return ["--intervals", *(f"--{name}={value}" for name, value in own.items())]


def _boundary_line(run: Run) -> list[str]:
    if run.boundary_options is None:
        return []
    chosen = run.boundary_options.chosen()
    given = ", ".join(f"{name}={value!r}" for name, value in chosen.items())
    return [f"    boundary=BoundaryOptions({given}),"]


def _skipping(run: Run) -> list[tuple[str, str]]:
    """The options by which pairs were left out, as far as the problems tell."""
    texts = [problem.text for problem in run.skipped]
    told = {"missing": "has no prediction", "extra": "has no truth"}
    chosen = [(name, "skip") for name, text in told.items() if text in texts]
    others = any(text not in told.values() for text in texts)
    return [*chosen, *([("on-error", "skip")] if others else [])]


def _named(name: str, index: int) -> str:
    """A class as the command line takes it: by name, where a name is taken as one."""
    plain = "," not in name and name == name.strip() and not name.lstrip("+-").isdecimal()
    return name if plain else str(index)


def _python(run: Run, report: Report) -> str:
    files = _files(run)
    if files is None:
        return ""
    labels = _labels_text(run.labels)
    arguments: list[tuple[str, Any]] = [("labels", int(labels) if labels.isdecimal() else labels)]
    if run.options.pred_labels != run.labels:
        arguments.append(("pred_labels", _labels_text(run.options.pred_labels)))
    excluded = [run.class_names[i] for i in run.options.exclude]
    optional: Sequence[tuple[str, Any, Any]] = (
        ("ignore", _own_ignore(run), []),
        ("exclude", excluded, []),
        ("unassigned", run.options.unassigned, "error"),
        ("protocol", report.protocol.name, "segiou"),
        *((name.replace("-", "_"), value, None) for name, value in _skipping(run)),
    )
    arguments += [(name, value) for name, value, default in optional if value != default]
    lines = [f"    {files[0]!r},", f"    {files[1]!r},"]
    lines += [f"    {name}={value!r}," for name, value in arguments]
    lines += _boundary_line(run)
    imports = ["import segiou"]
    if run.boundary_options is not None:
        imports.append("from segiou.boundary import BoundaryOptions")
    return "\n".join(
        [*imports, "", "run = segiou.score_folder(", *lines, ")", "print(run.report())"]
    )
