"""What is refused before anything is scored: outputs, and options that do not fit."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from segiou._support.arguments import check_integer
from segiou._support.files import is_device
from segiou.cli.inputs import groups_argument, open_baseline
from segiou.cli.options import option_of
from segiou.cli.thresholds import check_thresholds, read_thresholds
from segiou.labels.class_options import ClassOptions
from segiou.metrics.protocols import load_protocol
from segiou.report.formats import format_of


def check_report(
    parsed: argparse.Namespace,
    classes: ClassOptions,
    *,
    boundary: object,
    surfaces: object,
    objects: object,
) -> None:
    """Refuse options of a report that do not fit its classes, what is measured, or one another."""
    report_format(parsed)
    _check_needs(parsed)
    check_thresholds(
        read_thresholds(parsed.fail_under),
        classes.labels.class_names,
        {"boundary_iou": boundary, "surface_dice": surfaces, "pq": objects},
    )
    _check_protocol(parsed)
    if parsed.worst:
        from segiou.runs.tables import check_score_name

        check_score_name(parsed.worst_by, classes, objects)
    if wants_intervals(parsed) or parsed.baseline:
        _check_resampling(parsed)
    if parsed.baseline:
        open_baseline(parsed.baseline)


def check_findings(parsed: argparse.Namespace) -> None:
    """Refuse options of findings that are wrong: format, protocol, metric, names, intervals."""
    findings_format(parsed)
    _check_protocol(parsed)
    if not hasattr(parsed, "metric"):
        return
    _check_needs(parsed)
    _check_metric(parsed.metric)
    _check_resampling(parsed)
    names = parsed.names.split(",") if parsed.names else []
    if names and len(names) != len(parsed.model):
        msg = (
            f"--names {parsed.names}: names {len(names)} models, but there are {len(parsed.model)}"
        )
        raise ValueError(msg)
    if len(set(names)) < len(names):
        msg = f"--names {parsed.names}: gives two models one name"
        raise ValueError(msg)


def check_images(ids: Sequence[str], parsed: argparse.Namespace) -> None:
    """Refuse intervals over images that are too few, or have no group."""
    if not wants_intervals(parsed):
        return
    from segiou.analysis.units import groups_of, units_of

    groups = groups_of(ids, groups_argument(parsed.group_by))
    try:
        units_of(len(ids), None if parsed.blocks else groups)
    except ValueError as error:
        msg = f"{error}: leave out --intervals, --group-by and --blocks, or score more images"
        raise ValueError(msg) from error


def wants_intervals(parsed: argparse.Namespace) -> bool:
    """Whether a report has intervals; groups and blocks have no other use."""
    return bool(parsed.intervals or parsed.group_by or parsed.blocks)


def report_format(parsed: argparse.Namespace) -> str:
    """The format of a report: as given, or by the file's ending."""
    if parsed.format is None and parsed.output:
        return format_of(Path(parsed.output))
    return str(parsed.format or "table")


def findings_format(parsed: argparse.Namespace) -> str:
    """The format of findings, which are text or JSON: as given, or by the file's ending."""
    ending = Path(parsed.output or "").suffix.lower()
    if parsed.format is None and ending not in ("", ".txt", ".json"):
        msg = f"{parsed.output}: findings are text or JSON; use .txt, .json, or give --format"
        raise ValueError(msg)
    return str(parsed.format or ("json" if ending == ".json" else "table"))


def _check_protocol(parsed: argparse.Namespace) -> None:
    if getattr(parsed, "protocol", None) is not None:
        load_protocol(parsed.protocol)


#: Options that have no effect unless one of others is given.
_NEEDS = {
    "images": ("html",),
    "examples": ("html",),
    "worst_by": ("worst",),
    "spacing": ("boundary", "boundary_tolerance", "surface", "empty"),
    "things": ("objects",),
    "min_size": ("objects",),
    "junit": ("fail_under", "fail_if_worse"),
    "fail_if_worse": ("baseline",),
    **dict.fromkeys(
        ("level", "resamples", "seed", "method"), ("intervals", "group_by", "blocks", "baseline")
    ),
}


