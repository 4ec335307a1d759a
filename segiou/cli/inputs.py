"""Runs that commands begin with: from run files, or scored from folders on the spot."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping
from pathlib import Path

from segiou.boundary.boundary_options import BoundaryOptions
from segiou.cli.parsers import class_arguments, option_of, pairing_arguments
from segiou.cli.terminal import note, progress_bar
from segiou.runs.run import Run
from segiou.scoring.folder import score_folder

__all__ = ["groups_argument", "is_run_file", "open_run", "score_now"]


#: Options of scoring, which a run file was made with already.
_SCORING = (
    "labels",
    "pred_labels",
    "ignore",
    "exclude",
    "unassigned",
    "truth_suffix",
    "pred_suffix",
    "key",
    "missing",
    "extra",
    "allow_lossy",
    "resize_pred",
    "on_error",
)
_SQLITE = b"SQLite format 3\0"
_DEFAULTS: tuple[object, ...] = (None, [], False, "error", "stop")


def is_run_file(path: str) -> bool:
    """Whether a path is that of a run file, or of something else in SQLite's format."""
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def open_run(path: str, parsed: argparse.Namespace, *, or_folders: str) -> Run:
    """Open a run file, and say so if its run is not finished.

    Parameters
    ----------
    path : str
    parsed : argparse.Namespace
    or_folders : str
        How the command takes folders instead.

    Raises
    ------
    ValueError
        If it is a folder, or options of scoring are given, which would be
        passed over.
    """
    if Path(path).expanduser().is_dir():
        msg = f"{path} is a folder, not a run file; for folders: {or_folders}"
        raise ValueError(msg)
    run = Run.open(path)
    given = [name for name in _SCORING if getattr(parsed, name) not in _DEFAULTS]
    if given:
        options = ", ".join(map(option_of, given))
        msg = f"{path} is a run file, scored already: leave out {options}, or score its folders"
        raise ValueError(msg)
    if not run.finished and not parsed.quiet:
        note(f"{path}: the run is not finished: {run.provenance['unfinished']}")
    return run


def score_now(truth: str, pred: str, parsed: argparse.Namespace) -> Run:
    """Score two folders with the options of the command line.

    Raises
    ------
    ValueError
        If one is a run file, or no label set was given.
    """
    for path in (truth, pred):
        if is_run_file(path):
            msg = f"{path} is a run file, not masks; give folders of masks only, or run files only"
            raise ValueError(msg)
    if parsed.labels is None:
        msg = "folders of masks need --labels SET; a run file knows its own"
        raise ValueError(msg)
    with progress_bar(f"scoring {pred}", quiet=parsed.quiet) as progress:
        return score_folder(
            truth,
            pred,
            **class_arguments(parsed),
            **pairing_arguments(parsed),
            protocol=parsed.protocol or "segiou",
            on_error=parsed.on_error,
            allow_lossy=parsed.allow_lossy,
            resize_pred=parsed.resize_pred,
            boundary=_boundary(parsed),
            workers=parsed.workers,
            progress=progress,
        )


def _boundary(parsed: argparse.Namespace) -> BoundaryOptions | None:
    """What the metric of a comparison needs."""
    if getattr(parsed, "metric", None) != "boundary_iou":
        return None
    return BoundaryOptions(contours=())


def groups_argument(text: str | None) -> str | Mapping[str, str] | None:
    """Groups of images: a regular expression, or a column of a table.

    Raises
    ------
    ValueError
        If there is no such table, or it lacks the column or a column ``id``.
    """
    if text is None:
        return None
    name, _, column = text.rpartition(":")
    if not name.lower().endswith(".csv"):
        return text
    path = Path(name).expanduser()
    if not path.is_file():
        msg = f"--group-by {text}: there is no file {path}"
        raise ValueError(msg)
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [c for c in ("id", column) if c not in (reader.fieldnames or ())]
        if missing:
            found = ", ".join(reader.fieldnames or ()) or "none"
            msg = f"{name}: has no column {missing[0]!r}; its columns are {found}"
            raise ValueError(msg)
        return {row["id"]: row[column] for row in reader}
