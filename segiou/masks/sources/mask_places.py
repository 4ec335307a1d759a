"""Folders of masks beside folders of other files, such as ``Labels`` beside ``Images``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from segiou.masks.finding import split_ending

#: Extensions of photos.
PHOTOS = (".jpg", ".jpeg")
#: Words in the names of masks and their folders.
OF_MASKS = re.compile("mask|label|seg|gt|anno|semantic|manual|truth", re.IGNORECASE)
#: Names of files and folders beside masks that are not masks of classes.
NOT_MASKS = re.compile("inst|colou?r|normal|coord|depth|strength|image|rgb|photo", re.IGNORECASE)


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
    if place := place_of_masks(paths, every or paths):
        return f"pass the place of the masks: {place!r}"
    return "rename one, or use the same subfolders in both places"


def place_of_masks(paths: Sequence[str], every: Sequence[str]) -> str:
    """The folder of masks beside others, as a pattern if there are several; empty without one."""
    folders, others = ([path.split("/")[:-1] for path in some] for some in (paths, every))
    different = set().union(*folders) - set(folders[0]).intersection(*folders)
    likely = [part for part in different if OF_MASKS.search(part) and not NOT_MASKS.search(part)]
    if len(likely) != 1:
        return ""
    above = [parts[: parts.index(likely[0])] for parts in others if likely[0] in parts]
    if len({len(parts) for parts in above}) > 1:
        return ""
    levels = [{*level} for level in zip(*above, strict=True)]
    return "/".join([*(one.pop() if len(one) == 1 else "*" for one in levels), likely[0]])
