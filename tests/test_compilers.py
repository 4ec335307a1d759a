"""The C code with several compilers: no warnings, and what runs here passes the tests."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sanitizer import OPTIONS, SOURCES, include_folder, run_rebuilt, skip_unless_required

TESTS = Path(__file__).parent
REQUIRE = "SEGIOU_REQUIRE_COMPILERS"
#: For other systems. Every build that runs here refuses warnings as well.
COMPILERS = {
    "gcc-aarch64": ["aarch64-linux-gnu-gcc"],
    "clang-aarch64": ["clang", "--target=aarch64-linux-gnu"],
    "mingw": ["x86_64-w64-mingw32-gcc"],
}
#: What Python's headers must know of Windows; those of this machine speak of this machine.
WINDOWS = """
#define MS_WINDOWS
#define MS_WIN32
#define MS_WIN64
#define HAVE_DECLSPEC_DLL
#define HAVE_SSIZE_T 1
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 2
"""


def headers(folder, name):
    """Python's headers for the system that the compiler builds for; sizes on ARM are those here."""
    own = include_folder()
    if not (own / "Python.h").is_file():
        skip_unless_required("needs Python's headers", REQUIRE)
    # Debian keeps one pyconfig.h per system, and only this machine's is installed.
    config = own.parent / getattr(sys.implementation, "_multiarch", "") / own.name / "pyconfig.h"
    if name != "mingw" and not config.is_file():
        return own
    copied = shutil.copytree(own, folder / "headers")
    (copied / "pyconfig.h").write_text(WINDOWS if name == "mingw" else config.read_text())
    return copied


def compiled(command, folder, *sources):
    return subprocess.run(
        [*command, "-c", *map(str, sources)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.sanitize
@pytest.mark.parametrize("name", COMPILERS)
def test_no_source_gives_a_warning(tmp_path, name):
    # The analyses behind warnings are those of -O2, which takes half the time of -O3.
    command = [*COMPILERS[name], *OPTIONS, "-O2", f"-I{headers(tmp_path, name)}"]
    probe = tmp_path / "probe.c"
    probe.write_text("#include <stdlib.h>\n#include <string.h>\n")
    if not shutil.which(command[0]) or compiled(command, tmp_path, probe).returncode:
        skip_unless_required(f"there is no {' '.join(COMPILERS[name])} here", REQUIRE)
    for sources in SOURCES.values():
        done = compiled(command, tmp_path, *sources)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.needs("measures.surfaces")
@pytest.mark.sanitize
def test_what_clang_builds_passes_the_tests(tmp_path):
    if not shutil.which("clang"):
        skip_unless_required("there is no clang here", REQUIRE)
    names = [
        "measures/boundary/test_kernel.py",
        "counting/test_kernel.py",
        "counting/test_scores.py",
    ]
    names += ["measures/surfaces/test_kernel.py", "masks/test_png_rows.py", "test_threads.py"]
    run_rebuilt("clang", tmp_path, SOURCES, map(TESTS.joinpath, names))


@pytest.mark.needs("measures.surfaces")
@pytest.mark.sanitize
@pytest.mark.parametrize("build", ["portable", "avx2"])
def test_every_processor_gets_the_same_bits(tmp_path, build):
    """The tests compare compiled results with NumPy's or with counts by hand."""
    chosen = {name: files for name, files in SOURCES.items() if chooses_loops(files)}
    assert len(chosen) == 5
    names = ["measures/boundary/test_kernel.py", "counting/test_kernel.py"]
    names += ["counting/test_odd_bytes.py", "counting/test_scores.py", "counting/test_id_pairs.py"]
    names += ["accumulators/histograms/test_scores_backend.py"]
    if build == "portable":  # built whole, as gcc gives its warnings here
        chosen = SOURCES
        names += ["counting/test_count_channels.py", "measures/surfaces/test_kernel.py"]
        names += ["regions/test_components.py", "regions/test_differences.py"]
    run_rebuilt(build, tmp_path, chosen, map(TESTS.joinpath, names))


def chooses_loops(files):
    """Whether an extension chooses loops by the instruction sets of the processor."""
    return any('_loops.h"' in path.read_text(encoding="utf-8") for path in files)


@pytest.mark.skipif(
    os.environ.get("SEGIOU_REQUIRE_KERNEL") != "1", reason="compiled modules are optional here"
)
@pytest.mark.parametrize("name", SOURCES)
def test_every_compiled_module_is_there(name):
    assert importlib.import_module(name).__file__
