"""``segiou score``."""

from __future__ import annotations

import argparse
import warnings

from segiou._files import write_whole
from segiou.cli.gates import failed_gates, parse_gates
from segiou.cli.options import EXIT_DATA, EXIT_GATE, class_arguments, pairing_arguments
from segiou.cli.terminal import note, progress_bar
from segiou.cli.writing import write_report
from segiou.run import Run
from segiou.scoring import score_folder

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """Score, show, write, check the gates."""
    gates = parse_gates(parsed.fail_under)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        scored = _score(parsed)
    if not parsed.quiet:
        for text in dict.fromkeys(str(w.message) for w in caught):
            note(text)
        for problem in scored.skipped:
            note(f"left out: {problem}")
    report = scored.report()
    write_report(report, parsed)
    if parsed.per_image:
        write_whole(parsed.per_image, scored.to_csv())
    for text in (failures := failed_gates(report, gates)):
        note(text)
    if failures:
        return EXIT_GATE
    return EXIT_DATA if scored.skipped and parsed.on_error == "skip" else 0


def _score(parsed: argparse.Namespace) -> Run:
    with progress_bar("scoring", quiet=parsed.quiet) as progress:
        return score_folder(
            parsed.truth,
            parsed.pred,
            **class_arguments(parsed),
            **pairing_arguments(parsed),
            protocol=parsed.protocol,
            on_error=parsed.on_error,
            allow_lossy=parsed.allow_lossy,
            resize_pred=parsed.resize_pred,
            workers=parsed.workers,
            progress=progress,
        )
