"""The tests of the kernel, once more, with the C code built under sanitizers."""

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
# Small counters are emptied often, so that this happens at all.
OPTIONS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-DFEW_ROOM=5000"]
RUN_TESTS = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("segiou.counting._kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


def compiled(compiler, source, target, *options):
    command = [compiler, *options, "-shared", "-fPIC", *source, "-o", str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def sanitized_kernel(folder):
    compiler = shutil.which("gcc")
    include = sysconfig.get_paths()["include"]
    sources = sorted(str(path) for path in SOURCES.glob("_kernel*.c"))
    if compiler is None or not sources or not (Path(include) / "Python.h").is_file():
        pytest.skip("needs gcc, Python's headers and the sources of segiou")
    probe = folder / "probe.c"
    probe.write_text("int one(void) { return 1; }\n")
    if compiled(compiler, [str(probe)], folder / "probe.so", *SANITIZE).returncode:
        pytest.skip("this compiler has no sanitizers")
    target = folder / "_kernel.so"
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
def test_the_kernel_stays_in_bounds(tmp_path):
    compiler, kernel = sanitized_kernel(tmp_path)
    environment = os.environ | {
        "LD_PRELOAD": f"{runtime(compiler, 'libasan.so')} {runtime(compiler, 'libubsan.so')}",
        # Python itself keeps memory to the end; and its pools would hide overruns.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    names = ("test_kernel.py", "test_kernel_refused.py", "test_kernel_threads.py")
    tests = [str(Path(__file__).with_name(name)) for name in names]
    done = subprocess.run(
        [sys.executable, "-c", RUN_TESTS, str(kernel), *tests],
        env=environment,
        cwd=SOURCES.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout
