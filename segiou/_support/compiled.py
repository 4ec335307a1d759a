"""The compiled modules: each may be missing, and then NumPy does its work, slower."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Part(NamedTuple):
    """What a compiled module does, and what it costs to do without it."""

    key: str
    what: str
    cost: str


#: Every compiled module. The costs were measured on masks of 480 × 360 with 11 classes, one thread.
PARTS = {
    "segiou.counting._kernel": Part("counting", "counting", "about 30 times slower"),
    "segiou.counting._channels": Part("channels", "counting of channels", "about 2 times slower"),
    "segiou.counting._id_pairs": Part("id_pairs", "counting of id pairs", "about 25 times slower"),
    "segiou.counting._scores": Part("scores", "reading of scores", "about 4 times slower"),
    "segiou.boundary._kernel": Part(
        "boundary", "counting along boundaries", "about 5 times slower"
    ),
    "segiou.boundary._surfaces": Part(
        "surfaces", "measuring of surfaces", "about 100 times slower"
    ),
    "segiou.masks._png": Part("png", "reading of PNG masks", "about 10 times slower"),
    "segiou.masks._files": Part("files", "reading of small files", "a little slower"),
}
_warned: set[str] = set()


def load_part(module: str) -> Any:
    """Import a compiled module; None where it is missing, unless ``SEGIOU_REQUIRE_KERNEL=1``."""
    try:
        return import_module(module)
    except ImportError as error:
        if os.environ.get("SEGIOU_REQUIRE_KERNEL") != "1":
            return None
        msg = (
            f"{PARTS[module].what} is missing its compiled module, and SEGIOU_REQUIRE_KERNEL=1 "
            f"asks for it: install segiou where a C compiler is found, or unset the variable "
            f"({error})"
        )
        raise ImportError(msg) from error


def warn_missing(module: str) -> None:
    """Say once in a process that a compiled module is missing, and what that costs."""
    if module in _warned:
        return
    _warned.add(module)
    part = PARTS[module]
    msg = (
        f"{part.what} is not compiled in this installation: the results are the same, {part.cost}; "
        "to compile it, install segiou where a C compiler is found"
    )
    warnings.warn(msg, stacklevel=3)


def fallback(module: str, function: Callable[P, R]) -> Callable[P, R]:
    """A function that stands for a missing compiled module, and warns when it is first called."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        warn_missing(module)
        return function(*args, **kwargs)

    return call


def compiled_parts() -> dict[str, bool]:
    """Whether each part is compiled in this installation."""
    return {part.key: _is_there(module) for module, part in PARTS.items()}


def _is_there(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True
