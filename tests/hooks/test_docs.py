"""The examples of docs/hooks.md and docs/howto/trackers.md run as printed."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import re
from pathlib import Path

import pytest
from deletable import needs_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (DOCS / "hooks.md", DOCS / "howto" / "trackers.md")
#: Frameworks and trackers that the gate does not install.
OPTIONAL = ("tensorflow", "clearml", "dvclive")


def examples() -> dict[str, list[str]]:
    """The examples of each section, each preceded by the data at the top of its page."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        first, *sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        (data,) = blocks(first)
        for section in sections:
            if examples_of := blocks(section):
                found[section.splitlines()[0]] = [data + block for block in examples_of]
    return found


def blocks(text: str) -> list[str]:
    found = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for block in found if not block.startswith(">>>")]


def needed(code: str) -> list[str]:
    lines = re.findall(r"^# needs: (.*)$", code, re.MULTILINE)
    return [name for line in lines for name in line.split(", ")]


@pytest.mark.gate
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=needs_of("".join(each))) for name, each in examples().items()],
)
def test_the_examples_run(name, tmp_path, need, with_torch, with_keras):
    """Each in a namespace of its own, in one process, because frameworks take seconds to import."""
    each = examples()[name]
    code = "".join(each)
    for framework in needed(code):
        if framework in OPTIONAL and importlib.util.find_spec(framework) is None:
            pytest.skip(f"{framework} is not installed")
        # Importing Keras here would fix its backend; its example runs on torch.
        need("torch" if framework == "keras" else framework)
        if importlib.util.find_spec(framework) is None:
            assert os.environ.get("SEGIOU_REQUIRE_FRAMEWORKS") != "1"
            pytest.skip(f"{framework} is not installed here")
    if "keras" in code:
        forks = with_keras("tensorflow" if "tensorflow" in needed(code) else "torch")
    else:
        forks = with_torch
    script = f"for code in {each!r}:\n    exec(code, {{'__name__': '__main__'}})\n"
    forks.run(script, cwd=tmp_path)


def test_every_framework_has_an_example():
    said = " ".join(code for each in examples().values() for code in each)
    hooks = DOCS.parent / "segiou" / "hooks"
    names = {path.stem for path in hooks.glob("[!_]*.py")} - {"hook_options"}
    assert {name for name in names if f"segiou.hooks.{name} " not in said} <= {"mmengine"}
    assert "import segiou.hooks.mmengine" in said


@pytest.mark.parametrize("name", ["evaluate", "distributed"])
def test_docstring_examples(name, need):
    if name == "distributed":
        need("torch")
    module = importlib.import_module(f"segiou.hooks.{name}")
    done = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert done.attempted > 0
    assert done.failed == 0
