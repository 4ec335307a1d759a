"""The tests of the kernel, once more, with the C code built under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest
from sanitizer import run_sanitized


@pytest.mark.sanitize
def test_the_kernel_stays_in_bounds(tmp_path):
    names = ("test_kernel.py", "test_kernel_refused.py", "test_kernel_threads.py")
    tests = [Path(__file__).with_name(name) for name in names]
    # Small counters are emptied often, so that this happens at all.
    emptied = "-DFEW_ROOM=5000"
    run_sanitized(tmp_path, "segiou.counting._kernel", "_kernel*.c", tests, emptied)
