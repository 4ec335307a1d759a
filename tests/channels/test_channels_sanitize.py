"""The tests of the compiled counting, once more, with the C code built under sanitizers."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import segiou

SOURCE = Path(segiou.__file__).parent / "counting" / "_channels.c"
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
OPTIONS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
RUN_TESTS = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("segiou.counting._channels", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
import segiou.counting
segiou.counting._channels = module
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


def compiled(compiler, source, target, *options):
    command = [compiler, *options, str(source), "-o", str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def runtime(compiler, name):
    """The sanitizer's library, which must be in the process before anything else."""
    command = [compiler, f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.sanitize
def test_the_compiled_routine_stays_in_bounds(tmp_path):
    compiler = shutil.which("gcc")
    include = sysconfig.get_paths()["include"]
    if compiler is None or not (SOURCE.is_file() and (Path(include) / "Python.h").is_file()):
        pytest.skip("needs gcc, Python's headers and the sources of segiou")
    probe = tmp_path / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    if compiled(compiler, probe, tmp_path / "probe", *SANITIZE).returncode:
        pytest.skip("this compiler has no sanitizers")
    target = tmp_path / "_channels.so"
    built = compiled(compiler, SOURCE, target, *SANITIZE, *OPTIONS, f"-I{include}")
    assert built.returncode == 0, built.stderr
    environment = os.environ | {
        "LD_PRELOAD": f"{runtime(compiler, 'libasan.so')} {runtime(compiler, 'libubsan.so')}",
        # Python itself keeps memory to the end; and its pools would hide overruns.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    tests = str(Path(__file__).with_name("test_count_channels.py"))
    done = subprocess.run(
        [sys.executable, "-c", RUN_TESTS, str(target), tests],
        env=environment,
        cwd=SOURCE.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout
