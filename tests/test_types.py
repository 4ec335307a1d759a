"""The types of the public functions as a user's checker sees them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import segiou

NATURAL = Path(__file__).parent / "typed" / "natural.py"
WRONG = """
import segiou
segiou.ConfusionMatrix(3, ignored=255)
segiou.Counts([1], [2], [3])
text: int = segiou.ConfusionMatrix(3).report().to_json()
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """What mypy knows of segiou from the first check."""
    return tmp_path_factory.mktemp("mypy")


def checked(path, cache):
    pytest.importorskip("mypy", reason="mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    environment = dict(os.environ)
    package = Path(segiou.__file__).parents[1]
    if package.name != "site-packages":  # there mypy looks by itself
        environment["MYPYPATH"] = str(package)
    return subprocess.run(
        [*command, "--cache-dir", str(cache), str(path)],
        cwd=cache,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_natural_code_is_well_typed(cache):
    done = checked(NATURAL, cache)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_code_is_not(tmp_path, cache):
    (tmp_path / "wrong.py").write_text(WRONG)
    done = checked(tmp_path / "wrong.py", cache)
    assert done.returncode == 1, done.stderr
    assert "Found 3 errors in 1 file" in done.stdout
