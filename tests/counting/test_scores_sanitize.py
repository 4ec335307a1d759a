"""The tests of the compiled routines for scores, with the C code built under sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import segiou

SOURCES = Path(segiou.__file__).parent / "counting"
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
OPTIONS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
RUN_TESTS = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("segiou.counting._scores", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
import segiou.counting
segiou.counting._scores = module
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


def compiled(compiler, source, target, *options):
    command = [compiler, *options, "-shared", "-fPIC", *source, "-o", str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def sanitized_routines(folder):
    compiler = shutil.which("gcc")
    include = sysconfig.get_paths()["include"]
    sources = sorted(str(path) for path in SOURCES.glob("_scores*.c"))
    if compiler is None or not sources or not (Path(include) / "Python.h").is_file():
        pytest.skip("needs gcc, Python's headers and the sources of segiou")
    probe = folder / "probe.c"
    probe.write_text("int one(void) { return 1; }\n")
    if compiled(compiler, [str(probe)], folder / "probe.so", *SANITIZE).returncode:
        pytest.skip("this compiler has no sanitizers")
    target = folder / "_scores.so"
    built = compiled(compiler, sources, target, *SANITIZE, *OPTIONS, f"-I{include}")
    assert built.returncode == 0, built.stderr
    return compiler, target


def runtime(compiler, name):
    """The sanitizer's library, which must be in the process before anything else."""
    asked = subprocess.run(
        [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
    )
    return asked.stdout.strip()


@pytest.mark.sanitize
def test_the_routines_stay_in_bounds(tmp_path):
    compiler, routines = sanitized_routines(tmp_path)
    environment = os.environ | {
        "LD_PRELOAD": f"{runtime(compiler, 'libasan.so')} {runtime(compiler, 'libubsan.so')}",
        # Python itself keeps memory to the end; and its pools would hide overruns.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            RUN_TESTS,
            str(routines),
            str(Path(__file__).with_name("test_scores.py")),
        ],
        env=environment,
        cwd=SOURCES.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout
