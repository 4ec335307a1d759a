"""Options of what is shown: reports, pages, intervals, findings."""

from __future__ import annotations

import argparse
from typing import Any

from segiou.cli.options import positive

__all__ = [
    "add_findings_options",
    "add_output_options",
    "add_protocol",
    "add_report_options",
    "add_resampling_options",
    "output",
]

FORMATS = ("table", "json", "csv", "markdown", "html")
SORT_KEYS = ("order", "name", "iou", "dice", "precision", "recall", "share", "tp", "fp", "fn")


def _whole(text: str) -> int:
    if not text.isdecimal():
        msg = f"{text!r} is not a whole number of at least 0"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """What is shown."""
    group = parser.add_argument_group("report")
    add_protocol(group)
    parser.set_defaults(protocol="segiou")
    group.add_argument(
        "--format", choices=FORMATS, help="default: by the ending of --output, or table"
    )
    _add_output(group)
    _add_image_options(group)
    _add_page_options(group)
    group.add_argument(
        "--sort",
        choices=SORT_KEYS,
        default="order",
        help="order of the classes (default: the label set's)",
    )
    group.add_argument("--reverse", action="store_true", help="turn that order round")
    group.add_argument(
        "--fail-under",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a gate: exit with 1 if a score is lower, such as miou=0.7: miou, pixel_accuracy, "
        "mean_accuracy, …; or that of a class: iou:CLASS, dice:CLASS, precision:CLASS, "
        "recall:CLASS (may be repeated)",
    )


def add_protocol(parser: Any) -> None:
    """Which program's mean is meant."""
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        help="whose rule makes the means: segiou, detectron2, ade20k, …; an unknown name lists all "
        "(default: segiou, or the rule of the run)",
    )


def _add_image_options(group: Any) -> None:
    group.add_argument(
        "--per-image", metavar="FILE", type=output, help="write a CSV with one row an image"
    )
    group.add_argument(
        "--worst", metavar="K", type=positive, help="list the K worst images too (not in CSV)"
    )
    group.add_argument(
        "--worst-by",
        metavar="SCORE",
        default="mean_iou",
        help="by which score: mean_iou (default), pixel_accuracy, iou:CLASS, or influence, "
        "how much higher the data set's mean IoU is for having the image",
    )


def _add_page_options(group: Any) -> None:
    group.add_argument(
        "--html", metavar="FILE", type=output, help="write a page to open or send, with images"
    )
    group.add_argument(
        "--images", metavar="DIR", help="photographs for the page, found by the masks' names"
    )
    group.add_argument(
        "--examples",
        metavar="N",
        type=_whole,
        default=24,
        help="images in the page, at most (default: 24)",
    )
    group.add_argument("--plots", metavar="DIR", help="write figures as PNG, SVG and PDF")


def add_resampling_options(parser: argparse.ArgumentParser, *, asked: bool = False) -> None:
    """How sure the numbers are; ``asked`` where intervals are shown only if asked for."""
    group = parser.add_argument_group("intervals")
    if asked:
        group.add_argument(
            "--intervals", action="store_true", help="bootstrap intervals over images or groups"
        )
    group.add_argument(
        "--group-by",
        metavar="REGEX",
        help="images that belong together (frames of a drive): what this finds in their ids; "
        "or FILE.csv:COLUMN, a table with a column 'id'",
    )
    group.add_argument(
        "--level", metavar="P", type=float, default=0.95, help="of the intervals (default: 0.95)"
    )
    group.add_argument(
        "--resamples", metavar="N", type=positive, default=10_000, help="default: 10000"
    )
    group.add_argument(
        "--seed", metavar="N", type=int, default=0, help="of the resamples (default: 0)"
    )
    group.add_argument(
        "--method",
        choices=("percentile", "bca"),
        default="percentile",
        help="kind of interval (default: percentile)",
    )


def add_output_options(parser: argparse.ArgumentParser, *, pages: bool = False) -> None:
    """Where findings go."""
    group = parser.add_argument_group("output")
    if pages:
        _add_page_options(group)
    add_findings_options(group)


def add_findings_options(parser: Any) -> None:
    """Findings as text or as data, to stdout or a file."""
    parser.add_argument(
        "--format", choices=("table", "json"), help="default: by the ending of --output, or table"
    )
    _add_output(parser)


def _add_output(parser: Any) -> None:
    parser.add_argument(
        "--output", metavar="FILE", type=output, help="write to a file instead of stdout"
    )


def output(text: str) -> str:
    """Where to write; ``-`` means stdout."""
    return "/dev/stdout" if text == "-" else text
