"""Numbers as the pages write them."""

from __future__ import annotations

import math

from segiou.imbalance.wording import p_text
from segiou.report.formats import number, percent

__all__ = ["count", "number", "p_text", "percent", "plural", "position", "signed"]


def count(value: int) -> str:
    """Write an integer in groups of three, kept together on a line.

    Examples
    --------
    >>> count(1234567).replace("\N{NARROW NO-BREAK SPACE}", "_")
    '1_234_567'
    """
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def signed(value: float, digits: int = 4) -> str:
    """Write a difference with its sign; a dash where undefined.

    Examples
    --------
    >>> signed(0.25), signed(-0.25), signed(0.0), signed(float("nan"))
    ('+0.2500', '−0.2500', '0.0000', '–')
    """
    if math.isnan(value):
        return "–"
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0:
        return text
    return f"{'+' if value > 0 else '−'}{text}"


def position(value: float) -> str:
    """Write a ratio as a place along an axis, in per cent for SVG.

    Examples
    --------
    >>> position(0.4679)
    '46.79%'
    """
    return f"{100 * min(max(value, 0.0), 1.0):.2f}%"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Put a number before a noun.

    Examples
    --------
    >>> plural(1, "class", "classes"), plural(3, "image")
    ('1 class', '3 images')
    """
    return f"{count(number)} {one if number == 1 else many or one + 's'}"
