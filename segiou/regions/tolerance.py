"""A distance in pixels, in units of the spacing, in millimetres or relative to the image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

from segiou._support.arguments import check_choice, check_number, read_several
from segiou._support.numbers import digits, number_in

__all__ = ["Tolerance"]

Unit = Literal["absolute", "diagonal", "mm"]
#: Units by their suffix.
_UNITS: dict[str, Unit] = {"%": "diagonal", "mm": "mm"}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A distance, absolute, in millimetres or as a fraction of the image diagonal.

    Attributes
    ----------
    value : float
        Pixels (units of the spacing, for distances between surfaces), or the
        fraction: 0.02 is 2 % of the diagonal.
    unit : {"absolute", "diagonal", "mm"}
        Unit of the value; ``"mm"`` requires a spacing in mm.

    Examples
    --------
    >>> Tolerance.of(3), Tolerance.of("2%")
    (Tolerance(value=3.0, unit='absolute'), Tolerance(value=0.02, unit='diagonal'))
    >>> Tolerance.of("2%").width((360, 480)), str(Tolerance.of("2%"))
    (12, '2%')
    """

    value: float
    unit: Unit = "absolute"

    def __post_init__(self) -> None:
        check_choice("unit", self.unit, get_args(Unit))
        if not (math.isfinite(check_number("tolerance", self.value)) and self.value >= 0):
            msg = f"a tolerance must be finite and at least 0, got {self}"
            raise ValueError(msg)

    @classmethod
    def of(cls, value: Tolerance | float | str) -> Tolerance:
        """Read a number (absolute) or text: ``"3"``, ``"2%"`` of the diagonal, ``"2mm"``.

        Parameters
        ----------
        value : Tolerance or float or str
            A tolerance, number or text.

        Raises
        ------
        TypeError
            If the value has a different type.
        ValueError
            If the text is not a valid tolerance.
        """
        if isinstance(value, Tolerance):
            return value
        if isinstance(value, bool) or not isinstance(value, (str, Real)):
            msg = f"a tolerance must be a number or a string such as '2%', got {value!r}"
            raise TypeError(msg)
        if not isinstance(value, str):
            return cls(check_number("a tolerance", value))
        text = value.strip()
        unit: Unit = next((u for end, u in _UNITS.items() if text.endswith(end)), "absolute")
        try:
            parsed = number_in(text.removesuffix("%").removesuffix("mm"))
        except ValueError:
            msg = (
                f"invalid tolerance {value!r}; use '3' (pixels), '2%' (of the image diagonal) "
                "or '2mm'"
            )
            raise ValueError(msg) from None
        return cls(parsed / 100 if unit == "diagonal" else parsed, unit)

    def __str__(self) -> str:
        if self.unit == "diagonal":
            return f"{digits(round(self.value * 100, 12))}%"
        return f"{digits(self.value)}{'mm' * (self.unit == 'mm')}"

    def distance(self, diagonal: float) -> float:
        """Distance in the unit of the diagonal.

        Parameters
        ----------
        diagonal : float
            Length of the diagonal of the image or volume.
        """
        return self.value * diagonal if self.unit == "diagonal" else self.value

    def width(self, shape: tuple[int, int]) -> int:
        """Width in whole pixels, at least 1; a fraction is rounded as in boundary-iou-api.

        Parameters
        ----------
        shape : tuple of int
            Height and width in pixels.
        """
        return max(1, round(self.distance(math.hypot(*shape))))


def read_tolerances(values: Any, name: str) -> tuple[Tolerance, ...]:
    """One or several tolerances of a caller, without duplicates."""
    if isinstance(values, (str, Real, Tolerance)):
        values = (values,)
    several = read_several(name, values, "a number, a string such as '2%', or several of them")
    read = tuple(Tolerance.of(v) for v in several)
    check_different(name, [str(tolerance) for tolerance in read])
    return read


def check_different(name: str, texts: Sequence[str]) -> None:
    """Raise if two lengths have the same text, which is in the names of their scores."""
    if len(set(texts)) != len(texts):
        msg = f"{name} contains duplicates: {', '.join(texts)}"
        raise ValueError(msg)


def split_lengths(option: str, text: str) -> list[str]:
    """The parts of a list on the command line, which has at least one if it is given."""
    parts = [part for part in text.split(",") if part]
    if text and not parts:
        msg = f"{option} {text}: expected lengths separated by commas, such as 2,4"
        raise ValueError(msg)
    return parts


#: A distance in units of the spacing, or a share of the diagonal such as "0.75%".
Length = float | str


def read_length(name: str, value: Any) -> Length:
    """A distance of surfaces: a number, or a share of the diagonal as text."""
    if not isinstance(value, str):
        number = check_number(name, value)
        if number < 0:
            msg = f"{name} must not be negative, got {value}"
            raise ValueError(msg)
        return number + 0.0  # -0.0 is 0.0
    read = Tolerance.of(value)
    if read.unit == "mm":
        msg = f"{name}: {value!r} has a unit; pass numbers and SurfaceOptions(..., unit='mm')"
        raise ValueError(msg)
    return str(read) if read.unit == "diagonal" else read.value


def length_text(length: Length) -> str:
    """A length as names and tables have it: ``"2"``, ``"0.75%"``."""
    return length if isinstance(length, str) else f"{length:g}"


def length_in(length: Length, diagonal: float) -> float:
    """A length in the unit of the diagonal."""
    return Tolerance.of(length).distance(diagonal) if isinstance(length, str) else length
