"""``segiou score``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from segiou.cli.checks import check_images, check_paths, check_report, wants_intervals
from segiou.cli.console import EXIT_INTERRUPTED, interruptible, note, progress_bar
from segiou.cli.inputs import job_of
from segiou.cli.output import show_run, write_problems
from segiou.cli.parsers import EXIT_DATA
from segiou.cli.thresholds import read_thresholds
from segiou.masks.pairing import Pair
from segiou.runs.run import Run
from segiou.scoring.folder import score_job
from segiou.scoring.job import Job
from segiou.scoring.pairings import DataError, ScoringStopped

__all__ = ["score"]


def score(parsed: argparse.Namespace) -> int:
    """Check the options, score, show and write, check the thresholds."""
    thresholds = read_thresholds(parsed.fail_under)
    check_paths(parsed)
    try:
        job = job_of(parsed.truth, parsed.pred, parsed)
        check_report(parsed, thresholds, job.options, boundary=job.boundary is not None)
        run = _score(job, parsed)
    except DataError as error:
        if parsed.problems:
            write_problems(parsed.problems, error.problems)
        raise
    except ScoringStopped as stopped:
        note(str(stopped) + _how_to_continue(parsed))
        return EXIT_INTERRUPTED
    if parsed.problems:
        write_problems(parsed.problems, run.skipped)
    code = show_run(run, parsed, thresholds)
    return code or (EXIT_DATA if run.skipped and parsed.on_error == "skip" else 0)


def _score(job: Job, parsed: argparse.Namespace) -> Run:
    with (
        interruptible(kept=bool(parsed.run)) as stop,
        progress_bar("scoring", quiet=parsed.quiet) as progress,
    ):
        return score_job(
            job,
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


def _how_to_continue(parsed: argparse.Namespace) -> str:
    if parsed.run:
        return f"; they are kept in {parsed.run}, and the same command continues from there"
    return "; nothing is kept: with --run FILE the same command would continue from there"
