"""What may be missing, compiled modules and matplotlib, and what others may add, as plug-ins."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, ParamSpec, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from matplotlib.axes import Axes

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
#: What the compiled modules of these sources say of themselves; see ``_python.h``.
_INTERFACE = 2


def load_part(module: str) -> Any:
    """Import a compiled module; None where it is missing, unless ``SEGIOU_REQUIRE_KERNEL=1``."""
    try:
        found = import_module(module)
    except ImportError as error:
        if os.environ.get("SEGIOU_REQUIRE_KERNEL") != "1":
            return None
        msg = (
            f"{PARTS[module].what} is missing its compiled module, and SEGIOU_REQUIRE_KERNEL=1 "
            f"asks for it: install segiou where a C compiler is found, or unset the variable "
            f"({error})"
        )
        raise ImportError(msg) from error
    if getattr(found, "INTERFACE", 0) != _INTERFACE:
        msg = f"{found.__file__} was compiled from other sources; rebuild it: pip install -e ."
        raise ImportError(msg)
    return found


@cache
def warn_missing(module: str) -> None:
    """Say once in a process that a compiled module is missing, and what that costs."""
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


def import_extra(module: str, need: str, extra: str) -> Any:
    """Import a module that an extra brings; an error names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        msg = f"{need}: pip install 'segiou[{extra}]'"
        raise ImportError(msg) from error


@cache
def _entries(kind: str) -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points

    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=f"segiou.{kind}"):
        found.setdefault(entry.name, []).append(entry)
    return found


def plugin_names(kind: str) -> tuple[str, ...]:
    """Names of the formats, labelsets or protocols that other packages add, sorted."""
    return tuple(sorted(_entries(kind)))


def find_plugin(kind: str, name: str, wanted: type | None = None) -> Any:
    """What a package adds under a name; None where none does, an error where it does not fit."""
    found = _entries(kind).get(name, [])
    if not found:
        return None
    owners = [entry.dist.name if entry.dist else entry.value for entry in found]
    if len(found) > 1:
        msg = f"segiou.{kind}: {name!r} is added by {' and by '.join(owners)}; uninstall one"
        raise ValueError(msg)
    try:
        plugin = found[0].load()
    except Exception as error:
        msg = f"segiou.{kind}: {name!r} of {owners[0]} cannot be loaded: {error}"
        raise ImportError(msg) from error
    fits = callable(plugin) if wanted is None else isinstance(plugin, wanted)
    if not fits:
        what = "function" if wanted is None else wanted.__name__
        msg = f"segiou.{kind}: {name!r} of {owners[0]} must be a {what}, not {plugin!r:.80}"
        raise TypeError(msg)
    return plugin


class Drawable:
    """What :mod:`segiou.plots` draws: runs, reports, matrices and comparisons."""

    __slots__ = ()
    _plot_kind: ClassVar[str] = "class_bars"

    def plot(self, kind: str | None = None, **options: Any) -> Axes:
        """Draw a figure; needs matplotlib (``pip install 'segiou[plot]'``).

        Parameters
        ----------
        kind : str, optional
            One of those of :func:`segiou.plots.plot`; by default
            ``"class_bars"``, of a matrix ``"confusion_matrix"``, of a comparison
            ``"comparison_forest"``.
        **options
            Those of the function of this name in :mod:`segiou.plots`, such as ``ax``.

        Returns
        -------
        Axes
            A notebook shows its figure; ``axes.figure.savefig("plot.pdf")`` saves it.
        """
        from segiou.plots.kinds import plot

        return plot(self, self._plot_kind if kind is None else kind, **options)
