"""The command ``slices``: scores by the metadata of the images."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from segiou.analysis.slices import slices
from segiou.cli import inputs
from segiou.cli.output import write_findings


def command(parsed: argparse.Namespace) -> int:
    """Compare the slices of one run, or of the change between two, with the rest."""
    inputs.findings_format(parsed)
    bins = _bins(parsed.bins)
    *paths, source = parsed.source
    usage = "segiou slices RUN [RUN] meta.csv:COLUMN"
    if not 1 <= len(paths) <= 2:
        got = f"got {len(paths)} run files" if paths else "got one argument"
        msg = f"expected one or two run files and then the metadata ({usage}), {got}"
        raise ValueError(msg)
    if inputs.is_run_file(source):
        msg = f"{source} is a run file, but the last argument is the metadata: {usage}"
        raise ValueError(msg)
    folder = "is a folder, not a run file; to score it, use segiou score"
    runs = [inputs.run_at(path, f"{path} {folder}") for path in paths]
    for path, run in zip(paths, runs, strict=True):
        if not parsed.quiet:
            inputs.note_state(run, f"{path}: ")
    found = slices(
        *runs,
        by=source,
        metric=parsed.metric,
        key=parsed.slices_key,
        bins=bins,
        groups=inputs.groups_argument(parsed.group_by),
        protocol=parsed.protocol,
        level=parsed.level,
    )
    write_findings(found.to_dict, found._parts(), parsed, found.to_csv)
    return 0


def _bins(texts: Sequence[str]) -> dict[str, int | list[float]]:
    """A number of quantiles, or edges, by column."""
    found: dict[str, int | list[float]] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            numbers = [float(part) for part in value.split(",")]
        except ValueError:
            numbers = []
        if not name or not numbers or numbers != sorted(set(numbers)):
            msg = f"--bins {text}: expected COLUMN=NUMBER, or COLUMN=EDGE,EDGE,… in ascending order"
            raise ValueError(msg)
        is_number = len(numbers) == 1 and numbers[0].is_integer() and numbers[0] > 1
        found[name] = int(numbers[0]) if is_number else numbers
    return found
