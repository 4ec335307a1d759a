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
from segiou.counting.scores import SCORES_BACKEND, scores_to_labels
found = scores_to_labels(np.float32([[0, 2], [1, 1]]), argmax=0)
print(SCORES_BACKEND, found.tolist(), scores_to_labels(np.float16([0, 2]), threshold=1).tolist())
"""


def test_numpy_serves_without_the_compiled_routines():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ROUTINES],
        env=os.environ | {"SEGIOU_REQUIRE_KERNEL": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "numpy [1, 0] [False, True]\n", done.stderr


def test_the_backend_is_told():
    assert ("numpy" if scores._compiled is None else "c") == SCORES_BACKEND
