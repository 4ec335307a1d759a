"""Check the docstring of every public name: `python docs/_docstrings.py`.

Runs the checks listed under `[tool.numpydoc_validation]` in pyproject.toml, with three exceptions:
attributes of a class need not be described again as parameters; a method that overrides another is
described where that one is; the parameters of `**options: Unpack[Options]` are the items of Options.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate

import segiou

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
CHECKS = set(PROJECT["tool"]["numpydoc_validation"]["checks"])


def main() -> int:
    """Print the problems and return 1 if there are any."""
    checked, missing = 0, []
    for path in dict.fromkeys(public_names()):
        checked += 1
        missing += [f"{path}: {code} {text}" for code, text in problems(path)]
    print(*missing, f"{checked} public names, {len(missing)} problems", sep="\n")
    return 1 if missing else 0


def public_names() -> Iterator[str]:
    """Yield the names of `import segiou` and of its packages, and the members of their classes."""
    seen: set[int] = set()
    for path, value in _names_of(segiou, "segiou"):
        if id(value) not in seen and _is_ours(value):
            seen.add(id(value))
            yield path
            if inspect.isclass(value):
                yield from _members(value, path, seen)


def _names_of(module: ModuleType, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the functions and classes of a module, then those of its public submodules."""
    packages = []
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") or isinstance(value, GenericAlias):
            continue
        if isinstance(value, ModuleType):
            if value.__name__ == f"{path}.{name}":
                packages.append(value)
        elif (inspect.isclass(value) or inspect.isroutine(value)) and (
            "__init__" in (module.__file__ or "")
            or (value.__module__ == path and name in getattr(module, "__all__", [name]))
        ):
            yield f"{path}.{name}", value
    for package in packages:
        yield from _names_of(package, package.__name__)


def _members(owner: type, path: str, seen: set[int]) -> Iterator[str]:
    """Yield the methods and properties that a class defines or inherits from segiou, each once."""
    for base in owner.__mro__:
        if not _is_ours(base):
            continue
        for name, value in vars(base).items():
            described = isinstance(value, property | functools.cached_property)
            routine = inspect.isroutine(getattr(owner, name, None)) and not inspect.isclass(value)
            is_field = name in getattr(base, "__dataclass_fields__", ())
            if name.startswith("_") or id(value) in seen or _overrides(owner, base, name):
                continue
            if is_field:  # its default may be a function
                continue
            if described or routine:
                seen.add(id(value))
                is_own = inspect.getattr_static(owner, name) is value
                yield f"{path if is_own else f'{base.__module__}.{base.__qualname__}'}.{name}"


def _is_ours(value: Any) -> bool:
    return (getattr(value, "__module__", None) or "").startswith("segiou")


def _overrides(owner: type, base: type, name: str) -> bool:
    """Whether a method of a class, or of one that it extends, overrides an inherited one."""
    inherited = owner.__mro__[owner.__mro__.index(base) + 1 :]
    return any(name in vars(other) for other in inherited)


def problems(path: str) -> Iterator[tuple[str, str]]:
    """Yield codes and texts of the problems of one docstring."""
    found = Validator(get_doc_object(Validator._load_obj(path)))
    for code, text in validate(path)["errors"]:
        if code not in CHECKS or (code == "PR01" and _attributes_cover(found)):
            continue
        if code in ("PR01", "PR02") and _items_cover(found):
            continue
        yield code, text


def _items_cover(found: Validator) -> bool:
    """Whether the items of `**options: Unpack[Options]` are all that parameters lack."""
    unpacked: set[str] = set()
    starred: set[str] = set()
    for name, kind in getattr(found.obj, "__annotations__", {}).items():
        if items := re.fullmatch(r"Unpack\[(\w+)\]", str(kind)):
            starred.add(f"**{name}")
            unpacked |= {*found.obj.__globals__[items[1]].__annotations__}
    described = {*found.doc_all_parameters}
    return bool(starred) and {*found.signature_parameters} - starred <= described <= (
        {*found.signature_parameters} | unpacked
    )


def _attributes_cover(found: Validator) -> bool:
    """Whether Attributes of a class, or of one that it extends, describe every parameter."""
    if not inspect.isclass(found.obj):
        return False
    names = set(found.doc_all_parameters)
    for base in filter(_is_ours, found.obj.__mro__):
        for row in get_doc_object(base)["Attributes"]:
            names.update(name.strip() for name in row.name.split(","))
    wanted = {name for name in found.signature_parameters if not name.startswith("_")}
    return wanted <= names or getattr(found.obj, "_is_protocol", False)


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "torch")
    sys.exit(main())
