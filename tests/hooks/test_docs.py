"""The examples of docs/hooks.md run as they stand; each in a process of its own."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hooks.md"
BEFORE = """
import numpy as np
data = np.load("streets.npz")
images, masks, names = data["images"], data["truth"], data["names"].tolist()
"""


def examples() -> dict[str, str]:
    """Each example by its section, and its number there."""
    found: dict[str, str] = {}
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        for i, block in enumerate(blocks):
            found[f"{section.splitlines()[0]} {i}"] = block
    return found


def needed(code: str) -> list[str]:
    first = re.match(r"# needs: (.*)\n", code)
    return first[1].split(", ") if first else []


@pytest.fixture(scope="module")
def folder(streets, tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    np.savez(
        folder / "streets.npz",
        images=streets.images,
        truth=streets.truth,
        names=np.array(streets.names),
    )
    return folder


@pytest.mark.parametrize("name", examples())
def test_the_example_runs(name, folder, need):
    code = examples()[name]
    for framework in needed(code):
        if framework in ("tensorflow", "clearml") and importlib.util.find_spec(framework) is None:
            pytest.skip(f"{framework}, which nothing here needs, is not installed")
        # Importing Keras here would fix its backend; its example runs on torch.
        need("torch" if framework == "keras" else framework)
        if importlib.util.find_spec(framework) is None:
            assert os.environ.get("SEGIOU_REQUIRE_FRAMEWORKS") != "1"
            pytest.skip(f"{framework} is not installed here")
    environment = {"KERAS_BACKEND": "tensorflow" if "tensorflow" in needed(code) else "torch"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BEFORE + code],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def test_every_framework_has_an_example():
    said = " ".join(examples().values())
    hooks = PAGE.parents[1] / "segiou" / "hooks"
    names = {path.stem for path in hooks.glob("[!_]*.py")} - {"images"}
    assert {name for name in names if f"segiou.hooks.{name} " not in said} <= {"mmengine"}
    assert "import segiou.hooks.mmengine" in said


@pytest.mark.parametrize("name", ["images", "evaluate"])
def test_docstring_examples(name):
    module = importlib.import_module(f"segiou.hooks.{name}")
    done = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert done.attempted > 0
    assert done.failed == 0
