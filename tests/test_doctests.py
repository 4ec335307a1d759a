"""The examples in docstrings and in docs/ give what they show."""

from __future__ import annotations

import doctest
import importlib
import linecache
import pkgutil
from pathlib import Path

import pytest
from deletable import needs_of

import segiou

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
ROOT = Path(__file__).parent.parent / "docs"
#: Pages that are made while the site is built stand in folders that begin with "_".
DOCS = [path for path in sorted(ROOT.rglob("*.md")) if "/_" not in path.as_posix()]
#: Adapters are imported where their framework is; tests/hooks runs their examples.
MODULES = sorted(
    name
    for _, name, _ in pkgutil.walk_packages(segiou.__path__, "segiou.")
    if not name.startswith(("segiou.hooks", "segiou.__main__"))
)


@pytest.mark.parametrize("name", ["segiou", *MODULES])
def test_docstring_examples(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        # Base classes of these are in zarr and torch.
        if "pip install" not in str(error) and error.name not in ("zarr", "torch"):
            raise
        pytest.skip(str(error))
    if name == "segiou.masks.formats.image_files" and not module.EXTENSION_BUILT:
        pytest.skip("the C extension of the PNG reader is not built")
    if b">>>" not in Path(module.__file__).read_bytes():
        return  # as in most modules, where doctest would look through every docstring
    linecache.clearcache()  # doctest checks every file in it before each docstring
    assert doctest.testmod(module, optionflags=FLAGS).failed == 0


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=needs_of(path.read_text("utf-8"))) for path in DOCS],
    ids=[path.relative_to(ROOT).as_posix() for path in DOCS],
)
def test_documentation_examples(path, tmp_path, monkeypatch):
    if ">>> from segiou import plots" in path.read_text(encoding="utf-8"):
        pytest.importorskip("matplotlib")
    linecache.clearcache()
    monkeypatch.chdir(tmp_path)  # for files that they save
    done = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS)
    assert done.failed == 0


def test_there_are_examples_to_run():
    finder = doctest.DocTestFinder()
    examples = sum(
        len(test.examples)
        for name in (
            "segiou.metrics.per_class",
            "segiou.accumulators.confusion",
            "segiou.metrics.protocols",
        )
        for test in finder.find(importlib.import_module(name))
    )
    assert examples > 10
