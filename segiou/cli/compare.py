"""``segiou compare``."""

from __future__ import annotations

import argparse

from segiou.cli.checks import check_findings
from segiou.cli.inputs import groups_argument, open_run, score_now
from segiou.cli.paths import check_paths
from segiou.cli.terminal import noted_warnings
from segiou.cli.writing import write_comparison_pages, write_findings
from segiou.comparison import compare
from segiou.run import Run

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """Compare two or more models image by image."""
    check_paths(parsed)
    check_findings(parsed)
    runs = _runs(parsed)
    found = compare(
        *runs,
        metric=parsed.metric,
        protocol=parsed.protocol,
        groups=groups_argument(parsed.group_by),
        resamples=parsed.resamples,
        seed=parsed.seed,
        level=parsed.level,
        method=parsed.method,
        names=parsed.names.split(",") if parsed.names else None,
    )
    write_comparison_pages(found, runs, parsed)
    write_findings(found.to_dict, lambda width, color: found.to_text(width), parsed)
    return 0


def _runs(parsed: argparse.Namespace) -> list[Run]:
    if len(parsed.models) < 2:
        msg = "compare needs two or more models"
        raise ValueError(msg)
    if parsed.truth is None:
        how = "PRED PRED --truth DIR --labels SET"
        return [open_run(path, parsed, or_folders=how) for path in parsed.models]
    with noted_warnings(quiet=parsed.quiet):
        return [score_now(parsed.truth, path, parsed) for path in parsed.models]
