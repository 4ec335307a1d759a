"""Optional parts: compiled modules, extras such as matplotlib, and plug-ins."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, ParamSpec, TypeVar

from segiou._support.locks import Lockable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from matplotlib.axes import Axes

P = ParamSpec("P")
R = TypeVar("R")


class Part(NamedTuple):
    """A compiled module: its task, and how slow the fallback is."""

    key: str
    what: str
    cost: str


#: Every compiled module. Costs were measured with one thread on 480 × 360 masks with 11 classes.
PARTS = {
    "segiou.counting._kernel": Part("counting", "counting", "about 30 times slower"),
    "segiou.counting._channels": Part("channels", "counting of channels", "about 2 times slower"),
    "segiou.counting._id_pairs": Part("id_pairs", "counting of id pairs", "about 25 times slower"),
    "segiou.counting._varints": Part("varints", "run files", "about 2 times slower"),
    "segiou.counting._scores": Part("scores", "reading of scores", "about 4 times slower"),
    "segiou.measures.boundary._kernel": Part(
        "boundary", "counting along boundaries", "about 5 times slower"
    ),
    "segiou.regions._surfaces": Part("surfaces", "measuring of surfaces", "about 100 times slower"),
    "segiou.accumulators.histograms._scores_by_bin": Part(
        "bins", "counting of scores by bin", "about 3 times slower"
    ),
    "segiou.regions._components": Part(
        "components", "finding of components", "about 20 times slower"
    ),
    "segiou.masks.formats._png": Part("png", "reading of PNG masks", "about 10 times slower"),
}
#: Interface version of compiled modules that match these sources; see ``_python.h``.
_INTERFACE = 7


def load_part(module: str) -> Any:
    """Import a compiled module; None if it is missing, unless ``SEGIOU_REQUIRE_KERNEL=1``."""
    try:
        loaded = import_module(module)
    except ImportError as error:
        if os.environ.get("SEGIOU_REQUIRE_KERNEL") != "1":
            return None
        msg = (
            f"the compiled module for {PARTS[module].what} is missing, but "
            f"SEGIOU_REQUIRE_KERNEL=1 requires it ({error}); reinstall segiou with a C compiler "
            "available, or unset the variable"
        )
        raise ImportError(msg) from error
    if getattr(loaded, "INTERFACE", 0) != _INTERFACE:
        msg = f"{loaded.__file__} is out of date; rebuild it with: pip install -e ."
        raise ImportError(msg)
    return loaded


#: Acquired by the first thread that warns, and never released.
_warned = Lock()


def leave_warning_to_parent() -> None:
    """Never warn of missing compiled modules in this process."""
    _warned.acquire(blocking=False)


def warn_missing(*modules: str) -> None:
    """Warn once per process if compiled modules, these among them, are missing."""
    if not _warned.acquire(blocking=False):
        return
    missing = {*modules, *(name for name in PARTS if not _is_found(name))}
    if not missing:
        return
    msg = (
        f"{len(missing)} of {len(PARTS)} compiled modules are missing, so segiou is slower, with "
        "identical results. Reinstall segiou with a C compiler available; segiou --version lists "
        "the modules"
    )
    warnings.warn(msg, stacklevel=3)


def fallback(module: str, function: Callable[P, R]) -> Callable[P, R]:
    """A function that replaces a missing compiled module and warns on its first call."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        warn_missing(module)
        return function(*args, **kwargs)

    return call


def compiled_parts() -> dict[str, bool]:
    """Whether each part is compiled in this installation."""
    return {part.key: _is_there(module) for module, part in PARTS.items()}


def _is_found(module: str) -> bool:
    """Whether the file of a compiled module exists; imports nothing, because it runs in updates."""
    if module in sys.modules:
        return sys.modules[module] is not None  # None if its import was prevented
    _, *packages, _ = module.split(".")
    folder = Path(__file__).parents[1].joinpath(*packages)
    return PathFinder.find_spec(module, [str(folder)]) is not None


