"""The tests of the compiled counting, once more, with the C code built under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest
from sanitizer import run_sanitized


@pytest.mark.sanitize
def test_the_compiled_routine_stays_in_bounds(tmp_path):
    tests = [Path(__file__).with_name("test_count_channels.py")]
    run_sanitized(tmp_path, "segiou.counting._channels", "_channels.c", tests)
