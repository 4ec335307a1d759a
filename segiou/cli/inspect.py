"""``segiou inspect``."""

from __future__ import annotations

import argparse

from segiou.cli.checks import check_findings
from segiou.cli.options import EXIT_DATA, labels_argument
from segiou.cli.paths import check_paths
from segiou.cli.terminal import progress_bar
from segiou.cli.writing import write_findings
from segiou.inspection import inspect_folder
from segiou.labels import load_labels

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """Look at the masks and tell what is in them."""
    check_paths(parsed)
    check_findings(parsed)
    labels = None if parsed.labels is None else load_labels(labels_argument(parsed.labels))
    with progress_bar("looking", quiet=parsed.quiet) as progress:
        found = inspect_folder(
            parsed.folder, labels=labels, workers=parsed.workers, progress=progress
        )
    write_findings(found.to_dict, found.to_text, parsed)
    return EXIT_DATA if found.problems else 0
