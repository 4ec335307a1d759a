"""The protocol of Ultralytics: undeclared predictions are ignored, and their cost is printed."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import segiou

GOLDEN = Path(__file__).parents[3] / "shared" / "rules" / "ultralytics" / "metrics.json"
TRUTH, PRED = [[[0, 0, 1, 1, 1]], [[0, 0, 0, 1, 1]]], [[[0, 7, 7, 1, 1]], [[0, 0, 1, 1, 1]]]
HOW = {"labels": 2, "unassigned": "count", "protocol": "ultralytics"}


def test_undeclared_predictions_are_ignored_under_this_protocol_only():
    run = segiou.score(TRUTH, PRED, **HOW)
    report = run.report()
    assert report.matrix.tolist() == [[3, 1], [0, 4]]
    assert report.mean_iou == pytest.approx((3 / 4 + 4 / 5) / 2)
    assert report.mean_iou_if_missed == pytest.approx((3 / 5 + 4 / 6) / 2)
    assert report.ignored_predictions == report.ignored == 2
    text = " ".join(str(report).split())
    assert "ignored under this protocol: 2 pixels (20.00 %); counted as missed, mean IoU" in text
    assert report.to_dict()["ignored_predictions"] == 2
    assert run.report("detectron2").mean_iou == report.mean_iou_if_missed


def test_every_way_to_the_mean_ignores_them():
    run = segiou.score(TRUTH, PRED, **HOW)
    mean = run.report().mean_iou
    assert run.total().mean_iou("ultralytics") == mean
    assert run.intervals().overall.value == mean
    assert (
        segiou.explain(run).mean_iou
        == segiou.explain(run.total(), protocol="ultralytics").mean_iou
        == mean
    )
    assert segiou.compare(run, run, names=["a", "b"]).pairs[0].overall.a == mean


def test_rows_of_images_ignore_them():
    run = segiou.score(TRUTH, PRED, **HOW)
    first = run.rows()[0]
    assert (first["mean_iou"], first["pixel_accuracy"]) == (1.0, 1.0)
    assert (first["pixels"], first["ignored"]) == (5, 2)
    missed = csv.DictReader(run.to_csv(protocol="segiou").splitlines())
    assert next(missed)["mean_iou"] == str((1 / 2 + 2 / 3) / 2)


def test_a_single_class_is_scored_as_foreground(tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "data.yaml"
    path.write_text("names: [crack]\nmasks_dir: masks\n")
    masks = [[[0, 0, 1, 1]]] * 2, [[[0, 1, 1, 0]]] * 2
    run = segiou.score(*masks, **HOW | {"labels": path})
    assert run.report().mean_iou == run.rows()[0]["mean_iou"] == 1 / 3
    assert run.intervals().overall.value == run.total().mean_iou("ultralytics") == 1 / 3
    both = segiou.score([[[0, 0, 0, 1]]], [[[0, 0, 1, 1]]], **HOW | {"labels": path})
    assert both.report().mean_iou == 1 / 2
    assert both.report("segiou").mean_iou == (1 / 2 + 2 / 3) / 2
    path.write_text("names: [background, crack]\nmasks_dir: masks\n")
    both = segiou.score([[[0, 0, 0, 1]]], [[[0, 0, 1, 1]]], **HOW | {"labels": path})
    assert both.report().mean_iou == (1 / 2 + 2 / 3) / 2


def test_nothing_to_average_is_zero():
    empty = segiou.score([[255, 255]], [[0, 1]], ignore=255, **HOW)
    assert empty.report().mean_iou == 0.0


@pytest.mark.skipif(not GOLDEN.exists(), reason="needs the shared cases")
def test_golden_values():
    for case in json.loads(GOLDEN.read_text())["cases"].values():
        number = case["num_classes"]
        sides = (list(np.array(case[side], np.int16)) for side in ("truth", "pred"))
        more = {"labels": max(2, number), "exclude": [0] if number == 1 else []}
        run = segiou.score(*sides, **HOW | more, ignore=(255, 9))
        report = run.report()
        assert report.mean_iou == pytest.approx(case["mIoU"], abs=1e-7)
        assert report.matrix.tolist() == case["matrix"]
        expected = case["per_class_iou"]
        ious = np.nan_to_num(run.under(run.protocol).total().iou())[-len(expected) :]
        np.testing.assert_allclose(ious, expected, atol=1e-7)
