"""Tests run once more, with the C code of some extensions built in another way."""

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
# Line numbers are all that a sanitizer prints; variables would take a quarter of the build.
SANITIZED = ["-O1", "-g1", "-fno-sanitize-recover=all"]
#: Compiler, options, and the libraries that must be in the process before anything else.
BUILDS = {
    "bounds": (
        "gcc",
        [*SANITIZED, "-fsanitize=address,undefined,float-cast-overflow"],
        ["libasan.so", "libubsan.so"],
    ),
    "threads": ("gcc", [*SANITIZED, "-fsanitize=thread"], ["libtsan.so"]),
    "clang": ("clang", ["-O3", "-ffp-contract=off"], []),
    # What processors without AVX2 and without AVX-512 run.
    "portable": ("gcc", ["-O3", "-D__builtin_cpu_supports(name)=0"], []),
    "avx2": ("gcc", ["-O3", "-mavx2", "-D__builtin_cpu_supports(name)=(name[3]!='5')"], []),
}
OPTIONS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
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
sys.exit(pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


def run_rebuilt(
    build: str, folder: Path, names: Iterable[str], tests: Iterable[Path], *options: str
) -> None:
    """Build extensions and run tests with them; fail where one fails or a sanitizer speaks.

    ``build`` is one of BUILDS; ``options`` are more options of the compiler.
    """
    compiler, flags, libraries = BUILDS[build]
    command = [compiler, *OPTIONS, *flags, *options, f"-I{include_folder()}", "-shared", "-fPIC"]
    _skip_without_compiler(folder, command)
    built = {name: str(_built(folder, name, command)) for name in names}
    environment = os.environ | {
        "LD_PRELOAD": " ".join(_library(compiler, name) for name in libraries),
        # Python itself keeps memory to the end; and its pools would hide overruns.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "SEGIOU_FUZZ_INPUTS": "30",
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


def skip_unless_required(why: str, variable: str = "SEGIOU_REQUIRE_KERNEL") -> None:
    """Skip the test; fail it where the environment asks for compiled modules."""
    if os.environ.get(variable) == "1":
        pytest.fail(why)
    pytest.skip(why)


def include_folder() -> Path:
    """Where Python's headers should be."""
    return Path(sysconfig.get_paths()["include"])


def _skip_without_compiler(folder: Path, command: list[str]) -> None:
    if not (shutil.which(command[0]) and (include_folder() / "Python.h").is_file()):
        skip_unless_required(f"needs {command[0]} and Python's headers")
    probe = folder / "probe.c"
    probe.write_text("int one(void) { return 1; }\n")
    done = _compiled(command, [probe], folder / "probe.so")
    if done.returncode:
        skip_unless_required(f"this {command[0]} cannot do it: {done.stderr}")


def _built(folder: Path, name: str, command: list[str]) -> Path:
    target = folder / f"{name}.so"
    built = _compiled(command, SOURCES[name], target)
    assert built.returncode == 0, built.stderr
    return target


def _compiled(
    command: list[str], sources: list[Path], target: Path
) -> subprocess.CompletedProcess[str]:
    files = [*map(str, sources), "-lm", "-o", str(target)]
    return subprocess.run([*command, *files], capture_output=True, text=True, check=False)


def _library(compiler: str, name: str) -> str:
    command = [compiler, f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
