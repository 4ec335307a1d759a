"""Runs that commands begin with: from run files, or scored from folders on the spot."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping
from pathlib import Path

from segiou.cli.options import class_arguments, pairing_arguments
from segiou.cli.terminal import note, progress_bar
from segiou.run import Run
from segiou.scoring import score_folder

__all__ = ["groups_argument", "open_run", "score_now"]


def open_run(path: str, *, quiet: bool = False) -> Run:
    """Open a run file, and say so if its run is not finished."""
    run = Run.open(path)
    if not run.finished and not quiet:
        note(f"{path}: the run is not finished: {run.provenance['unfinished']}")
    return run


def score_now(truth: str, pred: str, parsed: argparse.Namespace) -> Run:
    """Score two folders with the options of the command line.

    Raises
    ------
    ValueError
        If no label set was given.
    """
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
            workers=parsed.workers,
            progress=progress,
        )


def groups_argument(text: str | None) -> str | Mapping[str, str] | None:
    """Groups of images: a regular expression, or a column of a table.

    Raises
    ------
    ValueError
        If the table lacks the column or a column ``id``.
    """
    if text is None:
        return None
    name, _, column = text.rpartition(":")
    if not name.lower().endswith(".csv"):
        return text
    with Path(name).expanduser().open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [c for c in ("id", column) if c not in (reader.fieldnames or ())]
        if missing:
            found = ", ".join(reader.fieldnames or ()) or "none"
            msg = f"{name}: has no column {missing[0]!r}; its columns are {found}"
            raise ValueError(msg)
        return {row["id"]: row[column] for row in reader}
