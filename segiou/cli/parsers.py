"""The commands and their options.

Building the parsers loads nothing of the library, so that help answers at once.
An option's destination is the name of the argument that it sets in the library.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from segiou._support import __version__
from segiou._support.compiled import PARTS, compiled_parts
from segiou.cli.console import say, write
from segiou.cli.option_values import (
    address,
    class_values,
    label_set,
    not_negative,
    output_file,
    positive,
    run_file,
    shard,
)

__all__ = [
    "EXIT_DATA",
    "EXIT_THRESHOLD",
    "EXIT_USAGE",
    "build_parser",
    "check_given",
    "option_of",
    "parse",
]

EXIT_THRESHOLD = 1
EXIT_USAGE = 2
EXIT_DATA = 3

_EPILOG = """exit codes: 0 fine, 1 a score is below a threshold (--fail-under), 2 wrong usage,
3 problems with the data or files, 130 interrupted

segiou demo draws street scenes and shows the commands on them."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read a command line; ends the process where it cannot be read."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser, commands = _parsers()
    if not words:
        parser.exit(EXIT_USAGE, parser.format_help())
    if words[0].startswith("-") and words[0] not in ("-h", "--help", "--version"):
        parser.error(f"the command comes first, before {words[0]}; there are {', '.join(commands)}")
    if not words[0].startswith("-") and words[0] not in commands:
        from segiou._support.text import did_you_mean

        hint = did_you_mean(words[0], commands)
        parser.error(f"there is no command {words[0]!r}{hint}; there are {', '.join(commands)}")
    parsed, unknown = parser.parse_known_args(words)
    if unknown:
        parsed.command.refuse(unknown)
    return parsed


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command; loads nothing that a command needs."""
    return _parsers()[0]


def check_given(parsed: argparse.Namespace) -> None:
    """Refuse arguments that are empty, as variables are that nobody has set."""
    for name, value in vars(parsed).items():
        # A suffix may be empty.
        if name in ("truth_suffix", "pred_suffix"):
            continue
        if value == "" or (isinstance(value, list) and "" in value):
            label = name.upper() if name in _POSITIONAL else option_of(name)
            msg = f"{label} is empty; is a variable not set?"
            raise ValueError(msg)


def option_of(name: str) -> str:
    """The option that sets an attribute of the command line."""
    return f"--{name.replace('_', '-')}"


class _Parser(argparse.ArgumentParser):
    #: Options that the help shows; None for all. The others are in --help-all.
    shown: Sequence[str] | None = None

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse would ignore a full disk, and print help to stderr where stdout is closed.
        if file is sys.stdout:
            write(message)
        else:
            say(message)

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"segiou: {message}\nfor help: {self.prog} --help\n")

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Refuse arguments that the command does not have."""
        from segiou._support.text import did_you_mean

        given = unknown[0].partition("=")[0]
        hint = did_you_mean(given, self._option_string_actions)
        self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")

    def show_only(self, names: str) -> None:
        """Show few options in the help, and all with ``--help-all``."""
        self.shown = [f"--{name}" for name in ("help", "help-all", *names.split())]
        self.add_argument("--help-all", action=_HelpAll, help="show all options and exit")

    def format_help(self) -> str:
        if self.shown is None:
            return super().format_help()
        hidden = [
            action
            for action in self._actions
            if action.option_strings and action.option_strings[-1] not in self.shown
        ]
        helps = [action.help for action in hidden]
        for action in hidden:
            action.help = argparse.SUPPRESS
        text = super().format_help()
        for action, original in zip(hidden, helps, strict=True):
            action.help = original
        return f"{text}\n{len(hidden)} more options: {self.prog} --help-all\n"


class _HelpAll(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=options.get("help"))

    def __call__(self, parser: Any, *_: Any) -> None:
        parser.shown = None
        parser.print_help()
        parser.exit()


def _parsers() -> tuple[_Parser, list[str]]:
    """The parser of the whole command, and the names of its commands."""
    parser = _Parser(
        prog="segiou",
        description="Exact, fast and explained scores for semantic segmentation.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action=_Version, help="show the version and which parts are compiled, and exit"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for name, (text, add) in _COMMANDS.items():
        command = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )
        command.set_defaults(name_of_command=name, command=command)
        add(command)
    return parser, list(_COMMANDS)


