"""What people have in place of masks: photos beside or instead of them, pointers, regions."""

from __future__ import annotations

import numpy as np
import pytest
from mask_files import write_masks
from PIL import Image

import segiou
from segiou import LabelSet, MaskError
from segiou.masks import open_source, read_mask, read_volume
from segiou.report import match_images

TRUTH, PRED = [[0, 0, 1, 1]], [[0, 1, 1, 1]]
IOUS = [1 / 2, 2 / 3]
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n"


def ious(run):
    return [row.iou for row in run.report().classes]


@pytest.mark.parametrize("ending", ["jpg", "JPEG"])
def test_photos_of_the_names_of_masks(tmp_path, ending):
    names = ["a [x=1,y=2]", "b/c"]
    write_masks(tmp_path / "truth", dict.fromkeys(names, TRUTH))
    write_masks(tmp_path / "pred", dict.fromkeys(names, PRED))
    for name in names:
        Image.new("RGB", (4, 1)).save(tmp_path / "truth" / f"{name}.{ending}")
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=2)
    assert [*run.ids] == names
    assert ious(run) == IOUS
    found = match_images(tmp_path / "truth", run.ids)
    assert {path.suffix for path in found.files.values()} == {f".{ending}"}
    assert len(found.files) == 2


def test_photos_are_masks_if_the_suffix_says_so(tmp_path):
    write_masks(tmp_path / "truth", {"a": TRUTH})
    write_masks(tmp_path / "pred", {"a": PRED})
    Image.fromarray(np.uint8(TRUTH) * 255).save(tmp_path / "truth" / "a.jpg")
    how = {"labels": 2, "truth_suffix": ".jpg", "truth_threshold": 128}
    assert ious(segiou.score_folder(tmp_path / "truth", tmp_path / "pred", **how)) == IOUS


@pytest.mark.parametrize("run", [None, "r.sqlite"])
@pytest.mark.parametrize("as_pattern", [False, True])
def test_regions_of_interest_in_the_files_of_the_truth(tmp_path, run, as_pattern):
    """As in Occ3D, whose labels have the voxels that a camera sees."""
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
    for name in "ab":
        arrays = {"semantics": np.array(TRUTH), "seen": np.array([[1, 1, 1, 0]], bool)}
        np.savez(tmp_path / "truth" / f"{name}.npz", **arrays, other=np.zeros((1, 4), int))
        np.savez(tmp_path / "pred" / f"{name}.npz", pred=np.array(PRED))
    places = [tmp_path / "truth", tmp_path / "pred"]
    if as_pattern:
        places = [str(place / "*.npz") for place in places]
    how = {"labels": 2, "array_key": "semantics,pred"}
    seen = segiou.score_folder(*places, roi="seen", run=run and tmp_path / run, **how)
    assert seen.total().matrix.tolist() == [[2, 2], [0, 2]]
    assert seen.provenance["roi"] == "seen"
    with pytest.raises(segiou.DataError, match="name the one that is 0 outside the region"):
        segiou.score_folder(*places, roi="sene", **how)


def test_a_region_that_is_missing_is_a_folder(tmp_path):
    write_masks(tmp_path / "truth", {"a": TRUTH})
    write_masks(tmp_path / "pred", {"a": PRED})
    with pytest.raises((segiou.DataError, ValueError), match="fov: does not exist"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=2, roi="fov")


@pytest.mark.parametrize("name", ["a.png", "a.npy", "a.npz", "a.tif", "a.nii", "a.nii.gz", "a.jpg"])
def test_pointers_of_git_lfs(tmp_path, name):
    (tmp_path / name).write_bytes(POINTER)
    with pytest.raises(MaskError, match=r"is a pointer of Git LFS .*git lfs pull"):
        read_mask(tmp_path / name)
    (tmp_path / "pred").mkdir()
    np.save(tmp_path / "pred" / "a.npy", PRED)
    with pytest.raises(segiou.DataError, match=r"is a pointer of Git LFS .*git lfs pull"):
        segiou.score_folder(tmp_path / name, tmp_path / "pred" / "a.npy", labels=2)


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.json", "a.parquet"])
def test_pointers_in_place_of_files_of_masks(tmp_path, name):
    pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(POINTER)
    with pytest.raises(ValueError, match=r"is a pointer of Git LFS .*git lfs pull"):
        open_source(tmp_path / name).find()


def test_pointers_in_place_of_volumes(tmp_path):
    pytest.importorskip("nibabel")
    (tmp_path / "a.nii.gz").write_bytes(POINTER)
    with pytest.raises(MaskError, match="is a pointer of Git LFS"):
        read_volume(tmp_path / "a.nii.gz")


@pytest.mark.parametrize("ending", ["jpg", "png"])
@pytest.mark.parametrize("colors", [False, True])
def test_photographs_are_called_so(tmp_path, ending, colors):
    noise = np.random.default_rng(0).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    Image.fromarray(noise).save(tmp_path / f"a.{ending}")
    classes = [{"name": "a", "values": [0]}, {"name": "b", "values": [1]}]
    if colors:
        classes[0]["colors"] = ["#808080"]
    with pytest.raises(
        MaskError,
        match=r"is a photograph, (not a mask|or a mask that lossy JPEG)",
    ):
        read_mask(tmp_path / f"a.{ending}", LabelSet.from_dict({"classes": classes}))


def test_lossy_masks_may_be_photographs(tmp_path):
    """Small masks that JPEG has changed have as many colours."""
    mask = np.kron(np.random.default_rng(0).integers(0, 4, (8, 8)), np.ones((20, 20), int))
    colors = np.uint8([[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0]])
    Image.fromarray(colors[mask]).save(tmp_path / "a.jpg", quality=75)
    with pytest.raises(MaskError, match=r"a mask that lossy JPEG has changed; .*--allow-lossy"):
        read_mask(tmp_path / "a.jpg")
    Image.fromarray(np.kron(np.uint8([[0, 255]]), np.ones((40, 40), np.uint8))).save(
        tmp_path / "a.jpg"
    )
    with pytest.raises(MaskError, match="is a lossy JPEG, which can change label values"):
        read_mask(tmp_path / "a.jpg")
