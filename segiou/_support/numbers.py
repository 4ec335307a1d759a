"""Numbers in text: of metadata, options and tables, with one rule."""

from __future__ import annotations

import re

# Importing typing would add a tenth to the time of --help.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Numbers in files and options. Python also reads 10_1, which is a name, and digits of any script.
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf(?:inity)?)", re.IGNORECASE
)


def number_in(text: Any) -> float:
    """The number that a text, or a cell that is a number, has; ValueError if it has none.

    >>> number_in(" 1.5 "), number_in("-inf"), number_in(3)
    (1.5, -inf, 3.0)
    >>> number_in("10_1")
    Traceback (most recent call last):
        ...
    ValueError: '10_1' is not a number
    """
    if isinstance(text, str) and not _NUMBER.fullmatch(text.strip()):
        msg = f"{text!r:.40} is not a number"
        raise ValueError(msg)
    return float(text)


def integer_in(text: Any) -> int:
    """The integer that a text, or a cell that is a number, has; ValueError if it has none.

    >>> integer_in("-12"), integer_in(3)
    (-12, 3)
    """
    if isinstance(text, str) and not is_digits(text.strip().lstrip("+-")):
        msg = f"{text!r:.40} is not an integer"
        raise ValueError(msg)
    return int(text)


def is_digits(text: str) -> bool:
    """Whether a text is an integer without a sign.

    >>> is_digits("42"), is_digits("4_2"), is_digits("")
    (True, False, False)
    """
    return text.isascii() and text.isdecimal()