def _add_score(parser: _Parser) -> None:
    parser.add_argument("truth", metavar="TRUTH", help="folder (or file) of true masks")
    parser.add_argument("pred", metavar="PRED", help="folder (or file) of predicted masks")
    _add_scoring_options(parser)
    _add_boundary_options(parser)
    _add_run_options(parser)
    _add_report_options(parser, protocol="segiou")
    _add_interval_options(parser, optional=True)
    parser.show_only("labels ignore protocol run output html images fail-under intervals group-by")


def _add_report(parser: _Parser) -> None:
    parser.add_argument("run_file", metavar="RUN", help="run file, as segiou score --run writes it")
    _add_report_options(parser, protocol="the protocol of the run")
    _add_interval_options(parser, optional=True)
    _add_quiet(parser)


def _add_merge(parser: _Parser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run files of the same options")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=run_file,
        required=True,
        help="write the merged run to this new file",
    )
    parser.add_argument(
        "--partial",
        action="store_true",
        help="merge although parts (--shard I/N) of the data set are missing; reports then say so",
    )
    _add_quiet(parser)


def _add_explain(parser: _Parser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="a run file; or two folders of masks, TRUTH PRED"
    )
    _add_scoring_options(parser)
    _add_protocol(parser, "segiou, or the protocol of the run")
    _add_findings_options(parser)
    parser.show_only("labels ignore protocol format output")


def _add_compare(parser: _Parser) -> None:
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help="two or more run files of the same images; or folders of predictions, with --truth "
        "and --labels",
    )
    parser.add_argument(
        "--truth", metavar="DIR", help="folder of true masks, where the models are folders"
    )
    parser.add_argument(
        "--names", metavar="A,B", help="names of the models (default: those of their folders)"
    )
    parser.add_argument(
        "--metric",
        metavar="NAME",
        default="iou",
        help="what to compare: iou (default), dice, boundary_iou, …; an unknown name lists all",
    )
    _add_scoring_options(parser)
    _add_protocol(parser, "segiou, or the protocol of the runs")
    _add_interval_options(parser, optional=False)
    _add_page_options(parser.add_argument_group("page"))
    _add_findings_options(parser)
    parser.show_only("truth names metric labels ignore protocol group-by blocks html images output")


def _add_inspect(parser: _Parser) -> None:
    parser.add_argument("folder", metavar="DIR", help="folder of masks, or one mask")
    parser.add_argument(
        "--labels", metavar="SET", type=label_set, help="compare with this label set only"
    )
    _add_workers(parser)
    _add_quiet(parser)
    _add_findings_options(parser)


def _add_labelsets(parser: _Parser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="print this set as TOML")


def _add_demo(parser: _Parser) -> None:
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", default="segiou-demo", help="default: segiou-demo"
    )


def _add_explore(parser: _Parser) -> None:
    _add_output(parser, "write the page to this file")
    parser.add_argument(
        "--no-open", dest="open", action="store_false", help="do not open a browser"
    )


_COMMANDS: dict[str, tuple[str, Callable[[_Parser], None]]] = {
    "score": ("score a folder of predicted masks against a folder of true masks", _add_score),
    "explain": ("explain the gap between pixel accuracy and mean IoU", _add_explain),
    "compare": ("compare models on the same images, with intervals and tests", _add_compare),
    "report": ("show a run again, in any format, without the masks", _add_report),
    "merge": ("join run files into one", _add_merge),
    "inspect": ("show what is in the masks of a folder", _add_inspect),
    "labelsets": ("list the label sets, or print one as TOML", _add_labelsets),
    "demo": ("draw street scenes, and score two models on them", _add_demo),
    "explore": ("open a page on which IoU can be tried with two rectangles", _add_explore),
}
#: Arguments that are no options; messages write them in capitals.
_POSITIONAL = ("truth", "pred", "run_file", "runs", "models", "paths", "folder", "name")


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=options["help"])

    def __call__(self, parser: Any, *_: Any) -> None:
        built = compiled_parts()
        lines = [
            f"{part.key:<10}"
            + ("compiled" if built[part.key] else f"not compiled: {part.what} is {part.cost}")
            for part in PARTS.values()
        ]
        write("\n".join([f"segiou {__version__}", *lines, ""]))
        parser.exit()


