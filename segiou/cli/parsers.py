"""What the command takes: its parsers and options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

from segiou._support import __version__
from segiou.cli.terminal import say, write

if TYPE_CHECKING:
    from segiou.boundary.boundary_options import BoundaryOptions

__all__ = [
    "EXIT_DATA",
    "EXIT_GATE",
    "EXIT_USAGE",
    "add_boundary_options",
    "add_class_options",
    "add_findings_options",
    "add_output_options",
    "add_pairing_options",
    "add_protocol",
    "add_reading_options",
    "add_report_options",
    "add_resampling_options",
    "add_running_options",
    "add_scoring_options",
    "boundary_argument",
    "build_parser",
    "check_given",
    "class_arguments",
    "engine_arguments",
    "option_of",
    "output",
    "pairing_arguments",
    "parse",
    "positive",
]

EXIT_GATE = 1
EXIT_USAGE = 2
EXIT_DATA = 3


def option_of(name: str) -> str:
    """The option that sets an attribute of the command line."""
    return f"--{name.replace('_', '-')}"


def add_class_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """What the classes are and how pixels are counted for them."""
    group = parser.add_argument_group("classes")
    group.add_argument(
        "--labels",
        metavar="SET",
        required=required,
        help="label set: a preset (see segiou labelsets), a TOML file, or a number of classes",
    )
    group.add_argument(
        "--pred-labels", metavar="SET", help="label set of the predictions, if encoded otherwise"
    )
    group.add_argument(
        "--ignore",
        metavar="VALUE",
        action="append",
        default=[],
        help="drop pixels of this truth value or class (may be repeated, or a,b,c)",
    )
    group.add_argument(
        "--exclude",
        metavar="CLASS",
        action="append",
        default=[],
        help="count this class but leave it out of means (may be repeated, or a,b,c)",
    )
    group.add_argument(
        "--unassigned",
        choices=("error", "count"),
        default="error",
        help="what a predicted value that is no class is: an error (default), or a missed pixel",
    )


def class_arguments(parsed: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of the class options."""
    return {
        "labels": labels_argument(parsed.labels),
        "pred_labels": None if parsed.pred_labels is None else labels_argument(parsed.pred_labels),
        "ignore": [item for text in parsed.ignore for item in _items(text)],
        "exclude": [item for text in parsed.exclude for item in _items(text)],
        "unassigned": parsed.unassigned,
    }


def labels_argument(text: str) -> str | int:
    """A label set on the command line: a number of classes, or a name."""
    return int(text) if text.isdecimal() else text


def _items(text: str) -> list[int | str]:
    if not text.strip(" ,"):
        msg = f"--ignore and --exclude take values or names of classes, got {text!r}"
        raise ValueError(msg)
    return [_number_or_name(part.strip()) for part in text.split(",") if part.strip()]


