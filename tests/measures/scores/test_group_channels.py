"""Channels of regions, as nnU-Net exports them: counted as groups, never as classes in silence."""

from __future__ import annotations

import json

import numpy as np
import pytest

import segiou
from segiou.cli.main import main
from segiou.measures.scores import ScoreOptions

BRATS = {"background": 0, "whole": [1, 2, 3], "core": [2, 3], "enhancing": [3]}
#: Channels of whole tumour, core and enhancing; the last pixel is enhancing alone.
PROBABILITIES = np.array(
    [
        [[0.9, 0.8, 0.7, 0.1, 0.2, 0.4]],
        [[0.8, 0.2, 0.6, 0.1, 0.3, 0.1]],
        [[0.7, 0.1, 0.4, 0, 0, 0.9]],
    ]
)
TRUTH = np.array([[3, 2, 2, 0, 1, 3]], np.uint8)
#: By hand: 3, 1, 2, 0, 0, 3.
MATRIX = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 2]]


@pytest.fixture
def folder(tmp_path):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
    np.save(tmp_path / "truth" / "a.npy", TRUTH)
    return tmp_path


def save(folder, channels, labels=None, **name):
    np.savez(folder / "pred" / "a.npz", **{name.get("name", "probabilities"): channels})
    (folder / "dataset.json").write_text(json.dumps({"labels": labels or BRATS}))
    return {"labels": folder / "dataset.json"}


def scored(folder, *, labels, **options):
    measures = [ScoreOptions(**options)]
    return segiou.score_folder(folder / "truth", folder / "pred", labels=labels, measures=measures)


def test_regions_of_a_dataset_json(folder):
    run = scored(folder, **save(folder, PROBABILITIES.astype(np.float32)))
    assert run.total().matrix.tolist() == MATRIX
    groups = {row["name"]: row["iou"] for row in run.report().to_dict()["groups"]}
    # Whole: 4 of 5 pixels, none predicted beside them; enhancing: both, none beside them.
    assert groups == {"whole": 4 / 5, "core": 3 / 4, "enhancing": 1.0}
    histogram = run.counts_of("scores")
    assert histogram.class_names == ("whole", "core", "enhancing")
    assert histogram.counts.sum(1).tolist() == [[1, 5], [2, 4], [4, 2]]
    # Enhancing is ranked perfectly.
    assert histogram.roc_auc()[2] == 1.0
    command = ["score", *(str(folder / side) for side in ("truth", "pred")), "--scores", "-q"]
    command += ["--labels", str(folder / "dataset.json"), "--run", str(folder / "r")]
    assert main(command) == 0
    again = segiou.Run.open(folder / "r").counts_of("scores")
    assert again.counts.tolist() == histogram.counts.tolist()


def test_groups_of_another_label_set_need_the_option(folder):
    save(folder, PROBABILITIES)
    entries = [{"name": str(k), "values": [k]} for k in range(4)]
    groups = {"whole": ["1", "2", "3"], "core": ["2", "3"], "enhancing": ["3"]}
    labels = segiou.LabelSet.from_dict({"name": "x", "classes": entries, "groups": groups})
    with pytest.raises(segiou.DataError, match="that are groups, pass channels='groups'"):
        scored(folder, labels=labels)
    with pytest.raises(segiou.DataError, match="for regions, use nnU-Net's dataset"):
        scored(folder, labels=4)
    run = scored(folder, labels=labels, channels="groups")
    assert run.total().matrix.tolist() == MATRIX


def test_as_many_regions_as_classes(folder):
    # The number of channels fits both readings: their sums decide.
    labels = {"background": 0, "both": [1, 2], "one": [1], "two": [2]}
    regions = np.array([[[0.9, 0.8, 0.1]], [[0.8, 0.1, 0.1]], [[0.1, 0.9, 0.1]]])
    np.save(folder / "truth" / "a.npy", np.array([[1, 2, 0]], np.uint8))
    how = save(folder, regions, labels)
    assert scored(folder, **how).total().matrix.tolist() == np.eye(3).tolist()
    with pytest.raises(segiou.DataError, match="do not sum to 1, so they are probably regions"):
        scored(folder, labels=3)
    assert scored(folder, labels=3, channels="classes").total().matrix.tolist() == [
        [1, 0, 0],
        [1, 0, 0],
        [0, 0, 1],
    ]
    how = save(folder, np.moveaxis(np.eye(3)[[[1, 2, 0]]], -1, 0), labels)
    with pytest.raises(segiou.DataError, match="sum to 1, so they are probably classes"):
        scored(folder, **how)
    assert scored(folder, channels="classes", **how).total().matrix.tolist() == np.eye(3).tolist()


def test_groups_need_a_class_outside(folder):
    save(folder, PROBABILITIES)
    with pytest.raises(ValueError, match="needs a label set with groups"):
        scored(folder, labels=4, channels="groups")


def test_the_rows_of_a_single_region_are_not_channels(folder):
    # As many rows as classes, whose columns sum to 1; the pixels above 0.5 are (0, 0) and (1, 1).
    np.save(folder / "truth" / "a.npy", np.array([[1, 0], [0, 2], [0, 0]], np.uint8))
    labels = {"background": 0, "whole": [1, 2]}
    scores = np.array([[0.8, 0.2], [0.1, 0.7], [0.1, 0.1]])
    run = scored(folder, **save(folder, scores, labels, name="scores"))
    assert run.total().matrix.tolist() == [[4, 0, 0], [0, 1, 0], [0, 1, 0]]
