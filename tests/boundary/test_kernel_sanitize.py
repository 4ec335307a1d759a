"""The tests of the kernel, once more, with the C code built under sanitizers."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import segiou

SOURCES = Path(segiou.__file__).parent / "boundary"
OPTIONS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
RUN_TESTS = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("segiou.boundary._kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
import segiou.boundary
segiou.boundary._kernel = module
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[2]]))
"""


def build(compiler, sources, target, *options):
    command = [compiler, *options, "-shared", "-fPIC", *sources, "-o", str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def sanitized_kernel(folder):
    compiler, include = shutil.which("gcc"), Path(sysconfig.get_paths()["include"])
    sources = sorted(str(path) for path in SOURCES.glob("_kernel*.c"))
    if compiler is None or not sources or not (include / "Python.h").is_file():
        pytest.skip("needs gcc, Python's headers and the sources of segiou")
    probe = folder / "probe.c"
    probe.write_text("int one(void) { return 1; }\n")
    if build(compiler, [str(probe)], folder / "probe.so", *SANITIZE).returncode:
        pytest.skip("this compiler has no sanitizers")
    built = build(
        compiler, sources, folder / "_kernel.so", *SANITIZE, *OPTIONS, f"-I{include}", "-lm"
    )
    assert built.returncode == 0, built.stderr
    return compiler, folder / "_kernel.so"


def library(compiler, name):
    asked = [compiler, f"-print-file-name={name}"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.sanitize
def test_the_kernel_stays_in_bounds(tmp_path):
    compiler, kernel = sanitized_kernel(tmp_path)
    environment = os.environ | {
        # The sanitizers must be in the process before anything else.
        "LD_PRELOAD": f"{library(compiler, 'libasan.so')} {library(compiler, 'libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            RUN_TESTS,
            str(kernel),
            str(Path(__file__).with_name("test_kernel.py")),
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
