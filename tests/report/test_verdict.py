"""The verdict of a report: what it finds, and in one test how that is worded."""

from __future__ import annotations

import math

import numpy as np
import pytest

import segiou
from segiou import ConfusionMatrix

NAMES = ["road", "car", "sky"]


def report(matrix, protocol="segiou"):
    cm = ConfusionMatrix(NAMES[: len(matrix)])
    truth, pred = np.indices(np.shape(matrix))
    cm.update(np.repeat(truth, np.ravel(matrix)), np.repeat(pred, np.ravel(matrix)))
    return cm.report(protocol)


def outside():
    run = segiou.score([[[0, 0, 0, 1]]], [[[0, 0, 9, 1]]], labels=2, unassigned="count")
    return run.report()


@pytest.mark.parametrize(
    ("matrix", "mean", "kind", "truth", "pred", "gain"),
    [
        # IoU 8/10 and 10/12; without the error both are 1.
        ([[8, 2], [0, 10]], 49 / 60, "confusion", "road", "car", 11 / 60),
        # IoU 8/10 and 0.
        ([[8, 0], [2, 0]], 0.4, "missed_class", "car", None, 0.6),
        # IoU 9/10 and 0, and car leaves the mean with its false positives.
        ([[9, 1], [0, 0]], 0.45, "false_class", None, "car", 0.55),
        # IoU 1/19 each.
        ([[1, 9], [9, 1]], 1 / 19, "swapped_classes", "road", "car", 18 / 19),
        # IoU 8/10, 0 and 0; car found: 8/9, 1 and 0.
        ([[8, 0, 0], [1, 0, 0], [1, 0, 0]], 4 / 15, "missed_class", "car", None, 17 / 27 - 4 / 15),
    ],
)
def test_the_costliest_error(matrix, mean, kind, truth, pred, gain):
    found = report(matrix)
    step = found.next_steps[0]
    assert found.mean_iou == pytest.approx(mean)
    assert (step.kind, step.truth, step.pred) == (kind, truth, pred)
    assert step.gain == pytest.approx(gain)
    for name in filter(None, (truth, pred)):
        assert name in found.verdict


def test_two_classes_that_are_never_predicted_are_both_named():
    found = report([[8, 0, 0], [1, 0, 0], [1, 0, 0]])
    assert {step.truth for step in found.next_steps if step.kind == "missed_class"} == {
        "car",
        "sky",
    }
    assert "car" in found.verdict and "sky" in found.verdict


def test_predictions_outside_all_classes_are_an_error():
    step = outside().next_steps[0]
    # IoU of road 2/3, of car 1.
    assert (step.kind, step.truth, step.pred) == ("confusion", "0", None)
    assert (step.share, step.gain) == pytest.approx((1 / 3, 1 / 6))


def test_without_errors_there_are_no_steps():
    found = report([[8, 0], [0, 10]])
    assert (found.mean_iou, found.next_steps) == (1.0, ())


def test_absent_classes_that_count_as_zero():
    found = report([[1, 1, 0], [0, 2, 0], [0, 0, 0]], "ade20k")
    # IoU 1/2 and 2/3: 7/12 over two classes, 7/18 over three.
    assert (found.mean_iou, found.mean_iou_classes) == (pytest.approx(7 / 18), 3)
    # The error costs 5/18, the absent class 7/36: the error is named.
    assert found.next_steps[0].gain == pytest.approx(5 / 18)
    assert found.next_steps[0].truth in found.verdict and "sky" not in found.verdict
    assert math.isnan(report([[2, 0, 0], [0, 0, 0], [0, 0, 0]], "torchvision").mean_iou)


def test_wording():
    """The only test of these sentences: change them here."""
    of_absent = [[2, 0, 0], [0, 0, 0], [0, 0, 0]]
    reports = {
        "confusion": report([[8, 2], [0, 10]]),
        "perfect": report([[8, 0], [0, 10]]),
        "missed": report([[8, 0], [2, 0]]),
        "both missed": report([[8, 0, 0], [1, 0, 0], [1, 0, 0]]),
        "false": report([[9, 1], [0, 0]]),
        "swapped": report([[1, 9], [9, 1]]),
        "undefined": report([[0, 0], [0, 0]]),
        "outside": outside(),
        "error before absent": report([[1, 1, 0], [0, 2, 0], [0, 0, 0]], "ade20k"),
        "absent": report(of_absent, "ade20k"),
        "all absent": report([[0, 0], [0, 0]], "ade20k"),
        "undefined by protocol": report(of_absent, "torchvision"),
    }
    assert {name: one.verdict for name, one in reports.items()} == {
        "confusion": "Mean IoU 81.67 % over 2 of 2 classes. Costliest error: 20.00 % of road "
        "pixels predicted as car (18.33 points).",
        "perfect": "Mean IoU 100.00 % over 2 of 2 classes.",
        "missed": "Mean IoU 40.00 % over 2 of 2 classes. Costliest error: car is never predicted "
        "(60.00 points).",
        "both missed": "Mean IoU 26.67 % over 3 of 3 classes. Costliest error: car and sky are "
        "never predicted (up to 36.30 points each).",
        "false": "Mean IoU 45.00 % over 2 of 2 classes. Costliest error: car is predicted on 1 "
        "pixel but never occurs in the truth (55.00 points).",
        "swapped": "Mean IoU 5.26 % over 2 of 2 classes. Costliest error: road and car are mostly "
        "predicted as each other; check for swapped labels (94.74 points).",
        "undefined": "Mean IoU is undefined: no included class has a defined IoU.",
        "outside": "Mean IoU 83.33 % over 2 of 2 classes. Costliest error: 33.33 % of class 0 "
        "pixels predicted outside all classes (16.67 points).",
        "error before absent": "Mean IoU 38.89 % over 3 of 3 classes. Costliest error: 50.00 % of "
        "road pixels predicted as car (27.78 points).",
        "absent": "Mean IoU 33.33 % over 3 of 3 classes. Largest loss: 2 absent classes count as "
        "0 under protocol ade20k (66.67 points).",
        "all absent": "Mean IoU 0.00 % over 2 of 2 classes.",
        "undefined by protocol": "Mean IoU is undefined under protocol torchvision: car and sky "
        "have no IoU.",
    }
