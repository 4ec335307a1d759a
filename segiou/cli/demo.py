"""``segiou demo``."""

from __future__ import annotations

import argparse
import shlex

from segiou.cli.terminal import stdout_width, wants_color, write
from segiou.demo import DemoFolders, write_demo
from segiou.scoring import score_folder

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """Write the scenes, score both models, show the commands."""
    folders = write_demo(parsed.folder)
    write(f"Drawn street scenes and two models' predictions are in {parsed.folder}/\n")
    for pred in (folders.model_a, folders.model_b):
        command = [
            "segiou",
            "score",
            str(folders.truth),
            str(pred),
            "--labels",
            str(folders.labels),
        ]
        write(f"\n$ {shlex.join(command)}\n\n")
        report = score_folder(folders.truth, pred, labels=folders.labels).report()
        write(report.to_text(width=stdout_width(), color=wants_color()))
    write(
        "\nPixel accuracy prefers one model and mean IoU the other: the first never finds the\n"
        "rare thin classes, which are too few pixels for accuracy to notice. Go on with\n\n"
    )
    for words in _next_steps(folders):
        write(f"$ {shlex.join(map(str, words))}\n")
    return 0


def _next_steps(folders: DemoFolders) -> list[list[object]]:
    """Commands that a newcomer may want to try on the scenes."""
    labels: list[object] = ["--labels", folders.labels]
    page: list[object] = ["--html", "report.html", "--images", folders.images]
    models: list[object] = [folders.model_a, folders.model_b]
    return [
        ["segiou", "explain", folders.truth, folders.model_a, *labels],
        ["segiou", "compare", *models, "--truth", folders.truth, *labels],
        ["segiou", "score", folders.truth, folders.model_b, *labels, "--intervals", *page],
    ]
