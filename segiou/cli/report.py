"""``segiou report``."""

from __future__ import annotations

import argparse
from pathlib import Path

from segiou.cli.checks import check_images, check_report, wants_intervals
from segiou.cli.gates import parse_gates
from segiou.cli.paths import check_paths
from segiou.cli.reporting import show_run
from segiou.run import Run

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """Show a run again, from its file alone."""
    gates = parse_gates(parsed.fail_under)
    check_paths(parsed)
    if Path(parsed.run_file).expanduser().is_dir():
        msg = f"{parsed.run_file} is a folder, not a run file; to score it: segiou score"
        raise ValueError(msg)
    run = Run.open(parsed.run_file)
    check_report(parsed, gates, run.options, boundary=run.boundary_options is not None)
    if wants_intervals(parsed):
        check_images(run.ids, parsed)
    return show_run(run, parsed, gates)
