"""Tests of an extension, run once more with its C code built under sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

import segiou

INSTALLED = Path(segiou.__file__).parent
#: Wheels hold no C sources.
SOURCES = Path(__file__).resolve().parents[2] / "segiou"
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
OPTIONS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
# What was built here takes the place of what is installed, before anything imports that.
RUN_TESTS = """
import importlib, importlib.util, sys
name, file, *tests = sys.argv[1:]
spec = importlib.util.spec_from_file_location(name, file)
module = importlib.util.module_from_spec(spec)
sys.modules[name] = module
spec.loader.exec_module(module)
parent, _, child = name.rpartition(".")
setattr(importlib.import_module(parent), child, module)
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *tests]))
"""


def run_sanitized(
    folder: Path, name: str, sources: str, tests: Sequence[Path], *options: str
) -> None:
    """Build the extension ``name`` from ``sources``, a pattern, and run the tests with it."""
    place = SOURCES.joinpath(*name.split(".")[1:-1])
    extension = _built(folder, sorted(map(str, place.glob(sources))), options)
    libraries = (_runtime("libasan.so"), _runtime("libubsan.so"))
    environment = os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        # Python itself keeps memory to the end; and its pools would hide overruns.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN_TESTS, name, str(extension), *map(str, tests)],
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


def _built(folder: Path, sources: Sequence[str], options: Sequence[str]) -> Path:
    include = sysconfig.get_paths()["include"]
    if not (shutil.which("gcc") and sources and (Path(include) / "Python.h").is_file()):
        skip_unless_required("needs gcc, Python's headers and the sources of segiou")
    probe = folder / "probe.c"
    probe.write_text("int one(void) { return 1; }\n")
    if _compiled([str(probe)], folder / "probe.so", *SANITIZE).returncode:
        skip_unless_required("this compiler has no sanitizers")
    target = folder / "extension.so"
    built = _compiled(sources, target, *SANITIZE, *OPTIONS, *options, f"-I{include}")
    assert built.returncode == 0, built.stderr
    return target


def _compiled(sources: Sequence[str], target: Path, *options: str):
    command = ["gcc", *options, "-shared", "-fPIC", *sources, "-lm", "-o", str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _runtime(name: str) -> str:
    """The sanitizer's library, which must be in the process before anything else."""
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
