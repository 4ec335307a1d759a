"""``segiou report``."""

from __future__ import annotations

import argparse

from segiou.cli.checks import check_images, check_report
from segiou.cli.gates import parse_gates
from segiou.cli.outputs import check_outputs
from segiou.cli.reporting import show_run
from segiou.run import Run

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """Show a run again, from its file alone."""
    gates = parse_gates(parsed.fail_under)
    check_outputs(parsed)
    run = Run.open(parsed.run_file)
    check_report(parsed, gates, run.options, boundary=run.boundary_options is not None)
    check_images(run.ids, parsed)
    return show_run(run, parsed, gates)
