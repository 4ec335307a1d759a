"""The class table: each metric and each score of a measure in every output."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import segiou
from segiou.document.latex import latex_text
from segiou.metrics import METRICS
from segiou.metrics.pixel_scores import PIXEL_SCORES

#: Rows are truth. Of b: TP 6, FP 2, FN 4, TN 28.
MATRIX = [[18, 2, 0], [4, 6, 0], [0, 0, 10]]
OF_B = {
    "iou": 6 / 12,
    "dice": 12 / 18,
    "precision": 6 / 8,
    "recall": 6 / 10,
    "specificity": 28 / 30,
    "balanced_accuracy": (6 / 10 + 28 / 30) / 2,
    "volumetric_similarity": 16 / 18,
}


@cache
def report():
    truth, pred = (np.repeat(np.indices((3, 3))[i], np.ravel(MATRIX)) for i in (0, 1))
    names = replace(segiou.LabelSet.from_names(["a", "b", "c"]), groups={"ab": ("a", "b")})
    return segiou.ConfusionMatrix(names).update(truth, pred).report()


def test_the_table_has_every_metric():
    assert {*OF_B} == {*METRICS}


@pytest.mark.parametrize("name", OF_B)
def test_every_metric_is_in_every_output(name):
    one, shown = report(), f"{100 * OF_B[name]:.2f}"
    title = PIXEL_SCORES[name].title
    texts = (
        one.to_text(columns=name),
        one.to_markdown(columns=name),
        one.to_latex(columns=name),
        one.to_html(columns=name),
    )
    for text in texts:
        assert any(shape in text for shape in (title, title.capitalize(), latex_text(title)))
        assert shown in text
    page = texts[-1]
    ids = re.findall(r'popovertarget="([\w-]+)"', page)
    assert f"term-{name}" in ids
    assert [id for id in ids if f'id="{id}"' not in page] == []
    data = json.loads(one.to_json())
    cells = next(csv.DictReader(io.StringIO(one.to_csv(sort="name", reverse=True))))
    assert cells["name"] == "c"
    found = [
        one.classes[1].values[name],
        data["classes"][1][name],
        data["scores"][name]["rows"]["b"]["value"],
        one.to_pandas()[name]["b"],
        one.score(name, "b"),
        one.scores(names=name)[f"{name}/b"],
    ]
    assert found == pytest.approx([OF_B[name]] * len(found))
    values = [row.values[name] for row in one.sorted_classes(name)]
    assert values == sorted(values)
    pytest.importorskip("matplotlib")
    lengths = sorted(bar.get_width() for bar in one.plot("class_bars", metric=name).patches)
    assert OF_B[name] in lengths


def measured():
    truth = np.kron(np.arange(4).reshape(2, 2) % 3, np.ones((8, 8), int))
    options = {"boundary": True, "objects": True, "surfaces": True}
    return segiou.score([truth] * 3, [np.roll(truth, 2, 1)] * 3, labels=["a", "b", "c"], **options)


@pytest.mark.needs("measures.surfaces")
def test_columns_order_and_bars_of_measures():
    run = measured()
    one = run.report()
    columns = {column.name for column in one.class_table.columns}
    assert {"boundary_iou", "pq", "hausdorff_95", "surface_dice"} <= columns
    text = one.to_text(columns="boundary_iou,hd95", sort="hd95", width=120)
    head = next(line for line in text.splitlines() if line.startswith("class"))
    assert re.search(r"Boundary IoU  +HD95, px", head)
    of_a = one.score("hausdorff_95", "a")
    assert re.search(rf"^a .* {of_a:.2f}  ", text, re.MULTILINE)
    assert [row.hausdorff_95 for row in one.sorted_classes("hd95")] == sorted(
        one.scores_by_name["hausdorff_95"].rows.values()
    )
    assert "Median HD95, px" in one.to_html(columns="iou,hausdorff_95")
    pytest.importorskip("matplotlib")
    axes = one.plot("class_bars", metric="hd95")
    assert axes.get_xlabel() == "median HD95, px, dashed: mean"
    assert [line.get_xdata()[0] for line in axes.lines] == [one.score("hausdorff_95")]


def test_columns_that_are_missing_name_the_measure():
    with pytest.raises(ValueError, match=r"boundary_iou was not measured.*--boundary"):
        report().to_text(columns="biou")
    with pytest.raises(ValueError, match=r"pq was not measured.*--objects"):
        report().to_html(columns="pq")
    with pytest.raises(AttributeError, match="no score 'size'"):
        report().classes[0].size  # noqa: B018


def test_groups_have_the_intervals_of_their_names():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, (6, 5, 5))
    pred = np.where(rng.random(truth.shape) < 0.3, 0, truth)
    groups = {"ab": ("a", "b"), "c": ("c",)}
    names = replace(segiou.LabelSet.from_names(["a", "b", "c"]), groups=groups)
    run = segiou.score(truth, pred, labels=names)
    one = run.intervals("iou:ab")
    report = run.report(intervals=[run.intervals(), one])
    (column,) = (c for c in report.group_table.columns if c.name == "iou")
    of_class = run.intervals().classes[2]
    ends = (one.overall.low, one.overall.high), (of_class.low, of_class.high)
    assert column.limits[:2] == ends
    part = json.loads(report.to_json())["scores"]["iou"]["rows"]
    assert (part["ab"]["low"], part["ab"]["high"]) == (one.overall.low, one.overall.high)
    assert part["c"]["low"] == of_class.low
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(report.to_csv()))}
    assert float(rows["ab"]["iou_low"]) == one.overall.low
    ends = f"{100 * one.overall.low:.2f} to {100 * one.overall.high:.2f} %"
    for text in (report.to_text(width=120), report.to_markdown(), report.to_html()):
        assert ends in text


def test_intervals_of_another_score_are_in_its_column():
    rng = np.random.default_rng(0)
    truths = rng.integers(0, 2, (6, 4, 4))
    preds = np.where(rng.random(truths.shape) < 0.3, 1 - truths, truths)
    run = segiou.score(list(truths), list(preds), labels=["a", "b"])
    found = run.intervals("dice")
    one = run.report(intervals=found)
    text = one.to_text(width=140)
    assert "Dice, 95 % interval" in text
    assert "IoU, 95 % interval" not in text
    row = next(csv.DictReader(io.StringIO(one.to_csv())))
    assert float(row["dice_low"]) == found.classes[0].low
    assert row["iou_low"] != row["dice_low"]
