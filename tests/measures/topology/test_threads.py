"""Threads that need scikit-image first at the same time."""

import subprocess
import sys
from pathlib import Path

import pytest

STREETS = Path(__file__).parents[3] / "fixtures" / "streets"
PROGRAM = """
import sys, segiou
truth, pred, labels = sys.argv[1:]
measures = ["components", "topology"]
run = segiou.score_folder(truth, pred, labels=labels, measures=measures, workers=6)
assert len(run) == 6
"""


@pytest.mark.gate
def test_all_threads_wait_until_scikit_image_is_imported():
    """In a new process, because it is imported once."""
    paths = (STREETS / "truth", STREETS / "model_b", STREETS / "labels.toml")
    command = [sys.executable, "-c", PROGRAM, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
