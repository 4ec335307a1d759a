"""Scores of challenges by the options that docs/why-another-number.md names, by hand."""

import json

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou import geometry, metrics
from segiou.cli.main import main

TRUTH = [[[1, 1, 1, 0]], [[0, 0, 0, 0]], [[1, 0, 0, 0]]]
PRED = [[[1, 1, 0, 0]], [[0, 0, 0, 0]], [[1, 1, 1, 1]]]  # IoU 2/3, both empty, 1/4


def test_isic_counts_an_image_without_a_lesion_as_1():
    run = segiou.score(TRUTH, PRED, labels=["background", "lesion"], exclude=["background"])
    assert run.report("smp-imagewise").mean_iou == pytest.approx((2 / 3 + 1 + 1 / 4) / 3)
    assert run.report("smp-imagewise").mean_dice == pytest.approx((4 / 5 + 1 + 2 / 5) / 3)
    iou = np.nan_to_num(metrics.iou(run.counts)[:, 1], nan=1)
    assert np.where(iou < 0.65, 0, iou).mean() == pytest.approx((2 / 3 + 1 + 0) / 3)


def test_endovis_averages_over_the_instruments_of_a_frame():
    truth = [[[0, 1, 1, 2]], [[0, 0, 0, 0]], [[2, 2, 0, 0]]]
    pred = [[[0, 1, 0, 2]], [[0, 0, 0, 1]], [[2, 2, 2, 1]]]
    run = segiou.score(truth, pred, labels=3, exclude=[0])
    # The second frame has no instruments: 0 in the kit, because one is predicted.
    assert run.report("monai").mean_iou == pytest.approx(((1 / 2 + 1) / 2 + 2 / 3) / 2)
    # ISI IoU also averages over the instruments that are only predicted.
    expected = ((1 / 2 + 1) / 2 + 0 + (2 / 3 + 0) / 2) / 3
    assert run.report("metricsreloaded").mean_iou == pytest.approx(expected)


def test_xview2_scores_damage_on_true_buildings():
    truth, pred = [[[0, 1, 1, 2, 3]]], [[[4, 1, 0, 2, 2]]]
    with pytest.warns(UserWarning, match="ignore includes values of the declared class '0'"):
        damage = segiou.score(truth, pred, labels=5, ignore=0)
    assert damage.total().dice()[1:3].tolist() == pytest.approx([2 / 3, 2 / 3])
    assert damage.total().dice()[3] == 0
    assert np.isnan(damage.total().dice()[4])  # predicted outside all buildings: 0 in the kit
    buildings = segiou.ConfusionMatrix(2).update(np.array(truth) > 0, np.array(pred) > 0)
    assert buildings.dice()[1] == 2 * 3 / (4 + 4)


def test_acdc_fills_missing_structures(tmp_path, capsys):
    for side, masks in (("truth", TRUTH), ("pred", [PRED[0], PRED[1], [[0, 0, 0, 0]]])):
        (tmp_path / side).mkdir()
        for i, mask in enumerate(masks):
            Image.fromarray(np.array(mask, np.uint8)).save(tmp_path / side / f"{i}.png")
    folders = [str(tmp_path / side) for side in ("truth", "pred")]
    empty = ("dice=1,0,0", "hausdorff=0,1,1", "average_surface_distance=0,1,1")
    options = ["--labels", "binary", "--surface", "medpy", "--exclude", "background"]
    fillings = [part for rule in empty for part in ("--empty", rule)]
    main(["score", *folders, *options, *fillings, "--format", "json"])
    rows = json.loads(capsys.readouterr().out)["surface_cases"]
    found = [
        tuple(row[name] for name in ("dice", "hausdorff", "average_surface_distance"))
        for row in rows
    ]
    # The third pixel of the truth is one away; of the five pixels of both outlines, it is 1 of 5.
    assert found == [(0.8, 1, 0.2), (1, 0, 0), (0, 1, 1)]


def test_spacenet_needs_an_iou_above_one_half():
    iou = [[0.5, 0], [0, 0.6]]
    found, strict = (geometry.greedy_match(iou, threshold=at) for at in (0.5, np.nextafter(0.5, 1)))
    assert (found.tp, found.fp, found.fn) == (2, 0, 0)
    assert (strict.tp, strict.fp, strict.fn) == (1, 1, 1)
