"""Values of options: each function reads a text, and argparse says where one is refused."""

from __future__ import annotations

import argparse

__all__ = [
    "address",
    "class_values",
    "label_set",
    "not_negative",
    "output_file",
    "positive",
    "run_file",
    "shard",
]


def label_set(text: str) -> str | int:
    """A label set on the command line: a number of classes, or a name."""
    return _integer(text, 0) if text.isdecimal() else text


def class_values(text: str) -> list[int | str]:
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


def positive(text: str) -> int:
    """A number of at least 1."""
    return _integer(text, 1)


def not_negative(text: str) -> int:
    """A number of at least 0."""
    return _integer(text, 0)


def _integer(text: str, least: int) -> int:
    # Numbers of more digits are refused by Python, and mean nothing here.
    if not text.isdecimal() or len(text) > 1000 or int(text) < least:
        msg = f"{text[:40]!r} is not a number of at least {least}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def shard(text: str) -> tuple[int, int]:
    """Part I of N."""
    part, _, parts = text.partition("/")
    are_numbers = part.isdecimal() and parts.isdecimal()
    if not are_numbers or not 1 <= _integer(part, 0) <= _integer(parts, 0):
        msg = f"{text!r} is not of the form I/N with I from 1 to N"
        raise argparse.ArgumentTypeError(msg)
    return int(part), int(parts)


def address(text: str) -> str:
    """Host and port of a scheduler."""
    if text and not text.rpartition(":")[2].isdecimal():
        msg = f"{text!r} is not an address with a port, such as tcp://host:8786"
        raise argparse.ArgumentTypeError(msg)
    return text


def output_file(text: str) -> str:
    """Where to write; ``-`` means stdout."""
    return "/dev/stdout" if text == "-" else text


def run_file(text: str) -> str:
    """Where to write a run file, which is a data base and not a stream."""
    if text == "-":
        msg = "a run file cannot be written to stdout; name a file"
        raise argparse.ArgumentTypeError(msg)
    return text
