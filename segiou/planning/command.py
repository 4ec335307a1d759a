"""The command ``plan``: how many images to annotate, from the run of a pilot."""

from __future__ import annotations

import argparse

from segiou.cli import inputs
from segiou.cli.output import write_finding
from segiou.planning.sizes import sample_sizes


def command(parsed: argparse.Namespace) -> int:
    """Plan a test set from a run of images of the same kind."""
    inputs.findings_format(parsed)
    run = inputs.noted_run(parsed.run_file, parsed)
    inputs.check_difference(
        parsed, "half_width", [run], inputs.metrics_of(parsed.metric, run.score_plans)
    )
    found = sample_sizes(
        inputs.exclude_classes(run, parsed),
        parsed.half_width,
        parsed.metric,
        groups=parsed.group_by,
        blocks=parsed.blocks,
        level=parsed.level,
        protocol=parsed.protocol,
    )
    write_finding(found, parsed)
    return 0
