"""Argument validation: TypeError for a wrong type, ValueError for a wrong value."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from os import PathLike, fsencode
from typing import Any, TypeGuard, TypeVar, cast

from segiou._support.text import did_you_mean

T = TypeVar("T")
#: Intervals of lower levels have no width.
_LEAST_LEVEL = 0.001
F = TypeVar("F", bound=Callable[..., Any])


def refuse_kind(name: str, value: object, wanted: str) -> TypeError:
    """Make the TypeError for an argument of the wrong type.

    >>> refuse_kind("workers", "2", "an integer")
    TypeError("workers must be an integer, not str ('2')")
    """
    shown = f" ({value!r})" if isinstance(value, (str, bool, int, float)) else ""
    return TypeError(f"{name} must be {wanted}, not {type(value).__name__}{shown}")


def check_kind(name: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Raise TypeError unless the value has one of these types."""
    if not isinstance(value, kinds):
        raise refuse_kind(name, value, wanted)


def check_flag(name: str, value: object) -> None:
    """Raise TypeError unless the value is a bool of Python or NumPy.

    >>> check_flag("allow_lossy", "no")
    Traceback (most recent call last):
        ...
    TypeError: allow_lossy must be True or False, not str ('no')
    """
    # Compared by name, because the command line's help must not import NumPy.
    if type(value).__name__ not in ("bool", "bool_"):
        raise refuse_kind(name, value, "True or False")


def check_integer(
    name: str, value: object, least: int | None = None, most: int | None = None
) -> int:
    """Return an integer of Python or NumPy as int; reject bool and values out of range.

    >>> check_integer("workers", 0, 1)
    Traceback (most recent call last):
        ...
    ValueError: workers must be at least 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise refuse_kind(name, value, "an integer")
    # Types of NumPy may not hold the limits.
    _check_range(name, number := int(value), least, most)
    return number


def check_number(
    name: str, value: object, least: float | None = None, most: float | None = None
) -> float:
    """Return a real number as float; reject bool, NaN and values out of range."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise refuse_kind(name, value, "a number")
    try:
        number = float(value)
    except OverflowError:
        msg = f"{name} is too large; expected an integer of at most 308 digits"
        raise ValueError(msg) from None
    if math.isnan(number):
        msg = f"{name} must be a number, got NaN"
        raise ValueError(msg)
    _check_range(name, value if isinstance(value, int) else number, least, most)
    return number


def check_level(name: str, level: object) -> float:
    """Return a confidence level, which is between 0 and 1."""
    if not _LEAST_LEVEL <= (number := check_number(name, level)) < 1:
        hint = f"; for {number:g} %, pass {number / 100:g}" if 1 < number < 100 else ""
        wanted = f"between 0 and 1, such as 0.95 (at least {_LEAST_LEVEL})"
        msg = f"{name} must be {wanted}, got {level}{hint}"
        raise ValueError(msg)
    return number


def _check_range(name: str, value: Any, least: float | None, most: float | None) -> None:
    if least is not None and value < least:
        msg = f"{name} must be at least {least}, got {value}"
        raise ValueError(msg)
    if most is not None and value > most:
        msg = f"{name} must be at most {most}, got {value}"
        raise ValueError(msg)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ValueError unless the value is one of the choices.

    >>> check_choice("on_error", "ignore", ("stop", "skip"))
    Traceback (most recent call last):
        ...
    ValueError: on_error must be 'stop' or 'skip', got 'ignore'
    """
    words = [repr(choice) for choice in choices]
    wanted = " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
    if not isinstance(value, str):
        raise refuse_kind(name, value, wanted)
    if value not in choices:
        msg = f"{name} must be {wanted}, got {value!r}{did_you_mean(value, choices)}"
        raise ValueError(msg)


def is_several(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether a value is an iterable other than a string."""
    is_scalar = isinstance(value, (str, bytes)) or getattr(value, "ndim", 1) == 0
    return isinstance(value, Iterable) and not is_scalar


def check_several(name: str, value: object, wanted: str) -> None:
    """Raise TypeError unless the value is an iterable other than a string."""
    if not is_several(value):
        raise refuse_kind(name, value, wanted)


