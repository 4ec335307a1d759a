"""Without its framework a hook says which extra brings it, and everything else works."""

from __future__ import annotations

import pytest

FRAMEWORKS = (
    "accelerate",
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
# A None in sys.modules is how Python itself says that a module is not to be had.
BLOCKED = """
import sys, json, importlib
sys.modules.update(dict.fromkeys(json.loads(sys.argv[2])))
try:
    importlib.import_module(sys.argv[1])
except ImportError as error:
    print(json.dumps(str(error)))
else:
    print(json.dumps(""))
"""
EXTRAS = {
    "accelerate": ("accelerate", "accelerate"),
    "distributed": ("torch", "torch"),
    "huggingface": ("transformers", "huggingface"),
    "ignite": ("ignite", "ignite"),
    "jax": ("jax", "jax"),
    "keras": ("keras", "keras"),
    "mmengine": ("mmengine", "mmengine"),
    "torchmetrics": ("torchmetrics", "torchmetrics"),
}


def blocked(run_python, module: str, names) -> str:
    import json

    return run_python(BLOCKED, f"segiou.hooks.{module}", json.dumps(list(names)))


@pytest.mark.parametrize("module", EXTRAS)
def test_the_extra_is_named(module, run_python):
    framework, extra = EXTRAS[module]
    said = blocked(run_python, module, [framework])
    assert said.startswith(f"segiou.hooks.{module} needs ")
    assert said.endswith(f": pip install 'segiou[{extra}]'")


@pytest.mark.parametrize("module", ["accelerate", "huggingface", "ignite", "torchmetrics"])
def test_without_torch_too(module, run_python):
    said = blocked(run_python, module, ["torch"])
    assert said.endswith(f": pip install 'segiou[{module}]'")


def test_lightning_may_be_either_of_its_packages(run_python, need):
    both = ["lightning", "pytorch_lightning"]
    said = blocked(run_python, "lightning", both)
    assert said == "segiou.hooks.lightning needs lightning: pip install 'segiou[lightning]'"
    need("pytorch_lightning")
    assert blocked(run_python, "lightning", both[:1]) == ""


@pytest.mark.parametrize("module", ["images", "evaluate"])
def test_what_needs_no_framework(module, run_python):
    assert blocked(run_python, module, FRAMEWORKS) == ""


def test_every_hook_is_held_to_this():
    import pkgutil

    import segiou.hooks

    modules = {module.name for module in pkgutil.iter_modules(segiou.hooks.__path__)}
    public = {name for name in modules if not name.startswith("_")}
    assert public == {*EXTRAS, "lightning", "images", "evaluate"}
