"""A colour for every class, no two the same, so that a picture can be read back."""

from __future__ import annotations

import colorsys

from segiou.labels import LabelSet

__all__ = ["IGNORED_COLOR", "UNASSIGNED_COLOR", "Color", "class_colors", "hex_color"]

Color = tuple[int, int, int]

IGNORED_COLOR: Color = (214, 211, 203)
UNASSIGNED_COLOR: Color = (255, 0, 170)
_GOLDEN = 0.618033988749895


def class_colors(labels: LabelSet) -> tuple[Color, ...]:
    """Colours of the classes, then of ignored and of unassigned pixels, all different.

    A class keeps the first colour of its label set where no other has it; the
    others get hues a golden angle apart.

    Examples
    --------
    >>> colors = class_colors(LabelSet.from_names(["road", "car"]))
    >>> len(colors), len(set(colors))
    (4, 4)
    """
    used = {IGNORED_COLOR, UNASSIGNED_COLOR}
    colors = []
    for index, entry in enumerate(labels.classes):
        own = entry.colors[0] if entry.colors else None
        color = own if own is not None and own not in used else _invented(index, used)
        used.add(color)
        colors.append(color)
    return (*colors, IGNORED_COLOR, UNASSIGNED_COLOR)


def _invented(index: int, used: set[Color]) -> Color:
    step = index
    while True:
        hue = (0.58 + step * _GOLDEN) % 1.0
        # Three rings of lightness, so that neighbours in hue still differ.
        lightness = (0.48, 0.64, 0.34)[step % 3]
        red, green, blue = colorsys.hls_to_rgb(hue, lightness, 0.52)
        color = (round(255 * red), round(255 * green), round(255 * blue))
        if color not in used:
            return color
        step += 1


def hex_color(color: Color) -> str:
    """Write a colour as ``#rrggbb``."""
    return "#{:02x}{:02x}{:02x}".format(*color)
