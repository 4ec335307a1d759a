"""The parsers of the command line; building one loads nothing that the commands need."""

from __future__ import annotations

import argparse
import re
import sys

from segiou.cli.console import EXIT_USAGE, say, stdout_width, wants_color, write
from segiou.cli.options import COMMANDS, arguments_of, option_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

_EPILOG = """\
The options of a command: segiou COMMAND --help. To try them: segiou demo draws street scenes and
shows the commands on them.

Exit codes: 0 fine, 1 a score is below a threshold (--fail-under), 2 wrong usage, 3 problems with
the data or files, 130 interrupted."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read a command line; ends the process where it cannot be read."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words[0] if words else ""
    parser = build_parser(name)
    if name not in COMMANDS:
        _help_or_refuse(parser, words)
    parsed, unknown = parser.parse_known_args(words[1:])
    if unknown:
        parser.refuse(unknown)
    return parsed


def _help_or_refuse(parser: _Parser, words: Sequence[str]) -> NoReturn:
    if not words:
        parser.exit(EXIT_USAGE, parser.format_help())
    name, known = words[0], ", ".join(COMMANDS)
    if name in ("-h", "--help", "--version"):
        parser.parse_args(words[:1])
    if name.startswith("-"):
        parser.error(f"the command comes first, before {name}; there are {known}")
    from segiou._support.text import did_you_mean

    parser.error(f"there is no command {name!r}{did_you_mean(name, COMMANDS)}; there are {known}")


def build_parser(command: str = "") -> _Parser:
    """The parser of a command; without one, a parser that helps to find one."""
    if command in COMMANDS:
        return _command_parser(command)
    parser = _Parser("segiou", "exact, fast and explained scores for semantic segmentation")
    parser.usage, parser.epilog = "segiou COMMAND [options]", _EPILOG
    parser._positionals.title = "commands"
    for name, (about, _) in COMMANDS.items():
        parser.add_argument(name, help=about)
    parser.add_argument(
        "--version", action=_Version, help="show the version and which parts are compiled, and exit"
    )
    return parser


def _command_parser(name: str) -> _Parser:
    about, short = COMMANDS[name]
    parser = _Parser(f"segiou {name}", about)
    if short:
        parser.shown = ["--help", "--help-all", *map(option_of, short.split())]
        parser.add_argument("--help-all", action=_HelpAll, help="show all options and exit")
    groups: dict[str, Any] = {"arguments": parser}
    usage = ["%(prog)s [options]"]
    for heading, names, settings in arguments_of(name):
        if heading not in groups:
            groups[heading] = parser.add_argument_group(heading)
        groups[heading].add_argument(*names, **settings)
        if not names:
            place = settings["metavar"] + ("..." if settings.get("nargs") == "+" else "")
            usage.append(f"[{place}]" if settings.get("nargs") == "?" else place)
    parser.usage = " ".join(usage)
    parser.set_defaults(name_of_command=name, command=parser)
    return parser


def check_given(parsed: argparse.Namespace) -> None:
    """Refuse arguments that are empty, as variables are that nobody has set."""
    for name, value in vars(parsed).items():
        # A suffix may be empty.
        if name in ("truth_suffix", "pred_suffix"):
            continue
        if value == "" or (isinstance(value, list) and "" in value):
            options = parsed.command._option_string_actions
            label = option_of(name) if option_of(name) in options else name.upper()
            msg = f"{label} is empty; is a variable not set?"
            raise ValueError(msg)


class _Parser(argparse.ArgumentParser):
    def __init__(self, prog: str, about: str) -> None:
        super().__init__(
            prog=prog,
            description=f"{about[0].upper()}{about[1:]}.",
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        #: Options that the help shows; None for all. The others are in --help-all.
        self.shown: Sequence[str] | None = None
        self.color = False
        self._positionals.title = "arguments"

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse would ignore a full disk, and print help to stderr where stdout is closed.
        if file is sys.stdout:
            write(_colored(message) if wants_color() else message)
        else:
            say(message)

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"segiou: {message}\nfor help: {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from segiou._support.text import did_you_mean

            choices = list(action.choices)
            hint = did_you_mean(str(value), choices)
            msg = f"{value!r} is none of {', '.join(choices)}{hint}"
            raise argparse.ArgumentError(action, msg)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Refuse arguments that the command does not have."""
        from segiou._support.text import did_you_mean

        given = unknown[0].partition("=")[0]
        hint = did_you_mean(given, self._option_string_actions)
        if given.endswith((".json", ".parquet", ".tar")):  # what a shell makes of a pattern
            hint = f"; give several files as a pattern in quotes: '*.{given.rpartition('.')[2]}'"
        self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")

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


class _Formatter(argparse.HelpFormatter):
    """Help as wide as the terminal, up to 100 columns, in paragraphs."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(stdout_width(), 100), max_help_position=26)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return f"{action.metavar or action.dest}{'...' if action.nargs == '+' else ''}"
        # As Python 3.13 has it: -o, --output FILE.
        value = "" if action.nargs == 0 else f" {self._format_args(action, '')}"
        return f"{', '.join(action.option_strings)}{value}"

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap

        # Names of options and of tools have hyphens.
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = text.split("\n\n")
        return "\n\n".join("\n".join(self._split_lines(part, width)) for part in parts)


def _colored(text: str) -> str:
    """Help with headings in bold, and commands and options in colour."""
    text = re.sub(r"^\w[\w ]*:", "\x1b[1m\\g<0>\x1b[0m", text, flags=re.MULTILINE)
    names = r"^(  )([a-z]+)\b|(?<![\w-])()(--?[a-z][a-z-]*)"
    return re.sub(names, "\\1\x1b[36m\\2\\4\x1b[0m", text, flags=re.MULTILINE)


class _HelpAll(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=options.get("help"))

    def __call__(self, parser: Any, *_: Any) -> None:
        parser.shown = None
        parser.print_help()
        parser.exit()


class _Version(_HelpAll):
    def __call__(self, parser: Any, *_: Any) -> None:
        from segiou._support import __version__
        from segiou._support.optional import PARTS, compiled_parts

        built = compiled_parts()
        lines = [
            f"{part.key:<10}"
            + ("compiled" if built[part.key] else f"not compiled: {part.what} is {part.cost}")
            for part in PARTS.values()
        ]
        write("\n".join([f"segiou {__version__}", *lines, ""]))
        parser.exit()
