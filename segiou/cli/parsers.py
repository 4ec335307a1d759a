"""The options of each command; nothing here loads what a command needs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from segiou import __version__
from segiou.cli import options, report_options
from segiou.cli.terminal import say, write

__all__ = ["build_parser", "check_given", "parse"]

_POSITIONAL = ("truth", "pred", "run_file", "runs", "models", "paths", "folder", "name")

_EPILOG = """exit codes: 0 fine, 1 a gate failed (--fail-under), 2 usage, 3 problems with the data

segiou demo shows all of it on drawn street scenes."""


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse would pass over a full disk, and give help to stderr where stdout is closed.
        if file is sys.stdout:
            write(message)
        else:
            say(message)

    def error(self, message: str) -> NoReturn:
        self.exit(options.EXIT_USAGE, f"segiou: {message}\nfor help: {self.prog} --help\n")

    def unknown(self, arguments: Sequence[str]) -> NoReturn:
        """Refuse arguments that the command does not have."""
        given = arguments[0].partition("=")[0]
        near = get_close_matches(given, self._option_string_actions, n=1, cutoff=0.8)
        hint = f"; did you mean {near[0]}?" if near else ""
        self.error(f"unrecognized arguments: {' '.join(arguments)}{hint}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read a command line; ends the process where it cannot be read."""
    parsed, unknown = build_parser().parse_known_args(arguments)
    if unknown:
        parsed.command.unknown(unknown)
    return parsed


def check_given(parsed: argparse.Namespace) -> None:
    """Refuse arguments that are empty, as variables are that nobody has set.

    Raises
    ------
    ValueError
        Naming one.
    """
    for name, value in vars(parsed).items():
        # No suffix is something to say.
        if name in ("truth_suffix", "pred_suffix"):
            continue
        if value == "" or (isinstance(value, list) and "" in value):
            label = name.upper() if name in _POSITIONAL else options.option_of(name)
            msg = f"{label} is empty; is a variable not set?"
            raise ValueError(msg)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="segiou",
        description="Exact, fast and explained scores for semantic segmentation.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"segiou {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, text, add in (
        ("score", "score a folder of predicted masks against a folder of true ones", add_score),
        ("explain", "tell what pixel accuracy hides, in words and numbers", add_explain),
        ("compare", "compare models on the same images, with intervals and tests", add_compare),
        ("report", "show a run again, in any format, without the masks", add_report),
        ("merge", "join run files into one", add_merge),
        ("inspect", "tell what is in the masks of a folder", add_inspect),
        ("labelsets", "list the label sets, or print one as TOML", add_labelsets),
        ("demo", "write drawn street scenes and score two models on them", add_demo),
        ("explore", "open a page on which IoU can be tried with two rectangles", add_explore),
    ):
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        command.set_defaults(module=name, command=command)
        add(command)
    return parser


def add_score(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou score``."""
    parser.add_argument("truth", metavar="TRUTH", help="folder (or file) of true masks")
    parser.add_argument("pred", metavar="PRED", help="folder (or file) of predicted masks")
    options.add_class_options(parser)
    options.add_pairing_options(parser)
    options.add_reading_options(parser)
    options.add_boundary_options(parser)
    options.add_scoring_options(parser)
    report_options.add_report_options(parser)
    report_options.add_resampling_options(parser, asked=True)


def add_report(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou report``."""
    parser.add_argument(
        "run_file", metavar="RUN", help="run file that segiou score --run has written"
    )
    report_options.add_report_options(parser)
    report_options.add_resampling_options(parser, asked=True)
    parser.add_argument("--quiet", action="store_true", help="no notes")
    # A run knows by which rule it was made.
    parser.set_defaults(protocol=None)


def add_merge(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou merge``."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run files of the same options")
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="a new file for all of them"
    )
    parser.add_argument("--quiet", action="store_true", help="no notes")


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou explain``."""
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="a run file; or two folders of masks, TRUTH PRED"
    )
    options.add_class_options(parser, required=False)
    options.add_pairing_options(parser)
    options.add_reading_options(parser)
    report_options.add_protocol(parser)
    report_options.add_output_options(parser)


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou compare``."""
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help="run files of the same images; or folders of predictions, with --truth and --labels; "
        "two or more",
    )
    parser.add_argument(
        "--truth", metavar="DIR", help="folder of true masks, where the models are folders"
    )
    parser.add_argument(
        "--names", metavar="A,B", help="what to call the models (default: their folders)"
    )
    parser.add_argument(
        "--metric", metavar="NAME", default="iou", help="iou (default), dice, boundary_iou, …"
    )
    report_options.add_protocol(parser)
    options.add_class_options(parser, required=False)
    options.add_pairing_options(parser)
    options.add_reading_options(parser)
    report_options.add_resampling_options(parser)
    report_options.add_output_options(parser, pages=True)


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou inspect``."""
    parser.add_argument("folder", metavar="DIR", help="folder of masks, or one mask")
    parser.add_argument("--labels", metavar="SET", help="compare with this label set only")
    report_options.add_findings_options(parser)
    options.add_running_options(parser)


def add_labelsets(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou labelsets``."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="print this set as TOML")


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou demo``."""
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", default="segiou-demo", help="default: segiou-demo"
    )


def add_explore(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou explore``."""
    parser.add_argument(
        "--output", metavar="FILE", type=report_options.output, help="write the page here"
    )
    parser.add_argument(
        "--no-open", dest="open", action="store_false", help="write the page, open no browser"
    )
