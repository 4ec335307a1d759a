"""Run files of earlier versions open and give the numbers that they gave."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import segiou
from segiou.runs import RunFileError
from segiou.runs.database import checksum

FIXTURES = Path(__file__).parents[2] / "fixtures"
SCORES = {
    "mean_iou": 0.6949562137588383,
    "pixel_accuracy": 0.8999213836477987,
    "pq": 0.31288468326068714,
    "sq": 0.7097996241724769,
    "rq": 0.4396771663039093,
}


@pytest.fixture
def older(tmp_path):
    """Model B of the streets with objects, as the first files of format 5 were."""
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
    new = segiou.score_folder(streets / "truth", streets / "model_b", labels=labels, objects=True)
    assert old.total() == new.total()
    for name in SCORES:
        assert segiou.compare(old, new, metric=name).pairs[0].overall.delta == 0


def edited(path, **changes):
    """A run file whose header describes the counts of boundaries in another way."""
    with closing(sqlite3.connect(path)) as connection, connection:
        (text,) = connection.execute("SELECT value FROM run WHERE key = 'measures'").fetchone()
        measures = json.loads(text)
        measures["boundary"] |= changes
        for name in [name for name, value in changes.items() if value is None]:
            del measures["boundary"][name]
        text = json.dumps(measures)
        new = text, checksum("measures", text)
        connection.execute("UPDATE run SET value = ?, crc = ? WHERE key = 'measures'", new)
    return path


def test_boundaries_counted_with_contours_are_not_taken_for_those_of_today(tmp_path):
    masks = [[0, 1], [0, 1]], [[0, 1], [1, 1]]
    run = segiou.score(*masks, labels=2, boundary=True, objects=True)
    options = {"widths": [], "contours": ["pixels"], "tolerances": []}
    path = edited(run.save(tmp_path / "r.sqlite"), version=1, options=options)
    opened = segiou.Run.open(path)
    assert opened.report().score("pq") == run.report().score("pq")
    problem = "segiou counts them in a different way now (version 1 of the counts in the file, 2"
    assert problem in opened.provenance["unread"]
    with pytest.raises(ValueError, match="no boundary counts; rescore with"):
        opened.intervals("boundary_iou")
    with pytest.raises(RunFileError, match=r"counts of 'boundary' have changed .*; score again"):
        segiou.Run.open(edited(path, layout=None))
