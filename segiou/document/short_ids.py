"""Long ids of images, cut in what all of them share, so that their tables fit a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len

#: Wider parts that differ are also cut, to the least of these steps.
_LONG, _STEP = 24, 8
#: Letters and digits at the end of a text, which may be a part of a word.
_PART_OF_WORD = re.compile(r"[^\W_]+$")


def least_width(ids: Iterable[str]) -> int:
    """The width of ids without what all of them share; less if that is long, while they differ."""
    several = [*ids]
    needed = max((cell_len(middle) + 2 for _, middle, _ in _divided(several)), default=0)
    widths = (width for width in range(_LONG, needed, _STEP) if shortened(several, width))
    return next(widths, needed)


def shortened(ids: Iterable[str], width: int) -> dict[str, str]:
    """Each id cut to a width; empty if some of them would be equal.

    >>> shortened(["site/drive_0001_left_rgb", "site/drive_0002_left_rgb"], 12)
    {'site/drive_0001_left_rgb': '…0001_le…rgb', 'site/drive_0002_left_rgb': '…0002_le…rgb'}
    """
    short = {}
    for parts in _divided(ids):
        cut = [*parts]
        for i in (0, 2, 1):
            cut[i] = _without_middle(cut[i], width - cell_len("".join(cut)) + len(cut[i]))
        short["".join(parts)] = "".join(cut)
    return short if len({*short.values()}) == len(short) else {}


def _divided(ids: Iterable[str]) -> list[tuple[str, str, str]]:
    """The beginning that all ids share in whole words, the rest, and the ending that all share."""
    known = [*dict.fromkeys(filter(None, ids))]
    start = _shared(known)
    end = _shared([name[start:][::-1] for name in known])
    cuts = [(name, len(name) - end) for name in known]
    return [(name[:start], name[start:stop], name[stop:]) for name, stop in cuts]


def _shared(texts: Sequence[str]) -> int:
    """The number of characters that all texts begin with, in whole words."""
    first, last = min(texts, default=""), max(texts, default="")
    pairs = enumerate(zip(first, last, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(first), len(last)))
    return len(_PART_OF_WORD.sub("", first[:same]))


def _without_middle(text: str, size: int) -> str:
    """A text of at most a size, at least one character."""
    if len(text) <= max(size, 1):
        return text
    before = max(size - 1, 0) // 2
    return f"{text[:before]}…{text[len(text) - max(size - 1 - before, 0) :]}"
