"""What ``pip install .`` packs: the sources as they are now."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_modules_that_are_gone_are_not_built_again(tmp_path, monkeypatch):
    setuptools = pytest.importorskip("setuptools")
    with (ROOT / "pyproject.toml").open("rb") as file:
        name = tomllib.load(file)["tool"]["setuptools"]["cmdclass"]["build_py"]
    module, _, command = name.partition(".")
    assert (ROOT / "MANIFEST.in").read_text().split() == ["include", f"{module}.py"]
    spec = importlib.util.spec_from_file_location(module, ROOT / f"{module}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").mkdir()
    for file in ("__init__", "kept", "gone"):
        (tmp_path / "p" / f"{file}.py").touch()

    def built() -> set[str]:
        distribution = setuptools.Distribution(
            {
                "packages": ["p"],
                "script_name": "-",
                "cmdclass": {"build_py": getattr(loaded, command)},
            }
        )
        distribution.run_command("build_py")
        return {path.stem for path in (tmp_path / "build" / "lib" / "p").iterdir()}

    assert built() == {"__init__", "kept", "gone"}
    (tmp_path / "p" / "gone.py").unlink()
    assert built() == {"__init__", "kept"}
