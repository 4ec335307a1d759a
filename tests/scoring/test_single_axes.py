"""Axes of length 1 and equal channels that leave one reading, and thresholds of scores."""

from __future__ import annotations

import numpy as np
import pytest
import tifffile
from mask_files import write_masks
from PIL import Image

import segiou
from segiou.cli.main import main

RNG = np.random.default_rng(1)
TRUTH = RNG.integers(0, 2, (2, 4, 5)).astype(np.uint8)
SCORES = RNG.random((2, 4, 5)).astype(np.float32)
PRED = (SCORES >= 0.5).astype(np.uint8)
EXPECTED = segiou.score(TRUTH, PRED, labels=2)
SHAPES = {
    "first": lambda mask: mask[None],
    "last": lambda mask: mask[..., None],
    "both": lambda mask: mask[None, ..., None],
    "channels": lambda mask: np.dstack([mask] * 3),
}


@pytest.fixture
def truth(tmp_path):
    write_masks(tmp_path / "truth", {"a": TRUTH[0], "b": TRUTH[1]})
    return tmp_path / "truth"


def named(masks):
    return dict(zip("ab", masks, strict=True))


def write(folder, masks, ending):
    folder.mkdir()
    for name, mask in zip("ab", masks, strict=True):
        path = folder / f"{name}.{ending}"
        {"npy": np.save, "npz": np.savez, "tif": tifffile.imwrite}[ending](path, mask)
    return folder


@pytest.mark.few(3)
@pytest.mark.parametrize("ending", ["npy", "npz"])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_mask_on_either_side(tmp_path, truth, shape, ending):
    pred = write(tmp_path / "pred", map(SHAPES[shape], PRED), ending)
    run = segiou.score_folder(truth, pred, labels=2, run=tmp_path / "r.sqlite")
    assert run.total() == EXPECTED.total()
    if ending == "npy":
        assert "data:image/png" in run.to_html()
    swapped = segiou.score_folder(pred, truth, labels=2)
    assert swapped.total().matrix.tolist() == EXPECTED.total().matrix.T.tolist()


def test_one_mask_on_both_sides(tmp_path):
    sides = [
        write(tmp_path / side, [m[None] for m in masks], "npy")
        for side, masks in (("t", TRUTH), ("p", PRED))
    ]
    assert segiou.score_folder(*sides, labels=2).total() == EXPECTED.total()
    found = segiou.compare_raters(dict(zip("tp", sides, strict=True)), labels=2)
    assert found == segiou.compare_raters({"t": named(TRUTH), "p": named(PRED)}, labels=2)


def test_regions_of_interest_of_single_axes(tmp_path, truth):
    pred = write(tmp_path / "pred", [mask[None] for mask in PRED], "npy")
    write_masks(tmp_path / "roi", {"a": [[1] * 5] * 4, "b": [[0] * 5] * 4})
    run = segiou.score_folder(pred, truth, labels=2, roi=tmp_path / "roi")
    assert run.total().matrix.sum() == 20


@pytest.mark.parametrize("shape", [(1, 4, 6), (2, 4, 5), (4, 5, 2), (4, 5, 3)])
def test_other_shapes_are_refused(tmp_path, truth, shape):
    pred = write(tmp_path / "pred", [np.arange(np.prod(shape)).reshape(shape) % 2] * 2, "npy")
    with pytest.raises(segiou.DataError, match="but the truth"):
        segiou.score_folder(truth, pred, labels=2)


@pytest.mark.few(3)
@pytest.mark.parametrize("ending", ["npy", "npz", "tif"])
@pytest.mark.parametrize("shape", ["plain", "first", "last"])
def test_scores_with_a_threshold(tmp_path, truth, shape, ending, capsys):
    if ending == "tif" and shape != "plain":
        pytest.skip("tifffile drops such axes")
    pred = write(tmp_path / "pred", map(SHAPES.get(shape, np.asarray), SCORES), ending)
    run = segiou.score_folder(truth, pred, labels=2, pred_threshold=0.5)
    assert run.total() == EXPECTED.total()
    command = ["score", str(truth), str(pred), "--labels", "2", "-q", "--format", "csv"]
    outputs = []
    for options in (["--pred-threshold", "0.5"], ["--scores", "--threshold", "0.5"]):
        assert main([*command, *options]) == 0
        outputs.append(capsys.readouterr().out.splitlines()[1].split(",")[:5])
    assert outputs[0] == outputs[1]


def test_thresholds_that_cannot_be_meant(tmp_path, truth, capsys):
    pred = write(tmp_path / "pred", [np.full((4, 5), np.nan)] * 2, "npy")
    with pytest.raises(segiou.DataError, match="20 scores NaN"):
        segiou.score_folder(truth, pred, labels=2, pred_threshold=0.5)
    grey = np.uint8([[3, 200, 0, 0, 0]] * 4)
    for name in "ab":
        (tmp_path / "pred" / f"{name}.npy").unlink()
        Image.fromarray(grey).save(tmp_path / "pred" / f"{name}.png")
    with pytest.raises(segiou.DataError, match=r"have integers, but a threshold of 0\.5 is for sc"):
        segiou.score_folder(truth, pred, labels=2, pred_threshold=0.5)
    command = ["score", str(truth), str(pred), "--labels", "2", "--pred-threshold"]
    for value in ("0", "nan", "-1", "x"):
        try:
            code = main([*command, value])
        except SystemExit as error:
            code = error.code
        assert code == 2, value
    with pytest.raises(ValueError, match="pred_threshold must be above 0"):
        segiou.score_folder(truth, pred, labels=2, pred_threshold=0)
