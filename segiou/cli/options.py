"""Options that commands share, and what they mean."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from segiou.boundary import BoundaryOptions

__all__ = [
    "EXIT_DATA",
    "EXIT_GATE",
    "EXIT_USAGE",
    "add_boundary_options",
    "add_class_options",
    "add_pairing_options",
    "add_reading_options",
    "add_running_options",
    "add_scoring_options",
    "boundary_argument",
    "class_arguments",
    "engine_arguments",
    "option_of",
    "pairing_arguments",
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
    from segiou.boundary import BoundaryOptions

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
