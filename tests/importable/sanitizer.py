"""Tests run once more, with the C code of some extensions built under a sanitizer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

import segiou

INSTALLED = Path(segiou.__file__).parent
#: Wheels hold no C sources.
ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))
#: The C files of each extension.
SOURCES = {
    module["name"]: [ROOT / name for name in module["sources"]]
    for module in PROJECT["tool"]["setuptools"]["ext-modules"]
}
#: What the compiler is told, and the libraries that must be in the process before anything else.
SANITIZERS = {
    "bounds": (["address", "undefined"], ["libasan.so", "libubsan.so"]),
    "threads": (["thread"], ["libtsan.so"]),
}
OPTIONS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
# What was built here takes the place of what is installed, before anything imports that.
RUN_TESTS = """
import importlib, importlib.util, json, sys
for name, file in json.loads(sys.argv[1]).items():
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    parent, _, child = name.rpartition(".")
    setattr(importlib.import_module(parent), child, module)
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


def run_sanitized(
    sanitizer: str, folder: Path, names: Iterable[str], tests: Iterable[Path], *options: str
) -> None:
    """Build the extensions and run the tests with them; fail where the sanitizer finds something.

    ``sanitizer`` is "bounds" or "threads"; ``options`` are more options of the compiler.
    """
    kinds, libraries = SANITIZERS[sanitizer]
    flags = ["-fsanitize=" + ",".join(kinds), "-fno-sanitize-recover=all"]
    _skip_without_compiler(folder, flags)
    built = {name: str(_built(folder, name, [*flags, *options])) for name in names}
    environment = os.environ | {
        "LD_PRELOAD": " ".join(map(_library, libraries)),
        # Python itself keeps memory to the end; and its pools would hide overruns.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN_TESTS, json.dumps(built), *map(str, tests)],
        env=environment,
        cwd=INSTALLED.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout


def skip_unless_required(why: str) -> None:
    """Skip the test; fail it where the environment asks for compiled modules."""
    if os.environ.get("SEGIOU_REQUIRE_KERNEL") == "1":
        pytest.fail(why)
    pytest.skip(why)


def include_folder() -> Path:
    """Where Python's headers should be."""
    return Path(sysconfig.get_paths()["include"])


def _skip_without_compiler(folder: Path, flags: list[str]) -> None:
    if not (shutil.which("gcc") and (include_folder() / "Python.h").is_file()):
        skip_unless_required("needs gcc and Python's headers")
    probe = folder / "probe.c"
    probe.write_text("int one(void) { return 1; }\n")
    if _compiled([probe], folder / "probe.so", flags).returncode:
        skip_unless_required(f"this compiler has no {flags[0]}")


def _built(folder: Path, name: str, flags: list[str]) -> Path:
    target = folder / f"{name}.so"
    options = [*flags, *OPTIONS, f"-I{include_folder()}"]
    built = _compiled(SOURCES[name], target, options)
    assert built.returncode == 0, built.stderr
    return target


def _compiled(
    sources: list[Path], target: Path, options: list[str]
) -> subprocess.CompletedProcess[str]:
    files = ["-shared", "-fPIC", *map(str, sources), "-lm", "-o", str(target)]
    return subprocess.run(["gcc", *options, *files], capture_output=True, text=True, check=False)


def _library(name: str) -> str:
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
