"""Colour masks → labels: each pixel gets the value of the class with exactly its colour."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import plural
from segiou.labels.label_set import LabelSet
from segiou.masks.read import SOFT_EDGES, MaskError, RawMask

_UNKNOWN = np.uint16(0xFFFF)
#: Pixels that are mapped at once.
_PIECE_PIXELS = 1 << 18


def labels_of_colors(
    raw: RawMask, labels: LabelSet | None, path: str | Path
) -> NDArray[np.integer[Any]]:
    """Map each pixel to the first value of the class with its colour."""
    colors: NDArray[Any] = raw.values
    if labels is None or not labels.has_colors:
        name = "no label set" if labels is None else f"nothing in label set {labels.name!r}"
        problem = f"is a colour image (mode {raw.mode}), but {name} maps its colours to classes"
        if not (packed(colors) % 0x10101).any():
            problem += f"; its channels are equal, so {_of_grey(labels)}"
        else:
            problem += f"; pass a label set with colors{_if_coco(labels)}"
        raise MaskError(path, problem)
    table, values = _color_table(labels)
    mapped: NDArray[np.integer[Any]] = np.empty(colors.shape[:2], values.dtype)
    # In pieces, because codes need four times the memory of labels.
    rows = max(1, _PIECE_PIXELS // max(1, colors.shape[1]))
    for top in range(0, colors.shape[0], rows):
        codes = table[packed(colors[top : top + rows])]
        if (codes == _UNKNOWN).any():
            unknown = colors[table[packed(colors)] == _UNKNOWN]
            raise MaskError(path, _unknown_text(unknown, labels))
        values.take(codes, out=mapped[top : top + rows])
    return mapped


def packed(colors: NDArray[Any]) -> NDArray[np.uint32]:
    """Colours (…, 3) as integers red + 256 green + 65536 blue, the ids of COCO's panoptic files."""
    if colors.dtype == np.uint32:
        return colors
    wide = colors.astype(np.uint32)
    return np.asarray(wide[..., 0] | wide[..., 1] << 8 | wide[..., 2] << 16)


@lru_cache(maxsize=4)
def _color_table(labels: LabelSet) -> tuple[NDArray[np.uint16], NDArray[Any]]:
    """Codes of all 2^24 colours, and the value of each code."""
    table = np.full(1 << 24, _UNKNOWN, dtype=np.uint16)
    entries = [(entry.values[0], entry.colors) for entry in labels.classes]
    if labels.ignore_colors:
        entries.append((labels.ignore[0], labels.ignore_colors))
    for code, (_, colors) in enumerate(entries):
        for red, green, blue in colors:
            table[red | green << 8 | blue << 16] = code
    values = [value for value, _ in entries]
    kinds = [np.iinfo(dtype) for dtype in (np.uint8, np.int64, np.uint64)]
    fits = [k.dtype for k in kinds if k.min <= min(values) and max(values) <= k.max]
    return table, np.array(values, dtype=fits[0] if fits else object)


def count_colors(colors: NDArray[Any]) -> dict[str, int]:
    """Pixels of each colour, most frequent first, as ``"#rrggbb"``."""
    distinct, counts = np.unique(packed(colors).ravel(), return_counts=True)
    names = [int(color).to_bytes(3, "little").hex() for color in distinct]
    order = sorted(range(len(names)), key=lambda i: (-counts[i], names[i]))
    return {f"#{names[i]}": int(counts[i]) for i in order}


def _of_grey(labels: LabelSet | None) -> str:
    """The fix for greyscale saved with three channels."""
    fix = "save it as single-channel PNG"
    return f"{fix}; {SOFT_EDGES}" if labels is not None and labels.num_classes == 2 else fix


def _if_coco(labels: LabelSet | None) -> str:
    """A hint for COCO categories, whose PNG files of segments contain ids."""
    is_coco = labels is not None and labels.source == "COCO categories"
    hint = "; for the segment ids of COCO, pass objects='coco' (segiou score --objects coco)"
    return hint if is_coco else ""


def _unknown_text(unknown: NDArray[Any], labels: LabelSet) -> str:
    pixels = count_colors(unknown)
    shown = ", ".join(f"{color} ({plural(n, 'pixel')})" for color, n in list(pixels.items())[:8])
    more = f" and {len(pixels) - 8} more" if len(pixels) > 8 else ""
    values = labels.declared_values.union(labels.ignore)
    greys = {f"#{value:02x}{value:02x}{value:02x}" for value in values if 0 <= value < 256}
    if greys.issuperset(pixels):
        hint = "its channels are equal, so save it as single-channel PNG"
    elif labels.num_classes == 2 and all(color[1:] == 3 * color[1:3] for color in pixels):
        hint = SOFT_EDGES
    elif len(pixels) > 64:
        hint = (
            "many similar colours: probably resized with interpolation or saved with lossy "
            "compression"
        )
    else:
        hint = f"add them to a class or to ignore_colors{_if_coco(labels)}"
    return f"has colours not in label set {labels.name!r}: {shown}{more}; {hint}"