def _number_or_name(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def add_pairing_options(parser: argparse.ArgumentParser) -> None:
    """Which files go together."""
    group = parser.add_argument_group("pairing")
    group.add_argument(
        "--truth-suffix",
        metavar="TEXT",
        help="what truth names end in and the predictions' do not, such as _gt or _gt.png",
    )
    group.add_argument("--pred-suffix", metavar="TEXT", help="the same the other way round")
    group.add_argument(
        "--key",
        metavar="REGEX",
        help="what pairs the files: a regular expression with a group named 'key', found in both "
        "paths",
    )
    for name, what in (
        ("missing", "true masks without a prediction"),
        ("extra", "predictions without a true mask"),
    ):
        group.add_argument(
            f"--{name}",
            choices=("error", "skip"),
            default="error",
            help=f"{what}: an error (default), or left out and listed",
        )


def pairing_arguments(parsed: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of the pairing options."""
    names = ("truth_suffix", "pred_suffix", "key", "missing", "extra")
    return {name: getattr(parsed, name) for name in names}


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """How files are read."""
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--allow-lossy", action="store_true", help="take JPEG masks, whose values may be off"
    )
    group.add_argument(
        "--resize-pred",
        choices=("nearest",),
        help="resize predictions of another size to the truth's (default: an error)",
    )
    group.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="a pair that cannot be counted: stop, after all were tried (default), or skip and "
        "list it",
    )
    add_running_options(group)


def add_boundary_options(parser: argparse.ArgumentParser) -> None:
    """What is measured at boundaries."""
    group = parser.add_argument_group("boundaries")
    group.add_argument(
        "--boundary",
        metavar="WIDTHS",
        nargs="?",
        const="2%",
        help="measure boundary quality: Boundary IoU within these widths, in pixels or %% of the "
        "diagonal (--boundary=2%%,3; default: 2%%), F1, surface Dice, surface distances",
    )
    group.add_argument(
        "--boundary-tolerance",
        metavar="PIXELS",
        help="tolerances of F1 and surface Dice, in pixels or %% of the diagonal (default: 1,2,4)",
    )


def boundary_argument(parsed: argparse.Namespace) -> BoundaryOptions | None:
    """What the boundary options ask for; None for nothing."""
    if parsed.boundary is None and parsed.boundary_tolerance is None:
        return None
    from segiou.boundary.boundary_options import BoundaryOptions

    given = {
        "widths": parsed.boundary,
        "tolerances": parsed.boundary_tolerance,
    }
    lists = {name: text.split(",") for name, text in given.items() if text is not None}
    return BoundaryOptions(**lists)


def add_scoring_options(parser: argparse.ArgumentParser) -> None:
    """Where counts are kept and who does the work."""
    group = parser.add_argument_group("running")
    group.add_argument(
        "--run",
        metavar="FILE",
        help="keep every finished pair in this run file; if it exists, go on where it was",
    )
    group.add_argument(
        "--problems", metavar="FILE", help="write a CSV of all problems with files, one a row"
    )
    group.add_argument(
        "--shard",
        metavar="I/N",
        type=_shard,
        help="score only part I of N of the pairs; segiou merge joins the run files",
    )
    group.add_argument(
        "--processes", metavar="N", type=positive, help="use N processes instead of threads"
    )
    group.add_argument(
        "--dask", metavar="ADDRESS", help="use the Dask cluster whose scheduler is there"
    )


def engine_arguments(parsed: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of who does the work."""
    return {name: getattr(parsed, name) for name in ("workers", "processes", "dask")}


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        msg = f"{text!r} is not of the form I/N with I from 1 to N"
        raise argparse.ArgumentTypeError(msg)
    return int(part), int(parts)


def add_running_options(parser: Any) -> None:
    """How the work is done."""
    parser.add_argument("--workers", metavar="N", type=positive, help="threads (default: cores)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar, no notes")


def positive(text: str) -> int:
    """A number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        msg = f"{text!r} is not a number of at least 1"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


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
        self.exit(EXIT_USAGE, f"segiou: {message}\nfor help: {self.prog} --help\n")

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
            label = name.upper() if name in _POSITIONAL else option_of(name)
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
        command.set_defaults(name_of_command=name, command=command)
        add(command)
    return parser


def add_score(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou score``."""
    parser.add_argument("truth", metavar="TRUTH", help="folder (or file) of true masks")
    parser.add_argument("pred", metavar="PRED", help="folder (or file) of predicted masks")
    add_class_options(parser)
    add_pairing_options(parser)
    add_reading_options(parser)
    add_boundary_options(parser)
    add_scoring_options(parser)
    add_report_options(parser)
    add_resampling_options(parser, asked=True)


def add_report(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou report``."""
    parser.add_argument(
        "run_file", metavar="RUN", help="run file that segiou score --run has written"
    )
    add_report_options(parser)
    add_resampling_options(parser, asked=True)
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
    add_class_options(parser, required=False)
    add_pairing_options(parser)
    add_reading_options(parser)
    add_protocol(parser)
    add_output_options(parser)


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
    add_protocol(parser)
    add_class_options(parser, required=False)
    add_pairing_options(parser)
    add_reading_options(parser)
    add_resampling_options(parser)
    add_output_options(parser, pages=True)


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """Options of ``segiou inspect``."""
    parser.add_argument("folder", metavar="DIR", help="folder of masks, or one mask")
    parser.add_argument("--labels", metavar="SET", help="compare with this label set only")
    add_findings_options(parser)
    add_running_options(parser)


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
    parser.add_argument("--output", metavar="FILE", type=output, help="write the page here")
    parser.add_argument(
        "--no-open", dest="open", action="store_false", help="write the page, open no browser"
    )
