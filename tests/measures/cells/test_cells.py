"""Scores of cells: hand-computed values, the tools' values, and dense matchings."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from scipy.optimize import linear_sum_assignment

import segiou
from segiou.labels import ClassOptions
from segiou.measures import MaskPair, Masks, Parts
from segiou.measures.cells import CellOptions, cell_scores
from segiou.measures.object_mask import ObjectMask

FOLDER = Path(__file__).parents[4] / "shared" / "kinds" / "cells"
#: Truth 1 (3 pixels) has 2 of prediction 1 (IoU 2/3); truth 2 (2 pixels) has 1 of prediction 3,
#: which has 2 (IoU 1/3); prediction 4 is alone.
TRUTH, PRED = [[1, 1, 1, 2, 2, 0, 0]], [[1, 1, 0, 0, 3, 3, 4]]


def test_hand_computed_scores():
    found = cell_scores(TRUTH, PRED)
    # One match of 2 true and 3 predicted objects up to IoU 0.65.
    assert found["stardist_ap50"] == found["cellpose_ap50"] == 1 / 4
    assert found["stardist_ap75"] == found["cellpose_ap75"] == found["cellpose_ap90"] == 0
    assert found["stardist_ap"] == pytest.approx(4 / 10 / 4)
    assert found["stardist_f1"] == found["hovernet_dq"] == 2 / 5
    # Intersections 2 + 1, unions 3 + 3, and prediction 4.
    assert found["hovernet_aji"] == found["hovernet_aji_plus"] == 3 / 7
    assert found["cellpose_aji"] == 3 / 7  # 7 pixels of objects
    assert found["hovernet_sq"] == (2 / 3) / (1 + 1e-6)
    assert found["hovernet_pq"] == found["hovernet_dq"] * found["hovernet_sq"]
    # Prediction 1 has more than half of truth 1; prediction 3 has only half of truth 2.
    assert found["ctc_seg"] == (2 / 3) / 2


def test_a_prediction_is_reused_by_aji_alone():
    # The prediction covers truth 1 (2 of 5) and truth 2 (3 of 5): IoU 2/5 and 3/5.
    found = cell_scores([[1, 1, 2, 2, 2]], [[9, 9, 9, 9, 9]])
    assert found["hovernet_aji"] == 5 / 10
    assert found["hovernet_aji_plus"] == 3 / (5 + 2)
    assert found["cellpose_aji"] == 3 / 5


def test_of_equal_ious_the_larger_union_counts():
    # Truth 1 (4 pixels) has IoU 1/4 with prediction 1 (1 pixel of 1) and prediction 2 (2 of 6).
    found = cell_scores([[1, 1, 1, 1, 0, 0, 0, 0]], [[1, 2, 2, 0, 2, 2, 2, 2]])
    assert found["hovernet_aji"] == found["hovernet_aji_plus"] == 2 / (8 + 1)


def test_two_halves_are_one_match():
    assert cell_scores([[1, 1, 1, 1]], [[5, 5, 6, 6]])["stardist_ap50"] == 1 / 2
    assert cell_scores([[5, 5, 6, 6]], [[1, 1, 1, 1]])["stardist_ap50"] == 1 / 2


@pytest.mark.parametrize("truth", [[[0, 0]], np.zeros((0, 3), int)])
def test_nothing_is_true(truth):
    assert np.isnan([*cell_scores(truth, np.full_like(truth, 4)).values()]).all()


def test_nothing_is_predicted():
    assert set(cell_scores([[1, 2]], [[0, 0]]).values()) == {0.0}


@given(arrays(np.int16, (2, 8, 8), elements=st.sampled_from([0, 1, 2, 3, 70, 300])))
def test_groups_are_matched_as_all_objects_are(sides):
    truth, pred = sides
    if not truth.any():
        return
    found = cell_scores(truth, pred)
    true, predicted = (np.array([side == i for i in np.unique(side) if i]) for side in sides)
    inter = np.array([[(t & p).sum() for p in predicted] for t in true]).reshape(len(true), -1)
    areas = true.sum((1, 2))[:, None] + predicted.reshape(-1, 64).sum(1)
    iou = inter / np.maximum(areas - inter, 1)
    close = iou >= 0.5
    rows, columns = linear_sum_assignment(-close.astype(float))
    hits = int(close[rows, columns].sum())
    assert found["stardist_ap50"] == hits / (len(true) + len(predicted) - hits)
    rows, columns = linear_sum_assignment(-iou)
    best = iou[rows, columns].sum()
    shared = found["hovernet_aji_plus"]
    assert (best == 0) == (shared == 0)
    assert 0 <= shared <= 1
    covered = 2 * inter > true.sum((1, 2))[:, None]
    assert found["ctc_seg"] == pytest.approx((iou * covered).sum() / len(true))


@pytest.mark.skipif(not FOLDER.exists(), reason="needs the shared scenes")
def test_values_of_the_tools():
    golden = json.loads((FOLDER / "golden.json").read_text())
    for name, theirs in golden["images"].items():
        found = cell_scores(*(read(FOLDER / side / f"{name}.png") for side in ("truth", "pred")))
        if not theirs["n_truth"]:  # the tools crash, or return 0
            continue
        precision = [tp / (tp + fp + fn) for tp, fp, fn in theirs["stardist"].values()]
        wanted = {
            "stardist_ap50": precision[0],
            "stardist_ap75": precision[5],
            "stardist_ap": np.mean(precision),
            "cellpose_aji": theirs["cellpose_aji"],
            "hovernet_aji_plus": theirs["aji_plus"],
            "ctc_seg": theirs["ctc_seg"],
        }
        keys = "hovernet_dq", "hovernet_sq", "hovernet_pq"
        wanted |= dict(zip(keys, theirs["dq_sq_pq"], strict=True))
        if theirs["n_pred"]:
            wanted["hovernet_aji"] = theirs["aji"]
        for key, value in wanted.items():
            assert found[key] == pytest.approx(value, abs=1e-9), (name, key)
        three = [found[f"cellpose_ap{percent}"] for percent in (50, 75, 90)]
        assert three == pytest.approx(theirs["cellpose_ap_50_75_90"], abs=1e-7)  # float32


def read(path):
    return np.array(Image.open(path))


@pytest.fixture
def folders(tmp_path):
    """The objects above; the truth itself; and an image without true objects."""
    empty = np.zeros_like(TRUTH)
    for side, images in (("truth", (TRUTH, TRUTH, empty)), ("pred", (PRED, TRUTH, PRED))):
        (tmp_path / side).mkdir()
        for name, image in zip("abc", images, strict=True):
            Image.fromarray(np.array(image, np.uint8)).save(tmp_path / side / f"{name}.png")
    return [str(tmp_path / side) for side in ("truth", "pred")]


def test_stardist_pools_objects_and_the_others_average_images(folders):
    run = segiou.score_folder(
        *folders, labels=["background", "cell"], objects="labels", measures=["cells"]
    )
    report = run.report()
    # TP 1 + 2 + 0; the images have 4, 2 and 3 objects that are matched or not.
    assert report.score("stardist_ap50") == 3 / 9
    assert report.score("cellpose_ap50") == pytest.approx((1 / 4 + 1) / 2)
    assert report.score("hovernet_aji") == pytest.approx((3 / 7 + 1) / 2)
    assert report.score("ctc_seg", "cell") == pytest.approx((2 / 3 + 0 + 1 + 1) / 4)
    assert report.score("pannuke_bpq") == report.score("pannuke_mpq")
    assert report.score("pannuke_mpq") == pytest.approx(report.score("hovernet_pq"))
    assert np.isnan(report.score("cellpose_ap50", "background"))


def test_every_command_has_them(folders, tmp_path, command):
    Path(tmp_path / "perfect").mkdir()
    for image in Path(folders[0]).glob("*.png"):
        (tmp_path / "perfect" / image.name).write_bytes(image.read_bytes())
    runs = [tmp_path / "a.segiou", tmp_path / "b.segiou"]
    for run, pred in zip(runs, (folders[1], tmp_path / "perfect"), strict=True):
        options = "--objects", "labels", "--cells", "--run", run, "--format", "csv"
        code, out, _ = command("score", folders[0], pred, *options)
        assert code == 0
        assert "hovernet_aji_plus" in out
    code, out, _ = command("compare", *runs, "--metric", "hovernet_aji", "--group-by", "none")
    assert code == 0
    assert "AJI (HoVer-Net)" in " ".join(out.split())
    assert command("report", runs[0], "--fail-under", "ctc_seg=0.9")[0] == 1


def test_mean_of_classes_and_cells_without_classes():
    """PanNuke's mPQ is the mean over images of their mean over classes."""
    plan = CellOptions().plan(ClassOptions.of(["background", "tumour", "stroma"]), Masks())
    parts = Parts.joined(
        plan.layout,
        [
            # Tumour 1 is found, stroma 2 is predicted as tumour.
            plan.count(pair([[1, 1, 2, 2]], [[1, 1, 2, 2]], [[1, 1, 2, 2]], [[1, 1, 1, 1]])),
            plan.count(pair([[1, 1, 0, 0]], [[1, 1, 0, 0]], [[1, 1, 0, 0]], [[1, 1, 0, 0]])),
        ],
    )
    whole = 1 / (1 + 1e-6)
    tumour = whole * 2 / 3  # a match and a false positive
    values = {name: plan.scores[name].values(parts.total) for name in plan.scores}
    assert values["hovernet_pq"][2:] == pytest.approx([(tumour + whole) / 2, 0])
    assert values["pannuke_mpq"][0] == pytest.approx(((tumour + 0) / 2 + whole) / 2)
    assert values["pannuke_bpq"][0] == pytest.approx((2 / (2 + 1e-6) + whole) / 2)


def pair(truth_ids, pred_ids, truth, pred):
    sides = [np.array(side) for side in (truth_ids, pred_ids, truth, pred)]
    ids = tuple(
        ObjectMask(classes, found) for classes, found in zip(sides[2:], sides[:2], strict=True)
    )
    return MaskPair(sides[2], sides[3], ClassOptions.of(3), ids=ids)


def test_class_maps_have_no_ids():
    with pytest.raises(ValueError, match="--objects labels"):
        segiou.score([[[0, 1]]], [[[0, 1]]], labels=2, measures=["cells"])


def test_impossible_counts_are_refused():
    plan = CellOptions().plan(ClassOptions.of(2), Masks())
    nothing = np.zeros((1, 3, 9))
    plan.check(Parts.of(plan.layout, cases=nothing))
    objects = np.zeros((2, 12), int)
    objects[1, :3] = 1, 0, 1
    with pytest.raises(ValueError, match="more matched cells than cells"):
        plan.check(Parts.of(plan.layout, cases=nothing, objects=objects))
