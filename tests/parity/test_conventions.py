"""The weekly comparison with the newest releases of other tools notices what it should."""

import json
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "conventions.py"


@pytest.mark.gate
def test_moved_and_different_numbers_are_told_apart():
    own = runpy.run_path(str(SCRIPT))
    state = own["state_of"]
    nan = float("nan")
    stored = {"mean_iou": 0.5, "empty": nan}
    assert state(dict(stored), stored, {"mean_iou": 0.5}) == "same"
    assert state({"mean_iou": 0.6, "empty": nan}, stored, {"mean_iou": 0.5}) == "DIFFERS"
    assert state({"mean_iou": 0.5, "empty": 1.0}, stored, {"mean_iou": 0.5}) == "MOVED"
    assert state({"mean_iou": 0.5}, stored, {"mean_iou": 0.5}) == "MOVED"


@pytest.mark.gate
def test_the_stored_numbers_are_those_of_the_protocols():
    own = runpy.run_path(str(SCRIPT))
    stored = json.loads(SCRIPT.with_suffix(".json").read_text())
    expected = own["ours"](*own["images"]())
    assert stored.keys() == expected.keys() == own["TOOLS"].keys()
    for name, numbers in expected.items():
        found = {key: stored[name]["numbers"][key] for key in numbers}
        assert own["same"](found, numbers), name
