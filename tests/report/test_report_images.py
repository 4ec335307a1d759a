"""What a report says of images: means over images, worst cases, the worst images."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import numpy as np
import pytest

import segiou
from segiou.inference import worst_mean_limits
from segiou.runs import run_from_counts

#: Three images of a class a and a rare b; the last lacks b and has it predicted; nobody has c.
TRUTHS = [[[0] * 8 + [1] * 2], [[0] * 5 + [1] * 5], [[0] * 10]]
PREDS = [[[0] * 8 + [1, 0]], [[0] * 10], [[0] * 9 + [1]]]
#: IoU: a 8/9, b 1/2; a 5/10, b 0; a 9/10.
IMAGES = [(8 / 9 + 1 / 2) / 2, 0.25, 0.9]
#: Summed: a 22/29, b 1/8.
DATASET = (22 / 29 + 1 / 8) / 2
LABELS = segiou.LabelSet.from_names(["a", "b", "c"])


@pytest.fixture
def run():
    return segiou.score(TRUTHS, PREDS, labels=LABELS, ids=["x", "y", "z"])


def test_averages_by_hand(run):
    data = run.report().to_dict()["fine_grained"]
    assert data["dataset"] == DATASET == run.report().mean_iou
    assert data["image"] == pytest.approx(sum(IMAGES) / 3)
    assert data["class_mean"] == pytest.approx(((8 / 9 + 0.5 + 0.9) / 3 + 0.25) / 2)
    assert data["worst_image"]["10"] == 0.25
    assert data["worst_class"]["10"] == (0.5 + 0) / 2
    assert data["worst_image"]["100"] == data["image"]
    assert data["false_positive_images"] == [0, 1, 0]
    assert (data["images"], data["classes"]) == (3, 2)
    assert json.loads(run.report().to_json())["fine_grained"] == data


def test_a_case_with_a_false_positive_structure_is_a_case():
    truths, preds = np.array([[[[0, 1]]], [[[0, 0]]], [[[0, 0]]]]), np.array([[[[0, 1]]]] * 3)
    preds[2] = 0
    counted = segiou.score(truths, preds, labels=["background", "liver"])
    run = run_from_counts(counted.options, counted, provenance={"masks": "volumes"})
    cases, dice = (run.report().scores_by_name[n] for n in ("dice_case_count", "dice_cases"))
    assert (cases.rows, dice.rows) == ({"liver": 2}, {"liver": 0.5})


def test_the_text_says_them_and_what_they_do_not_see(run):
    text = run.report().to_text(width=140, detail=True)
    rows = [re.split(r"  +", line.strip())[:2] for line in text.splitlines()]
    assert ["image-wise mean IoU (I)", "61.48 %"] in rows
    assert ["class-wise mean IoU (C)", "50.65 %"] in rows
    assert rows.count(["worst 10 % of images", "25.00 %"]) == 2
    assert "(class absent from the image's truth): b in 1 image\n" in text


def test_means_over_the_worst_images_have_an_interval_where_images_are_the_units():
    # All pixels of 40 images are of class 1: the four worst images have IoU 0.1 to 0.4.
    truths = [[[1] * 10]] * 40
    preds = [[[1] * n + [0] * (10 - n)] for n in (1, 2, 3, 4, *[5, 6] * 18)]
    run = segiou.score(truths, preds, labels=2)
    report = run.report(intervals=run.intervals(groups="none"))
    low, high = worst_mean_limits([0.1, 0.2, 0.3, 0.4, *[0.5, 0.6] * 18], 10)
    assert report.worst_image_intervals[10] == (low, high)
    assert report.to_dict()["fine_grained"]["worst_image_intervals"]["10"] == [low, high]
    row = f"25.00 % +95 % interval {100 * low:.2f} to {100 * high:.2f} %"
    assert re.search(row, report.to_text(width=140, detail=True))
    grouped = run.report(intervals=run.intervals(groups=[i // 5 for i in range(40)]))
    assert grouped.worst_image_intervals == {}
    few = segiou.score(truths[:9], preds[:9], labels=2).report()
    assert next(iter(few.worst_image_intervals)) == 30  # two of nine images


@pytest.mark.parametrize("width", [24, 30, 44, 60, 80])
def test_no_word_is_broken_where_it_is_narrow(run, width):
    text = run.report(intervals=run.intervals(resamples=20)).to_text(width=width)
    wide = run.report(intervals=run.intervals(resamples=20)).to_text(width=200)
    head, _ = text.split("\nclass ", 1)
    assert set(head.split()) <= set(wide.split())
    assert not re.search(r"\d\n *%", text)


def test_many_false_positive_classes_are_not_all_named():
    run = segiou.score([[[0] * 6], [[0]]], [[[0, 1, 2, 3, 4, 5]], [[2]]], labels=6)
    assert "2 in 2 images, 1 in 1, 3 in 1, 4 in 1 and 5 in 1\n" in run.report().to_text(
        width=140, detail=True
    )
    run = segiou.score([[[0] * 7], [[0]]], [[[0, 1, 2, 3, 4, 5, 6]], [[2]]], labels=7)
    assert "2 in 2 images, 1 in 1, 3 in 1, 4 in 1, 5 in 1 and 1 more" in run.report().to_text(
        width=140, detail=True
    )


def test_one_image_or_none_has_no_averages_to_show(run):
    for report in (run.select(["y"]).report(), run.select([]).report()):
        assert "image-wise" not in report.to_text(detail=True)
    matrix = segiou.ConfusionMatrix(2).update([0], [1]).report()
    assert matrix.image_level_means is None
    assert matrix.to_dict()["fine_grained"] is None
    assert "image-wise" not in matrix.to_text(detail=True)


def test_excluded_classes_take_no_part():
    run = segiou.score(TRUTHS, PREDS, labels=LABELS, exclude="b")
    assert run.report().image_level_means.image == pytest.approx((8 / 9 + 0.5 + 0.9) / 3)
    assert [row["mean_iou"] for row in run.rows()] == [8 / 9, 0.5, 0.9]


def test_rows_say_what_an_image_does_to_the_score_and_what_its_mean_does_not_see(run):
    rows = list(csv.DictReader(io.StringIO(run.to_csv())))
    assert [float(row["mean_iou"]) for row in rows] == pytest.approx(IMAGES)
    assert [row["false_positive_classes"] for row in rows] == ["0", "0", "1"]
    # Without y: a 17/19, b 1/3. Without x: a 14/20, b 0. Without z: a 13/19, b 1/7.
    without = [14 / 20 / 2, (17 / 19 + 1 / 3) / 2, (13 / 19 + 1 / 7) / 2]
    found = [float(row["influence"]) for row in rows]
    assert found == pytest.approx([DATASET - value for value in without])


def test_worst_images_by_what_they_do_to_the_score(run):
    assert [row["id"] for row in run.worst(by="influence")] == ["y", "z", "x"]
    assert [row["id"] for row in run.worst(1, by="iou:b")] == ["y"]
    assert run.worst(0) == []
    alone = run.select(["x"])
    assert alone.worst(by="influence") == []
    assert math.isnan(alone.rows()[0]["influence"])


def test_reports_list_the_worst_images(run):
    report = run.report(worst=2, worst_by="iou:a")
    worst = json.loads(report.to_json())["worst_images"]
    assert worst["by"] == "iou:a"
    assert [(row["id"], row["iou:a"], row["iou:c"]) for row in worst["rows"]] == [
        ("y", 0.5, None),
        ("x", 8 / 9, None),
    ]
    assert re.search(r"worst images +IoU, a\n─+\ny +50.00 %\nx +88.89 %\n", report.to_text())
    assert "| y | 50.00 % |\n| x | 88.89 % |\n" in report.to_markdown()
    assert run.report().to_dict()["worst_images"] is None


def test_a_tiny_influence_is_not_shown_as_none():
    truth = [[[0] * 100_000]] * 2
    run = segiou.score(truth, [truth[0], [[0] * 99_999 + [1]]], labels=2, exclude="1")
    assert "-0.0005 %" in str(run.report(worst=1, worst_by="influence"))
