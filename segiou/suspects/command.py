"""The command ``suspects``: truth masks to review first."""

from __future__ import annotations

import argparse
from functools import partial

from segiou.cli import inputs
from segiou.cli.output import note_photos, write_finding
from segiou.report.pages.photos import match_photos
from segiou.runs.run import Run
from segiou.suspects.page import SMALL, suspects_html
from segiou.suspects.ranking import find_suspects


def command(parsed: argparse.Namespace) -> int:
    """Rank the regions of runs, or of two folders, and write the outputs."""
    inputs.report_format(parsed)
    runs = _runs(parsed)
    find = partial(
        find_suspects,
        *runs,
        first=parsed.first,
        all_regions=parsed.all_regions,
        min_size=parsed.min_size,
        label=parsed.label,
        omit=parsed.omit,
        groups=parsed.group_by,
        reviewed=parsed.reviewed,
        seed=parsed.seed,
    )
    result = find(max_extent=parsed.max_extent, random_sample=parsed.random_sample)

    def page() -> str:
        has_both = parsed.max_extent > SMALL and parsed.random_sample is None
        small = find(max_extent=SMALL) if has_both else None
        note_photos(runs[0], parsed, match_photos)
        return suspects_html(result, runs[0], small=small, images=parsed.images)

    write_finding(result, parsed, page=page)
    return 0


def _runs(parsed: argparse.Namespace) -> list[Run]:
    """The run files, or the run of two folders of masks."""
    if all(map(inputs.is_run_file, parsed.path)) or len(parsed.path) != 2:
        usage = "segiou suspects TRUTH PRED --labels SET"
        return [inputs.open_run(path, parsed, or_folders=usage) for path in parsed.path]
    parsed.metric, parsed.protocol = "suspect_share", None  # the measure that keeps regions
    truth, pred = parsed.path
    return [inputs.score_now(truth, pred, parsed)]
