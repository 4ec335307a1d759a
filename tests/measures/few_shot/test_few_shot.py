"""FB-IoU: hand-computed values and those of HSNet, options and outputs."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

import segiou
from segiou.labels import ClassOptions
from segiou.measures import Masks
from segiou.measures.few_shot import FewShotOptions

NAMES = ["background", "bus", "cat"]


def hsnet(truths, preds, classes):
    """FB-IoU and mIoU as `Evaluator` and `AverageMeter` of HSNet compute them from 0, 1 and 255."""
    inter, union = np.zeros((2, 2, max(classes) + 1))
    for truth, pred, of_class in zip(truths, preds, classes, strict=True):
        pred = np.where(truth == 255, 255, pred)
        same = pred[pred == truth]
        areas = [np.array([(side == k).sum() for k in (0, 1)]) for side in (same, pred, truth)]
        inter[:, of_class] += areas[0]
        union[:, of_class] += areas[1] + areas[2] - areas[0]
    fold = sorted({*classes})
    iou = inter / np.maximum(union, 1)
    fb_iou = (inter[:, fold].sum(1) / union[:, fold].sum(1)).mean()
    return fb_iou, iou[1, fold].mean()


@given(
    arrays(np.uint8, (6, 5, 7), elements=st.sampled_from([0, 1, 255])),
    arrays(np.uint8, (6, 5, 7), elements=st.integers(0, 1)),
)
def test_hsnet(truths, preds):
    truths[:, 0, :2] = preds[:, 0, :2] = [0, 1]
    classes = [1, 2, 1, 2, 2, 1]
    fb_iou, mean_iou = hsnet(truths, preds, classes)
    named = np.array(classes, np.uint8)[:, None, None]
    truths = np.where(truths == 255, 255, truths * named)
    run = segiou.score(
        truths, preds * named, labels=NAMES, ignore=255, exclude=0, measures=["few_shot"]
    )
    assert run.report().score("fb_iou") == pytest.approx(fb_iou, abs=1e-12)
    assert run.report().mean_iou == pytest.approx(mean_iou, abs=1e-12)


def test_masks_of_two_classes_have_their_mean_iou():
    report = segiou.score(
        [[[0, 0, 1, 1]]], [[[0, 1, 1, 1]]], labels=2, measures=["few_shot"]
    ).report()
    assert report.score("fb_iou") == report.mean_iou == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_classes_of_the_foreground_count_as_one():
    truth, pred = [[0, 0, 0, 1, 1, 2]], [[0, 0, 1, 2, 0, 2]]
    run = segiou.score([truth], [pred], labels=NAMES, measures=["few_shot"])
    report = run.report()
    assert report.score("fb_iou", "background") == 2 / 4
    assert report.score("fb_iou", "foreground") == 2 / 4
    other = FewShotOptions("cat")
    assert segiou.score([truth], [pred], labels=NAMES, measures=[other]).report().score(
        "fb_iou", "background"
    ) == pytest.approx(1 / 2)


def test_predictions_of_no_class_are_missed():
    run = segiou.score(
        [[[0, 0, 1, 1]]], [[[0, 9, 1, 9]]], labels=2, unassigned="count", measures=["few_shot"]
    )
    assert run.report().score("fb_iou") == 1 / 2


def test_absent_sides_are_undefined_and_left_out():
    run = segiou.score([[[0, 0]]], [[[0, 0]]], labels=2, measures=["few_shot"])
    assert run.report().score("fb_iou") == 1
    assert math.isnan(run.report().score("fb_iou", "foreground"))


def test_every_command_has_it(tmp_path, command):
    rng = np.random.default_rng(2)
    places = [tmp_path / side for side in ("few_truth", "few_a", "few_b")]
    for place in places:
        place.mkdir()
    for i in range(5):
        truth = rng.integers(0, 2, (8, 8)) * (1 + i % 2)
        for place, share in zip(places, (0, 0.1, 0.5), strict=True):
            mask = np.where(rng.random(truth.shape) < share, 0, truth)
            Image.fromarray(mask.astype(np.uint8)).save(place / f"{i}.png")
    options = "--labels", ",".join(NAMES), "--few-shot", "--intervals", "--format", "json"
    runs = [f"{place}.segiou" for place in places[1:]]
    for place, run in zip(places[1:], runs, strict=True):
        code, out, _ = command("score", places[0], place, *options, "--run", run)
        assert code == 0
    found = json.loads(out)["scores"]["fb_iou"]
    assert found["low"] < found["value"] < found["high"]
    assert [*found["rows"]] == ["background", "foreground"]
    assert command("report", runs[1], "--fail-under", "fb_iou=0.9")[0] == 1
    code, out, _ = command("compare", *runs, "--metric", "fb_iou")
    assert code == 0
    assert "FB-IoU" in out


def test_refused(tmp_path, command):
    with pytest.raises(ValueError, match="needs a background class and at least one"):
        FewShotOptions().plan(ClassOptions.of(1), Masks())
    with pytest.raises(ValueError, match="sky"):
        FewShotOptions("sky").plan(ClassOptions.of(NAMES), Masks())
    with pytest.raises(TypeError, match="background"):
        FewShotOptions(0)
    code, _, noted = command(
        *("score", tmp_path, tmp_path, "--labels", "2", "--few-shot-background", "0")
    )
    assert code == 2
    assert "--few-shot-background needs --few-shot" in " ".join(noted.split())
