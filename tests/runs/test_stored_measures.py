"""Run files with measures whose package is missing or has changed, or that none defines."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.measures import Field, Measure, Parts, Plan, Score
from segiou.runs import RunFileError
from segiou.runs.database import checksum
from segiou.scoring import Evaluator

TRUTH = np.array([[[0, 0, 1, 1]], [[0, 1, 1, 1]]])
PRED = np.array([[[0, 1, 1, 1]], [[0, 0, 1, 1]]])


class Extent(Measure):
    """Pixels of each class in the truth; no package defines it."""

    key = "extent"
    options = ""

    def plan(self, classes, masks):
        return ExtentPlan(self, classes, masks)


@dataclass(frozen=True)
class Mine(Extent):
    """The same, with an option."""

    times: int = 1


class ExtentPlan(Plan):
    @property
    def layout(self):
        return {"extent": Field((self.classes.num_classes,))}

    def count(self, pair):
        number = [(pair.truth == c).sum() for c in range(self.classes.num_classes)]
        return Parts.of(self.layout, extent=np.array(number) * self.measure.times)

    @property
    def scores(self):
        def number(sums):
            return sums[..., 0].astype(float)

        sums = lambda parts: parts["extent"][..., None]  # noqa: E731
        return {"extent": Score.of_classes("extent", "extent", self.classes, sums, number)}


@pytest.fixture
def saved(tmp_path):
    run = segiou.score(TRUTH, PRED, labels=2, measures=["objects", Mine(3), "boundary"])
    return run, run.save(tmp_path / "run.sqlite")


def test_a_measure_without_a_package_is_read_where_it_is_passed(saved):
    run, path = saved
    again = segiou.Run.open(path, measures=[Mine()])
    assert [plan.key for plan in again.plans] == ["objects", "extent", "boundary"]
    assert again.plan("extent").measure == Mine(3)
    assert again.parts("extent") == run.parts("extent")
    assert again.report().score("extent", "0") == 3 * 3
    assert "unread" not in again.provenance


def test_folders_scored_into_a_file_keep_a_measure_without_a_package(tmp_path):
    for side, images in (("truth", TRUTH), ("pred", PRED)):
        (tmp_path / side).mkdir()
        for i, image in enumerate(images):
            Image.fromarray(image.astype(np.uint8)).save(tmp_path / side / f"{i}.png")
    places, run = (tmp_path / "truth", tmp_path / "pred"), tmp_path / "run.sqlite"
    options = {"labels": 2, "measures": [Mine(3)], "run": run}
    first = segiou.score_folder(*places, **options, ids=["0"])
    assert first.report().score("extent", "0") == 3 * 2
    resumed = segiou.score_folder(*places, **options)
    assert resumed.report().score("extent", "0") == 3 * 3
    assert "unread" not in resumed.provenance


def test_a_measure_of_a_missing_package_is_kept(saved, tmp_path):
    run, path = saved
    opened = segiou.Run.open(path)
    assert [plan.key for plan in opened.plans] == ["objects", "boundary"]
    assert "'extent'" in opened.provenance["unread"]
    assert "test_stored_measures, which is not installed" in opened.provenance["unread"]
    assert opened.parts("boundary") == run.parts("boundary")
    assert opened.report().score("pq") == run.report().score("pq")
    assert "extent" in str(opened.report())
    # Nothing is lost in copies of the file.
    part = opened.select(["0"]).save(tmp_path / "part.sqlite")
    other = opened.select(["1"]).save(tmp_path / "other.sqlite")
    merged = segiou.Run.open(part).merge(segiou.Run.open(other))
    path = merged.save(tmp_path / "all.sqlite")
    again = segiou.Run.open(path, measures=[Mine()])
    assert again.parts("extent") == run.parts("extent")
    assert again.provenance.get("unread") is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"extent": {"shape": [3]}}, r"'extent' is integers of shape \(3,\) in the file"),
        ({"extent": {"floats": True}}, "floats of shape"),
        ({"version": 2}, "version 2 of the counts in the file, 1 here"),
    ],
)
def test_counts_with_another_layout_are_named(saved, change, words):
    _, path = saved
    edit(path, change)
    opened = segiou.Run.open(path, measures=[Mine()])
    assert opened.plan("extent") is None
    assert re.search(words, opened.provenance["unread"])
    assert "test_stored_measures counts them in a different way" in opened.provenance["unread"]


def edit(path, change):
    """Change the entry of the measure in the header."""
    with sqlite3.connect(path) as connection:
        (text,) = connection.execute("SELECT value FROM run WHERE key = 'measures'").fetchone()
        data = json.loads(text)
        for name, value in change.items():
            is_array = name in data["extent"]["layout"]
            if is_array:
                data["extent"]["layout"][name] |= value
            else:
                data["extent"][name] = value
        text = json.dumps(data)
        row = text, checksum("measures", text)
        connection.execute("UPDATE run SET value = ?, crc = ? WHERE key = 'measures'", row)


def test_options_that_cannot_be_read_are_named(saved):
    _, path = saved

    @dataclass(frozen=True)
    class Other(Extent):
        weight: float = 1.0

    unread = segiou.Run.open(path, measures=[Other()]).provenance["unread"]
    assert "unexpected keyword argument 'times'" in unread


@pytest.mark.parametrize(
    "change",
    [
        {"layout": 3},
        {"layout": {"a": {"shape": [-1], "rows": False, "floats": False, "sparse": False}}},
        {"layout": {"a": {"shape": [1], "rows": 2, "floats": False, "sparse": False}}},
        {"layout": {"a": {"shape": [1]}}},
        {"version": "x"},
        {"package": None},
    ],
)
def test_corrupt_entries_are_refused(saved, change):
    _, path = saved
    edit(path, change)
    with pytest.raises(RunFileError, match="table run"):
        segiou.Run.open(path)


def test_measures_in_another_order_merge(tmp_path):
    runs = [
        segiou.score(TRUTH[[i]], PRED[[i]], labels=2, ids=[str(i)], measures=keys)
        for i, keys in enumerate((["objects", "boundary"], ["boundary", "objects"]))
    ]
    whole = segiou.score(TRUTH, PRED, labels=2, measures=["objects", "boundary"])
    merged = runs[0].merge(runs[1])
    for key in ("objects", "boundary"):
        assert merged.parts(key) == whole.parts(key)
    loops = [
        Evaluator(2, measures=keys) for keys in (["objects", "boundary"], ["boundary", "objects"])
    ]
    for i, loop in enumerate(loops):
        loop.update(TRUTH[i], PRED[i])
    both = loops[0].merge(loops[1])
    found, wanted = both.scores(), whole.report().scores(names=[*both.scores()])
    assert found == {name: wanted[name] for name in found}
