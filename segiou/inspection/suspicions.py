"""What looks wrong about masks, before anybody scores them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from segiou.inspection.findings import FileLook, Fit

__all__ = ["suspicions", "tallied"]

_MANY_VALUES = 64


def suspicions(files: Sequence[FileLook], values: Counter[int], fits: Sequence[Fit]) -> list[str]:
    """Say what looks wrong about the files, one sentence each."""
    found = []
    if set(values) == {0, 255}:
        found.append("values are 0 and 255 only: a binary mask; --labels binary reads 255 as 1")
    lossy = [file for file in files if file.lossy]
    if lossy:
        found.append(
            f"{len(lossy)} of {len(files)} files are {lossy[0].kind}, which does not keep values "
            f"exactly, {lossy[0].path} for one"
        )
    many = [f for f in files if len(f.values) > _MANY_VALUES or len(f.colors) > 4 * _MANY_VALUES]
    if many:
        worst = max(many, key=lambda f: len(f.values) + len(f.colors))
        kinds = len(worst.values) + len(worst.colors)
        found.append(
            f"{len(many)} of {len(files)} files have very many values ({worst.path}: {kinds}): "
            "resized with interpolation, saved with loss, or instance ids instead of classes"
        )
    if between := _in_between(values, fits):
        found.append(f"{between}: perhaps edges were interpolated")
    if len({f.mode for f in files}) > 1:
        found.append("files have different modes: " + ", ".join(tallied(f.mode for f in files)))
    if len({f.shape for f in files}) > 1:
        found.append(f"files have {len({f.shape for f in files})} different sizes")
    if any(f.grey_as_color for f in files):
        count = sum(f.grey_as_color for f in files)
        hold = "file holds" if count == 1 else "files hold"
        found.append(f"{count} {hold} grey in three equal channels; save one of them")
    flat = sum(len(f.values) + len(f.colors) == 1 for f in files)
    if flat and len(files) > 1:
        found.append(f"{flat} of {len(files)} files have one value throughout")
    return found


def _in_between(values: Counter[int], fits: Sequence[Fit]) -> str:
    """Rare values scattered between frequent ones, as interpolated edges leave them."""
    known = any(not fit.undeclared for fit in fits)
    if known or not 5 <= len(values) <= _MANY_VALUES or max(values) <= 2 * len(values):
        return ""
    total = sum(values.values())
    rare = sorted(v for v, n in values.items() if n < 0.02 * total)
    if 2 * len(rare) < len(values):
        return ""
    shown = ", ".join(map(str, rare[:6]))
    return f"{len(rare)} of {len(values)} values are rare and scattered ({shown}, …)"


def tallied(items: Any) -> dict[str, int]:
    """How often each occurs, the most frequent first."""
    return dict(Counter(items).most_common())
