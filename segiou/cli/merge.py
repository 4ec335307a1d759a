"""``segiou merge``."""

from __future__ import annotations

import argparse

from segiou.cli.paths import check_paths
from segiou.cli.terminal import note
from segiou.run import Run
from segiou.runs.merging import merge_files

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """Join run files into one."""
    check_paths(parsed)
    merged = Run.open(merge_files(parsed.runs, parsed.output))
    if not parsed.quiet:
        runs = "1 run" if len(parsed.runs) == 1 else f"{len(parsed.runs)} runs"
        note(f"{len(merged)} images of {runs} are in {parsed.output}")
        if not merged.finished:
            note("one of the runs is not finished, and so this one is not either")
    return 0
