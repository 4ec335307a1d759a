"""What a wheel and an sdist hold, by the project file: nothing of the package is left out."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

import segiou

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]
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


def test_a_wheel_holds_every_file_that_is_no_c_source():
    listed = SETUPTOOLS["package-data"]
    assert [name for name in files(sources=False) if not in_wheel(name, listed)] == []


def test_a_wheel_holds_no_c_sources():
    assert not any(in_wheel(name, SETUPTOOLS["package-data"]) for name in files(sources=True))
    assert SETUPTOOLS["include-package-data"] is False


def test_a_wheel_holds_every_page_of_the_documentation():
    patterns = [one for several in SETUPTOOLS["data-files"].values() for one in several]
    held = {path for one in patterns for path in ROOT.glob(one)}
    pages = {path for path in (ROOT / "docs").rglob("*.md") if "_generated" not in path.parts}
    assert pages <= held


@pytest.mark.parametrize("name", ["segiou/new/page.html", "segiou/labelsets/new.txt"])
def test_the_check_of_the_wheel_can_fail(name):
    assert not in_wheel(name, SETUPTOOLS["package-data"])


def test_an_sdist_holds_every_c_source():
    modules = SETUPTOOLS["ext-modules"]
    named = [name for m in modules for name in (*m["sources"], *m.get("depends", ()))]
    assert sorted(set(named)) == files(sources=True)


def names(requirements):
    return {re.match(r"[\w-]+", text)[0].lower() for text in requirements}


def test_the_conda_recipe_needs_what_pip_installs():
    recipe = (ROOT / ".github" / "recipe" / "meta.yaml").read_text("utf-8")
    listed = set(re.findall(r"- (?:python-)?([\w-]+ >=[\d.]+)", recipe.split("  run:")[1]))
    wanted = [text.split(";")[0].lower() for text in PROJECT["project"]["dependencies"]]
    assert listed == {text.replace(">=", " >=") for text in wanted} | {"python >=3.11"}


def test_the_version_is_the_same_everywhere():
    version = PROJECT["project"]["version"]
    assert segiou.__version__ == version
    assert f'version = "{version}"' in (ROOT / ".github/recipe/meta.yaml").read_text("utf-8")
    assert f"\nversion: {version}\n" in (ROOT / "docs/CITATION.cff").read_text("utf-8")
    assert f"\n## {version} (" in (ROOT / "docs/changes.md").read_text("utf-8")


def test_no_extra_of_users_brings_a_tool_of_tests():
    extras = {k: names(v) for k, v in PROJECT["project"]["optional-dependencies"].items()}
    tools = extras.pop("test") - {"segiou"}
    for group in ("notebook", "runs", "browser"):
        tools |= names(PROJECT["dependency-groups"][group])
    assert "moto" in tools and "pytest" in tools
    for extra, needs in extras.items():
        assert not needs & tools, extra


def test_every_hook_has_an_extra_and_every_extra_a_user():
    hooks = {path.stem for path in (ROOT / "segiou" / "hooks").glob("*.py") if path.stem[0] != "_"}
    others = {
        "test",
        "pandas",
        "polygon",
        "plot",
        "parquet",
        "dask",
        "remote",
        "volumes",
        "geo",
        "hdf5",
        "yaml",
    }
    extras = set(PROJECT["project"]["optional-dependencies"])
    assert others <= extras
    assert extras - others <= hooks | {"torch"}


def test_every_extra_that_is_named_exists():
    paths = [*(ROOT / "segiou").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    found = [re.findall(r"segiou\[([\w,-]+)\]", path.read_text("utf-8")) for path in paths]
    named = {name for texts in found for text in texts for name in text.split(",")}
    assert len(named) > 4
    assert named <= set(PROJECT["project"]["optional-dependencies"])
