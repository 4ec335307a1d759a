"""Arrays beside volumes: the order of their axes is known, given or refused, never guessed."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
import tifffile

import segiou
from segiou.cli.main import main
from segiou.counting import count_pairs
from segiou.measures.scores import ScoreOptions
from segiou.report.pages.picture_masks import read_indices, reader_of

if os.environ.get("SEGIOU_REQUIRE_EXTRAS") != "1":
    pytest.importorskip("nibabel")
nibabel = importlib.import_module("nibabel")

CUBES = Path(__file__).parents[2].parent / "shared" / "data" / "cases" / "nnunet_cube"
SHAPES = {"cube": (6, 5, 6), "all differ": (6, 5, 4), "slice": (6, 6)}


@pytest.fixture(params=SHAPES)
def case(request, tmp_path):
    """A volume in (x, y, z), and its prediction in this order."""
    noise = np.random.default_rng(6)
    truth, pred = noise.integers(0, 3, (2, *SHAPES[request.param])).astype(np.uint8)
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
    nibabel.Nifti1Image(truth, np.eye(4)).to_filename(tmp_path / "truth" / "a.nii.gz")
    return tmp_path, pred, count_pairs(truth, pred, 3)[:, :3].tolist(), request.param


def counted(folder, **how):
    run = segiou.score_folder(folder / "truth", folder / "pred", labels=3, **how)
    return run.total().matrix.tolist()


@pytest.mark.parametrize("kind", ["npy", "npz", "tif"])
def test_labels(case, kind):
    folder, pred, table, name = case
    path = folder / "pred" / f"a.{kind}"

    def save(values):
        if kind == "tif":
            tifffile.imwrite(path, values, photometric="minisblack")
        elif kind == "npy":
            np.save(path, values)
        else:
            np.savez(path, values)

    save(pred.T)
    assert counted(folder, array_axes="zyx") == table
    if name == "all differ":
        assert counted(folder) == table
    else:
        with pytest.raises(segiou.DataError, match="--array-axes xyz or zyx"):
            counted(folder)
    save(pred)
    assert counted(folder, array_axes="xyz") == table


def test_truth_that_is_an_array(case):
    folder, pred, table, name = case
    np.save(folder / "pred" / "a.npy", pred.T)
    swapped = segiou.score_folder(folder / "pred", folder / "truth", labels=3, array_axes="zyx")
    assert swapped.total().matrix.T.tolist() == table
    if name == "all differ":
        again = segiou.score_folder(folder / "pred", folder / "truth", labels=3)
        assert again.total().matrix.T.tolist() == table
        (files,) = again._images.files
        pictures = read_indices(files.truth, [files.pred], [reader_of(again)]).arrays
        assert count_pairs(*pictures, 3)[:, :3].T.tolist() == table


@pytest.mark.parametrize("file", ["probabilities", "scores"])
def test_scores(case, file):
    folder, pred, table, name = case
    scores = np.moveaxis(np.eye(3, dtype=np.float32)[pred.T], -1, 0)
    if pred.ndim == 2:
        scores = scores[:, None]  # as nnU-Net exports 2-D images
    np.savez(folder / "pred" / "a.npz", **{file: scores})
    how = {"measures": [ScoreOptions()]}
    assert counted(folder, array_axes="zyx", **how) == table
    if file == "probabilities" or name == "all differ":
        run = segiou.score_folder(folder / "truth", folder / "pred", labels=3, **how)
        assert run.total().matrix.tolist() == table
        # The histograms hold the same pixels: each class's score is 1 where it is predicted.
        assert run.counts_of("scores").counts[:, -1].sum(-1).tolist() == np.sum(table, 0).tolist()
    else:
        with pytest.raises(segiou.DataError, match="--array-axes xyz or zyx"):
            counted(folder, **how)


def test_the_output_tells_the_order(case, capsys):
    folder, pred, _, name = case
    np.save(folder / "pred" / "a.npy", pred.T)
    command = ["score", str(folder / "truth"), str(folder / "pred"), "--labels", "3", "-q"]
    if name == "all differ":
        assert main(command) == 0
        assert "arrays in the only order of axes that fits" in " ".join(
            capsys.readouterr().out.split()
        )
    assert main([*command, "--array-axes", "zyx"]) == 0
    assert "arrays with axes z, y, x" in " ".join(capsys.readouterr().out.split())


@pytest.mark.skipif(not CUBES.is_dir(), reason="the cases are not beside this checkout")
def test_cubes_of_nnunet():
    wanted = json.loads((CUBES.parent / "expected.json").read_text())["nnunet_cube"]
    labels = CUBES / "dataset.json"
    for pred, how in (
        ("probabilities", {"measures": ["scores"]}),
        ("labels_zyx", {"array_axes": "zyx"}),
    ):
        run = segiou.score_folder(CUBES / "labelsTr", CUBES / pred, labels=labels, **how)
        assert run.total().iou().tolist() == wanted["iou"]
        assert run.report().mean_iou == wanted["mean_iou"]
