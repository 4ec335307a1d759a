"""``segiou report``."""

from __future__ import annotations

import argparse

from segiou.cli.gates import parse_gates
from segiou.cli.reporting import show_run
from segiou.run import Run

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """Show a run again, from its file alone."""
    gates = parse_gates(parsed.fail_under)
    return show_run(Run.open(parsed.run), parsed, gates)
