"""Commands, options, exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from segiou import __version__
from segiou.cli import options

__all__ = ["main"]

_EPILOG = """exit codes: 0 fine, 1 a gate failed (--fail-under), 2 usage, 3 problems with the data

segiou demo shows all of it on drawn street scenes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = build_parser()
    parsed = parser.parse_args(arguments)
    command = import_module(f"segiou.cli.{parsed.module}")
    try:
        code = int(command.run(parsed))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone, as `segiou … | head` does.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except ImportError as error:
        _say(str(error))
        return options.EXIT_USAGE
    except (ValueError, OSError) as error:
        return _explain(error)
    return code


def _explain(error: ValueError | OSError) -> int:
    from segiou.readers import MaskError
    from segiou.runs import RunFileError
    from segiou.scoring import DataError

    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        _say(f"{where}{error.strerror or error}")
        return options.EXIT_DATA
    _say(str(error))
    return (
        options.EXIT_DATA
        if isinstance(error, (DataError, MaskError, RunFileError))
        else options.EXIT_USAGE
    )


def _say(text: str) -> None:
    print(f"segiou: {text}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(options.EXIT_USAGE, f"segiou: {message}\n{self.format_usage()}")


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
        ("report", "show a run again, in any format, without the masks", add_report),
        ("merge", "join run files into one", add_merge),
        ("inspect", "tell what is in the masks of a folder", add_inspect),
        ("labelsets", "list the label sets, or print one as TOML", add_labelsets),
        ("demo", "write drawn street scenes and score two models on them", add_demo),
        ("explore", "open a page on which IoU can be tried with two rectangles", add_explore),
    ):
        command = commands.add_parser(name, help=text, description=text.capitalize() + ".")
        command.set_defaults(module=name)
        add(command)
    return parser


def add_score(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou score``."""
    parser.add_argument("truth", metavar="TRUTH", help="folder (or file) of true masks")
    parser.add_argument("pred", metavar="PRED", help="folder (or file) of predicted masks")
    options.add_class_options(parser)
    options.add_pairing_options(parser)
    options.add_reading_options(parser)
    options.add_scoring_options(parser)
    options.add_report_options(parser)


def add_report(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou report``."""
    parser.add_argument("run", metavar="RUN", help="run file that segiou score --run has written")
    options.add_report_options(parser)
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


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou inspect``."""
    parser.add_argument("folder", metavar="DIR", help="folder of masks, or one mask")
    parser.add_argument("--labels", metavar="SET", help="compare with this label set only")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--output", metavar="FILE", help="write to a file instead of stdout")
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
    parser.add_argument("--output", metavar="FILE", help="write the page here")
    parser.add_argument(
        "--no-open", dest="open", action="store_false", help="write the page, open no browser"
    )