def _add_scoring_options(parser: _Parser) -> None:
    """What masks mean, which files are pairs, how they are read."""
    classes = parser.add_argument_group("classes")
    classes.add_argument(
        "--labels",
        metavar="SET",
        type=label_set,
        help="the classes, needed for masks: a preset (segiou labelsets lists them), a TOML file, "
        "or a number of classes",
    )
    classes.add_argument(
        "--pred-labels",
        metavar="SET",
        type=label_set,
        help="the classes of the predictions, if their values differ from the truth's",
    )
    for name, metavar, text in (
        ("--ignore", "VALUE", "do not count pixels whose truth has this value or class"),
        ("--exclude", "CLASS", "count this class, but leave it out of the means"),
    ):
        classes.add_argument(
            name,
            metavar=metavar,
            type=class_values,
            action="extend",
            default=[],
            help=f"{text} (repeat the option, or write a,b,c)",
        )
    classes.add_argument(
        "--unassigned",
        choices=("error", "count"),
        default="error",
        help="a predicted value that is no class is an error (default), or counted as a missed "
        "pixel",
    )
    pairing = parser.add_argument_group("pairing")
    pairing.add_argument(
        "--truth-suffix",
        metavar="TEXT",
        help="ending that only names of the truth have, such as _gt or _gt.png",
    )
    pairing.add_argument(
        "--pred-suffix", metavar="TEXT", help="ending that only names of the predictions have"
    )
    pairing.add_argument(
        "--key",
        metavar="REGEX",
        help="regular expression with a group named 'key': files with the same key are a pair",
    )
    for name, text in (
        ("--missing", "true masks without a prediction are"),
        ("--extra", "predictions without a true mask are"),
    ):
        pairing.add_argument(
            name,
            choices=("error", "skip"),
            default="error",
            help=f"{text} an error (default), or skipped and listed",
        )
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--allow-lossy",
        action="store_true",
        help="read JPEG masks, although compression may have changed their values",
    )
    reading.add_argument(
        "--resize-pred",
        choices=("nearest",),
        help="resize a prediction to the size of its truth (default: another size is an error)",
    )
    reading.add_argument(
        "--geometry",
        choices=("check", "ignore", "reorient"),
        default="check",
        help="of volumes: refuse a prediction whose shape, spacing, affine or orientation is not "
        "its truth's (default), compare voxel by voxel all the same, or exchange axes first",
    )
    reading.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="where pairs cannot be counted, stop after all were tried (default), or skip and "
        "list them",
    )
    _add_workers(reading)
    _add_quiet(reading)


def _add_workers(parser: Any) -> None:
    parser.add_argument(
        "--workers", metavar="N", type=positive, help="number of threads (default: one a core)"
    )


def _add_quiet(parser: Any) -> None:
    parser.add_argument("--quiet", action="store_true", help="show no progress and no notes")


def _blocks(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        length = float(text)
    except ValueError:
        length = 0.0
    if not 1 <= length < math.inf:
        msg = f"{text!r} is neither auto nor a number of images of at least 1"
        raise argparse.ArgumentTypeError(msg)
    return length


def _add_boundary_options(parser: _Parser) -> None:
    group = parser.add_argument_group("boundaries")
    group.add_argument(
        "--boundary",
        metavar="WIDTHS",
        nargs="?",
        const="2%",
        help="measure boundaries too: Boundary IoU within these widths, F1, surface Dice and "
        "surface distances; widths in pixels or %% of the diagonal, such as --boundary=2%%,3 "
        "(default: 2%%)",
    )
    group.add_argument(
        "--boundary-tolerance",
        metavar="PIXELS",
        help="tolerances of F1 and surface Dice, in pixels or %% of the diagonal (default: 1,2,4)",
    )


def _add_run_options(parser: _Parser) -> None:
    """Where counts are kept and who does the work."""
    group = parser.add_argument_group("running")
    group.add_argument(
        "--run",
        metavar="FILE",
        type=run_file,
        help="keep the counts of every finished pair in this run file; if it exists, continue "
        "where it stopped",
    )
    group.add_argument(
        "--problems",
        metavar="FILE",
        type=output_file,
        help="write all problems with files to this CSV, one a row",
    )
    group.add_argument(
        "--shard",
        metavar="I/N",
        type=shard,
        help="score only part I of N of the pairs; segiou merge joins the run files",
    )
    group.add_argument(
        "--processes", metavar="N", type=positive, help="use N processes instead of threads"
    )
    group.add_argument(
        "--dask",
        metavar="ADDRESS",
        type=address,
        help="use the Dask cluster whose scheduler has this address, such as tcp://host:8786",
    )


_SORT_KEYS = ("order", "name", "iou", "dice", "precision", "recall", "share", "tp", "fp", "fn")


def _add_report_options(parser: _Parser, protocol: str) -> None:
    group = parser.add_argument_group("report")
    _add_protocol(group, protocol)
    _add_format(group, ("table", "json", "csv", "markdown", "html", "nnunet"))
    _add_output(group)
    group.add_argument(
        "--per-image", metavar="FILE", type=output_file, help="write a CSV with one row an image"
    )
    group.add_argument(
        "--worst", metavar="K", type=positive, help="also list the K worst images (not in CSV)"
    )
    group.add_argument(
        "--worst-by",
        metavar="SCORE",
        default="mean_iou",
        help="score that ranks the images: mean_iou (default), pixel_accuracy, iou:CLASS, or "
        "influence (mean IoU of the data set with the image minus without it)",
    )
    _add_page_options(group)
    group.add_argument(
        "--sort",
        choices=_SORT_KEYS,
        default="order",
        help="order of the classes (default: as in the label set)",
    )
    group.add_argument("--reverse", action="store_true", help="reverse that order")
    group.add_argument(
        "--fail-under",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="threshold: exit with 1 if a score is below it, such as miou=0.7; for all classes: "
        "miou, pixel_accuracy, mean_accuracy, …; for one: iou:CLASS, dice:CLASS, "
        "precision:CLASS, recall:CLASS (repeat the option for more)",
    )
    group.add_argument(
        "--junit",
        metavar="FILE",
        type=output_file,
        help="write the outcome of every threshold as JUnit XML, for continuous integration",
    )


def _add_protocol(parser: Any, default: str) -> None:
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        help="compute the means as this program does: segiou, detectron2, ade20k, …; an unknown "
        f"name lists all (default: {default})",
    )


