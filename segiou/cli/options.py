"""The commands and their options, as one table: it makes the parsers, their help and the hints.

The table is ``options.txt``. A line of it is an option and what its help says. After an option
stands the kind of its value: ``{a,b}`` is a choice, ``[…]`` may be left out (``=`` says what that
means), ``...`` may be repeated. Without one the option is a switch. A word without hyphens is an
argument, not an option. Over the lines stands a heading of the help, and the commands that have
them. The attribute that an option sets has its name, which is the name of the argument of the
library, too.
"""

from __future__ import annotations

import argparse

# The module typing would take a tenth of the time that help takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: What a command does, and the options of its short help (none: all of them).
COMMANDS = {
    "score": (
        "score a folder of predicted masks against a folder of true masks",
        "labels ignore protocol run output html images fail-under intervals group-by",
    ),
    "explain": (
        "explain the gap between pixel accuracy and mean IoU",
        "labels ignore protocol format output",
    ),
    "compare": (
        "compare models on the same images, with intervals and tests",
        "truth names metric labels protocol group-by blocks html images output",
    ),
    "report": (
        "show a run again, in any format, without the masks",
        "protocol format output html images detail fail-under baseline intervals group-by",
    ),
    "merge": ("join run files into one", ""),
    "inspect": ("show what is in the masks of a folder", ""),
    "labelsets": ("list the label sets, or print one as TOML", ""),
    "demo": ("draw street scenes, and score two models on them", ""),
    "explore": ("open a page to try IoU on: drag rectangles, paint masks", ""),
}

# The module pathlib would take longer than all of the table.
_LOADER: Any = __spec__.loader
_TABLE: str = _LOADER.get_data(f"{__file__.removesuffix('.py')}.txt").decode()


#: More choices than this stand in the text of the help.
_FEW = 3


def arguments_of(command: str) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    """The arguments of a command: heading, names of the option, what argparse is to know."""
    heading, wanted = "", False
    for line in _TABLE.replace("\n      ", " ").splitlines():
        if not line.startswith(" "):
            heading, _, commands = line.partition(":")
            wanted = command in commands.split()
        elif wanted:
            words, _, text = line.strip().partition("  ")
            names = [word.rstrip(",") for word in words.split() if word.startswith("-")]
            value = words.rpartition(" ")[2]
            yield heading, names, _settings(names, "" if value in names else value, text)


def _settings(names: list[str], value: str, text: str) -> dict[str, Any]:
    text, _, mark = text.removesuffix("]").partition(" [")
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
        choices = settings["choices"] = value[1:-1].split(",")
        if len(choices) > _FEW:
            settings["metavar"] = names[-1].removeprefix("--").upper()
            settings["help"] = f"{', '.join(choices)}: {settings['help']}"
    else:
        settings["metavar"] = value
    if not names:
        return settings | {"dest": value.lower()}
    settings["type"] = read = _KINDS.get(value, str)
    if mark.startswith("default: "):
        settings["default"] = read(mark.removeprefix("default: "))
    return settings | ({"required": True} if mark == "required" else {})


def option_of(name: str) -> str:
    """The option that sets an attribute of the command line."""
    return f"--{name.replace('_', '-')}"


def _label_set(text: str) -> str | int:
    """A label set on the command line: a number of classes, or a name."""
    return _count(text) if text.isdecimal() else text


def _class_values(text: str) -> list[int | str]:
    """Values or names of classes, with commas between."""
    if text and not text.strip(" ,"):
        msg = f"takes values or names of classes, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return [_number_or_name(part.strip()) for part in text.split(",") if part.strip() or not text]


def _number_or_name(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _count(text: str, least: int = 0) -> int:
    # Numbers of more digits are refused by Python, and mean nothing here.
    if not text.isdecimal() or len(text) > 1000 or int(text) < least:
        msg = f"{text[:40]!r} is not a number of at least {least}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _block_length(text: str) -> float | str:
    try:
        length = float(text)
    except ValueError:
        length = 0.0
    if text != "auto" and not 1 <= length < float("inf"):
        msg = f"{text!r} is neither auto nor a number of images of at least 1"
        raise argparse.ArgumentTypeError(msg)
    return length or text


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    are_numbers = part.isdecimal() and parts.isdecimal()
    if not are_numbers or not 1 <= _count(part) <= _count(parts):
        msg = f"{text!r} is not of the form I/N with I from 1 to N"
        raise argparse.ArgumentTypeError(msg)
    return int(part), int(parts)


def _address(text: str) -> str:
    if text and not text.rpartition(":")[2].isdecimal():
        msg = f"{text!r} is not an address with a port, such as tcp://host:8786"
        raise argparse.ArgumentTypeError(msg)
    return text


def _run_file(text: str) -> str:
    """Where to write a run file, which is a data base and not a stream."""
    if text == "-":
        msg = "a run file cannot be written to stdout; name a file"
        raise argparse.ArgumentTypeError(msg)
    return text


#: How the values of options are read; others are texts.
_KINDS: dict[str, Any] = {
    "ADDRESS": _address,
    "CLASS": _class_values,
    "NUMBER": _count,
    # A hyphen means stdout.
    "FILE": lambda text: "/dev/stdout" if text == "-" else text,
    "I/N": _shard,
    "K": lambda text: _count(text, 1),
    "LENGTH": _block_length,
    "N": lambda text: _count(text, 1),
    "MEASURE=BOTH,TRUTH,PRED": lambda text: [text],
    "NAME=VALUE": lambda text: [text],
    "P": float,
    "RUN_FILE": _run_file,
    "SET": _label_set,
    "VALUE": _class_values,
}
