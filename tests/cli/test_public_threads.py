"""Situations of public issues: the right number after at most one correction, which is proposed.

Each case is what a person would type first, and the options that the answer then proposes.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from segiou import ConfusionMatrix
from segiou.cli.main import main

THREADS = Path(__file__).parents[2].parent / "shared" / "data" / "threads"

RELLIS = (
    "Rellis-3D/00004/os1_cloud_node_semantickitti_label_id "
    "predictions/sequences/04/predictions --labels"
)
IDS = ("paddle_val.txt", "yolo_val.txt", "abs_val.txt", "win.csv:Bild", "utf16.csv:Bild")
#: The folder, the first try, and the correction.
CASES = [
    ("01-pets-trimap", "annotations/trimaps predictions --labels 3",
     "--labels 1-3 --pred-labels 0-2"),
    ("01-pets-trimap", "annotations/trimaps predictions --labels 4", "--pred-labels none,0-2"),
    ("01-pets-trimap", "annotations/trimaps predictions --labels oxford-pets",
     "--labels 1-3 --pred-labels 0-2"),
    ("05-pannuke", "sem.npy pred_types.npy --labels 6", "--array-axes nyx"),
    ("06-rellis-labels", f"{RELLIS} rellis.yaml", ""),
    ("06-rellis-labels", f"{RELLIS} semantickitti", "--labels rellis"),
    ("09-slicer-layers", "labelsTs preds --labels 3", ""),
    ("10-palette-reordered", "SegmentationClass pred --labels voc2012", "--read-palette colors"),
    ("13-keras-sigmoid", "masks y_pred --labels binary --pred-threshold 0.5", ""),
    ("13-keras-sigmoid", "masks y_pred --labels binary", "--scores --threshold 0.5"),
    ("14-cvat-xml", "annotations.xml predictions --labels classes.txt", ""),
    ("15-uavid", "'uavid_val/*/Labels' results --labels cls_uavid.txt",
     "--labels uavid --pred-labels 0-2,6,3-4,7,5"),
    ("15-uavid", "'uavid_val/*/Labels' results --labels 8",
     "--labels uavid --pred-labels 0-2,6,3-4,7,5"),
    ("15-uavid", "'uavid_val/*/Labels' results --labels named.toml",
     "--pred-labels 1,0,3-4,2,5-7"),
    ("16-freesurfer", "aseg synthseg --labels FreeSurferColorLUT.txt", ""),
    ("22-kaggle-rle", "train.csv predictions --labels 5", ""),
    ("22-kaggle-rle", "train.csv submission.csv --labels 5", ""),
    ("30-qupath-tiles", "'export [slide 1]/labels' 'pred [v2]' --labels 3", ""),
    ("37-pointcept", "data/scannet/val exp/result --labels 20 --ignore -1",
     r"--key '([^/]+?)(?:/segment20|_pred)\.[^/]+$'"),
    ("38-umlauts-mac", "Masken Vorhersagen --labels 3", ""),
    ("39-frame-numbers", "gt out --labels 3", r"--key '(?<!\d)0*(\d+)[^/]*$' --extra skip"),
    *(("45-split-lists", f"ds/annotations/val pred --labels 3 --ids {ids}", "") for ids in IDS),
    ("46-cityscapes-trainids", "gtFine/val pred --labels cityscapes",
     "--pred-labels cityscapes-train"),
    ("46-cityscapes-trainids", "gtFine/val pred --labels cityscapes --unassigned count",
     "--pred-labels cityscapes-train"),
]  # fmt: skip

#: Modules that read the files of a situation.
NEEDS = {"09-slicer-layers": ["SimpleITK"], "16-freesurfer": ["nibabel"]}


def expected_of(thread, monkeypatch):
    """The expected scores; the folder of the thread is the current one."""
    if not (THREADS / thread).is_dir():
        pytest.skip(f"no shared data: {thread}")
    monkeypatch.chdir(THREADS / thread)
    return json.loads(Path("expected.json").read_text())


def scored(capsys, options):
    """The report, None after an error, and what was noted, on one line."""
    code = main(["score", *shlex.split(options), "--format", "json"])
    said = capsys.readouterr()
    return json.loads(said.out) if code == 0 else None, " ".join(said.err.split())


@pytest.mark.few(4)
@pytest.mark.parametrize(("thread", "first", "correction"), CASES)
def test_the_right_number_after_at_most_one_correction(
    capsys, monkeypatch, thread, first, correction
):
    expected = expected_of(thread, monkeypatch)["mean_iou"]
    for module in NEEDS.get(thread, ()):
        pytest.importorskip(module, reason=f"the volumes of this situation need {module}")
    report, said = scored(capsys, first)
    if correction:
        assert report is None or report["mean_iou"] != pytest.approx(expected)
        # Options may be proposed one by one in a sentence.
        assert all(word in said for word in correction.split(" "))
        report, said = scored(capsys, f"{first} {correction}")
    assert "as if truth and predictions were numbered differently" not in said
    assert report is not None, said
    assert report["mean_iou"] == pytest.approx(expected, abs=1e-9)


def test_a_baseline_on_other_images(capsys, monkeypatch, tmp_path):
    expected = expected_of("44-ci-new-images", monkeypatch)
    run = str(tmp_path / "main.sqlite")
    assert main(["score", "truth_main", "pred_main", "--labels", "3", "--run", run, "-q"]) == 0
    command = ["score", "truth_pr", "pred_pr", "--labels", "3", "--baseline", run]
    assert main([*command, "--fail-if-worse"]) == 2
    assert "--common compares the images of both" in " ".join(capsys.readouterr().err.split())
    assert main([*command, "--fail-if-worse", "--common"]) == 1
    assert f"−{-100 * expected['delta']:.2f} points" in capsys.readouterr().err


#: Corrections that the answer proposes in two problems, and a note after them.
TWO_PROBLEMS = [
    (
        "03-occ3d",
        "gts results --labels 18 --array-key semantics,pred",
        [r"--key '(.+)/(?:labels|pred)\.[^/]+$'", "--array-axes zyx"],
        "mean_iou",
    ),
    (
        "07-goose",
        "labels/val predictions --labels goose",
        ["--truth-suffix _labelids --pred-suffix _windshield_vis", "--unassigned count"],
        "mean_iou_without_undefined",
    ),
]


@pytest.mark.parametrize(("thread", "first", "corrections", "score"), TWO_PROBLEMS)
def test_the_problems_of_files_that_are_not_paired_yet(
    capsys, monkeypatch, thread, first, corrections, score
):
    expected = expected_of(thread, monkeypatch)[score]
    report, said = scored(capsys, first)
    assert report is None
    assert all(one in said for one in corrections)
    assert "; or " not in said  # of the proposals for pairing, only the one that fits
    command = " ".join((first, *corrections))
    report, said = scored(capsys, command)
    if thread == "03-occ3d":
        assert f"--roi mask_camera # {100 * expected:.2f} %" in said
        assert "--roi mask_lidar # 32.28 %" in said
        report, said = scored(capsys, f"{command} --roi mask_camera")
    assert report["mean_iou"] == pytest.approx(expected)


def commands_in(said):
    """The complete commands that a message proposes, each without its comment."""
    rows = (row.strip() for row in said.splitlines())
    return [row.partition("  # ")[0] for row in rows if row.startswith("segiou score ")]


@pytest.mark.few(1)
@pytest.mark.parametrize("labels", ["cls_uavid.txt", "8", "right.toml --ignore 255"])
def test_one_command_for_the_place_and_the_classes(capsys, monkeypatch, labels):
    """Each of the two problems is known once the other one is solved."""
    expected = expected_of("15-uavid", monkeypatch)["mean_iou"]
    first = ["score", "uavid_val", "results", "--labels", *labels.split()]
    assert main(first) == 3
    said = capsys.readouterr().err
    assert "pass the place of the masks: 'uavid_val/*/Labels' (6 pairs match" in said
    assert "same key" not in said
    commands = commands_in(said) or [f"segiou score 'uavid_val/*/Labels' results --labels {labels}"]
    assert main([*shlex.split(commands[0])[1:], "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean_iou"] == pytest.approx(expected)


def test_small_scores_are_upsampled(monkeypatch):
    expected = expected_of("35-hf-notebook", monkeypatch)["mean_iou"]
    with np.load("eval_pred.npz") as content:
        scores, truth = content["logits"], content["labels"]
    with pytest.raises(ValueError, match=r"upsample scores of pred first, .*torch\.nn\.functional"):
        ConfusionMatrix(5, ignore=255).update(truth, scores, argmax=1)
    torch = pytest.importorskip("torch")
    options = {"size": truth.shape[-2:], "mode": "bilinear", "align_corners": False}
    large = torch.nn.functional.interpolate(torch.tensor(scores), **options)
    matrix = ConfusionMatrix(5, ignore=255).update(truth, large, argmax=1)
    assert matrix.mean_iou() == pytest.approx(expected)
