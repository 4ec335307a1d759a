"""``segiou explain``."""

from __future__ import annotations

import argparse
from functools import partial

from segiou.cli.checks import check_findings
from segiou.cli.inputs import is_run_file, open_run, score_now
from segiou.cli.paths import check_paths
from segiou.cli.terminal import noted_warnings
from segiou.cli.writing import write_findings
from segiou.imbalance import explain
from segiou.report.imbalance_text import render_imbalance
from segiou.run import Run

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """Take the gap between pixel accuracy and mean IoU apart."""
    check_paths(parsed)
    check_findings(parsed)
    scored = _run_of(parsed)
    found = explain(scored, protocol=parsed.protocol)
    write_findings(found.to_dict, partial(render_imbalance, found), parsed)
    return 0


def _run_of(parsed: argparse.Namespace) -> Run:
    if len(parsed.paths) > 2:
        msg = f"explain takes a run file, or TRUTH and PRED; got {len(parsed.paths)} paths"
        raise ValueError(msg)
    if len(parsed.paths) == 1:
        return open_run(parsed.paths[0], parsed, or_folders="TRUTH PRED --labels SET")
    truth, pred = parsed.paths
    if is_run_file(truth) and is_run_file(pred):
        msg = "explain takes one run file; segiou compare takes two"
        raise ValueError(msg)
    with noted_warnings(quiet=parsed.quiet):
        return score_now(truth, pred, parsed)
