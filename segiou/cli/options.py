"""Command-line options: parsers and help, generated from tables ``options.txt``.

The table of this package starts with the commands; brackets list the options of their short help.
Each feature has a table in its folder with the options of its command alone, and each kind of
scores has one whose headings are keys of measures. A heading names
a section of the help and the commands that have it. Lines below it are options and their help. The
value follows the option: ``{a,b}`` is a choice, ``[…]`` is optional (with its value if omitted
after ``=``), ``...`` is repeatable; options without a value are flags. Words without hyphens are
positional arguments. Options and library arguments have the same names. Building a parser imports
nothing that the commands need.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from functools import cache, partial

from segiou._support.numbers import fraction_in, integer_in, is_digits, number_in
from segiou.cli.console import EXIT_USAGE, harmless, note, say, stdout_width, wants_color, write
from segiou.document.renderers import RENDERERS

# Importing typing would add a tenth to the time of --help.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, NoReturn

# Importing pathlib takes longer than parsing the tables.
_FOLDER = os.path.dirname(__file__)  # noqa: PTH120
_KINDS_OF_SCORES = "kinds of scores\n"


def _table(folder: str) -> str:
    """The table of options in a folder; empty without one."""
    try:
        with open(f"{folder}/options.txt", encoding="utf-8") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


def _lines(table: str) -> list[str]:
    """The lines of a table of options, each with its continuation lines."""
    return table.replace("\n      ", " ").splitlines()


_TABLE = _table(_FOLDER)


@cache
def _all_lines() -> list[str]:
    """The options of the core, with those of all kinds of scores in their folders."""
    folder = f"{_FOLDER}/../measures"
    kinds = sorted(os.listdir(folder))  # noqa: PTH208
    tables = "".join(_table(f"{folder}/{kind}") for kind in kinds)
    return _lines(_TABLE.replace(_KINDS_OF_SCORES, tables))


def _split(line: str) -> tuple[str, str, str]:
    """Split a line of the table into option, help text and the text in brackets."""
    words, _, text = line.strip().partition("  ")
    text, _, mark = text.removesuffix("]").partition(" [")
    return words, text, mark


#: Module and function of each command outside commands.py. Those of features are in their packages.
HOMES = {
    "demo": ("segiou.demo.command", "command"),
    "explore": ("segiou.explorer.command", "command"),
    "help": ("segiou.cli.help_command", "command"),
    "map-accuracy": ("segiou.maps.command", "command"),
    "plan": ("segiou.planning.command", "command"),
    "raters": ("segiou.raters.command", "command"),
    "suspects": ("segiou.suspects.command", "command"),
}


def _package(command: str) -> str:
    """The package of a command; the folder of a feature can be deleted."""
    return HOMES[command][0].split(".")[1] if command in HOMES else "cli"


#: Help text of each installed command, and the options of its short help (empty: all).
COMMANDS = {
    name: (about, short)
    for name, about, short in map(_split, _lines(_TABLE.partition("\narguments: ")[0])[1:])
    if os.path.isdir(f"{_FOLDER}/../{_package(name)}")  # noqa: PTH112
}
#: Longer lists of choices are moved to the help text; the number also limits those of errors.
_FEW, _SHORT = 3, 26


_DEMO = ", or segiou demo for a worked example" if "demo" in COMMANDS else ""
_EPILOG = f"""\
Run segiou COMMAND --help for a command's options{_DEMO}.

Exit codes: 0 success, 1 threshold failed, 2 usage error, 3 data or file error, \
70 unexpected error, 130 interrupted."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse a command line; exits if it is invalid."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words[0] if words else ""
    parser = build_parser(name)
    if name not in COMMANDS:
        _help_or_refuse(parser, words)
    if "--help-all" in words:
        if _add_plugins(None):
            parser = build_parser(name)
        parser.shown = None
        parser.print_help()
        parser.exit()
    parsed, unknown = parser.parse_known_args(words[1:])
    if unknown and _add_plugins(unknown):
        parser = build_parser(name)
        parsed, unknown = parser.parse_known_args(words[1:])
    if unknown:
        parser.refuse(unknown)
    _check_given(parsed)
    parsed.command_line = ["segiou", *words]
    return parsed


