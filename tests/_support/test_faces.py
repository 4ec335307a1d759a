"""Faces of packages: the names that a stub declares, read without Python's parser."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import segiou
from segiou._support import homes_of

ROOT = Path(segiou.__file__).parent
STUBS = sorted(ROOT.rglob("__init__.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.parent.name)
def test_the_names_of_a_stub_are_those_that_python_reads(stub):
    package = ".".join(("segiou", *stub.parent.relative_to(ROOT).parts))
    import_module(package)
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    assert all(isinstance(node, ast.ImportFrom) for node in tree.body)
    expected = {alias.name: node.module for node in tree.body for alias in node.names}
    expected.pop("__version__", None)
    assert homes_of(package) == expected
