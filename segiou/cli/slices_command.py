"""The command ``slices``: scores by the metadata of the images."""

from __future__ import annotations

import argparse

from segiou.analysis.slices.search import slices
from segiou.cli import inputs
from segiou.cli.output import write_finding


def command(parsed: argparse.Namespace) -> int:
    """Compare the slices of one run, or of the change between two, with the rest."""
    inputs.findings_format(parsed)
    *paths, source = parsed.source
    usage = "segiou slices RUN [RUN] meta.csv:COLUMN"
    if not 1 <= len(paths) <= 2:
        got = f"got {len(paths)} run files" if paths else "got one argument"
        msg = f"expected one or two run files and then the metadata ({usage}), {got}"
        raise ValueError(msg)
    if inputs.is_run_file(source):
        msg = f"{source} is a run file, but the last argument is the metadata: {usage}"
        raise ValueError(msg)
    runs = [*map(inputs.saved_run, paths)]
    for path, run in zip(paths, runs, strict=True):
        if not parsed.quiet:
            inputs.note_state(run, f"{path}: ")
    options = inputs.slices_options(parsed, source)
    options |= {"against": parsed.against, "search": parsed.search, "by_class": parsed.by_class}
    sliced = slices(*runs, metric=parsed.metric, level=parsed.level, **options)
    write_finding(sliced, parsed)
    return 0
