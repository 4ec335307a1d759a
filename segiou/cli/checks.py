"""What is refused before anything is scored: thresholds, outputs, options."""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from segiou._support.arguments import check_integer
from segiou._support.files import is_device
from segiou.analysis.bootstrapping import check_method
from segiou.analysis.statistics import statistic
from segiou.analysis.units import group_by_pattern, groups_of, units_of
from segiou.cli.inputs import groups_argument
from segiou.cli.parsers import option_of
from segiou.counting.counts import Counts
from segiou.labels.class_options import ClassOptions
from segiou.metrics.protocols import load_protocol
from segiou.report.formats import format_of
from segiou.report.report import Report
from segiou.runs.tables import check_score_name

__all__ = [
    "check_findings",
    "check_gates",
    "check_images",
    "check_paths",
    "check_report",
    "failed_gates",
    "findings_format",
    "parse_gates",
    "report_format",
    "wants_intervals",
]

_ALIASES = {"miou": "mean_iou"}
_SCORES = (
    "mean_iou",
    "mean_dice",
    "pixel_accuracy",
    "mean_accuracy",
    "frequency_weighted_iou",
    "cohen_kappa",
    "boundary_iou",
)
#: Scores of one class, asked for as ``iou:CLASS``.
_OF_A_CLASS = ("iou", "dice", "precision", "recall")

Gates = Sequence[tuple[str, float]]


def parse_gates(texts: Sequence[str]) -> list[tuple[str, float]]:
    """Read ``NAME=VALUE`` texts.

    Raises
    ------
    ValueError
        If one has another form, an unknown name, or a value that no score reaches.
    """
    gates = []
    for text in texts:
        name, _, value = text.rpartition("=")
        name = _ALIASES.get(name.strip(), name.strip())
        if name not in _SCORES and _split(name)[0] not in _OF_A_CLASS:
            known = ", ".join(("miou", *_SCORES[1:], *(f"{kind}:CLASS" for kind in _OF_A_CLASS)))
            msg = f"--fail-under {text!r}: write NAME=VALUE with a name of {known}"
            raise ValueError(msg)
        gates.append((name, _least(text, value)))
    return gates


def _split(name: str) -> tuple[str, str]:
    """The score and the class of a gate; no score where it is of no class."""
    kind, colon, class_name = name.partition(":")
    return (kind, class_name) if colon else ("", "")


def _least(text: str, value: str) -> float:
    try:
        least = float(value)
    except ValueError:
        least = math.nan
    if math.isnan(least):
        msg = f"--fail-under {text!r}: {value!r} is not a number"
        raise ValueError(msg)
    if least > 1:
        hint = f"; for {least:g} % write {least / 100:g}" if least <= 100 else ""
        msg = f"--fail-under {text!r}: no score is above 1{hint}"
        raise ValueError(msg)
    return least


def check_gates(gates: Gates, class_names: Sequence[str], *, boundary: bool) -> None:
    """Refuse gates on scores that a report will not have.

    Raises
    ------
    ValueError
        If a class is none of ``class_names``, or boundaries are not measured.
    """
    for name, _ in gates:
        if name == "boundary_iou" and not boundary:
            msg = f"--fail-under {name}: boundaries are not measured; score with --boundary"
            raise ValueError(msg)
        if name not in _SCORES and _split(name)[1] not in class_names:
            msg = f"--fail-under {name}: no such class; there are {', '.join(class_names)}"
            raise ValueError(msg)


def failed_gates(report: Report, gates: Gates) -> list[str]:
    """Say which gates a report fails; an undefined score fails."""
    failures = []
    for name, least in gates:
        value = _value(report, name)
        if not value >= least:
            shown = "undefined" if value != value else repr(value)
            failures.append(f"gate failed: {name} is {shown}, below {least}")
    return failures


def _value(report: Report, name: str) -> float:
    if name in _SCORES:
        return float(getattr(report, name))
    kind, class_name = _split(name)
    row = report.classes[report.class_names.index(class_name)]
    return float(getattr(row, kind))


_FILES = ("output", "html", "per_image", "problems", "run")
_INPUTS = (
    "truth",
    "pred",
    "labels",
    "pred_labels",
    "run_file",
    "runs",
    "models",
    "paths",
)


