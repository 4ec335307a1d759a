"""Errors of measures of other packages: each names the measure, its package and the fault."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, wraps
from typing import Any

import numpy as np

from segiou._support.optional import plugin_package
from segiou.measures.parts import Layout, Parts, check_layout
from segiou.measures.score import Score

#: Receives the owner of a method, its result and its arguments; returns the result.
Check = Callable[..., Any]
Checks = Mapping[str, Check]

#: Methods of the contract that may raise ValueError for a choice of the user.
_CHOICES = (
    *("from_options", "of", "for_score", "with_defaults", "resolved", "predictions", "plan"),
    *("plan_from", "from_dict", "read_prediction", "check"),
    *("class_names", "check_arrays", "read", "shared", "stamp"),
)
#: Other methods of measures and plans that segiou calls.
_OTHERS = (
    *("flag_for", "to_dict", "layout", "count", "count_several", "class_scores", "counts_of"),
    *("object_classes", "object_outcomes", "drawn_objects"),
    *("scores", "table", "columns", "case_quantities", "image_columns"),
    *("alternative", "way", "difference"),
)
#: Attributes of scores that are functions, and those that return its values.
_FUNCTIONS = ("sums", "evaluate", "seen", "alone", "median_of", "weights", "each")
_VALUES = ("evaluate", "each", "alone")


class MeasureError(ValueError):
    """A measure of another package failed, or violated the contract.

    Attributes
    ----------
    key : str
        Key of the measure.
    package : str
        The package with its version.
    problem : str
        The fault.
    """

    def __init__(self, key: str, package: str, problem: str) -> None:
        self.key: str = key
        self.package: str = package
        self.problem: str = problem
        super().__init__(f"measure {key!r} of {package}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (MeasureError, (self.key, self.package, self.problem))


def package_of(kind: type) -> str:
    """The package that defines a class, with its version if it is installed."""
    if is_own(kind):
        return "segiou"
    return plugin_package(getattr(kind, "key", ""), kind.__module__)


def is_own(kind: type) -> bool:
    """Whether segiou itself defines a class."""
    return kind.__module__.partition(".")[0] == "segiou"


def guard(kind: type, checks: Checks) -> None:
    """Make every contract method of a new class name its package in errors, and check results."""
    if is_own(kind):
        return
    for name in (*_CHOICES, *_OTHERS):
        member = inspect.getattr_static(kind, name, None)
        if member is not None and not getattr(member, "__isabstractmethod__", False):
            wrapped = _wrapped(name, member, checks.get(name, _unchecked))
            setattr(kind, name, wrapped)
            if isinstance(wrapped, cached_property):
                wrapped.__set_name__(kind, name)


def _unchecked(owner: Any, result: Any, *_: Any) -> Any:
    return result


def _wrapped(name: str, member: Any, check: Check) -> Any:
    """A method, property or class method that runs guarded."""
    if isinstance(member, (classmethod, staticmethod)):
        return type(member)(_guarded(name, member.__func__, check))
    if isinstance(member, cached_property):
        return cached_property(_guarded(name, member.func, check))
    if isinstance(member, property):
        return property(_guarded(name, member.fget, check) if member.fget else None)
    return _guarded(name, member, check)


def _guarded(name: str, function: Callable[..., Any], check: Check) -> Callable[..., Any]:
    if getattr(function, "_is_guarded", False):
        return function

    @wraps(function)
    def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
        args = (*map(_copied, args),)
        with naming(owner, name, choices=name in _CHOICES):
            return check(owner, function(owner, *args, **kwargs), *args)

    call._is_guarded = True  # type: ignore[attr-defined]
    return call


def _copied(argument: Any) -> Any:
    """Masks, counts or sums that a measure may write into: those of segiou do not change."""
    if hasattr(argument, "copied"):
        return argument.copied()
    if isinstance(argument, list):
        return [*map(_copied, argument)]
    is_numbers = isinstance(argument, np.ndarray) or hasattr(argument, "tocsr")
    return argument.copy() if is_numbers else argument


@contextmanager
def naming(owner: Any, name: str, *, choices: bool = False) -> Iterator[None]:
    """Turn errors into a MeasureError; with ``choices``, ValueErrors are the user's."""
    from segiou.masks.raw_mask import MaskError

    try:
        yield
    except (MeasureError, MaskError, MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:  # also SystemExit, which would look like a result
        if choices and isinstance(error, ValueError):
            raise
        key, package = who(owner)
        text = str(error) if isinstance(error, _WrongError) else f"{type(error).__name__}: {error}"
        raise MeasureError(key, package, f"{name} failed ({text})") from error


class _WrongError(TypeError):
    """A result that violates the contract."""


def who(owner: Any) -> tuple[str, str]:
    """The key and the package of a measure, a plan or the class of either."""
    measure = getattr(owner, "measure", owner)
    kind = measure if isinstance(measure, type) else type(measure)
    return str(getattr(measure, "key", kind.__name__)), package_of(kind)


def refuse(wanted: str, got: object) -> _WrongError:
    """The error for a result of the wrong kind."""
    return _WrongError(f"it must return {wanted}, not {_described(got)}")


def _described(got: object) -> str:
    if isinstance(got, Parts):
        return repr(got)
    shape = getattr(got, "shape", None)
    kind = type(got).__name__
    return kind if shape is None else f"{kind} of {getattr(got, 'dtype', '?')}, shape {shape}"


def _check_layout(owner: Any, layout: Any, *_: Any) -> Layout:
    if not isinstance(layout, Mapping):
        raise refuse("a mapping of names to Field", layout)
    check_layout(layout)
    return layout


def _check_parts(owner: Any, parts: Any, pairs: Any) -> Parts:
    number = len(pairs) if isinstance(pairs, Sequence) else 1
    if not isinstance(parts, Parts):
        raise refuse("Parts", parts)
    if len(parts) != number or parts.layout != dict(owner.layout):
        wanted = f"Parts of {number} and the layout of the plan"
        raise refuse(wanted, parts)
    return parts


def _check_columns(owner: Any, columns: Any, parts: Parts) -> Any:
    if not isinstance(columns, Mapping):
        raise refuse("a mapping of names to arrays", columns)
    for name, values in columns.items():
        if np.shape(values) != (len(parts),) or not isinstance(values, np.ndarray):
            wanted = f"an array with a value per image as {name!r}"
            raise refuse(wanted, values)
    return columns


def _check_table(owner: Any, table: Any, *_: Any) -> Any:
    from segiou.measures.score_table import ScoreTable

    if table is not None and not isinstance(table, ScoreTable):
        raise refuse("a ScoreTable", table)
    return table


def _checked_scores(owner: Any, scores: Any, *_: Any) -> dict[str, Score]:
    """The scores with functions that run guarded."""
    if not isinstance(scores, Mapping) or not scores:
        raise refuse("a mapping of names to Score, at least one", scores)
    for name, score in scores.items():
        if not isinstance(score, Score):
            wanted = f"a Score as {name!r}"
            raise refuse(wanted, score)
        if score.name != name:
            msg = f"the score {name!r} has the name {score.name!r}; use one name"
            raise _WrongError(msg)
    return {name: _guarded_score(owner, score) for name, score in scores.items()}


def _guarded_score(owner: Any, score: Score) -> Score:
    if getattr(score.sums, "_is_guarded", False):
        return score
    functions: dict[str, Any] = {name: getattr(score, name) for name in _FUNCTIONS}
    guarded: Any = {
        name: _guarded_function(owner, score, name, f) for name, f in functions.items() if f
    }
    return replace(score, **guarded)


def _guarded_function(owner: Any, score: Score, name: str, function: Any) -> Callable[[Any], Any]:
    """A function of a score, whose result has the shape that the contract names."""
    where, width = f"{name} of the score {score.name!r}", len(score.names)

    def call(argument: Any) -> Any:
        with naming(owner, where):
            values = _checked_values(name, function(_copied(argument)), argument, width)
            if name in _VALUES and not score.unit and np.isinf(values).any():
                msg = (
                    "it must return finite numbers, or NaN if the score is undefined, not infinity"
                )
                raise _WrongError(msg)
            return values

    call._is_guarded = True  # type: ignore[attr-defined]
    return call


def _checked_values(name: str, values: Any, argument: Any, width: int) -> Any:
    """The numbers that a function of a score returned, if their shape and kind are right."""
    is_sparse = name == "sums" and hasattr(values, "tocsr")
    array = values if is_sparse else np.asarray(values)
    if array.dtype.kind not in ("b" if name == "seen" else "biuf"):
        raise refuse("booleans" if name == "seen" else "numbers", values)
    leading = (len(argument),) if isinstance(argument, Parts) else np.shape(argument)[:-1]
    if isinstance(argument, Parts) and len(argument) == 1:  # of all images: a row per image or case
        leading = tuple(array.shape[:1])
    ends: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("evaluate", "each"), (1 + width,)),
        **dict.fromkeys(("seen", "median_of"), (width,)),
        **{"alone": (), "weights": (width,), "sums": tuple(array.shape[1:])[:1] or (-1,)},
    }
    wanted = (*leading, *ends[name])
    if tuple(array.shape) != wanted:
        text = f"numbers of shape {wanted}"
        raise refuse(text, values)
    return array if name == "sums" or array.dtype.kind == "b" else array.astype(np.float64)


PLAN_CHECKS: Checks = {
    **dict.fromkeys(("count", "count_several"), _check_parts),
    **{
        "layout": _check_layout,
        "scores": _checked_scores,
        "columns": _check_columns,
        "table": _check_table,
    },
}
