"""Folders of masks beside folders of other files, such as ``Labels`` beside ``Images``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from segiou.masks.finding import split_ending

#: Extensions of photos.
PHOTOS = (".jpg", ".jpeg")
#: Words in the names of masks and their folders.
OF_MASKS = re.compile("mask|label|seg|gt|anno|semantic|manual|truth", re.IGNORECASE)
#: Names of files and folders beside masks that are not masks of classes.
NOT_MASKS = re.compile("inst|colou?r|normal|coord|depth|strength|image|rgb|photo", re.IGNORECASE)
#: More folders with such names are not those of masks beside others.
_MOST_PLACES = 8


def duplicate_advice(paths: Sequence[str], every: Sequence[str] = ()) -> str:
    """Advice to keep one of several files with the same key, of every file that shares its key."""
    endings = sorted({split_ending(path)[1] for path in paths})
    if len(endings) > 1:
        kept = next((e for e in endings if e.lower() not in PHOTOS), endings[0])
        scores = "; for scores, pred_suffix='.npz' (--scores --pred-suffix .npz)"
        return (
            f"keep one, or select files by suffix: truth_suffix='{kept}' or pred_suffix='{kept}' "
            f"(--truth-suffix, --pred-suffix){scores if '.npz' in endings else ''}"
        )
    if places := places_of_masks(paths, every or paths):
        return f"pass the place of the masks: {' or '.join(map(repr, places))}"
    return "rename one, or use the same subfolders in both places"


def places_of_masks(paths: Sequence[str], every: Sequence[str]) -> list[str]:
    """The folders of masks beside others, as patterns if there are several; likely ones only."""
    folders, others = ([path.split("/")[:-1] for path in some] for some in (paths, every))
    different = set().union(*folders) - set(folders[0]).intersection(*folders)
    patterns = []
    for part in sorted(different):
        if not OF_MASKS.search(part) or NOT_MASKS.search(part):
            continue
        above = [parts[: parts.index(part)] for parts in others if part in parts]
        if len({len(parts) for parts in above}) == 1:
            levels = [{*level} for level in zip(*above, strict=True)]
            wild = [names.pop() if len(names) == 1 else "*" for names in levels]
            patterns.append("/".join([*wild, part]))
            # Below a wildcard, names without a wildcard do not belong to the key.
            is_open = ["*" in wild[:i] or name == "*" for i, name in enumerate(wild)]
            several = ["*" if o else name for o, name in zip(is_open, wild, strict=True)]
            patterns += ["/".join([*several, part])] * (several != wild)
            # Fixed names below, such as a size or a split, may be part of the place as well.
            inner = [parts[parts.index(part) + 1 :] for parts in others if part in parts]
            same = takewhile(lambda level: len({*level}) == 1, zip(*inner, strict=False))
            below = [level[0] for level in same]
            patterns += ["/".join([*wild, part, *below])] * bool(below)
    return patterns if len(patterns) <= _MOST_PLACES else []
