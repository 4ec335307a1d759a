"""Masks in zarr stores and safetensors files."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from mask_files import required

import segiou
from segiou import DataError
from segiou.masks import FileMask, open_source
from segiou.masks.sources import array_stores

RNG = np.random.default_rng(3)
TRUTH = RNG.integers(0, 3, (4, 9, 12), dtype=np.uint8)
PRED = np.where(RNG.random(TRUTH.shape) < 0.7, TRUTH, 1).astype(np.uint8)
EXPECTED = segiou.score(TRUTH, PRED, labels=3).report().mean_iou


def write_zarr(path, arrays):
    zarr = required("zarr")
    group = zarr.open_group(str(path), mode="w")
    for name, values in arrays.items():
        stored = group.create_array(
            name, shape=values.shape, chunks=values.shape, dtype=values.dtype
        )
        stored[...] = values


def write_safetensors(path, arrays):
    required("safetensors")
    from safetensors.numpy import save_file

    save_file({name: np.ascontiguousarray(values) for name, values in arrays.items()}, path)


WRITERS = {".zarr": write_zarr, ".safetensors": write_safetensors}


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("stacked", [True, False])
def test_stores_are_scored_like_their_arrays(tmp_path, ending, stacked):
    for side, masks in (("truth", TRUTH), ("pred", PRED)):
        arrays = {"masks": masks} if stacked else {f"image{i}": m for i, m in enumerate(masks)}
        WRITERS[ending](tmp_path / f"{side}{ending}", arrays)
    run = segiou.score_folder(tmp_path / f"truth{ending}", tmp_path / f"pred{ending}", labels=3)
    assert len(run) == 4
    assert run.report().mean_iou == EXPECTED
    assert [*run.ids] == [f"masks/{i}" if stacked else f"image{i}" for i in range(4)]
    # The page opens single masks by their path.
    path = run.rows()[2]["truth"] if "truth" in run.rows()[2] else run[2].truth
    raw, _ = open_source(path).read(path)
    np.testing.assert_array_equal(raw.values, TRUTH[2])


def test_one_array_of_a_store(tmp_path):
    for side, masks in (("truth", TRUTH), ("pred", PRED)):
        write_zarr(tmp_path / f"{side}.zarr", {"a": masks[0], "deep/b": masks})
    found = open_source(tmp_path / "truth.zarr").find()
    assert [*found] == ["a", "deep/b/0", "deep/b/1", "deep/b/2", "deep/b/3"]
    given = tmp_path / "truth.zarr" / "a", tmp_path / "pred.zarr" / "a"
    run = segiou.score_folder(*given, labels=3)
    assert run.report().mean_iou == segiou.score(TRUTH[:1], PRED[:1], labels=3).report().mean_iou


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("as_pattern", [False, True])
def test_one_store_per_case(tmp_path, ending, as_pattern):
    for side, masks in (("truth", TRUTH), ("pred", PRED)):
        (tmp_path / side / "x").mkdir(parents=True)
        for name, one in zip(("a", "b", "x/c"), masks, strict=False):
            WRITERS[ending](tmp_path / side / f"{name}{ending}", {"labels": one})
    places = [tmp_path / side for side in ("truth", "pred")]
    if as_pattern:
        places = [str(place / f"*{ending}") for place in places]
    run = segiou.score_folder(*places, labels=3, run=tmp_path / "r.sqlite", workers=2)
    ids = ["a", "b"] if as_pattern else ["a", "b", "x/c"]
    assert [*run.ids] == ids
    n = len(ids)
    assert run.total() == segiou.score(TRUTH[:n], PRED[:n], labels=3).total()


def test_an_item_of_a_stack_is_no_pattern_of_arrays(tmp_path):
    write_zarr(tmp_path / "a.zarr", {"m": TRUTH, "m1": PRED[0]})
    source = open_source(tmp_path / "a.zarr")
    path = source.find()["m/1"]
    np.testing.assert_array_equal(open_source(path).read(path)[0].values, TRUTH[1])


@pytest.mark.parametrize("as_pattern", [False, True])
def test_stores_that_a_link_repeats_are_refused(tmp_path, as_pattern):
    write_zarr(tmp_path / "truth" / "a.zarr", {"labels": TRUTH})
    (tmp_path / "truth" / "b.zarr").symlink_to(tmp_path / "truth" / "a.zarr")
    source = open_source(tmp_path / "truth" / "*" if as_pattern else tmp_path / "truth")
    with pytest.raises(ValueError, match=r"b.zarr: leads to the same folder as .*a.zarr"):
        source.find()


@pytest.mark.parametrize("ending", WRITERS)
def test_stores_of_several_arrays_in_a_folder(tmp_path, ending):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        WRITERS[ending](tmp_path / side / f"a{ending}", {"labels": TRUTH})
        WRITERS[ending](tmp_path / side / f"b{ending}", {"x": TRUTH[0], "y": TRUTH[1]})
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3)
    assert [*run.ids] == ["a/0", "a/1", "a/2", "a/3", "b/x", "b/y"]
    with pytest.raises(DataError, match="is a store, in which an array"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3, array_axes="zyx")


def test_masks_beside_a_store_are_scored(tmp_path):
    write_zarr(tmp_path / "a.zarr", {"labels": TRUTH})
    np.save(tmp_path / "b.npy", TRUTH[0])
    assert [*open_source(tmp_path).find()] == ["b.npy"]


def test_large_arrays_are_read_in_windows(tmp_path, monkeypatch):
    monkeypatch.setattr(array_stores, "WHOLE_PIXELS", 10)
    for side, masks in (("truth", TRUTH), ("pred", PRED)):
        write_zarr(tmp_path / f"{side}.zarr", {"masks": masks})
    source = open_source(tmp_path / "truth.zarr")
    raw, _ = source.read(next(iter(source.find().values())))
    assert isinstance(raw.values, FileMask)
    run = segiou.score_folder(tmp_path / "truth.zarr", tmp_path / "pred.zarr", labels=3)
    assert run.report().mean_iou == EXPECTED


@pytest.mark.parametrize("ending", WRITERS)
def test_other_arrays_are_named(tmp_path, ending):
    truth, pred = (tmp_path / f"{side}{ending}" for side in ("truth", "pred"))
    WRITERS[ending](truth, {"a": TRUTH[0]})
    WRITERS[ending](pred, {"a": PRED[0].astype(np.float32)})
    whole = segiou.score_folder(truth, pred, labels=3).total()
    assert whole == segiou.score(TRUTH[0], PRED[0], labels=3).total()
    WRITERS[ending](pred, {"a": (PRED[0] == 2).astype(np.float32) / 4})
    with pytest.raises(DataError, match=r"contains float32 values; .*\[such as 0\.25\]"):
        segiou.score_folder(truth, pred, labels=3)
    WRITERS[ending](pred, {"a": np.stack([TRUTH, TRUTH])})
    with pytest.raises(DataError, match=r"\(2, 4, 9, 12\)"):
        segiou.score_folder(truth, pred, labels=3)


@pytest.mark.parametrize("ending", WRITERS)
def test_axes_of_length_1_are_dropped(tmp_path, ending):
    truth, pred = (tmp_path / f"{side}{ending}" for side in ("truth", "pred"))
    WRITERS[ending](truth, {"a": TRUTH, "b": TRUTH[0]})
    WRITERS[ending](pred, {"a": PRED[None, :, None], "b": PRED[None, None, 0]})
    run = segiou.score_folder(truth, pred, labels=3)
    masks = [*TRUTH, TRUTH[0]], [*PRED, PRED[0]]
    assert [*run.ids] == ["a/0", "a/1", "a/2", "a/3", "b"]
    assert run.report().mean_iou == segiou.score(*masks, labels=3).report().mean_iou


@pytest.mark.parametrize("ending", WRITERS)
def test_a_name_after_a_store_selects_arrays_or_is_an_error(tmp_path, ending):
    store = tmp_path / f"both{ending}"
    WRITERS[ending](store, {"truth": TRUTH, "pred": PRED, "deep/er": TRUTH[0]})
    run = segiou.score_folder(store / "truth", store / "pred", labels=3)
    assert run.report().mean_iou == EXPECTED
    assert [*open_source(store / "deep").find()] == ["er"]
    for wrong in ("Truth", "tru", "classes"):
        words = rf"unknown array or group '{wrong}'; choose from deep/er, pred, truth"
        with pytest.raises(DataError, match=words):
            segiou.score_folder(store / wrong, store / "pred", labels=3)


def write_ngff(path, labels, *, version="0.4", image=False):
    """An OME-NGFF file of labels (y, x) with a pyramid, below an image with channels or alone."""
    zarr = required("zarr")
    axes = [{"name": name, "type": "space"} for name in "yx"]

    def pyramid(group, values, axes, **more):
        for level in range(3):
            group.create_array(str(level), data=values[..., :: 2**level, :: 2**level])
        datasets = [{"path": str(level)} for level in range(3)]
        scales = {"multiscales": [{"axes": axes, "datasets": datasets, "version": version}], **more}
        group.attrs.update(scales if version == "0.4" else {"ome": scales})

    root = zarr.open_group(str(path), mode="w", zarr_format=2 if version == "0.4" else 3)
    if image:
        channels = [{"name": "c", "type": "channel"}, *axes]
        pyramid(root, np.full((2, *labels.shape), 1, np.uint8), channels)
        root = root.create_group("labels").create_group("cells")
    pyramid(root, labels, axes, **{"image-label": {}})


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize(
    ("image", "below", "name"),
    [
        (False, "", "mask"),
        (True, "", "labels/cells"),
        (True, "labels", "cells"),
        (True, "labels/cells", "mask"),
        (True, "labels/cells/0", "mask"),
    ],
)
def test_ngff_is_its_labels_in_full_size(tmp_path, version, image, below, name):
    for side, mask in (("truth", TRUTH[0]), ("pred", PRED[0])):
        write_ngff(tmp_path / f"{side}.ome.zarr", mask, version=version, image=image)
    places = (tmp_path / f"{side}.ome.zarr" / below for side in ("truth", "pred"))
    run = segiou.score_folder(*places, labels=3)
    assert [*run.ids] == [name]
    assert run.report().mean_iou == segiou.score(TRUTH[:1], PRED[:1], labels=3).report().mean_iou
    (path,) = open_source(tmp_path / "truth.ome.zarr" / below).find().values()
    np.testing.assert_array_equal(open_source(path).read(path)[0].values, TRUTH[0])


def test_an_ngff_image_without_labels_is_not_a_mask(tmp_path):
    write_ngff(tmp_path / "image.zarr", TRUTH[0], image=True)
    shutil.rmtree(tmp_path / "image.zarr" / "labels")
    with pytest.raises(ValueError, match="is an image of 2 channels without labels"):
        open_source(tmp_path / "image.zarr").find()


def test_a_missing_reader_is_named(tmp_path, monkeypatch):
    write_zarr(tmp_path / "truth.zarr", {"a": TRUTH[0]})
    monkeypatch.setitem(__import__("sys").modules, "zarr", None)
    with pytest.raises(ValueError, match="pip install zarr"):
        open_source(tmp_path / "truth.zarr").find()
