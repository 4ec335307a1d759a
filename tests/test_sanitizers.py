"""The tests of the compiled modules, once more with the C code built under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest
from deletable import deleted_in
from sanitizer import SOURCES, run_rebuilt

TESTS = Path(__file__).parent
#: Extensions and their tests: in one process, because one takes longer to start than most tests.
CASES = {
    "segiou.measures.boundary._kernel": ["measures/boundary/test_kernel.py"],
    "segiou.regions._surfaces": ["measures/surfaces/test_kernel.py"],
    "segiou.counting._channels": ["counting/test_count_channels.py"],
    "segiou.counting._id_pairs": ["counting/test_id_pairs.py"],
    "segiou.counting._kernel": ["counting/test_kernel.py", "counting/test_kernel_refused.py"],
    "segiou.counting._varints": ["runs/test_sparse.py"],
    "segiou.counting._scores": ["counting/test_scores.py", "counting/test_score_bits.py"],
    "segiou.accumulators.histograms._scores_by_bin": [
        "accumulators/histograms/test_scores_backend.py",
        "accumulators/histograms/test_score_bits.py",
    ],
    "segiou.regions._components": ["regions/test_components.py", "regions/test_differences.py"],
    "segiou.masks.formats._png": [
        *("masks/test_local.py", "masks/test_png_files.py"),
        *("masks/test_png_rows.py", "masks/test_png_texts.py"),
    ],
}
#: Small counters are emptied often, so that this happens at all.
OFTEN_EMPTIED = ("-DFEW_ROOM=5000",)
OTHER_PROCESSORS = ("-U__BYTE_ORDER__", "-U__SSE2__")

pytestmark = pytest.mark.sanitize


def test_every_extension_stays_in_bounds(tmp_path):
    tests = [TESTS / test for each in CASES.values() for test in each if not deleted_in(test)]
    run_rebuilt("bounds", tmp_path, CASES, tests, *OFTEN_EMPTIED)


def test_png_files_on_other_processors(tmp_path):
    tests = [TESTS / "masks/test_png_rows.py", TESTS / "masks/test_png_fuzz.py"]
    run_rebuilt("bounds", tmp_path, ["segiou.masks.formats._png"], tests, *OTHER_PROCESSORS)


def test_no_two_threads_touch_the_same_memory(tmp_path):
    tests = [TESTS / "test_threads.py", TESTS / "accumulators/test_together.py"]
    run_rebuilt("threads", tmp_path, SOURCES, tests)


def test_no_extension_is_left_out():
    assert {*CASES} == {*SOURCES}
