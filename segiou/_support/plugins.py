"""What other packages add by entry points, which are looked up only where they are needed."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

__all__ = ["find_plugin", "plugin_names"]


@lru_cache(maxsize=8)
def _entries(kind: str) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=f"segiou.{kind}"):
        found.setdefault(entry.name, []).append(entry)
    return found


def plugin_names(kind: str) -> tuple[str, ...]:
    """Names of the formats, labelsets or protocols that other packages add, sorted."""
    return tuple(sorted(_entries(kind)))


def find_plugin(kind: str, name: str, wanted: type | None = None) -> Any:
    """What a package adds under a name; None if none does.

    Raises
    ------
    ImportError
        If it cannot be loaded; the message names the package.
    TypeError
        If it is not of the kind that is wanted.
    ValueError
        If two packages add the same name.
    """
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
    if wanted is None and not callable(plugin):
        msg = f"segiou.{kind}: {name!r} of {owners[0]} must be a function, not {plugin!r:.80}"
        raise TypeError(msg)
    if wanted is not None and not isinstance(plugin, wanted):
        what = f"must be a {wanted.__name__}, not {plugin!r:.80}"
        msg = f"segiou.{kind}: {name!r} of {owners[0]} {what}"
        raise TypeError(msg)
    return plugin
