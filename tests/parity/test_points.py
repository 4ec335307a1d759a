"""Labels of points, scored as the kits of SemanticKITTI and nuScenes do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from mask_files import part_of

import segiou
from segiou import MaskError, read_mask

ANNOTATORS = "SEGIOU_REQUIRE_ANNOTATORS"
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


@pytest.fixture(scope="module")
def kit():
    """The kit of nuScenes: its matrix, and how its 32 labels become 16 classes."""
    splits, colors = "nuscenes.utils.splits", "nuscenes.utils.color_map"
    found = part_of("nuscenes", "nuscenes.eval.lidarseg.utils", ANNOTATORS, splits)
    # The table of colours has the labels in the order of their numbers.
    labels = list(part_of("nuscenes", colors, ANNOTATORS).get_colormap())
    mapper = object.__new__(found.LidarsegClassMapper)
    mapper.ignore_class = mapper.get_ignore_class()
    names, indices = mapper.get_fine2coarse(), mapper.get_coarse2idx()
    return found.ConfusionMatrix, np.array([indices[names[label]] for label in labels]), indices


#: learning_map of config/semantic-kitti.yaml.
LEARNING_MAP = (
    {0: 0, 1: 0, 10: 1, 11: 2, 13: 5, 15: 3, 16: 5, 18: 4, 20: 5, 30: 6, 31: 7, 32: 8, 40: 9}
    | {44: 10, 48: 11, 49: 12, 50: 13, 51: 14, 52: 0, 60: 9, 70: 15, 71: 16, 72: 17, 80: 18}
    | {81: 19, 99: 0, 252: 1, 253: 7, 254: 6, 255: 8, 256: 5, 257: 5, 258: 4, 259: 5}
)


def pixels(least):
    return arrays(np.uint8, 30, elements=st.integers(least, 4))


def confusion(truth, pred, size):
    return np.bincount(size * truth.astype(int) + pred, minlength=size**2).reshape(size, size)


@given(pixels(0), pixels(0))
def test_semantickitti(truth, pred):
    matrix = segiou.ConfusionMatrix(**OPTIONS).update(truth, pred)
    expected = semantickitti(confusion(truth, pred, 5))
    assert matrix.mean_iou("semantickitti") == pytest.approx(expected, abs=1e-14)


@given(pixels(0), pixels(1))
def test_nuscenes(kit, truth, pred):
    matrix = segiou.ConfusionMatrix(**OPTIONS).update(truth, pred)
    expected = kit[0](5, ignore_idx=0)
    expected.update(truth, pred)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where no class has points
        mean = expected.get_mean_iou()
    # The kit divides by float32.
    assert matrix.mean_iou("nuscenes") == pytest.approx(mean, abs=1e-6, nan_ok=True)


def test_the_label_set_of_semantickitti_is_its_learning_map():
    rng = np.random.default_rng(0)
    raw = np.array([*LEARNING_MAP])
    table = np.zeros(260, int)
    table[raw] = list(LEARNING_MAP.values())
    truth, pred = rng.choice(raw, 2000), rng.choice(raw, 2000)
    matrix = segiou.ConfusionMatrix("semantickitti", unassigned="count").update(truth, pred)
    expected = semantickitti(confusion(table[truth], table[pred], 20))
    assert matrix.mean_iou("semantickitti") == pytest.approx(expected, abs=1e-14)
    labels = segiou.load_labels("semantickitti")
    assert [table[one.values[0]] for one in labels.classes] == list(range(1, 20))


def test_the_label_sets_of_nuscenes_are_those_of_its_kit(kit):
    kit_matrix, table, indices = kit
    labels, numbers = map(segiou.load_labels, ("nuscenes", "nuscenes-challenge"))
    assert {one.name: one.values for one in numbers.classes} == {
        name: (index,) for name, index in indices.items() if index
    }
    for index, one in enumerate(labels.classes, 1):
        assert np.flatnonzero(table == index).tolist() == list(one.values)
    rng = np.random.default_rng(0)
    truth, pred = rng.integers(0, 32, 2000), rng.integers(1, 17, 2000)
    expected = kit_matrix(17, ignore_idx=0)
    expected.update(table[truth], pred)
    matrix = segiou.ConfusionMatrix("nuscenes", pred_labels="nuscenes-challenge")
    found = matrix.update(truth, pred).mean_iou("nuscenes")
    assert found == pytest.approx(expected.get_mean_iou(), abs=1e-6)


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
    with pytest.raises(MaskError, match="7 bytes is not a multiple of 4"):
        read_mask(tmp_path / "a.label")
    (tmp_path / "a_lidarseg.bin").write_bytes(b"")
    with pytest.raises(MaskError, match="is empty"):
        read_mask(tmp_path / "a_lidarseg.bin")
