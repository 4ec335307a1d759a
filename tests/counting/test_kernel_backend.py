"""Which implementation is used, and what happens where the kernel was not built."""

from __future__ import annotations

import os
import subprocess
import sys

WITHOUT_KERNEL = """
import sys
sys.modules["segiou.counting._kernel"] = None
import numpy as np
from segiou.counting import encoding
table = np.zeros((2, 2), np.int64)
codes = np.zeros(1, np.uint16)
encoding.count_coded(np.array([0, 5]), np.array([0, 0]), 0, codes, 0, codes, table)
print(encoding.BACKEND, table.tolist())
"""


def test_numpy_serves_without_the_kernel():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_KERNEL],
        env=os.environ | {"SEGIOU_REQUIRE_KERNEL": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "numpy [[1, 0], [1, 0]]\n", done.stderr
