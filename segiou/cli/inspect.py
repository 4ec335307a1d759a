"""``segiou inspect``."""

from __future__ import annotations

import argparse
import json

from segiou._files import write_whole
from segiou.cli.options import labels_argument
from segiou.cli.terminal import progress_bar, stdout_width, wants_color, write
from segiou.inspection import inspect_folder
from segiou.labels import load_labels

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """Look at the masks and tell what is in them."""
    labels = None if parsed.labels is None else load_labels(labels_argument(parsed.labels))
    with progress_bar("looking", quiet=parsed.quiet) as progress:
        found = inspect_folder(
            parsed.folder, labels=labels, workers=parsed.workers, progress=progress
        )
    if parsed.format == "json":
        text = json.dumps(found.to_dict(), indent=2, ensure_ascii=False) + "\n"
    else:
        color = wants_color() and not parsed.output
        text = found.to_text(width=stdout_width(), color=color)
    if parsed.output:
        write_whole(parsed.output, text)
    else:
        write(text)
    return 0
