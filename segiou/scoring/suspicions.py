"""Possible mistakes in a folder of masks, one sentence each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from segiou._support.text import listed, plural
from segiou.scoring.file_values import FileContent
from segiou.scoring.label_set_match import LabelSetMatch

_MANY_VALUES = 64
#: A file with more distinct values is suspicious.
_MANY = {"values": _MANY_VALUES, "colors": 4 * _MANY_VALUES, "names": math.inf}
#: Fewer consecutive values are probably classes.
_LEAST_IDS = 8
#: Ids of objects end at one of at least this many values, by file; few classes also end at two.
_LEAST_ENDS = 3
OF_IDS = "--objects labels"
MAY_BE_IDS = (
    "each file has values from 0 without gaps, up to a different one; if they are ids of objects, "
    f"pass {OF_IDS}"
)


def suspicions(
    files: Sequence[FileContent], values: Counter[int], fits: Sequence[LabelSetMatch]
) -> list[str]:
    """Possible mistakes in the files: in their values, then in their formats."""
    return [*_value_suspicions(files, values, fits), *_format_suspicions(files)]


def _value_suspicions(
    files: Sequence[FileContent], values: Counter[int], fits: Sequence[LabelSetMatch]
) -> Iterator[str]:
    if set(values) == {0, 255}:
        yield "only 0 and 255 occur (binary mask?); --labels binary reads 255 as 1"
    if lossy := [file for file in files if file.mask.lossy]:
        yield (
            f"{len(lossy)} of {len(files)} files are {lossy[0].mask.kind}, a lossy format (e.g. "
            f"{lossy[0].path}), which is scored only with --allow-lossy; save masks as PNG"
        )
    if len(_ends(files)) >= _LEAST_ENDS and not are_ids(files):
        yield MAY_BE_IDS
    if many := [file for file in files if len(file.pixels) > _MANY[file.what]]:
        worst = max(many, key=lambda file: len(file.pixels))
        yield (
            f"{len(many)} of {len(files)} files have too many distinct values for class labels "
            f"({worst.path}: {len(worst.pixels)}); likely interpolated when resized, saved "
            "with lossy compression, or instance ids"
        )
    if between := _interpolated_values(values, fits):
        yield f"{between}; edges may have been interpolated"


def _format_suspicions(files: Sequence[FileContent]) -> Iterator[str]:
    modes, sizes = frequencies(f.mask.mode for f in files), {f.shape for f in files}
    if len(modes) > 1:
        yield "files have different modes: " + ", ".join(modes)
    # Scans of different patients differ in size.
    if len(sizes) > 1 and not any(f.mask.volume for f in files):
        yield f"files have {len(sizes)} different sizes"
    if grey := sum(
        f.what == "colors" and all(c[1:] == 3 * c[1:3] for c in f.pixels) for f in files
    ):
        hold = "file holds" if grey == 1 else "files hold"
        yield f"{grey} {hold} greyscale as RGB; save a single channel"
    flat = [f.path for f in files if f.what != "names" and len(f.pixels) == 1]
    if flat and len(files) > 1:
        have = plural(len(flat), "file has", "files have")
        yield f"{have} a single value: {listed(flat, 3)}"


def _ends(files: Sequence[FileContent]) -> set[int]:
    """The highest value of each image if all have values without gaps, like object ids."""
    for file in files:
        if file.what != "values" or file.mask.volume:
            return set()
        if sorted(file.pixels) != [*range(len(file.pixels))]:
            return set()
    return {len(file.pixels) - 1 for file in files}


def are_ids(files: Sequence[FileContent]) -> bool:
    """Whether all files have consecutive values of more than 8 bits, as ids of objects."""
    is_wide = all(file.mask.values.dtype.itemsize > 1 for file in files)
    return is_wide and max(_ends(files), default=0) >= _LEAST_IDS


def _interpolated_values(values: Counter[int], fits: Sequence[LabelSetMatch]) -> str:
    """Rare values scattered between frequent ones, as interpolation produces at edges."""
    known = any(not fit.undeclared for fit in fits)
    if known or not 5 <= len(values) <= _MANY_VALUES or max(values) <= 2 * len(values):
        return ""
    total = sum(values.values())
    rare = sorted(v for v, n in values.items() if n < 0.02 * total)
    if 2 * len(rare) < len(values):
        return ""
    shown = ", ".join(map(str, rare[:6]))
    return f"{len(rare)} of {len(values)} values are rare and scattered ({shown}, …)"


def frequencies(items: Iterable[str]) -> dict[str, int]:
    """Counts of the items, the most frequent first."""
    return dict(Counter(items).most_common())
