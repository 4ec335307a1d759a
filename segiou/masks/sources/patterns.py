"""Folders and files that match a pattern, such as ``Val/*/masks_png``."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from segiou.masks.finding import check_found, find_masks, masks_among
from segiou.masks.formats.nifti_pairs import as_header, is_pair_header
from segiou.masks.sources.folders import LocalFolder


@dataclass(frozen=True)
class PatternFolder(LocalFolder):
    """The folders and mask files that match a pattern."""

    def find(self) -> dict[str, str]:
        """Mask files by the parts of their path that the pattern leaves open."""
        files: dict[str, str] = {}
        places = {str(as_header(Path(match))): kept for match, kept in matches(self.root).items()}
        names = [Path(match).name for match in places]
        masks = {*masks_among(names)} or {name for name in names if is_pair_header(name)}
        for match, kept in places.items():
            if Path(match).is_dir():
                inner = find_masks(match)
            elif Path(match).name in masks:
                kept, inner = [*kept, ""][:-1], {"": match}
            else:
                continue
            name = "/".join(kept)
            files |= {f"{name}/{path}".strip("/"): full for path, full in inner.items()}
        check_found(files, self.root)
        check_links(files.values())
        return files


def check_links(paths: Iterable[str]) -> None:
    """ValueError for paths that lead to the same place through links to folders."""
    places: dict[str, str] = {}
    known: dict[tuple[str, str], str] = {}
    for folder, name in map(os.path.split, paths):
        if folder not in places:
            places[folder] = os.path.realpath(folder)
        if (other := known.setdefault((places[folder], name), folder)) != folder:
            msg = f"{folder}: leads to the same folder as {other}; remove or do not match one"
            raise ValueError(msg)


def matches(pattern: str) -> dict[str, list[str]]:
    """The paths that match a pattern, and the parts of each that the pattern leaves open."""
    parts = Path(pattern).parts
    open_parts: dict[str, list[str]] = {}
    # Names of folders that exist are no patterns, such as "[old] masks".
    is_fixed = [not is_pattern(p) or Path(*parts[: i + 1]).exists() for i, p in enumerate(parts)]
    head = is_fixed.index(False) if False in is_fixed else len(parts)
    is_open = [i >= head and is_pattern(part) for i, part in enumerate(parts)]
    for path in sorted({*_matching(str(Path(*parts[:head])), parts[head:])}):
        names = Path(path).parts
        if pattern.endswith("/") and not Path(path).is_dir():
            continue
        # Fixed names are omitted, because they are equal everywhere; below `**`, none is fixed.
        same = len(names) == len(parts) and "**" not in parts
        kept = (p for p, o in zip(names, is_open, strict=False) if o) if same else names[head:]
        open_parts[path] = [*kept]
    return open_parts


def _matching(path: str, parts: Sequence[str], above: tuple[str, ...] = ()) -> Iterator[str]:
    """Paths that match the parts of a pattern below a path.

    ``above`` has the real places of the folders passed. A link to a folder that contains it is not
    followed, because a file would have many paths.
    """
    passed = above
    if Path(path).is_dir():
        place = os.path.realpath(path).rstrip(os.sep) + os.sep
        if any(other.startswith(place) for other in above):
            return
        passed = (*above, place)
    if not parts:
        yield path
        return
    first, rest = parts[0], parts[1:]
    if not is_pattern(first):
        if os.path.lexists(inner := str(Path(path) / first)):
            yield from _matching(inner, rest, () if first == ".." else passed)
    elif first == "**":
        yield from _matching(path, rest, above)
        for inner in _entries(path, "*"):
            if Path(inner).is_dir():
                yield from _matching(inner, parts, passed)
    else:
        for inner in _entries(path, first):
            yield from _matching(inner, rest, passed)


def _entries(folder: str, pattern: str) -> list[str]:
    """Entries of a folder that match a part of a pattern, without hidden ones; none of a file."""
    try:
        names = [entry.name for entry in Path(folder).iterdir()]
    except OSError:  # a file, or not readable
        return []
    names = [name for name in names if pattern[0] == "." or name[0] != "."]
    return [str(Path(folder) / name) for name in fnmatch.filter(names, pattern)]


def is_pattern(name: str) -> bool:
    """Whether a name has signs of a pattern."""
    return any(sign in name for sign in "*?[")
