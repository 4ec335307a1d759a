"""Dice and IoU per component of the truth, by hand and as MONAI computes them."""

import json
from pathlib import Path

import numpy as np
import pytest

import segiou
from segiou.measures.components import ComponentOptions, component_counts
from segiou.metrics.ratio import ratio

FOLDER = Path(__file__).parents[4] / "shared" / "rules" / "components"


def scored(truth, pred, **how):
    return segiou.score(truth, pred, labels=2, measures=[ComponentOptions()], **how)


def test_every_component_weighs_the_same():
    # The first of 4 pixels is found with Dice 6/8, the second of 1 pixel is missed.
    run = scored([[[1, 1, 1, 1, 0, 0, 0, 1]]], [[[1, 1, 1, 0, 1, 0, 0, 0]]])
    report = run.report()
    assert report.score("component_dice", "1") == pytest.approx((6 / 8 + 0) / 2, abs=1e-9)
    assert report.score("component_iou", "1") == pytest.approx((3 / 5 + 0) / 2, abs=1e-9)


def test_components_and_images_are_averaged_and_lone_predictions_cost_nothing():
    rows = ([1, 0, 0, 1], [1, 1, 0, 0]), ([1, 1, 1, 1], [1, 1, 1, 1]), ([0] * 4, [1, 1, 1, 0])
    run = scored([[truth] for truth, _ in rows], [[pred] for _, pred in rows])
    report = run.report()
    assert report.score("component_dice", "1") == pytest.approx((2 / 3 + 0 + 1) / 3, abs=1e-9)
    assert report.score("component_dice_cases", "1") == pytest.approx((1 / 3 + 1) / 2, abs=1e-9)
    assert run.intervals("component_dice").overall.units == 3


def test_ignored_pixels_are_no_part_of_components():
    run = scored([[[1, 1, 255, 0]]], [[[1, 1, 1, 1]]], ignore=255)
    assert run.report().score("component_iou", "1") == pytest.approx(2 / 3, abs=1e-9)


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match="shape"):
        component_counts([[1]], [[1, 0]])


@pytest.mark.skipif(not FOLDER.exists(), reason="needs the shared cases")
def test_golden_values():
    masks = np.load(FOLDER / "components.npz")
    for name, case in json.loads((FOLDER / "components.json").read_text())["cases"].items():
        counts = component_counts(masks[f"{name}_truth"], masks[f"{name}_pred"])
        dice = ratio(2 * counts[:, 0], counts @ [2, 1, 1])
        mean = dice.mean() if len(dice) else np.nan
        assert mean == pytest.approx(case["monai_per_component_dice"], abs=2e-7, nan_ok=True)
        if len(dice):
            sides = ([masks[f"{name}_{side}"].astype(int)] for side in ("truth", "pred"))
            assert scored(*sides).report().score("component_dice_cases", "1") == pytest.approx(mean)
