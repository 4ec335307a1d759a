"""Places of masks as data sets have them: patterns, photos beside masks, published roots."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from mask_files import score_pairs, write_mask, write_masks
from PIL import Image

import segiou
from segiou import DataError
from segiou.masks import open_source, pair_folders
from segiou.masks.sources.mask_places import duplicate_advice

TRUTH, PRED = [[0, 0, 1, 1]], [[0, 1, 1, 1]]


def ious(run):
    return [row.iou for row in run.report().classes]


def test_a_pattern_of_folders(tmp_path):
    for place in ("Rural", "Urban"):
        write_masks(tmp_path / "Val" / place / "masks_png", {"1": TRUTH, place: TRUTH})
        write_masks(tmp_path / "Val" / place / "images_png", {"1": [[7, 7, 7, 7]]})
        write_masks(tmp_path / "pred" / place, {"1": PRED, place: PRED})
    pattern = str(tmp_path / "Val" / "*" / "masks_png")
    how = {"labels": 2, "run": tmp_path / "r.sqlite"}
    run = segiou.score_folder(pattern, tmp_path / "pred", **how)
    assert run.ids == ("Rural/1", "Rural/Rural", "Urban/1", "Urban/Urban")
    assert ious(run) == [1 / 2, 2 / 3]
    assert ious(segiou.score_folder(pattern, tmp_path / "pred", **how)) == [1 / 2, 2 / 3]
    with pytest.raises(DataError, match="no mask files found"):
        segiou.score_folder(str(tmp_path / "Val" / "*" / "masks"), tmp_path / "pred", labels=2)


def test_names_of_folders_are_no_patterns(tmp_path):
    write_masks(tmp_path / "[old] masks" / "val", {"a": TRUTH})
    write_masks(tmp_path / "o masks" / "val", {"b": TRUTH})
    for pattern in ("[old] masks/*", "[old] masks/val", "[old] masks/val/?.png"):
        (path,) = open_source(tmp_path / pattern).find().values()
        assert path == str(tmp_path / "[old] masks/val/a.png")


def test_folders_of_thumbnails_are_skipped(tmp_path):
    write_masks(tmp_path, dict.fromkeys(("a", "@eaDir/a.png/THUMB_M", "#recycle/b"), TRUTH))
    assert [*open_source(tmp_path).find()] == ["a.png"]


def test_a_pattern_of_files(tmp_path):
    write_masks(tmp_path / "data", {"a_mask": TRUTH, "a_edges": PRED, "b/c_mask": TRUTH})
    write_masks(tmp_path / "pred", {"a": PRED, "b/c": PRED})
    for pattern, ids in (("*_mask.png", ("a",)), ("**/*_mask.png", ("a", "b/c"))):
        run = segiou.score_folder(
            str(tmp_path / "data" / pattern), tmp_path / "pred", labels=2, extra="skip"
        )
        assert run.ids == ids
        assert ious(run) == [1 / 2, 2 / 3]


@pytest.mark.parametrize("pattern", ["**/*.png", "**", "**/"])
def test_a_recursive_pattern_is_as_its_folder(tmp_path, pattern):
    write_masks(tmp_path / "data", {"1": TRUTH, "b/1": PRED})
    write_masks(tmp_path / "pred", {"1": PRED, "b/1": PRED})
    sides = [f"{tmp_path}/{side}/{pattern}" for side in ("data", "pred")]
    runs = [segiou.score_folder(*both, labels=2) for both in (sides, (sides[0], tmp_path / "pred"))]
    assert [run.ids for run in runs] == [("1", "b/1")] * 2
    assert ious(runs[0]) == ious(
        segiou.score_folder(tmp_path / "data", tmp_path / "pred", labels=2)
    )


@pytest.mark.parametrize("pattern", ["*.npz", "*/case_*.npz", "?/case_1.npz"])
@pytest.mark.parametrize("arrays", [("labels",), ("labels", "spacing")])
def test_a_pattern_of_npz_files(tmp_path, pattern, arrays):
    """In each file one mask, as in a folder of them."""
    inner = "" if pattern == "*.npz" else "x"
    for side, values in (("truth", TRUTH), ("pred", PRED)):
        (tmp_path / side / inner).mkdir(parents=True)
        content = dict(zip(arrays, (np.array(values), np.ones(2)), strict=False))
        for name in ("case_1", "case_2"):
            np.savez(tmp_path / side / inner / f"{name}.npz", **content)
    places = [str(tmp_path / side / pattern) for side in ("truth", "pred")]
    run = segiou.score_folder(*places, labels=2)
    assert len(run) == (1 if "1" in pattern else 2)
    assert ious(run) == [1 / 2, 2 / 3]


def test_a_pattern_of_npz_shards(tmp_path):
    for part in (0, 1):
        np.savez(
            tmp_path / f"masks-{part}.npz", **{f"{part}{k}": np.eye(2, dtype=int) for k in "ab"}
        )
    for pattern in ("masks-*.npz", "masks-{0..1}.npz"):
        assert [*open_source(tmp_path / pattern).find()] == ["0a.npy", "0b.npy", "1a.npy", "1b.npy"]


def test_photos_beside_masks_are_not_scored(tmp_path):
    write_masks(tmp_path / "truth", {"a_mask": TRUTH, "b_mask": TRUTH})
    write_masks(tmp_path / "pred", {"a": PRED, "b": PRED})
    for name in "ab":
        Image.new("RGB", (4, 1)).save(tmp_path / "truth" / f"{name}.jpg")
    run = score_pairs(tmp_path, labels=2)
    assert ious(run) == [1 / 2, 2 / 3]
    assert "'_mask.png' of the truth" in run.provenance["pairing"]


def test_masks_that_may_be_images_need_a_suffix(tmp_path):
    write_masks(tmp_path / "truth", {"a_mask": TRUTH, "b_mask": TRUTH, "a": PRED, "b": PRED})
    write_masks(tmp_path / "pred", {"a": PRED, "b": PRED})
    with pytest.raises(DataError, match=r"--truth-suffix _mask\.png"):
        score_pairs(tmp_path, labels=2)
    assert ious(score_pairs(tmp_path, labels=2, truth_suffix="_mask.png")) == [1 / 2, 2 / 3]


@pytest.mark.parametrize(
    ("paths", "advice"),
    [
        (["t/a.jpg", "t/a.png"], "keep one, or select files by suffix: truth_suffix='.png'"),
        (["t/R/images/a.png", "t/R/masks/a.png"], "the place of the masks: 't/R/masks'"),
        (["t/x/a.png", "t/y/a.png"], "rename one, or use the same subfolders in both places"),
    ],
)
def test_advice_for_equal_keys_can_help(paths, advice):
    assert duplicate_advice(paths).startswith(advice) or advice in duplicate_advice(paths)


@pytest.mark.parametrize(
    ("layout", "truth", "others", "pred"),
    [
        (
            "LoveDA",
            ["Rural/masks_png/2522.png", "Urban/masks_png/3514.png"],
            ["Rural/images_png/2522.png", "Urban/images_png/3514.png"],
            ["2522.png", "3514.png"],
        ),
        (
            "ETCI",
            ["bangladesh/tiles/flood_label/bangladesh_x-0_y-0.png"],
            [
                "bangladesh/tiles/vv/bangladesh_x-0_y-0_vv.png",
                "bangladesh/tiles/vh/bangladesh_x-0_y-0_vh.png",
                "bangladesh/tiles/water_body_label/bangladesh_x-0_y-0.png",
            ],
            ["bangladesh_x-0_y-0.png"],
        ),
    ],
)
def test_roots_of_published_data_sets(layout, truth, others, pred):
    named = [{name: name for name in names} for names in (truth + others, pred)]
    found = pair_folders(*named)
    assert found.rule == f"{layout} file names"
    assert [(p.truth, p.pred) for p in found.pairs] == list(zip(truth, pred, strict=True))
    assert not (found.missing or found.extra or found.duplicates or found.masks_suffix)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((150, 189), "width and height are swapped; save it transposed"),
        ((192, 160), "the aspect ratio differs, so it was padded"),
        ((189, 100), "the aspect ratio differs, so it was cropped or padded"),
        ((95, 75), "resize with resize_pred='nearest'"),
    ],
)
def test_sizes_are_explained(tmp_path, shape, message):
    write_mask(tmp_path / "truth" / "a.png", [[0] * 150] * 189)
    write_mask(tmp_path / "pred" / "a.png", [[0] * shape[1]] * shape[0])
    with pytest.raises(DataError, match=message) as caught:
        score_pairs(tmp_path, labels=2)
    assert ("resize_pred" in str(caught.value)) == (shape == (95, 75))
    if shape == (150, 189):
        with pytest.raises(DataError, match=message):
            score_pairs(tmp_path, labels=2, resize_pred="nearest")


def test_label_id_of_hugging_face(tmp_path):
    segments = [{"id": i + 1, "label_id": i, "was_fused": False, "score": 0.9} for i in (0, 1)]
    content = {"annotations": [{"image_id": 1, "file_name": "a.png", "segments_info": segments}]}
    path = Path(tmp_path / "pred.json")
    path.write_text(json.dumps(content))
    write_mask(tmp_path / "pred" / "a.png", [[[1, 0, 0], [2, 0, 0], [2, 0, 0], [2, 0, 0]]])
    write_mask(tmp_path / "truth" / "a.png", TRUTH)
    assert ious(segiou.score_folder(tmp_path / "truth", path, labels=2)) == [1 / 2, 2 / 3]


def test_a_wrong_name_after_a_file_of_masks_is_an_error_with_its_names(tmp_path):
    np.savez(tmp_path / "case.npz", gts=np.ones((2, 3), int), segs=np.ones((2, 3), int))
    with zipfile.ZipFile(tmp_path / "masks.zip", "w") as archive:
        for folder in ("truth", "pred"):
            with archive.open(f"{folder}/a.npy", "w") as file:
                np.save(file, np.ones((2, 3), int))
    (tmp_path / "coco.json").write_text("{}")
    for place, words in (
        ("case.npz/seg", "unknown part 'seg'; choose from gts, segs; did you mean segs?"),
        ("masks.zip/pre", "unknown part 'pre'; choose from pred, truth; did you mean pred?"),
        ("coco.json/a", "is inside a JSON file; pass the file"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            open_source(tmp_path / place).find()