def _check_needs(parsed: argparse.Namespace) -> None:
    for name, needed in _NEEDS.items():
        default = parsed.command.get_default(name)
        given = getattr(parsed, name, default) != default
        # A command without the option that is needed always does what that option asks for.
        if given and not any(getattr(parsed, other, True) for other in needed):
            both = f"{option_of(name)} has no effect without {option_of(needed[0])}"
            msg = f"{both}; give both or neither"
            raise ValueError(msg)


def _check_metric(metric: str) -> None:
    from segiou.analysis.statistics import MEASURED, statistic

    if metric not in MEASURED:
        import numpy as np

        from segiou.analysis.units import units_of
        from segiou.counting.counts import Counts

        # Computing it for two empty images is the check that it exists.
        statistic(Counts(*np.zeros((4, 2, 1), dtype=np.int64)), metric, units=units_of(2))


_MOST_RESAMPLES = 10_000_000


def _check_resampling(parsed: argparse.Namespace) -> None:
    from segiou.analysis.bootstrapping import check_method
    from segiou.analysis.dependence import check_blocks
    from segiou.analysis.units import group_by_pattern

    check_integer("--resamples", parsed.resamples, 2)
    if parsed.resamples > _MOST_RESAMPLES:
        msg = f"--resamples must be at most {_MOST_RESAMPLES}; more would change no digit shown"
        raise ValueError(msg)
    check_integer("--seed", parsed.seed, 0)
    check_method(parsed.method, parsed.level)
    groups = groups_argument(parsed.group_by)
    check_blocks(groups, parsed.blocks)
    if isinstance(groups, str):
        group_by_pattern((), groups)


_OUTPUTS = ("output", "propose", "html", "per_image", "junit", "problems", "run", "plots")
_INPUTS = ("truth", "pred", "ids", "labels", "pred_labels", "run_file", "model", "path", "baseline")


def check_paths(parsed: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written, or would destroy something."""
    taken = {os.path.realpath(path): str(path) for path in _input_files(parsed)}
    for name in _OUTPUTS:
        text = getattr(parsed, name, None)
        if text is None:
            continue
        option = option_of(name)
        _check_output(name, f"{option} {text}", text)
        full = os.path.realpath(Path(text).expanduser())
        if full in taken and name != "plots" and not is_device(full):
            msg = f"{option} {text}: would overwrite {taken[full]}; choose another name"
            raise ValueError(msg)
        taken[full] = f"what {option} writes"
    images = getattr(parsed, "images", None)
    if images is not None and not Path(images).expanduser().is_dir():
        msg = f"--images {images}: is not a folder; name the folder that holds the images"
        raise ValueError(msg)


def _input_files(parsed: argparse.Namespace) -> Iterator[Path]:
    for name in _INPUTS:
        given = getattr(parsed, name, None)
        for text in given if isinstance(given, list) else [given]:
            if isinstance(text, str) and (path := Path(text).expanduser()).is_file():
                yield path


def _check_output(name: str, what: str, text: str) -> None:
    path = Path(text).expanduser()
    if name == "plots" and find_spec("matplotlib") is None:
        msg = "--plots needs matplotlib: pip install 'segiou[plot]'"
        raise ImportError(msg)
    if name == "plots" or (name == "html" and text.endswith("/")):
        if path.exists() and not path.is_dir():
            msg = f"{what}: is a file; name a folder"
            raise ValueError(msg)
        _check_folder(what, next(p for p in (path, *path.absolute().parents) if p.exists()))
    elif path.is_dir():
        msg = f"{what}: is a folder; name a file to write"
        raise ValueError(msg)
    elif not is_device(path):
        _check_folder(what, Path(os.path.realpath(path)).parent)


def _check_folder(what: str, folder: Path) -> None:
    """Try whether a file can be made in a folder."""
    if not folder.is_dir():
        is_what = "is a file" if folder.exists() else "does not exist"
        msg = f"{what}: the folder {folder} {is_what}; create it, or choose another"
        raise ValueError(msg)
    try:
        # Permissions are no answer: a read-only disk grants them, too.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        msg = f"{what}: nothing can be written in {folder}: {error.strerror}"
        raise ValueError(msg) from error
