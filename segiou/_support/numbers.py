"""Numbers in text: read by one rule, and written for people, with their units."""

from __future__ import annotations

import math
import re

# Importing typing would add a tenth to the time of --help.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Numbers in files and options. Python also reads 10_1, which is a name, and digits of any script.
_NUMBER = r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf(?:inity)?)"


def number_in(text: Any) -> float:
    """The number that a text, or a cell that is a number, has; ValueError if it has none.

    >>> number_in(" 1.5 "), number_in("-inf"), number_in(3)
    (1.5, -inf, 3.0)
    >>> number_in("10_1")
    Traceback (most recent call last):
        ...
    ValueError: '10_1' is not a number
    """
    if isinstance(text, str) and not re.fullmatch(_NUMBER, text.strip(), re.IGNORECASE):
        msg = f"{text!r:.40} is not a number"
        raise ValueError(msg)
    return float(text)


def integer_in(text: Any) -> int:
    """The integer that a text, or a cell that is a number, has; ValueError if it has none.

    >>> integer_in("-12"), integer_in(3)
    (-12, 3)
    """
    if isinstance(text, str) and not is_digits(text.strip().lstrip("+-")):
        msg = f"{text!r:.40} is not an integer"
        raise ValueError(msg)
    return int(text)


def is_digits(text: str) -> bool:
    """Whether a text is an integer without a sign.

    >>> is_digits("42"), is_digits("4_2"), is_digits("")
    (True, False, False)
    """
    return text.isascii() and text.isdecimal()


class InPercent(float):
    """A ratio that was given in per cent."""


def fraction_in(text: str) -> float:
    """A ratio, or a difference of ratios, which may be in per cent; ValueError if it is neither.

    >>> fraction_in("0.007"), fraction_in("0.7%")
    (0.007, 0.007)
    """
    number = number_in(text.removesuffix("%"))
    if not text.endswith("%"):
        return number
    if not math.isfinite(number):
        return InPercent(number)
    from decimal import Decimal  # 0.7 / 100 is not 0.007

    return InPercent(Decimal(repr(number)).scaleb(-2))


def percent(value: float) -> str:
    """Write a ratio in per cent with two decimals; only 0 and 1 are shown as 0 and 100 %.

    >>> percent(0.46791), percent(0.999996), percent(0.00001), percent(1.0)
    ('46.79 %', '>99.99 %', '<0.01 %', '100.00 %')
    >>> percent(float("nan"))
    'undefined'
    """
    if 0.99995 <= value < 1:
        return ">99.99 %"
    return f"{points(value)} %" if value == value else points(value)


