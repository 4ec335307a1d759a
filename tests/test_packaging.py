"""What a wheel and an sdist hold, by the project file: nothing of the package is left out."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "setuptools"
]
SOURCES, BUILT = {".c", ".h"}, {".so", ".pyd", ".pyc"}


def files(*, sources):
    return [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "segiou").rglob("*"))
        if path.is_file() and path.suffix not in BUILT and (path.suffix in SOURCES) == sources
    ]


def in_wheel(name, listed):
    """Whether a file goes into a wheel, as a module or by a pattern of the package above it."""
    if name.endswith(".py"):
        return (ROOT / name).with_name("__init__.py").is_file()
    return any(
        fnmatch(name, f"{package.replace('.', '/')}/{pattern}")
        for package, patterns in listed.items()
        for pattern in patterns
    )


@pytest.mark.parametrize("name", files(sources=False))
def test_a_wheel_holds_every_file_that_is_no_c_source(name):
    assert in_wheel(name, SETUPTOOLS["package-data"])


def test_a_wheel_holds_no_c_sources():
    assert not any(in_wheel(name, SETUPTOOLS["package-data"]) for name in files(sources=True))
    assert SETUPTOOLS["include-package-data"] is False


@pytest.mark.parametrize("name", ["segiou/new/page.html", "segiou/labelsets/new.txt"])
def test_the_check_of_the_wheel_can_fail(name):
    assert not in_wheel(name, SETUPTOOLS["package-data"])


def test_an_sdist_holds_every_c_source():
    modules = SETUPTOOLS["ext-modules"]
    named = [name for m in modules for name in (*m["sources"], *m.get("depends", ()))]
    assert sorted(set(named)) == files(sources=True)
