"""``segiou score``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from segiou.cli.checks import check_images, check_paths, check_report, parse_gates, wants_intervals
from segiou.cli.output import show_run, write_problems
from segiou.cli.parsers import (
    EXIT_DATA,
    boundary_argument,
    class_arguments,
    engine_arguments,
    pairing_arguments,
)
from segiou.cli.terminal import EXIT_INTERRUPTED, interruptible, note, noted_warnings, progress_bar
from segiou.labels.class_options import ClassOptions
from segiou.masks.pairing import Pair
from segiou.runs.run import Run
from segiou.scoring.folder import score_folder
from segiou.scoring.pairings import DataError, Stopped

__all__ = ["score"]


def score(parsed: argparse.Namespace) -> int:
    """Score, show, write, check the gates."""
    gates = parse_gates(parsed.fail_under)
    check_paths(parsed)
    classes = ClassOptions.of(**class_arguments(parsed))
    check_report(parsed, gates, classes, boundary=boundary_argument(parsed) is not None)
    try:
        with noted_warnings(quiet=parsed.quiet):
            scored = _score(parsed)
    except DataError as error:
        if parsed.problems:
            write_problems(parsed.problems, error.problems)
        raise
    except Stopped as stopped:
        note(str(stopped) + _how_to_go_on(parsed))
        return EXIT_INTERRUPTED
    if parsed.problems:
        write_problems(parsed.problems, scored.skipped)
    code = show_run(scored, parsed, gates)
    return code or (EXIT_DATA if scored.skipped and parsed.on_error == "skip" else 0)


def _how_to_go_on(parsed: argparse.Namespace) -> str:
    if parsed.run:
        return f"; they are kept in {parsed.run}, and the same command goes on from there"
    return "; nothing is kept: with --run FILE the same command would go on from there"


def _score(parsed: argparse.Namespace) -> Run:
    with (
        interruptible(kept=bool(parsed.run)) as stop,
        progress_bar("scoring", quiet=parsed.quiet) as progress,
    ):
        return score_folder(
            parsed.truth,
            parsed.pred,
            **class_arguments(parsed),
            **pairing_arguments(parsed),
            **engine_arguments(parsed),
            protocol=parsed.protocol,
            on_error=parsed.on_error,
            allow_lossy=parsed.allow_lossy,
            resize_pred=parsed.resize_pred,
            boundary=boundary_argument(parsed),
            run=parsed.run,
            shard=parsed.shard,
            progress=progress,
            stop=stop,
            on_paired=lambda pairs: _check_pairs(pairs, parsed),
        )


def _check_pairs(pairs: Sequence[Pair], parsed: argparse.Namespace) -> None:
    if wants_intervals(parsed):
        check_images([pair.id for pair in pairs], parsed)
    if not pairs and not parsed.quiet:
        part, parts = parsed.shard
        what = "it is scored as empty, and segiou merge takes it like the others"
        note(f"part {part} of {parts} holds none of the few pairs; {what}")
