"""The tests of the kernel, once more, with the C code built under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest
from sanitizer import run_sanitized


@pytest.mark.sanitize
def test_the_kernel_stays_in_bounds(tmp_path):
    tests = [Path(__file__).with_name("test_kernel.py")]
    run_sanitized(tmp_path, "segiou.boundary._kernel", "_kernel*.c", tests)