def check_paths(parsed: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written, or would destroy something.

    Raises
    ------
    ImportError
        If plots are wanted and cannot be drawn.
    ValueError
        Naming the option and what is wrong with it.
    """
    taken = {os.path.realpath(path): path for path in _input_files(parsed)}
    for name in _FILES:
        text = getattr(parsed, name, None)
        if text is None:
            continue
        option = option_of(name)
        _check_file(option, text)
        full = os.path.realpath(Path(text).expanduser())
        if is_device(full):
            continue
        if full in taken:
            msg = f"{option} {text}: would be written over {taken[full]}; choose another name"
            raise ValueError(msg)
        taken[full] = f"what {option} writes"
    if getattr(parsed, "plots", None) is not None:
        _check_plots(parsed.plots)
    if (
        getattr(parsed, "images", None) is not None
        and not Path(parsed.images).expanduser().is_dir()
    ):
        msg = f"--images {parsed.images}: is no folder; name the folder that holds the photographs"
        raise ValueError(msg)


def _input_files(parsed: argparse.Namespace) -> Iterator[str]:
    for name in _INPUTS:
        given = getattr(parsed, name, None)
        for path in given if isinstance(given, list) else [given]:
            if path is not None and Path(path).expanduser().is_file():
                yield str(Path(path).expanduser())


def _check_file(option: str, text: str) -> None:
    path = Path(text).expanduser()
    if path.is_dir():
        msg = f"{option} {text}: is a folder; name a file to write"
        raise ValueError(msg)
    if not is_device(path):
        _check_folder(f"{option} {text}", Path(os.path.realpath(path)).parent)


def _check_folder(what: str, folder: Path) -> None:
    """Try whether a file can be made in a folder."""
    if not folder.is_dir():
        is_what = "is a file" if folder.exists() else "does not exist"
        msg = f"{what}: the folder {folder} {is_what}; make it, or choose another"
        raise ValueError(msg)
    try:
        # Not by asking for permissions: a read-only disk grants them, too.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        msg = f"{what}: nothing can be written in {folder}: {error.strerror}"
        raise ValueError(msg) from error


def _check_plots(text: str) -> None:
    if find_spec("matplotlib") is None:
        msg = "--plots needs matplotlib: pip install 'segiou[plot]'"
        raise ImportError(msg)
    folder = Path(text).expanduser()
    if folder.exists() and not folder.is_dir():
        msg = f"--plots {text}: is a file; name a folder"
        raise ValueError(msg)
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    _check_folder(f"--plots {text}", existing)


_MOST_RESAMPLES = 10_000_000
#: Options that say nothing without another: their defaults, and what they need.
_NEEDS = {
    "images": (None, ("html",)),
    "examples": (24, ("html",)),
    "worst_by": ("mean_iou", ("worst",)),
    "level": (0.95, ("intervals", "group_by")),
    "resamples": (10_000, ("intervals", "group_by")),
    "seed": (0, ("intervals", "group_by")),
    "method": ("percentile", ("intervals", "group_by")),
}


def check_report(
    parsed: argparse.Namespace, gates: Gates, classes: ClassOptions, *, boundary: bool
) -> None:
    """Refuse options of a report that do not fit its classes, or one another.

    Raises
    ------
    ValueError
        Naming the option and what would fit.
    """
    report_format(parsed)
    _check_needs(parsed)
    check_gates(gates, classes.labels.class_names, boundary=boundary)
    if parsed.protocol is not None:
        load_protocol(parsed.protocol)
    if parsed.worst:
        check_score_name(parsed.worst_by, classes)
    if wants_intervals(parsed):
        _check_resampling(parsed)


def wants_intervals(parsed: argparse.Namespace) -> bool:
    """Whether a report is to have intervals: groups say nothing without."""
    return bool(parsed.intervals or parsed.group_by)


def check_findings(parsed: argparse.Namespace) -> None:
    """Refuse options of findings that cannot be: format, rule, metric, names, intervals.

    Raises
    ------
    ValueError
        Naming what is wrong.
    """
    findings_format(parsed)
    if getattr(parsed, "protocol", None) is not None:
        load_protocol(parsed.protocol)
    if not hasattr(parsed, "metric"):
        return
    _check_needs(parsed)
    _check_metric(parsed.metric)
    _check_resampling(parsed)
    names = parsed.names.split(",") if parsed.names else []
    if names and len(names) != len(parsed.models):
        msg = (
            f"--names {parsed.names}: names {len(names)} models, but there are {len(parsed.models)}"
        )
        raise ValueError(msg)
    if len(set(names)) < len(names):
        msg = f"--names {parsed.names}: gives two models one name"
        raise ValueError(msg)


def _check_needs(parsed: argparse.Namespace) -> None:
    for name, (default, needed) in _NEEDS.items():
        given = getattr(parsed, name, default) != default
        # A command without the option that is needed always does what it stands for.
        if given and not any(getattr(parsed, other, True) for other in needed):
            both = f"{option_of(name)} says nothing without {option_of(needed[0])}"
            msg = f"{both}; give both or neither"
            raise ValueError(msg)


def _check_metric(metric: str) -> None:
    if metric != "boundary_iou":
        # Of two empty images, because only the one who computes it knows what there is.
        statistic(Counts(*np.zeros((4, 2, 1), dtype=np.int64)), metric, units=units_of(2))


def _check_resampling(parsed: argparse.Namespace) -> None:
    check_integer("--resamples", parsed.resamples, 2)
    if parsed.resamples > _MOST_RESAMPLES:
        msg = f"--resamples must be at most {_MOST_RESAMPLES}; beyond, no digit shown changes"
        raise ValueError(msg)
    check_integer("--seed", parsed.seed, 0)
    check_method(parsed.method, parsed.level)
    groups = groups_argument(parsed.group_by)
    if isinstance(groups, str):
        group_by_pattern((), groups)


def check_images(ids: Sequence[str], parsed: argparse.Namespace) -> None:
    """Refuse intervals over images that are too few, or have no group.

    Raises
    ------
    ValueError
        Saying how many there are.
    """
    groups = groups_of(ids, groups_argument(parsed.group_by))
    try:
        units_of(len(ids), groups)
    except ValueError as error:
        what = "leave out --intervals and --group-by, or score more images"
        msg = f"{error}: {what}"
        raise ValueError(msg) from error


def report_format(parsed: argparse.Namespace) -> str:
    """The format of a report: as said, or by its file's ending.

    Raises
    ------
    ValueError
        If the ending means none.
    """
    if parsed.format is None and parsed.output:
        return format_of(Path(parsed.output))
    return str(parsed.format or "table")


def findings_format(parsed: argparse.Namespace) -> str:
    """The format of findings, which are text or JSON.

    Raises
    ------
    ValueError
        If the file's ending means neither.
    """
    ending = Path(parsed.output or "").suffix.lower()
    if parsed.format is None and ending not in ("", ".txt", ".json"):
        msg = f"{parsed.output}: findings are text or JSON; use .txt, .json, or say --format"
        raise ValueError(msg)
    return str(parsed.format or ("json" if ending == ".json" else "table"))
