"""Which implementation is live, and what happens where the kernel was not built."""

from __future__ import annotations

import os
import subprocess
import sys

WITHOUT_KERNEL = """
import sys
sys.modules["segiou.counting._kernel"] = None
import numpy as np
from segiou.counting import _backend
table = np.zeros((2, 2), np.int64)
codes = np.zeros(1, np.uint16)
_backend.count_coded(np.array([0, 5]), np.array([0, 0]), 0, codes, 0, codes, table)
print(_backend.BACKEND, table.tolist())
"""


def run_without_kernel(**environment):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_KERNEL],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_numpy_serves_without_the_kernel():
    done = run_without_kernel(SEGIOU_REQUIRE_KERNEL="")
    assert done.stdout == "numpy [[1, 0], [1, 0]]\n", done.stderr


def test_a_missing_kernel_is_an_error_where_it_is_required():
    done = run_without_kernel(SEGIOU_REQUIRE_KERNEL="1")
    assert done.returncode != 0
    assert "the counting kernel is missing, and SEGIOU_REQUIRE_KERNEL=1" in done.stderr
