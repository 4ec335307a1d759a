"""Names of files, images and classes, compared in one form."""

from __future__ import annotations

import unicodedata


def composed(name: str) -> str:
    """The name in Unicode's composed form; macOS writes ``ü`` as two characters.

    >>> composed("u\N{COMBINING DIAERESIS}") == "\N{LATIN SMALL LETTER U WITH DIAERESIS}"
    True
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)
