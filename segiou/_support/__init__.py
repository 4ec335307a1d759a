"""Shared helpers unrelated to segmentation, and lazy loading of each package's public names."""

from __future__ import annotations

import sys

# The module typing would take most of the time that `import segiou` takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__version__ = "0.2.0"


def lazy_face(
    package: str, *, folders: bool = False
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, from its ``__init__.pyi``.

    With `folders`, the packages in it that have a face are names too, so that each can be deleted.
    """
    homes: dict[str, str] = {}

    def names() -> list[str]:
        if not homes:
            below = packages_in(package) if folders else []
            homes.update(dict.fromkeys(below, package) | homes_of(package))
        return sorted(homes)

    def load(name: str) -> Any:
        if name == "__all__":
            return names()
        from importlib import import_module

        if name not in names():
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        home = homes[name]
        if home == package:  # the name is a subpackage
            value: Any = import_module(f"{home}.{name}")
        else:
            value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, names


def packages_in(package: str) -> list[str]:
    """The packages in a package that have a face."""
    import os

    folders = [folder for path in sys.modules[package].__path__ for folder in os.scandir(path)]
    return [folder.name for folder in folders if os.access(f"{folder.path}/__init__.pyi", os.F_OK)]


def homes_of(package: str) -> dict[str, str]:
    """The public names of a package and the modules that define them."""
    # Type checkers read the same file, so every name is written once. It contains only imports.
    face: Any = sys.modules[package]
    stub = face.__spec__.loader.get_data(f"{face.__file__.removesuffix('.py')}.pyi").decode()
    homes = {}
    for statement in stub.replace("(", "").replace(")", "").split("from ")[1:]:
        home, _, names = statement.partition(" import ")
        for name in names.split(","):
            homes[name.partition(" as ")[0].strip()] = home
    return {name: home for name, home in homes.items() if name and not name.startswith("__")}
