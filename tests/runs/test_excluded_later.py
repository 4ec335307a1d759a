"""Excluding classes from a saved run gives the report of scoring with them excluded."""

from __future__ import annotations

import json

import numpy as np
import pytest

import segiou
from segiou.cli.main import main

pytestmark = pytest.mark.needs("measures.surfaces", "measures.lesions")

OPTIONS = {
    "labels": 4,
    "spacing": (1, 1, 2),
    "surfaces": True,
    "objects": True,
    "measures": ["volume", "components"],
}


def volumes(number=2):
    truths, preds = [], []
    for shift in range(number):
        truth = np.zeros((8, 12, 12), int)
        truth[1:4, 1:5, 1:5], truth[4:7, 6:10, 2:6], truth[1:5, 6:10, 7:11] = 1, 2, 3
        truths.append(truth)
        preds.append(np.roll(truth, shift, 1))
    return truths, preds


def options():
    from segiou.measures.lesions import LesionOptions

    return {**OPTIONS, "measures": [*OPTIONS["measures"], LesionOptions("components-skip")]}


def report_of(run):
    data = json.loads(run.report().to_json())
    data.pop("provenance")
    return data


@pytest.mark.few(1)
@pytest.mark.parametrize("classes", [[1], [2, 3], [0], [0, 1, 2, 3]])
def test_reports_are_those_of_scoring_without_the_classes(tmp_path, classes):
    """Counts of surfaces, volumes and lesions were read as if the classes had none."""
    images = volumes()
    whole = segiou.score(*images, **options())
    wanted = report_of(segiou.score(*images, **options(), exclude=classes))
    whole.save(tmp_path / "whole.segiou")
    for name, run in (("a", whole), ("b", segiou.Run.open(tmp_path / "whole.segiou"))):
        fewer = run.excluding(classes)
        assert report_of(fewer) == wanted
        again = segiou.Run.open(fewer.save(tmp_path / f"{name}.segiou"))
        assert report_of(again) == wanted
        assert report_of(again.excluding([3])) == report_of(whole.excluding([*classes, 3]))


def test_the_command_line_excludes_classes_of_saved_runs(tmp_path, capsys):
    path = tmp_path / "a.segiou"
    segiou.score(*volumes(), **options()).save(path)
    for words in (["report", "--format", "json"], ["explain"], ["compare", str(path)]):
        assert main([words[0], str(path), *words[1:], "--exclude", "2", "-q"]) == 0, words
    capsys.readouterr()
    assert main(["report", str(path), "--exclude", "2", "--format", "json", "-q"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [*report["scores"]["hausdorff_95"]["rows"]] == ["1", "3"]
    assert report["skipped"] == {"2": "excluded"}
