"""Several scores of the same models in one table."""

from __future__ import annotations

import csv
import json

import pytest

import segiou
from segiou.analysis import compare_scores
from segiou.cli.main import main

TRUTHS = [[[0, 0, 1, 1]], [[0, 1, 1, 1]], [[0, 0, 0, 1]], [[0, 1, 0, 1]]]
WORSE = [[[0, 0, 0, 0]], [[0, 0, 1, 1]], [[0, 0, 0, 0]], [[0, 0, 0, 1]]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    both = {"old": WORSE, "new": TRUTHS}
    for name, preds in both.items():
        run = segiou.score(TRUTHS, preds, labels=["ground", "a,b"])
        run.save(folder / f"{name}.sqlite")
    return [str(folder / f"{name}.sqlite") for name in both]


def test_every_score_has_the_values_of_its_own_comparison(runs):
    opened = [segiou.Run.open(run) for run in runs]
    both = compare_scores(*opened, metrics=["dice", "iou"], names=("old", "new"))
    assert both.comparisons == tuple(
        segiou.compare(*opened, metric=name, names=("old", "new")) for name in ("dice", "iou")
    )
    head, row, *_ = csv.reader(both.to_csv().splitlines())
    # All 8 pixels of ground are found beside 5 others; of a,b 3 of 8.
    dice = (2 * 8 / (2 * 8 + 5) + 2 * 3 / (2 * 3 + 5)) / 2
    found = dict(zip(head, row, strict=True))
    assert (found["score"], found["name"]) == ("dice", "mean Dice")
    assert float(found["a"]) == pytest.approx(dice)
    with pytest.raises(ValueError, match="metrics is empty"):
        compare_scores(*opened, metrics=[])


def test_the_command(runs, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")  # heads of columns on one line
    assert main(["compare", *runs, "--names", "old,new", "--metric", "dice,iou:a,b"]) == 0
    text = capsys.readouterr().out
    assert "Dice, old" in text
    assert "IoU of a,b, new" in text
    assert main(["compare", *runs, "--metric", "dice,iou", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["comparisons"]
    assert "* p < 0.05, adjusted" in text
    assert main(["compare", *runs, "--metric", "dice,iou", "--level", "0.9"]) == 0
    assert "* p < 0.1, adjusted" in capsys.readouterr().out
    assert [one["metric"] for one in found] == ["dice", "iou"]
    assert main(["compare", *runs, "--metric", "dice,iou", "--html", "page.html"]) == 2
    assert "--html takes one score" in capsys.readouterr().err
    assert main(["compare", *runs, "--metric", "dice,iuo"]) == 2
    assert "unknown score 'dice,iuo'" in capsys.readouterr().err
