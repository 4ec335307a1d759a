"""Pairs whose two sides are one file, which would be scored against itself."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

from segiou._support.text import listed, plural
from segiou.masks.sources.adjusted import AdjustedSource, is_one_file, place_of
from segiou.masks.sources.folders import LocalFolder, Source

#: URLs of local files.
_LOCAL = ("file://", "local://")


def check_different(sides: Sequence[Source], rows: Iterable[Sequence[str | None]]) -> None:
    """Raise a ValueError if a row has one file on two sides; links and archives are followed.

    Parameters
    ----------
    sides : sequence of Source
        Where the paths come from: truth and predictions, or those of several raters.
    rows : iterable of sequences of (str or None)
        The paths of a pair, or of a case, on each side; None if a side has none.
    """
    shared: Counter[tuple[int, int]] = Counter()
    example: dict[tuple[int, int], str] = {}
    number = 0
    for number, row in enumerate(rows, 1):  # noqa: B007 - the number of rows
        files = [_identity(path) if path else None for path in row]
        if len({*files}) == len(row):
            continue
        for pair in combinations(range(len(sides)), 2):
            a, b = (files[i] for i in pair)
            if a and a == b and _is_one_array(*(sides[i] for i in pair)):
                shared[pair] += 1
                example.setdefault(pair, str(row[pair[0]]))
    if shared:
        pair, count = shared.most_common(1)[0]
        first, second = (sides[i] for i in pair)
        raise ValueError(_problem(first, second, count, number, example[pair]))


def _identity(path: str) -> tuple[int, int, str] | str:
    """Device and number of a file, and the name of a member in it; a URL as it is."""
    for scheme in _LOCAL:
        path = path.removeprefix(scheme)
    if "://" in path:
        return path
    file = path
    while True:
        try:
            status = os.stat(file)  # noqa: PTH116 - called twice for each image
        except (OSError, ValueError):
            if (outer := os.path.dirname(file)) in ("", file):  # noqa: PTH120
                return path
            file = outer
        else:
            return status.st_dev, status.st_ino, path[len(file) :]


def _is_one_array(first: Source, second: Source) -> bool:
    """Whether equal files have equal masks: not if two arrays of a file are named."""
    keys = [side.key if isinstance(side, AdjustedSource) else "" for side in (first, second)]
    return not all(keys) or keys[0] == keys[1]


def _problem(first: Source, second: Source, count: int, number: int, example: str) -> str:
    shown = "the only pair" if number == 1 else f"{count} of {plural(number, 'pair')}"
    contents = "; ".join(map(_contents, (first, second)))
    return (
        f"{first.root} and {second.root} contain the same files, so {shown} would be one file "
        f"compared with itself, such as {example}; pass two different places [{contents}]"
    )


def _contents(source: Source) -> str:
    """The masks of a place by folder, and other files at its top."""
    place = place_of(source)
    if is_one_file(source):
        return f"{source.root} is a file"
    names = source.find()
    folders = Counter(name.rpartition("/")[0] for name in names)
    texts = [f"{plural(n, 'mask')} in {name or 'it'}" for name, n in sorted(folders.items())]
    if isinstance(place, LocalFolder) and Path(place.root).is_dir():
        files = sorted(path.name for path in Path(place.root).iterdir() if path.is_file())
        others = [name for name in files if name not in names and not name.startswith(".")]
        texts[3:] = [f"no masks: {listed(others, 5)}"] if others else []
    return f"{source.root} has {listed(texts, 4)}"
