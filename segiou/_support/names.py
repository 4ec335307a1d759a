"""Names of files, images and classes, compared in one form."""

from __future__ import annotations

import re
import unicodedata


def composed(name: str) -> str:
    """The name in Unicode's composed form; macOS writes ``ü`` as two characters.

    >>> composed("u\N{COMBINING DIAERESIS}") == "\N{LATIN SMALL LETTER U WITH DIAERESIS}"
    True
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def compiled(pattern: str, refusal: str) -> re.Pattern[str]:
    """A regular expression; ValueError, which begins with the refusal, if it is none.

    >>> compiled("(a", "'(a' is not a regular expression")
    Traceback (most recent call last):
        ...
    ValueError: '(a' is not a regular expression: missing ), unterminated subpattern at position 0
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        msg = f"{refusal}: {error}"
        raise ValueError(msg) from None
