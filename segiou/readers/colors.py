"""Colours → label values, exactly; a colour that means nothing is named, not guessed at."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.labels import LabelSet

__all__ = ["count_colors", "labels_of_colors"]

_UNKNOWN = np.uint16(0xFFFF)


def labels_of_colors(rgb: NDArray[np.uint8], labels: LabelSet) -> NDArray[np.integer[Any]]:
    """Give each pixel the first value of the class whose colour it has.

    Parameters
    ----------
    rgb : ndarray of uint8, shape (H, W, 3)
    labels : LabelSet
        With colours.

    Raises
    ------
    ValueError
        If a colour is no class's and not ignored; all are listed with counts.
    """
    table, values = _color_table(labels)
    packed = pack(rgb)
    codes = table[packed]
    if (codes == _UNKNOWN).any():
        raise ValueError(_unknown_text(rgb[codes == _UNKNOWN], labels))
    found: NDArray[np.integer[Any]] = values[codes]
    return found


def pack(rgb: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """One number a colour: 0xRRGGBB."""
    wide = rgb.astype(np.uint32)
    return np.asarray((wide[..., 0] << 16) | (wide[..., 1] << 8) | wide[..., 2], dtype=np.uint32)


@lru_cache(maxsize=4)
def _color_table(labels: LabelSet) -> tuple[NDArray[np.uint16], NDArray[Any]]:
    table = np.full(1 << 24, _UNKNOWN, dtype=np.uint16)
    values = [c.values[0] for c in labels.classes]
    for code, entry in enumerate(labels.classes):
        for red, green, blue in entry.colors:
            table[red << 16 | green << 8 | blue] = code
    if labels.ignore_colors:
        for red, green, blue in labels.ignore_colors:
            table[red << 16 | green << 8 | blue] = len(values)
        values.append(labels.ignore[0])
    fits = min(values) >= 0 and max(values) < 256
    return table, np.array(values, dtype=np.uint8 if fits else np.int64)


def count_colors(rgb: NDArray[np.uint8]) -> dict[str, int]:
    """Pixels of each colour, most frequent first, as ``"#rrggbb"``."""
    colors, counts = np.unique(pack(rgb).ravel(), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {f"#{int(colors[i]):06x}": int(counts[i]) for i in order}


def _unknown_text(unknown: NDArray[np.uint8], labels: LabelSet) -> str:
    found = count_colors(unknown)
    shown = ", ".join(f"{color} ({n} pixels)" for color, n in list(found.items())[:8])
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    hint = (
        "many near colours mean that the mask was resized with interpolation or saved with loss"
        if len(found) > 64
        else "add them to a class or to ignore_colors"
    )
    return f"has colours that label set {labels.name!r} does not declare: {shown}{more}; {hint}"