def _add_plugins(unknown: Sequence[str] | None) -> bool:
    """Add the options of plug-in measures that these arguments may name, or of all (None)."""
    from segiou._support.optional import plugin_names

    if not (keys := plugin_names("measures", own=False)):
        return False
    from segiou.measures.registry import loaded_measures, measure_of

    if unknown is None:
        kinds, problems = loaded_measures()
        for problem in problems.values():
            note(problem)
    else:
        starts = tuple(word.partition("=")[0].replace("-", "_") for word in unknown)
        named = (key for key in keys if any(s.startswith(f"__{key}") for s in starts))
        kinds = {key: measure_of(key) for key in named}
    new = [line for key in keys if key in kinds for line in _lines(kinds[key].options)]
    known = _all_lines()
    known.extend(shown for line in new if (shown := harmless(line)) not in known)
    return bool(new)


def _help_or_refuse(parser: _Parser, words: Sequence[str]) -> NoReturn:
    if not words:
        parser.exit(EXIT_USAGE, parser.format_help())
    name, known = words[0], ", ".join(COMMANDS)
    if name in ("-h", "--help"):
        parser.parse_args(words[:1])
    if name == "--version":
        write(_versions())
        parser.exit()
    if name.startswith("-"):
        parser.error(f"put the command before {name}; commands: {known}")
    from segiou._support.text import did_you_mean

    if name in HOMES:
        parser.error(f"{name} needs segiou.{_package(name)}, which is not installed")
    hint = did_you_mean(name, COMMANDS) or f"; commands: {known}"
    parser.error(f"unknown command {name!r}{hint}")


def _versions() -> str:
    from segiou._support import __version__
    from segiou._support.optional import PARTS, compiled_parts

    lines = [f"segiou {__version__}"]
    for part, is_there in zip(PARTS.values(), compiled_parts().values(), strict=True):
        state = "compiled" if is_there else f"not compiled: {part.what} is {part.cost}"
        lines.append(f"{part.key:<12}{state}")
    return "\n".join([*lines, ""])


def build_parser(command: str = "") -> _Parser:
    """The parser of a command; without a command, a parser that lists them."""
    if command in COMMANDS:
        return _command_parser(command)
    parser = _Parser("segiou", "exact, fast, explainable metrics for semantic segmentation")
    parser.usage, parser.epilog = "segiou COMMAND [options]", _EPILOG
    parser._positionals.title = "commands"
    for name, (about, _) in COMMANDS.items():
        parser.add_argument(name, help=about)
    about = "show the version and compiled modules, and exit"
    parser.add_argument("--version", action="store_true", help=about)
    return parser


def _command_parser(name: str) -> _Parser:
    about, short = COMMANDS[name]
    parser = _Parser(f"segiou {name}", about)
    if short:
        parser.shown = ["--help", "--help-all", *map(option_of, short.split())]
        parser.add_argument("--help-all", action="store_true", help="show all options and exit")
    groups: dict[str, Any] = {"arguments": parser}
    usage = ["%(prog)s [options]"]
    for heading, names, settings in arguments_of(name):
        if heading not in groups:
            groups[heading] = parser.add_argument_group(heading.replace("_", " "))
        groups[heading].add_argument(*names, **settings)
        if not names:
            place = settings["metavar"] + ("..." if settings.get("nargs") == "+" else "")
            usage.append(f"[{place}]" if settings.get("nargs") == "?" else place)
    parser.usage = " ".join(usage)
    parser.set_defaults(name_of_command=name, command=parser)
    return parser


def _check_given(parsed: argparse.Namespace) -> None:
    """Reject empty arguments, which usually come from unset shell variables."""
    for name, value in vars(parsed).items():
        is_empty = "" in (value if isinstance(value, list) else [value])
        if is_empty and name not in ("truth_suffix", "pred_suffix"):
            options = parsed.command._option_string_actions
            label = option_of(name) if option_of(name) in options else name.upper()
            msg = f"{label} is empty; is a shell variable unset?"
            raise ValueError(msg)


