"""The loops of compiled modules for several instruction sets."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

NAMES = ("c-avx512", "c-avx2", "c")


def loops_here(run: Callable[[str], Any]) -> list[str]:
    """Names of the loops that ``run`` accepts, because this processor runs them."""
    return [name for name in NAMES if _is_accepted(run, name)]


def with_loops(module: ModuleType, function: str, loops: str) -> SimpleNamespace:
    """Replacement of a module whose function runs these loops, its last argument."""
    whole = getattr(module, function)
    return SimpleNamespace(**{function: lambda *given: whole(*given, loops)})


def _is_accepted(run: Callable[[str], Any], name: str) -> bool:
    try:
        run(name)
    except ValueError:
        return False
    return True
