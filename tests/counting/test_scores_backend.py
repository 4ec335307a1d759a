"""Which implementation decides labels, and what happens where the routines were not built."""

from __future__ import annotations

import os
import subprocess
import sys

from segiou.counting import SCORES_BACKEND, scores

WITHOUT_ROUTINES = """
import sys
sys.modules["segiou.counting._scores"] = None
import numpy as np
from segiou.counting.scores import SCORES_BACKEND, decide
found = decide(np.float32([[0, 2], [1, 1]]), argmax=0)
print(SCORES_BACKEND, found.tolist(), decide(np.float16([0, 2]), threshold=1).tolist())
"""


def run_without_routines(**environment):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_ROUTINES],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_numpy_serves_without_the_compiled_routines():
    done = run_without_routines(SEGIOU_REQUIRE_KERNEL="")
    assert done.stdout == "numpy [1, 0] [False, True]\n", done.stderr


def test_missing_routines_are_an_error_where_they_are_required():
    done = run_without_routines(SEGIOU_REQUIRE_KERNEL="1")
    assert done.returncode != 0
    assert "the compiled routines for scores are missing, and SEGIOU_REQUIRE_K" in done.stderr


def test_the_backend_is_told():
    assert ("numpy" if scores._compiled is None else "c") == SCORES_BACKEND
