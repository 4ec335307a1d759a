"""The tests of reading small files, with the C code built under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest
from sanitizer import run_sanitized


@pytest.mark.sanitize
def test_reading_stays_in_bounds(tmp_path):
    tests = [Path(__file__).with_name("test_local.py")]
    run_sanitized(tmp_path, "segiou.masks._files", "_files.c", tests)
