"""Labels of points, scored as the kits of SemanticKITTI and nuScenes do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import segiou
from segiou.masks.read import MaskError, read_mask

NAMES = ("car", "bicycle", "road", "pole")
CLASSES = tuple(segiou.labels.LabelClass(name, (value,)) for value, name in enumerate(NAMES, 1))
#: 0 is no class: truth with it is ignored, and a prediction of it on a valid point is missed.
OPTIONS = {"labels": segiou.LabelSet("points", CLASSES, ignore=(0,)), "unassigned": "count"}


def semantickitti(matrix):
    """np_ioueval.py: rows are predictions; what the truth ignores is dropped, not its row."""
    conf = matrix.T.copy()
    conf[:, 0] = 0
    tp = np.diag(conf)
    union = conf.sum(axis=1) + conf.sum(axis=0) - tp + 1e-15
    return (tp / union)[1:].mean()


def nuscenes(matrix):
    """eval/lidarseg/utils.py: rows are truth; row and column of the ignored class are dropped."""
    conf = matrix.copy()
    conf[0, :] = 0
    conf[:, 0] = 0
    tp = np.diag(conf)
    union = conf.sum(axis=1) + conf.sum(axis=0) - tp
    with np.errstate(divide="ignore", invalid="ignore"):
        iou = tp / union.astype(np.float32)
    return float(np.nanmean(iou)) if (union > 0).any() else float("nan")


def pixels(least):
    return arrays(np.uint8, 30, elements=st.integers(least, 4))


def confusion(truth, pred):
    return np.bincount(5 * truth.astype(int) + pred, minlength=25).reshape(5, 5)


@given(pixels(0), pixels(0))
def test_semantickitti(truth, pred):
    matrix = segiou.ConfusionMatrix(**OPTIONS).update(truth, pred)
    expected = semantickitti(confusion(truth, pred))
    assert matrix.mean_iou("semantickitti") == pytest.approx(expected, abs=1e-14)


@given(pixels(0), pixels(1))
def test_nuscenes(truth, pred):
    matrix = segiou.ConfusionMatrix(**OPTIONS).update(truth, pred)
    # The kit divides by float32.
    expected = nuscenes(confusion(truth, pred))
    assert matrix.mean_iou("nuscenes") == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_points_that_are_predicted_as_ignored_count_as_missed():
    matrix = segiou.ConfusionMatrix(**OPTIONS)
    report = matrix.update([1, 1, 1, 3, 0], [1, 1, 0, 3, 1]).report("semantickitti")
    # getacc of the kit leaves the third point out, and gives 3 of 3.
    assert report.pixel_accuracy == 3 / 4
    assert matrix.mean_iou("semantickitti") == (2 / 3 + 0 + 1 + 0) / 4
    # The matrix of nuScenes leaves it out, too, but its kit refuses such predictions.
    assert matrix.mean_iou("nuscenes") == (2 / 3 + 1) / 2


def test_folders_as_they_are_published(tmp_path):
    truth, pred = np.array([0, 1, 1, 3], np.uint32), np.array([1, 1, 3, 3], np.uint32)
    for side, labels in (("labels", truth), ("predictions", pred)):
        folder = tmp_path / side / "sequences" / "08" / side
        folder.mkdir(parents=True)
        # The upper half is the number of an object.
        (labels | 7 << 16).astype("<u4").tofile(folder / "000000.label")
    folders = tmp_path / "labels", tmp_path / "predictions"
    run = segiou.score_folder(*folders, **OPTIONS)
    assert run.report("semantickitti").mean_iou == (1 / 2 + 1 / 2 + 0 + 0) / 4
    token = "0a" * 16
    for side, labels in (("v1.0-mini", truth), ("val", pred)):
        (tmp_path / side).mkdir()
        labels.astype(np.uint8).tofile(tmp_path / side / f"{token}_lidarseg.bin")
    run = segiou.score_folder(tmp_path / "v1.0-mini", tmp_path / "val", **OPTIONS)
    assert (run.ids, run.report("nuscenes").mean_iou) == ((token,), 1 / 2)


def test_files_of_points_that_are_cut_off(tmp_path):
    (tmp_path / "a.label").write_bytes(bytes(7))
    with pytest.raises(MaskError, match="7 bytes are no whole number of points"):
        read_mask(tmp_path / "a.label")
    (tmp_path / "a_lidarseg.bin").write_bytes(b"")
    with pytest.raises(MaskError, match="is empty"):
        read_mask(tmp_path / "a_lidarseg.bin")
