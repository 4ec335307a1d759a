"""Run files of earlier versions open and give the numbers that they gave."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import segiou

FIXTURES = Path(__file__).parents[2] / "fixtures"
SCORES = {
    "mean_iou": 0.6949562137588383,
    "pixel_accuracy": 0.8999213836477987,
    "boundary_iou": 0.589205988759878,
    "pq": 0.31288468326068714,
    "sq": 0.7097996241724769,
    "rq": 0.4396771663039093,
}


@pytest.fixture
def older(tmp_path):
    """Model B of the streets with boundaries and objects, as the first files of format 5 were."""
    return shutil.copy(FIXTURES / "runs" / "format-5.sqlite", tmp_path)


def test_scores_are_those_of_its_time(older):
    report = segiou.Run.open(older).report()
    assert {name: report.score(name) for name in SCORES} == pytest.approx(SCORES, rel=1e-12)
    known = json.loads((FIXTURES / "streets" / "expected.json").read_text(encoding="utf-8"))
    assert report.matrix.tolist() == known["preds"]["model_b"]["total"]["matrix"]


def test_it_compares_with_files_of_today(older):
    streets = FIXTURES / "streets"
    labels = streets / "labels.toml"
    old = segiou.Run.open(older)
    new = segiou.score_folder(
        streets / "truth", streets / "model_b", labels=labels, boundary=True, objects=True
    )
    assert old.total() == new.total()
    for name in SCORES:
        assert segiou.compare(old, new, metric=name).pairs[0].overall.delta == 0