def short_percent(value: float) -> str:
    """Write a ratio that an option sets, such as a level, in per cent without needless digits.

    >>> short_percent(0.95), short_percent(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * value:g} %"


def interval_name(level: float) -> str:
    """What the limits at a level are called.

    >>> interval_name(0.95)
    '95 % interval'
    """
    return f"{short_percent(level)} interval"


def points(value: float) -> str:
    """Write a difference of ratios in percentage points with two decimals and a true minus.

    >>> points(0.0081), points(-0.25), points(-0.0), points(0.00001), points(float("nan"))
    ('0.81', '−25.00', '0.00', '<0.01', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    if 0 < abs(value) < 0.00005:
        return "<0.01" if value > 0 else ">−0.01"
    # Adding 0.0 removes the sign of -0.0.
    return f"{100 * value + 0.0:.2f}".replace("-", "−")


def signed_points(value: float) -> str:
    """Write a difference of ratios in percentage points with its sign and a true minus.

    >>> signed_points(0.0081), signed_points(-0.25), signed_points(0.00001)
    ('+0.81', '−25.00', '0.00')
    """
    if math.isnan(value):
        return "–"
    return f"{100 * value:+.2f}".replace("-", "−") if abs(value) >= 0.00005 else "0.00"


#: Units of scores that are plain numbers, such as a mean number of components; of coefficients of
#: agreement, such as kappa; and of integers.
NUMBER, COEFFICIENT, COUNT = "number", "coefficient", "count"


def unit_text(unit: str) -> str:
    """A unit beside a number; empty for ratios, plain numbers, coefficients and counts."""
    return "" if unit in (NUMBER, COEFFICIENT, COUNT) else unit


def _digits_of(unit: str, digits: int = 2) -> int:
    """Decimal places: of coefficients always four."""
    return 4 if unit == COEFFICIENT else digits


def with_unit(title: str, unit: str) -> str:
    """A title with the unit of its numbers, such as ``HD95, mm``; the title alone for ratios."""
    return ", ".join(filter(None, (title, unit_text(unit))))


def shown(value: float, unit: str = "", undefined: str = "–") -> str:
    """Write a score: a ratio in per cent, anything else in its unit.

    >>> shown(0.46791), shown(12.3456, "mm"), shown(float("inf"), "mm"), shown(float("nan"))
    ('46.79 %', '12.35 mm', '∞ mm', '–')
    >>> shown(2.5, NUMBER), shown(3, COUNT), shown(-0.001, "mm"), shown(0.8844, COEFFICIENT)
    ('2.50', '3', '0.00 mm', '0.8844')
    """
    if math.isnan(value):
        return undefined
    return f"{cell(value, unit)} {unit_text(unit)}".rstrip()


def shown_change(value: float, unit: str = "") -> str:
    """Write a difference of scores without its unit: in points, or in the unit of the scores.

    >>> shown_change(-0.07285), shown_change(1.526, "mm"), shown_change(float("nan"), "mm")
    ('−7.29', '+1.53', '–')
    >>> shown_change(-0.07285, COEFFICIENT), shown_change(0.00001, COEFFICIENT)
    ('−0.0728', '0.0000')
    """
    if not unit or math.isnan(value):
        return signed_points(value)
    digits = _digits_of(unit)
    return _number(value, "+" if abs(value) >= 0.5 * 10.0**-digits else "", digits)


def shown_range(low: float, high: float, unit: str = "") -> str:
    """Write the limits of a score, with the unit once.

    >>> shown_range(0.41, 0.499), shown_range(1.2, 3.4, "mm"), shown_range(float("nan"), 1.0)
    ('41.00 to 49.90 %', '1.20 to 3.40 mm', '–')
    """
    if math.isnan(low):
        return "–"
    first = _number(low, digits=_digits_of(unit)) if unit else points(low)
    return f"{first} to {shown(high, unit)}"


def change_range(low: float, high: float, unit: str = "") -> str:
    """Write the limits of a difference of scores, without the unit.

    >>> change_range(-0.0125, 0.03), change_range(0.5, 1.25, "mm")
    ('−1.25 to +3.00', '+0.50 to +1.25')
    """
    return f"{shown_change(low, unit)} to {shown_change(high, unit)}"


def change(value: float, unit: str = "") -> str:
    """Write a difference of scores with its unit.

    >>> change(-0.07285), change(1.526, "mm")
    ('−7.29 points', '+1.53 mm')
    """
    return f"{shown_change(value, unit)} {unit_text(unit or 'points')}".rstrip()


def _number(value: float, sign: str = "", digits: int = 2) -> str:
    return f"{value:{sign}z.{digits}f}".replace("-", "−").replace("inf", "∞")


def count(value: int) -> str:
    r"""Write an integer in groups of three, kept together on a line.

    >>> count(1234567).replace("\N{NARROW NO-BREAK SPACE}", "_")
    '1_234_567'
    """
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def p_text(value: float) -> str:
    """Write a p-value; one below the resolution of the permutations is not written as 0.

    >>> p_text(0.00001), p_text(0.0123), p_text(0.53)
    ('<0.0001', '0.0123', '0.53')
    """
    if math.isnan(value):
        return "–"
    if value < 0.00005:
        return "<0.0001"
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def p_equals(value: float) -> str:
    """Write a p-value in a sentence.

    >>> p_equals(0.00001), p_equals(0.0123)
    ('p < 0.0001', 'p = 0.0123')
    """
    return f"p = {p_text(value)}".replace("= <", "< ")


def roughly(share: float) -> str:
    """Write a share that was estimated by simulation, without spurious digits.

    >>> roughly(0.786), roughly(0.999), roughly(0.0)
    ('about 79 %', 'over 99 %', 'under 1 %')
    """
    if share < 0.01:
        return "under 1 %"
    return "over 99 %" if share > 0.99 else f"about {100 * share:.0f} %"


def grouped(number: int) -> str:
    """Write an integer in groups of three digits, from five digits on.

    >>> grouped(4210), grouped(30067200), grouped(-12345)
    ('4210', '30 067 200', '−12 345')
    """
    text = f"{number:,}" if abs(number) >= 10_000 else str(number)
    return text.replace(",", " ").replace("-", "−")


def short_count(value: float) -> str:
    """Write a count in at most four characters.

    >>> short_count(7), short_count(1234), short_count(98_765_432)
    ('7', '1.2k', '99M')
    """
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            scaled = value / limit
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return f"{value:.0f}"


def digits(number: float) -> str:
    """Write a number with all its digits, so that it can be read back.

    >>> digits(2.0), digits(0.1234567)
    ('2', '0.1234567')
    """
    return repr(float(number)).removesuffix(".0")


def number_of(value: Any) -> float:
    """A number as a float; NaN is one object, so that equal results compare equal.

    >>> number_of(float("nan")) is math.nan
    True
    """
    return math.nan if value != value else float(value)


def cell(value: float, unit: str = "", digits: int = 2) -> str:
    """Write a score in a table, whose heading has the unit.

    >>> cell(0.46791), cell(12.3456, "mm"), cell(0.6931, NUMBER, 3), cell(3, COUNT)
    ('46.79 %', '12.35', '0.693', '3')
    >>> cell(float("nan")), cell(float("inf"), "mm")
    ('–', '∞')
    """
    if math.isnan(value):
        return "–"
    if unit == COUNT:
        return count(int(value))
    return _number(value, digits=_digits_of(unit, digits)) if unit else percent(value)


def cell_range(limits: tuple[float, float] | None, unit: str = "", digits: int = 2) -> str:
    """Write the limits of a score in a table.

    >>> cell_range((0.41, 0.499)), cell_range((1.2, 3.4), "mm"), cell_range(None)
    ('41.00 to 49.90 %', '1.20 to 3.40', '–')
    """
    if limits is None or math.isnan(limits[0]):
        return "–"
    if not unit:
        return shown_range(*limits)
    return " to ".join(_number(end, digits=_digits_of(unit, digits)) for end in limits)


def tone_of(value: float) -> str:
    """Colour for a score."""
    if value != value:
        return ""
    return "red" if value < 1 / 3 else "yellow" if value < 2 / 3 else "green"