def _is_there(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True


_importing = Lockable()


def import_whole(module: str) -> Any:
    """Import a module that threads may import at once, although its parts import each other.

    Python gives some of the threads a module that is not initialised yet.
    """
    with _importing.lock:
        return import_module(module)


@contextmanager
def extra_named(need: str, extra: str) -> Iterator[None]:
    """Name the extra that is needed in an ImportError of the imports within."""
    try:
        yield
    except ImportError as error:
        msg = f"{need}: pip install 'segiou[{extra}]'"
        raise ImportError(msg) from error


def import_extra(module: str, need: str, extra: str) -> Any:
    """Import a module that an extra installs; the error names the extra."""
    return extra_named(need, extra)(import_module)(module)


@cache
def _entries() -> dict[str, dict[str, list[EntryPoint]]]:
    """Entry points by group and name."""
    from importlib.metadata import entry_points

    found = entry_points()
    ours = [group for group in found.groups if group.startswith("segiou.")]
    several = [entry for group in ours for entry in found.select(group=group)]
    if of_segiou := _source_entries():  # newer than the installed ones
        several = [*of_segiou, *(entry for entry in several if not _is_own(entry))]
    groups: dict[str, dict[str, list[EntryPoint]]] = {}
    for entry in several:
        groups.setdefault(entry.group, {}).setdefault(entry.name, []).append(entry)
    return groups


def _source_entries() -> list[EntryPoint]:
    """Entry points of segiou itself if it runs from its sources, installed or not."""
    from importlib.metadata import EntryPoint

    file = Path(__file__).parents[2] / "pyproject.toml"
    if not file.is_file():
        return []
    import tomllib

    project: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
    groups = project.get("entry-points", {}) if project.get("name") == "segiou" else {}
    return [
        EntryPoint(name, value, group)
        for group, entries in groups.items()
        for name, value in entries.items()
    ]


def _named(kind: str) -> dict[str, list[EntryPoint]]:
    """Entry points of a group by name."""
    return _entries().get(f"segiou.{kind}", {})


def _is_own(entry: EntryPoint) -> bool:
    return entry.module.partition(".")[0] == "segiou"


def _owner(entry: EntryPoint) -> str:
    return "segiou" if _is_own(entry) else entry.dist.name if entry.dist else entry.value


def plugin_names(kind: str, *, own: bool | None = None) -> tuple[str, ...]:
    """Names of the plug-ins of this kind, sorted: segiou's own first; or only one of both."""
    names = sorted((not any(map(_is_own, several)), n) for n, several in _named(kind).items())
    return tuple(name for is_other, name in names if own is None or own is not is_other)


def plugin_package(name: str, module: str) -> str:
    """The package and version of a measure that a module defines; the module if not installed."""
    for entry in _named("measures").get(name, []):
        if entry.module == module and entry.dist is not None:
            return f"{entry.dist.name} {entry.dist.version}"
    return module


class PluginError(Exception):
    """Mixed into errors of plug-ins that cannot be used, which are not defects of segiou."""


class PluginImportError(PluginError, ImportError):
    """A plug-in cannot be loaded."""


class PluginTypeError(PluginError, TypeError):
    """A plug-in has the wrong type for its group."""


def find_plugin(kind: str, name: str, wanted: type | None = None) -> Any:
    """The plug-in with this name, or None; raises if it cannot be loaded or has the wrong type."""
    entries = _named(kind).get(name, [])
    if not entries:
        return None
    owners = sorted(map(_owner, entries), key=lambda owner: (owner != "segiou", owner))
    if len(entries) > 1:
        msg = f"segiou.{kind}: {name!r} is defined by {' and '.join(owners)}; uninstall one of them"
        raise ValueError(msg)
    try:
        plugin = entries[0].load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit would end the command as if it had succeeded
        why = str(error) or type(error).__name__
        msg = f"segiou.{kind}: {name!r} from {owners[0]} cannot be loaded: {why}"
        raise PluginImportError(msg) from error
    fits = callable(plugin) if wanted is None else isinstance(plugin, wanted)
    if not fits:
        what = "function" if wanted is None else wanted.__name__
        msg = f"segiou.{kind}: {name!r} from {owners[0]} must be a {what}, not {plugin!r:.80}"
        raise PluginTypeError(msg)
    return plugin


class ForeignExitError(RuntimeError):
    """Code of another package tried to end the process, which must not look like a result."""


@contextmanager
def no_exit(whose: str) -> Iterator[None]:
    """Turn SystemExit, GeneratorExit and the like of foreign code into a ForeignExitError."""
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        msg = f"{whose} tried to end the process ({type(error).__name__}: {error})"
        raise ForeignExitError(msg) from error


class Drawable:
    """Adds ``plot`` to runs, reports, matrices, comparisons and slices."""

    __slots__ = ()
    _plot_kind: ClassVar[str] = "class_bars"

    def plot(self, kind: str | None = None, **options: Any) -> Axes:
        """Draw a figure; needs matplotlib (``pip install 'segiou[plot]'``).

        Parameters
        ----------
        kind : str, optional
            A plot kind, see :func:`segiou.plots.plot`. The default is
            ``"class_bars"``; for matrices ``"confusion_matrix"``, for comparisons
            ``"comparison_forest"``, for slices ``"slices"``, for score histograms ``"pr_curve"``.
        **options
            Options of the function with this name in :mod:`segiou.plots`, such as ``ax`` to draw
            into existing axes.

        Returns
        -------
        Axes
            Axes of a new pyplot figure, which notebooks show and ``pyplot.savefig("plot.pdf")``
            saves; or ``ax``.
        """
        # By name: what can be drawn does not depend on how, nor on matplotlib.
        plots: Any = import_module("segiou.plots")
        axes: Axes = plots.plot(self, self._plot_kind if kind is None else kind, **options)
        return axes
