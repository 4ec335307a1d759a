"""Masks in zarr stores and safetensors files."""

from __future__ import annotations

import numpy as np
import pytest
from mask_files import required

import segiou
from segiou.masks.sources import array_stores
from segiou.masks.sources.folders import open_source
from segiou.masks.windows import FileMask
from segiou.scoring.job import DataError

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
    WRITERS[ending](pred, {"a": TRUTH[0].astype(np.float32)})
    with pytest.raises(DataError, match="contains float32 values"):
        segiou.score_folder(truth, pred, labels=3)
    WRITERS[ending](pred, {"a": TRUTH[None]})
    with pytest.raises(DataError, match=r"\(1, 4, 9, 12\)"):
        segiou.score_folder(truth, pred, labels=3)


def test_a_missing_reader_is_named(tmp_path, monkeypatch):
    write_zarr(tmp_path / "truth.zarr", {"a": TRUTH[0]})
    monkeypatch.setitem(__import__("sys").modules, "zarr", None)
    with pytest.raises(ValueError, match="pip install zarr"):
        open_source(tmp_path / "truth.zarr").find()
