"""The overall value of a score has its own name in every output; only means are called mean."""

import csv
import io
import json

import numpy as np
import pytest

import segiou
from segiou.analysis import model_table
from segiou.measures.change import ChangeOptions
from segiou.measures.class_sets import ClassSetOptions
from segiou.measures.cost import CostOptions
from segiou.measures.score import overall_of

#: Scores and what their overall values are called.
NAMES = {
    "iou": "mean",
    "set_iou": "harmonic mean",
    "expected_cost": "all pixels",
    "sek": "overall",
    "scd_miou": "overall",
    "pixel_accuracy": "overall",
}


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(1)
    truths = rng.integers(0, 3, (4, 8, 9))
    preds = np.where(rng.random(truths.shape) < 0.8, truths, 0)
    options = {
        "labels": ["none", "car", "bus"],
        "measures": [
            ChangeOptions(),
            ClassSetOptions({"novel": ["bus"], "base": "rest"}),
            CostOptions({("car", "bus"): 5}),
        ],
    }
    return [segiou.score(truths, preds, **options), segiou.score(truths, truths, **options)]


@pytest.fixture(scope="module")
def report(runs):
    names = [name for name in NAMES if name != "pixel_accuracy"]
    return runs[0].report(intervals=[runs[0].intervals(name) for name in names])


def test_in_json_and_csv(report):
    scores = json.loads(report.to_json())["scores"]
    assert {name: scores[name]["overall"] for name in NAMES} == NAMES
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(report.to_csv()))}
    for name, overall in NAMES.items():
        assert float(rows[overall][name]) == report.score(name)
        others = {*NAMES.values()} - {overall}
        assert not any(rows[other][name] for other in others)


@pytest.mark.parametrize("kind", ["to_text", "to_markdown", "to_latex", "to_html"])
def test_in_tables(report, kind):
    text = " ".join(getattr(report, kind)().split())
    for name in ("harmonic mean", "all pixels", "overall"):
        assert name in text
    assert "Sets of classes: novel: bus; base: none and car" in text
    assert "Cost: car predicted as bus 5" in text


def test_in_comparisons(runs):
    table = model_table(*runs, metrics=["set_iou"], names=("old", "new"))
    assert [row["class"] for row in table.rows()] == ["novel", "base", "harmonic mean"]
    mixed = model_table(*runs, metrics=["iou", "expected_cost"], names=("old", "new"))
    assert [row["class"] for row in mixed.rows()][-1] == "overall"
    found = segiou.compare(*runs, metric="set_iou", names=("old", "new"))
    assert found.to_dict()["overall"] == "harmonic mean"
    assert "harmonic mean mIoU" in found.sentences()[0]


def test_a_row_of_different_values_is_overall():
    assert overall_of(["mean", "mean"]) == "mean"
    assert overall_of(["mean", "all pixels"]) == overall_of([]) == "overall"