class _Parser(argparse.ArgumentParser):
    def __init__(self, prog: str, about: str) -> None:
        super().__init__(
            prog=prog,
            description=f"{about[0].upper()}{about[1:]}.",
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        #: Options in the short help; None for all. --help-all shows the others.
        self.shown: Sequence[str] | None = None
        self.color = False
        self._positionals.title = "arguments"

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse ignores write errors, and prints help to stderr if stdout is closed.
        if file is sys.stdout:
            write(_color_help(message) if wants_color() else message)
        else:
            say(message)

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"segiou: {message}\nSee {self.prog} --help\n")

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError as error:
            wanted = ", ".join(action.choices) if action.choices else action.metavar
            msg = f"{error.message}: {wanted}" if wanted else error.message
            if arg_strings_pattern.startswith("O"):
                msg += f". If it begins with '-', write {action.option_strings[-1]}=-…"
            raise argparse.ArgumentError(action, msg) from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from segiou._support.text import did_you_mean

            choices = list(action.choices)
            hint = did_you_mean(str(value), choices)
            msg = f"invalid choice {value!r}; choose from {', '.join(choices)}{hint}"
            raise argparse.ArgumentError(action, msg)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Reject arguments that the command does not have."""
        from segiou._support.text import did_you_mean, listed

        word = unknown[0].partition("=")[0]
        hint = did_you_mean(word, self._option_string_actions)
        if others := [c for c in COMMANDS if any(word in names for _, names, _ in arguments_of(c))]:
            hint = f"; {word} is an option of {listed(others, len(others))}"
        elif word.endswith((".json", ".parquet", ".tar")):  # from an unquoted pattern
            hint = f"; to pass several files, quote the pattern: '*.{word.rpartition('.')[2]}'"
        elif not word.startswith("-") and "/" in word:
            hint = "; to pass a pattern of folders, quote it: 'data/*/masks'"
        elif not hint and word.startswith("--") and self.prog == "segiou score":
            hint = "; no installed measure has this option (segiou measures lists them)"
        more = f" and {len(unknown) - _FEW} more" if len(unknown) > _FEW else ""
        self.error(f"unrecognized arguments: {' '.join(unknown[:_FEW])}{more}{hint}")

    def format_help(self) -> str:
        if self.shown is None:
            return super().format_help()
        hidden = [
            action
            for action in self._actions
            if action.option_strings and action.option_strings[-1] not in self.shown
        ]
        for action in hidden:
            action.help = argparse.SUPPRESS
        return f"{super().format_help()}\n{len(hidden)} more options: {self.prog} --help-all\n"


class _Formatter(argparse.HelpFormatter):
    """Formats help in paragraphs, as wide as the terminal but at most 100 columns."""

    def __init__(self, prog: str) -> None:
        width = min(stdout_width(), 100)
        super().__init__(prog, width=width, max_help_position=min(26, width // 3))

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return f"{action.metavar or action.dest}{'...' if action.nargs == '+' else ''}"
        # As in Python 3.13: -o, --output FILE.
        value = "" if action.nargs == 0 else f" {self._format_args(action, '')}"
        return f"{', '.join(action.option_strings)}{value}"

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap

        # Option and tool names contain hyphens.
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.split("\n\n")
        return "\n\n".join("\n".join(self._split_lines(part, width)) for part in parts)


def _color_help(text: str) -> str:
    """Help with bold headings and coloured options."""
    text = re.sub(r"^\w[\w ]*:", "\x1b[1m\\g<0>\x1b[0m", text, flags=re.MULTILINE)
    names = r"^(  )([a-z]+)\b|(?<![\w-])()(--?[a-z][a-z-]*)"
    return re.sub(names, "\\1\x1b[36m\\2\\4\x1b[0m", text, flags=re.MULTILINE)


def arguments_of(command: str) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    """The arguments of a command: heading, option names, settings for argparse."""
    heading, wanted = "", False
    package = _package(command)
    own = [] if package == "cli" else _lines(_table(f"{_FOLDER}/../{package}"))
    for line in (*own, *_all_lines()):
        if not line.startswith(" "):
            heading, _, commands = line.partition(":")
            wanted = command in commands.split()
        elif wanted:
            words, text, mark = _split(line)
            names = [word.rstrip(",") for word in words.split() if word.startswith("-")]
            value = words.rpartition(" ")[2]
            yield heading, names, _settings(names, "" if value in names else value, text, mark)


def names_by_heading(command: str) -> dict[str, list[str]]:
    """Names of the options of a command by their heading; those of a measure have its key."""
    by_heading: dict[str, list[str]] = {}
    for heading, names, _ in arguments_of(command):
        for key in heading.split(", "):
            by_heading.setdefault(key, []).extend(_name_of(name) for name in names)
    return by_heading


def _name_of(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _settings(names: list[str], value: str, text: str, mark: str) -> dict[str, Any]:
    settings: dict[str, Any] = {"help": f"{text} ({mark})" if mark else text}
    settings["help"] = settings["help"].replace("%", "%%")
    if not value:
        is_not = names[-1].startswith("--no-")
        settings["action"] = "store_false" if is_not else "store_true"
        return settings | ({"dest": names[-1].removeprefix("--no-")} if is_not else {})
    if value.startswith("["):
        value, _, alone = value[1:-1].partition("=")
        settings |= {"nargs": "?", "const" if names else "default": alone or None}
    if value.endswith("..."):
        value = value.removesuffix("...")
        settings |= {"action": "extend", "default": []} if names else {"nargs": "+"}
    if value.startswith("{"):
        listed = value[1:-1].replace("documents", ",".join(RENDERERS))
        choices = settings["choices"] = listed.split(",")
        if len(choices) > _FEW or len(value) > _SHORT:
            settings["metavar"] = names[-1].removeprefix("--").upper()
            settings["help"] += f"; one of {', '.join(choices)}"
    else:
        settings["metavar"] = value
    if not names:
        return settings | {"dest": value.lower()}
    wanted, read = _KINDS.get(value, ("", _alone if "action" in settings else str))
    settings["type"] = partial(_read, wanted, read)
    if mark.startswith("default: "):
        settings["default"] = read(mark.removeprefix("default: "))
    return settings | ({"required": True} if mark == "required" else {})


def _alone(text: str) -> list[str]:
    """The value of a repeatable option."""
    return [text]


def option_of(name: str) -> str:
    """The name of the option that sets an attribute."""
    return f"--{name.replace('_', '-')}"


def _read(wanted: str, read: Callable[[str], Any], text: str) -> Any:
    """The value of an option; the error for one that cannot be read has what is wanted."""
    try:
        return read(text)
    except ValueError:
        msg = f"expected {wanted}, got {text[:40]!r}"
        raise argparse.ArgumentTypeError(msg) from None


def _refuse(is_wrong: bool) -> None:
    if is_wrong:
        raise ValueError


def _class_values(text: str) -> list[int | str]:
    """Values or names of classes, separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    _refuse(bool(text) and not any(parts))
    return [_number_or_name(part) for part in parts if part or not text]


