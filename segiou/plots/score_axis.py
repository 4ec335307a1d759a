"""Axes of scores: titles with units, ticks, limits, and marks of values that are not finite."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from segiou._support.numbers import with_unit
from segiou._support.text import nouns
from segiou.plots.style import MUTED, format_percent, label_x, paper, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Characters of a title on an axis.
_TITLE = 36
_PER_IMAGE = " per image"


class ScoreAxis(NamedTuple):
    """The horizontal axis of a score.

    Attributes
    ----------
    title : str
        Name of the score.
    unit : str
        Its unit; empty for ratios, whose ticks are in per cent.
    better : str or None
        Which values are better, ``"higher"`` or ``"lower"``.
    """

    title: str
    unit: str = ""
    better: str | None = "higher"

    @property
    def worst(self) -> str:
        """Which values are the worst, in a word."""
        return "highest" if self.better == "lower" else "lowest"

    def worst_first(self, value: float) -> float:
        """A key that sorts the worst value first."""
        return -value if self.better == "lower" else value

    def per_image(self, pixel_unit: str, title: str = "") -> ScoreAxis:
        """The axis of the values of images, or cases of voxels, which may have another title."""
        name = short_name(title or self.title, _TITLE - len(_PER_IMAGE))
        return self._replace(title=f"{name} per {nouns(pixel_unit)[1]}")

    def show(self, axes: Axes, values: Any, note: str = "", *, whole: bool = False) -> None:
        """Show values from 0 to the largest, and ratios to 1 unless half of the axis were empty.

        ``whole`` shows all ratios to 1.
        """
        low, high = _ends(values)
        margin = 0.05 * (high - low) or 1.0
        if self.unit:
            axes.set_xlim(low - margin if low < 0 else 0, high + margin)
        else:
            is_small = 0 < high <= 0.5 and not whole
            axes.set_xlim(low, high + margin if is_small else max(high, 1))
        self.format(axes, note)

    def format(self, axes: Axes, note: str = "") -> None:
        """Format the ticks, and label the axis with the title, its unit and a note."""
        if not self.unit:
            format_percent(axes.xaxis)
        title = with_unit(short_name(self.title, _TITLE), self.unit)
        label_x(axes, title, note)

    def format_change(self, axes: Axes, what: str, note: str = "") -> None:
        """Format the ticks of differences, and label the axis: points for ratios."""
        if not self.unit:
            format_percent(axes.xaxis, "")
        title = short_name(f"{what} of {self.title}", _TITLE)
        label_x(axes, with_unit(title, self.unit or "points"), note)

    def reach(self, changes: Iterable[float]) -> tuple[float, float]:
        """Limits of an axis that contains the finite differences and 0."""
        low, high = _ends(list(changes))
        # Rounding errors of equal ratios are not spread over the axis.
        least = 0.0 if self.unit else 1e-3
        if max(-low, high) <= least:
            return -(least or 1.0), least or 1.0
        margin = 0.06 * (high - low)
        return low - margin, high + margin

    def directions(self, a: str, b: str) -> str:
        """Which side of 0 is better for which model, if differences are b minus a."""
        left, right = (b, a) if self.better == "lower" else (a, b)
        return f"← {left} better    {right} better →"


def _ends(values: Any) -> tuple[float, float]:
    """The least and largest finite value, and 0."""
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    return float(known.min(initial=0)), float(known.max(initial=0))


def mark_special(axes: Axes, places: Iterable[float], values: Iterable[float]) -> None:
    """Write "n/a" for undefined and "∞" for infinite values, which have no bar."""
    for place, value in zip(places, values, strict=True):
        if not math.isfinite(value):
            word = "n/a" if math.isnan(value) else "∞" if value > 0 else "−∞"
            size = 5.5 if word == "n/a" else 7
            axes.text(0, place, f" {word}", va="center", fontsize=size, color=MUTED)


def mark_interval(
    axes: Axes, place: int, ends: tuple[float, float, float], color: Any, mark: str = "o"
) -> None:
    """Mark a value with its interval; hollow and grey without a colour.

    Infinite values and ends are arrows at the limits of the axis, which are set before.
    """
    value, low, high = ends
    left, right = axes.get_xlim()
    line, inside = color or MUTED, color or paper(axes)
    if low < high:
        axes.hlines(place, max(low, left), min(high, right), color=line, linewidth=1.2)
    if math.isfinite(value):
        size = 3.8 if mark == "o" else 4.4
        dots: dict[str, Any] = {"color": inside, "markeredgecolor": line, "markersize": size}
        axes.plot([value], [place], mark, **dots)
    if math.isnan(value):
        mark_special(axes, [place], [value])
    if -math.inf in ends:
        axes.plot([left], [place], "<", color=line, markersize=3.5, clip_on=False)
    if math.inf in ends:
        axes.plot([right], [place], ">", color=line, markersize=3.5, clip_on=False)
    if math.isinf(value):
        word, side, at = ("∞  ", "right", right) if value > 0 else ("  −∞", "left", left)
        axes.text(at, place, word, ha=side, va="center", fontsize=7, color=line)
