"""The C code of the PNG reader under the address and undefined behaviour sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from sanitizer import SOURCES, skip_unless_required

HARNESS = Path(__file__).with_name("png_harness.c")
HEADERS = SOURCES / "readers"


def build(program, *options):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not (HEADERS / "_png_decode.h").is_file():
        skip_unless_required("needs a C compiler and the sources of segiou")
    command = [compiler, "-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}"]
    return subprocess.run(
        [*command, *options, str(HARNESS), "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.sanitize
@pytest.mark.parametrize("define", ["-DSEGIOU_PNG_SIMD", "-DSEGIOU_PNG_PORTABLE"])
def test_every_filter_stays_in_bounds(tmp_path, define):
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    if build(tmp_path / "probe", "-fsanitize=address").returncode:
        assert build(tmp_path / "plain").returncode == 0
        skip_unless_required("this compiler has no sanitizers")
    built = build(tmp_path / "harness", define, *sanitize)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([tmp_path / "harness"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
