"""The tests of the compiled routines for scores, with the C code built under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest
from sanitizer import run_sanitized


@pytest.mark.sanitize
def test_the_routines_stay_in_bounds(tmp_path):
    tests = [Path(__file__).with_name("test_scores.py")]
    run_sanitized(tmp_path, "segiou.counting._scores", "_scores*.c", tests)