def _number_or_name(text: str) -> int | str:
    try:
        return integer_in(text)
    except ValueError:
        return text


def _count(text: str, least: int = 1) -> int:
    _refuse(not is_digits(text) or int(text) < least)
    return int(text)


def _within(number: float, least: float, most: float) -> float:
    _refuse(not least <= number <= most)
    return number


def _shard(text: str) -> tuple[int, int]:
    part, parts = map(_count, text.split("/"))
    _refuse(part > parts)
    return part, parts


def _address(text: str) -> str:
    _refuse(bool(text) and not (":" in text and is_digits(text.rpartition(":")[2])))
    return text


def _run_file(text: str) -> str:
    """The path of a run file, which cannot be a stream."""
    if text == "-":
        msg = "cannot write a run file to stdout; pass a file path"
        raise argparse.ArgumentTypeError(msg)
    return text


_LARGEST = sys.float_info.max
_BELOW_1 = 1 - sys.float_info.epsilon / 2


#: What options of each kind expect, and its parser; other values are strings.
_KINDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "ADDRESS": ("an address with a port, e.g. tcp://host:8786", _address),
    "CLASS": ("values or names of classes", _class_values),
    "LIMIT": (
        "a number above 0",
        lambda text: _count(text) if is_digits(text) else number_in(text),
    ),
    "NUMBER": ("an integer ≥ 0", lambda text: _count(text, 0)),
    # A hyphen means stdout.
    "FILE": ("a path", lambda text: "/dev/stdout" if text == "-" else text),
    "DIFFERENCE": ("a number such as 0.05 or 5%", fraction_in),
    "I/N": ("I/N with 1 ≤ I ≤ N", _shard),
    "INCHES": ("a width from 1 to 100 inches", lambda text: _within(number_in(text), 1, 100)),
    "K": ("an integer ≥ 1", _count),
    "LENGTH": (
        "'auto' or a number ≥ 1",
        lambda text: text if text == "auto" else _within(number_in(text), 1, _LARGEST),
    ),
    "MARGIN": (
        "a margin from 0 to below 1, e.g. 0.01 or 1% for 1 point",
        lambda text: _within(fraction_in(text), 0, _BELOW_1),
    ),
    "N": ("an integer ≥ 1", _count),
    "P": ("a number such as 0.05 or 5%", fraction_in),
    "RUN_FILE": ("a path", _run_file),
    # A number of classes or a name.
    "SET": ("an integer ≥ 0", lambda text: _count(text, 0) if is_digits(text) else text),
    "VALUE": ("values or names of classes", _class_values),
}
