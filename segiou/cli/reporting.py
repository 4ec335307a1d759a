"""What ``segiou score`` and ``segiou report`` do with a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from segiou.cli.checks import wants_intervals
from segiou.cli.gates import failed_gates
from segiou.cli.options import EXIT_DATA, EXIT_GATE
from segiou.cli.terminal import note
from segiou.cli.writing import run_intervals, write_pages, write_report, write_text
from segiou.run import Run
from segiou.runs.problems import problem_lines
from segiou.uncertainty import Intervals

__all__ = ["show_run"]


def show_run(run: Run, parsed: argparse.Namespace, gates: Sequence[tuple[str, float]]) -> int:
    """Write the report and the tables, check the gates, and give the exit code."""
    if not parsed.quiet:
        for line in problem_lines(run.skipped):
            note(f"left out: {line}")
    if not run.finished:
        note(f"the run is not finished: {run.provenance['unfinished']}")
    report = run.report(
        parsed.protocol,
        intervals=_intervals(run, parsed),
        worst=parsed.worst or 0,
        worst_by=parsed.worst_by,
    )
    write_report(report, parsed)
    write_pages(run, report, parsed)
    if parsed.per_image:
        write_text(parsed.per_image, run.to_csv())
    failures = failed_gates(report, gates)
    for text in failures:
        note(text)
    if failures:
        return EXIT_GATE
    return 0 if run.finished else EXIT_DATA


def _intervals(run: Run, parsed: argparse.Namespace) -> Intervals | None:
    if not wants_intervals(parsed):
        return None
    return run_intervals(run, parsed)
