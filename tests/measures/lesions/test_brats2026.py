"""Lesion-wise scores of BraTS 2026, by hand and against the published evaluation."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import segiou
from segiou.measures.lesions import LESION_PROTOCOLS, LesionOptions, lesion_scores, object_scores

GOLDEN = Path(__file__).parents[4] / "shared" / "rules" / "brats2026"
SHARED = pytest.mark.skipif(not GOLDEN.exists(), reason="needs the shared cases")
DETECTION = {"tp": "tp", "fp": "fp", "fn": "fn", "precision": "prec", "sensitivity": "rec"}
MEANS = {"dice": "dsc", "hausdorff_95": "hd95", "surface_dice": "nsd"}


def volumes():
    """A large lesion found with Dice 0.75, a small one missed, and a false positive."""
    truth, pred = np.zeros((2, 8, 12, 12), int)
    truth[1:5, 1:5, 1:5] = truth[6, 10, 10] = 3
    pred[2:6, 1:5, 1:5] = pred[1, 10, 1] = 3
    return truth, pred


def test_scores_by_hand():
    found = lesion_scores(*volumes(), spacing=1, protocol="brats2026-goat")["et"]
    assert [found[name] for name in ("tp", "fp", "fn")] == [1, 1, 1]
    assert (found["f1"], found["dice"], found["hausdorff_95"]) == (0.5, 0.75, 1.0)
    assert found["surface_dice"] == 1.0  # within 1 mm
    assert found["overall_dice"] == 96 / 130
    # Of 57 surface voxels each, only those of the lone lesions are further than 1 mm away.
    assert found["overall_surface_dice"] == pytest.approx(56 / 57)


def test_meningiomas_by_hand():
    """Regions of MenPre are 3, 1 + 3 and 1 + 2 + 3, and that of MenRT is 1, as the rules say.

    The shared goldens have no case of either with a lesion, so these values are computed here.
    """
    truth, pred = np.zeros((2, 10, 10, 10), int)
    truth[1:3, 1:3, 1:3] = pred[1:3, 1:3, 1:3] = 1
    truth[1:3, 1:3, 3:5] = 3  # 8 voxels, of which 4 are found
    pred[1:3, 1:3, 3:4] = 3
    truth[6:8, 6:8, 6:8] = 2  # 8 voxels that are missed
    found = lesion_scores(truth, pred, spacing=(1, 1, 2), protocol="brats2026-menpre")
    assert [*found] == ["et", "tc", "wt"]
    assert [[row[n] for n in ("tp", "fp", "fn")] for row in found.values()] == [
        [1, 0, 0],
        [1, 0, 0],
        [1, 0, 1],
    ]
    dice = [row["dice"] for row in found.values()]
    assert dice == pytest.approx([2 * 4 / 12, 2 * 12 / 28, 2 * 12 / 28])
    assert found["wt"]["f1"] == found["wt"]["overall_dice"] == pytest.approx(2 / 3)
    # 8 surface voxels of the truth, of which 4 are 2 mm from the 4 of the prediction.
    assert found["et"]["hausdorff_95"] == 2
    assert found["et"]["surface_dice"] == (4 / 8 + 1) / 2
    gtv = lesion_scores(truth == 1, pred == 1, spacing=1, protocol="brats2026-menrt")["gtv"]
    assert (gtv["tp"], gtv["dice"], gtv["hausdorff_95"]) == (1, 1.0, 0.0)
    with pytest.raises(ValueError, match="labels 2 and 3 are not in any region"):
        lesion_scores(truth, pred, spacing=1, protocol="brats2026-menrt")


def test_bands_of_mets_count_every_false_positive_and_small_lesions_only_there():
    found = lesion_scores(*volumes(), spacing=1, protocol="brats2026-mets")["et"]
    assert (found["dice"], found["hausdorff_95"]) == (0.75 / 2, (1 + 373) / 2)
    small, large = found["bands"]
    assert [small[n] for n in ("tp", "fp", "fn", "f1")] == [0, 1, 1, 0]
    assert [large[n] for n in ("tp", "fp", "fn")] == [1, 1, 0]
    truth, pred = volumes()
    lone = lesion_scores(truth * 0, pred, spacing=1, protocol="brats2026-mets")["et"]
    assert math.isnan(lone["dice"])
    assert math.isnan(lone["bands"][1]["fp"])


def test_folders_have_the_means_over_cases():
    truth, pred = volumes()
    run = segiou.score(
        [truth, truth], [pred, 0 * pred], labels=4, measures=[LesionOptions("brats2026-mets")]
    )
    scores = run.report().scores_by_name
    assert scores["lesion_f1_large"].rows["et"] == pytest.approx((2 / 3 + 0) / 2)
    assert scores["region_hd95"].rows["et"] == pytest.approx((1 + 373) / 2, abs=1e-6)
    assert scores["lesion_dice"].rows["et"] == 0.75 / 2 / 2


def test_images_rank_by_their_errors():
    truth, pred = volumes()
    run = segiou.score(
        [truth, truth], [pred, 0 * pred], labels=4, measures=[LesionOptions("brats2026-mets")]
    )
    better = {column.name: column.better for column in run.plans[0].image_columns}
    assert better["lesions_missed"] == better["lesions_false_positive"] == "lower"
    assert better["lesions_found"] is None
    assert [row["id"] for row in run.worst(by="lesions_missed")] == ["1", "0"]


@SHARED
def test_the_assignment_maximises_dice():
    for case in json.loads((GOLDEN / "assignment.json").read_text()):
        found = object_scores(case["truth"], case["pred"], spacing=None, protocol="brats2026-gli")
        assert found["dice"] == pytest.approx(case["by_dice"]["sq_dsc"], abs=1e-12)
        by_iou = replace(LESION_PROTOCOLS["brats2026-gli"], matching="iou")
        found = object_scores(case["truth"], case["pred"], spacing=None, protocol=by_iou)
        assert found["dice"] == pytest.approx(case["by_iou"]["sq_dsc"], abs=1e-12)


@SHARED
@pytest.mark.gate
@pytest.mark.parametrize("task", ["gli", "mets", "ped"])
def test_golden_values(task):
    nibabel = pytest.importorskip("nibabel")
    rows = {
        row["subject_id"]: row
        for row in csv.DictReader((GOLDEN / f"{task}.csv").read_text().splitlines())
    }
    protocol = replace(LESION_PROTOCOLS[f"brats2026-{task}"], published=True)
    for case in json.loads((GOLDEN / f"{task}.json").read_text())["metrics"]:
        name = case["subject_name"]
        files = [nibabel.load(GOLDEN / side / name) for side in ("ref", "pred")]
        spacing = [float(step) for step in files[0].header.get_zooms()]
        sides = [np.asarray(file.dataobj).astype(int) for file in files]
        for region, found in lesion_scores(*sides, spacing=spacing, protocol=protocol).items():
            theirs = case[region]
            same(found, theirs, DETECTION | {"f1": "rq", "overall_dice": "global_bin_dsc"})
            ends = {"hausdorff_95": "hd95", "surface_dice": "nsd"}
            same(found, theirs, {f"overall_{a}": f"global_bin_{b}" for a, b in ends.items()})
            if task != "mets":
                same(found, theirs, {a: f"sq_{b}" for a, b in MEANS.items()})
                continue
            row = rows[name]
            same(found, row, {a: f"lesionwise_{b}_mean_{region}" for a, b in MEANS.items()})
            for band, size in zip(found["bands"], ("small", "large"), strict=True):
                numbers = DETECTION | {"f1": "f1"}
                same(band, row, {a: f"{size}_instance_{b}_{region}" for a, b in numbers.items()})


def same(ours, theirs, names):
    """Equal values under both names; undefined ones are empty or absent there."""
    for mine, other in names.items():
        expected = theirs.get(other)
        expected = math.nan if expected in (None, "") else float(expected)
        assert ours[mine] == pytest.approx(expected, rel=1e-9, nan_ok=True), (mine, other)