def _add_format(parser: Any, formats: Sequence[str]) -> None:
    parser.add_argument(
        "--format",
        choices=formats,
        help="format of the output (default: by the ending of --output, or table)",
    )


def _add_output(parser: Any, what: str = "write to this file instead of stdout") -> None:
    parser.add_argument("-o", "--output", metavar="FILE", type=output_file, help=what)


def _add_page_options(group: Any) -> None:
    group.add_argument(
        "--html", metavar="FILE", type=output_file, help="write an HTML page with scores and images"
    )
    group.add_argument(
        "--images",
        metavar="DIR",
        help="folder of the images that the masks belong to, found by the masks' names, for the "
        "page",
    )
    group.add_argument(
        "--examples",
        metavar="N",
        type=not_negative,
        default=24,
        help="show at most N images in the page (default: 24)",
    )
    group.add_argument(
        "--plots", metavar="DIR", help="write figures to this folder, as PNG, SVG and PDF"
    )


def _add_interval_options(parser: _Parser, *, optional: bool) -> None:
    """How sure the numbers are; ``optional`` where only ``--intervals`` shows them."""
    group = parser.add_argument_group("intervals")
    if optional:
        group.add_argument(
            "--intervals",
            action="store_true",
            help="add bootstrap intervals over images, over groups with --group-by, or over blocks "
            "of neighbouring images with --blocks",
        )
    group.add_argument(
        "--group-by",
        metavar="REGEX",
        help="images that belong together, such as frames of one drive: those in whose ids this "
        "finds the same text; or FILE.csv:COLUMN, a table with a column 'id'; or none: images are "
        "independent",
    )
    group.add_argument(
        "--blocks",
        metavar="N",
        type=_blocks,
        help="resample blocks of about N neighbouring images along each group, or each sequence "
        "that the ids show; auto: by how alike neighbours score",
    )
    group.add_argument(
        "--level",
        metavar="P",
        type=float,
        default=0.95,
        help="level of the intervals (default: 0.95)",
    )
    group.add_argument(
        "--resamples",
        metavar="N",
        type=positive,
        default=10_000,
        help="number of resamples (default: 10000)",
    )
    group.add_argument(
        "--seed",
        metavar="N",
        type=not_negative,
        default=0,
        help="seed (default: 0)",
    )
    group.add_argument(
        "--method",
        choices=("percentile", "bca"),
        default="percentile",
        help="kind of interval (default: percentile)",
    )


def _add_findings_options(parser: _Parser) -> None:
    """Findings as text or as data, to stdout or a file."""
    group = parser.add_argument_group("output")
    _add_format(group, ("table", "json"))
    _add_output(group)
