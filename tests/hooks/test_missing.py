"""Without its framework a hook says which extra brings it, and everything else works."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

FRAMEWORKS = (
    "accelerate",
    "flax",
    "ignite",
    "jax",
    "keras",
    "lightning",
    "mmengine",
    "pytorch_lightning",
    "torch",
    "torchmetrics",
    "transformers",
)
# Import modules, each in a fork where others are missing: None in sys.modules is Python's own way
# to say so. The list has what the errors say.
BLOCKED = """
import importlib, json, os, sys
import segiou
segiou.ConfusionMatrix(2)  # what all of them import
said = []
for module, names in json.loads(sys.argv[1]):
    read, write = os.pipe()
    if not os.fork():
        sys.modules.update(dict.fromkeys(names))
        try:
            importlib.import_module(f"segiou.hooks.{module}")
        except ImportError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    said.append(open(read).read())
    assert os.wait()[1] == 0
print(json.dumps(said))
"""
EXTRAS = {
    "accelerate": ("accelerate", "accelerate"),
    "distributed": ("torch", "torch"),
    "flax": ("flax", "flax"),
    "huggingface": ("transformers", "huggingface"),
    "ignite": ("ignite", "ignite"),
    "jax": ("jax", "jax"),
    "keras": ("keras", "keras"),
    "mmengine": ("mmengine", "mmengine"),
    "torchmetrics": ("torchmetrics", "torchmetrics"),
}
WITH_TORCH = ("accelerate", "huggingface", "ignite", "torchmetrics")


# Which hook is imported without which modules.
CASES = {
    "evaluate": ("evaluate", FRAMEWORKS),
    **{module: (module, (framework,)) for module, (framework, _) in EXTRAS.items()},
    **{f"{module} without torch": (module, ("torch",)) for module in WITH_TORCH},
    "lightning": ("lightning", ("lightning", "pytorch_lightning")),
    "pytorch_lightning": ("lightning", ("lightning",)),
}


@pytest.fixture(scope="module")
def said(run_python):
    """``said(case)`` is what its error says; empty where the import succeeds."""
    parts = [[*EXTRAS], [case for case in CASES if case not in EXTRAS]]
    found = {}

    def of(case):
        if case not in found:
            (part,) = (part for part in parts if case in part)
            given = json.dumps([CASES[one] for one in part])
            found.update(zip(part, run_python(BLOCKED, given), strict=True))
        return found[case]

    return of


@pytest.mark.parametrize("module", EXTRAS)
@pytest.mark.gate
def test_the_extra_is_named(module, said):
    _, extra = EXTRAS[module]
    assert said(module).startswith(f"segiou.hooks.{module} needs ")
    assert said(module).endswith(f": pip install 'segiou[{extra}]'")


@pytest.mark.few(1)
@pytest.mark.parametrize("module", WITH_TORCH)
def test_without_torch_too(module, said):
    assert said(f"{module} without torch").endswith(f": pip install 'segiou[{module}]'")


def test_lightning_may_be_either_of_its_packages(said, need):
    text = "segiou.hooks.lightning needs lightning: pip install 'segiou[lightning]'"
    assert said("lightning") == text
    if find_spec("pytorch_lightning") is None:  # importing it here would take seconds
        need("pytorch_lightning")
    assert said("pytorch_lightning") == ""


def test_what_needs_no_framework(said):
    assert said("evaluate") == ""


def test_every_hook_is_held_to_this():
    import pkgutil

    import segiou.hooks

    modules = {module.name for module in pkgutil.iter_modules(segiou.hooks.__path__)}
    public = {name for name in modules if not name.startswith("_")}
    assert public == {*EXTRAS, "lightning", "evaluate", "hook_options"}
