"""Public names of packages: the package's stub declares them, and their first use loads them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["lazy_face"]


def lazy_face(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, as its ``__init__.pyi`` says."""

    @cache
    def homes() -> dict[str, str]:
        # Type checkers read the same file, so that every name stands once.
        import ast
        from pathlib import Path

        stub = Path(str(sys.modules[package].__file__)).with_suffix(".pyi")
        tree = ast.parse(stub.read_text(encoding="utf-8"))
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        found = {alias.name: str(node.module) for node in imports for alias in node.names}
        return {name: home for name, home in found.items() if not name.startswith("__")}

    def load(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        if name not in homes():
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        home = homes()[name]
        if home == package:  # the name is a package of this one
            value: Any = import_module(f"{home}.{name}")
        else:
            value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(homes())
