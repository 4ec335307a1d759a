"""Adapted Rand error and variation of information, as scikit-image and CREMI compute them."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.cli.main import main
from segiou.measures.partitions import PartitionOptions, partition_scores

FOLDER = Path(__file__).parents[4] / "shared" / "rules" / "partitions"
#: A merge of two segments, and a pixel outside.
TRUTH, PRED = [[0, 1, 1, 2, 2]], [[0, 5, 5, 5, 5]]


def test_a_merge_lowers_precision_and_a_split_recall():
    merge, split = partition_scores(TRUTH, PRED), partition_scores(PRED, TRUTH)
    # 2 pairs of neighbours within the true segments, 6 in the merged one.
    assert (merge["rand_precision"], merge["rand_recall"]) == (4 / 12, 1)
    assert merge["rand_error"] == split["rand_error"] == 1 - 2 * 4 / (4 + 12)
    assert (merge["voi_split"], merge["voi_merge"]) == (0, 1)
    assert (split["rand_precision"], split["rand_recall"], split["voi_split"]) == (1, 4 / 12, 1)


def test_predicted_zeros_are_a_segment_or_singletons():
    truth, pred = [[1, 1, 1, 1]], [[0, 0, 3, 3]]
    assert partition_scores(truth, pred)["rand_recall"] == 4 / 12
    # CREMI: 2² of id 3, and 2 zeros of 4 pixels.
    assert partition_scores(truth, pred, rule="cremi")["rand_recall"] == (4 + 2 / 4) / 16


def test_nothing_to_score_is_undefined():
    assert np.isnan([*partition_scores([[0, 0]], [[1, 2]]).values()]).all()


def test_folders_of_ids_have_the_mean_over_images(tmp_path, capsys):
    for side, ids in (("truth", TRUTH), ("pred", PRED)):
        (tmp_path / side).mkdir()
        for name, image in (("a", ids), ("b", TRUTH)):
            Image.fromarray(np.array(image, np.uint8)).save(tmp_path / side / f"{name}.png")
    places = [str(tmp_path / side) for side in ("truth", "pred")]
    assert main(["score", *places, "--objects", "labels", "--partitions"]) == 0
    assert "adapted Rand error" in " ".join(capsys.readouterr().out.split())
    run = segiou.score_folder(
        *places,
        labels=["background", "object"],
        objects="labels",
        measures=[PartitionOptions("cremi")],
    )
    report = run.report()
    assert report.score("voi_merge") == pytest.approx(1 / 2)
    assert report.score("rand_precision") == pytest.approx((8 / 16 + 1) / 2)


def test_class_maps_have_no_ids():
    with pytest.raises(ValueError, match="--objects labels"):
        segiou.score([[[0, 1]]], [[[0, 1]]], labels=2, measures=[PartitionOptions()])


@pytest.mark.skipif(not FOLDER.exists(), reason="needs the shared cases")
def test_golden_values():
    masks = np.load(FOLDER / "partitions.npz")
    for name, case in json.loads((FOLDER / "partitions.json").read_text())["cases"].items():
        sides = masks[f"{name}_truth"], masks[f"{name}_pred"]
        for keep, kind in (((), ""), ((0,), "_ignore_0")):
            found = partition_scores(*sides, ignore=keep)
            theirs = case["skimage_adapted_rand" + ("" if keep else "_keep_0")]
            same(found, [theirs[key] for key in ("error", "recall", "precision")])
            same(found, case["skimage_voi" + kind].values(), ("voi_split", "voi_merge"))
        found = partition_scores(*sides, rule="cremi")
        same(found, case["cremi_rand"].values())
        same(found, case["cremi_voi"].values(), ("voi_split", "voi_merge"))


def same(found, values, names=("rand_error", "rand_precision", "rand_recall")):
    for name, value in zip(names, values, strict=True):
        assert found[name] == pytest.approx(value, abs=1e-12, nan_ok=True), name


def test_lists_of_different_lengths_are_named():
    with pytest.raises(ValueError, match="truth_ids"):
        partition_scores([[1, 2], [3]], [[1, 2], [3, 4]])