def read_several(name: str, value: Iterable[T], wanted: str) -> list[T]:
    """Return the items of an iterable other than a string as a list."""
    check_several(name, value, wanted)
    return list(value)


def check_callable(name: str, value: object, wanted: str) -> None:
    """Raise TypeError unless the value is callable."""
    if not callable(value):
        raise refuse_kind(name, value, wanted)


def check_path(name: str, value: object) -> None:
    """Raise TypeError unless the value is a path, and ValueError if no file can have it."""
    check_kind(name, value, (str, PathLike), "a path")
    try:
        is_valid = b"\0" not in fsencode(cast("str", value))
    except UnicodeEncodeError:
        is_valid = False
    if not is_valid:
        msg = f"{name}: {str(value)!r} cannot be the path of a file"
        raise ValueError(msg)


#: Range of spacings, in which areas, volumes and sums of distances are exact enough.
LEAST_SPACING, MOST_SPACING = 1e-12, 1e12


def read_spacing(argument: Any) -> tuple[float, ...]:
    """The size of a pixel or voxel from an argument."""
    wanted = "two or three positive numbers, the size of a pixel along each axis (1e-12 to 1e12)"
    spacing = tuple(check_number("spacing", v) for v in read_several("spacing", argument, wanted))
    is_known = all(LEAST_SPACING <= step <= MOST_SPACING for step in spacing)
    if len(spacing) not in (2, 3) or not is_known:
        msg = f"spacing must be {wanted}, got {argument}"
        raise ValueError(msg)
    return spacing


#: Options of other tools, and what to pass instead.
_OTHER_NAMES = {
    "num_classes": "the number of classes, or their names, as labels",
    "measures": "measures= to segiou.scoring.Evaluator, which counts images in a loop",
}


def check_options(hook: type, options: Mapping[str, Any], kind: Any) -> None:
    """Raise a TypeError for options in neither the typed dict nor the arguments of the hook."""
    import inspect

    parameters = [*inspect.signature(hook.__init__).parameters.values()][1:]  # type: ignore[misc]
    names = [
        parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD
    ]
    check_names(hook.__name__, options, [*names, *kind.__annotations__])


def names_options(function: F, *, also: Iterable[str] = ()) -> F:
    """Decorate a function whose unknown options raise the TypeError of :func:`check_names`."""
    code = function.__code__
    known = (*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *also)
    options = frozenset(known)
    name = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*arguments: Any, **given: Any) -> Any:
        if not options.issuperset(given):
            check_names(name, given, [name for name in known if name != "self"])
        return function(*arguments, **given)

    return cast("F", checked)


def level_of_caller() -> int:
    """The level of the stack that leaves segiou, for a warning of the calling function."""
    level, frame = 1, sys._getframe(1)
    # torch.compile may wrap functions of segiou.
    passed = ("segiou.", "torch._dynamo")
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(passed):
        level, frame = level + 1, frame.f_back
    return level


def check_names(function: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise a TypeError for options that a function does not have.

    >>> check_names("score", {"ignore_index": 255}, ["labels", "ignore"])
    Traceback (most recent call last):
        ...
    TypeError: score has no option 'ignore_index'; did you mean ignore?
    """
    if unknown := [name for name in options if name not in known]:
        usual = _OTHER_NAMES.get(unknown[0]) if "labels" in known else None
        hint = f"; pass {usual}" if usual else did_you_mean(unknown[0], known)
        hint = hint or f"; choose from {', '.join(known)}"
        msg = f"{function} has no option {unknown[0]!r}{hint}"
        raise TypeError(msg)


#: Blanks per level that any reader of JSON wants.
_MOST_BLANKS = 100


def check_indent(indent: object) -> None:
    """Raise an error unless blanks per level of JSON are None or a small integer."""
    if indent is not None:
        check_integer("indent", indent, 0, _MOST_BLANKS)


def compiled(pattern: str, refusal: str) -> re.Pattern[str]:
    """A regular expression; ValueError, which begins with the refusal, if it is none.

    >>> compiled("(a", "'(a' is not a regular expression")
    Traceback (most recent call last):
        ...
    ValueError: '(a' is not a regular expression: missing ), unterminated subpattern at position 0
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        msg = f"{refusal}: {error}"
        raise ValueError(msg) from None
