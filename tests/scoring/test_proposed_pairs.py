"""Proposals for pairing are tried on the masks: the one that fits is printed, with its problems."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from mask_files import write_masks
from PIL import Image

from segiou import DataError, score_folder
from segiou.cli.main import main

RNG = np.random.default_rng(5)
TRUTHS = [np.kron(RNG.integers(0, 3, (4, 5)), np.ones((4, 4), int)) for _ in range(3)]
PREDS = [np.where(RNG.random(one.shape) < 0.2, (one + 1) % 3, one) for one in TRUTHS]


def mean_iou(truths=TRUTHS, preds=PREDS):
    t, p = np.concatenate(truths).ravel(), np.concatenate(preds).ravel()
    return np.mean([((t == c) & (p == c)).sum() / ((t == c) | (p == c)).sum() for c in range(3)])


def write(folder, pattern, masks):
    write_masks(folder, {pattern.format(i): mask for i, mask in enumerate(masks)})


def problem_of(folder, **options):
    with pytest.raises(DataError) as caught:
        score_folder(folder / "truth", folder / "pred", **options)
    return str(caught.value)


def photo(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(RNG.integers(0, 256, (16, 20, 3)).astype(np.uint8)).save(path)


@pytest.mark.parametrize(
    ("image", "mask", "other", "pred", "options"),
    [
        # Layouts of CHASE_DB1, DeepGlobe, GlaS and DRIVE.
        ("{}.png", "{}_1stHO", "{}_2ndHO", "{}", {"truth_suffix": "_1stHO"}),
        ("{}_sat.png", "{}_mask", "{}_depth", "{}_sat",
         {"truth_suffix": "_mask", "pred_suffix": "_sat"}),
        ("images/{}_test.tif", "first/{}_manual", "fov/{}_test_mask", "{}_test",
         {"truth_suffix": "_manual", "pred_suffix": "_test"}),
    ],
)  # fmt: skip
def test_photos_with_the_names_of_predictions(tmp_path, image, mask, other, pred, options):
    for i in range(3):
        photo(tmp_path / "truth" / image.format(f"im{i}"))
    write(tmp_path / "truth", mask.replace("{}", "im{}"), TRUTHS)
    write(tmp_path / "truth", other.replace("{}", "im{}"), [t[::-1, ::-1] for t in TRUTHS])
    write(tmp_path / "pred", pred.replace("{}", "im{}"), PREDS)
    said = problem_of(tmp_path, labels=3)
    python = ", ".join(f"{name}={text!r}" for name, text in options.items())
    proposals = [part for part in said.split("; ") if " match with " in part]
    assert f"3 pairs match with {python} (--truth-suffix" in proposals[0]
    assert f"mean IoU {100 * mean_iou():.2f} %" in proposals[0]
    assert "photograph" not in said
    run = score_folder(tmp_path / "truth", tmp_path / "pred", labels=3, **options)
    assert run.report().mean_iou == pytest.approx(mean_iou())


def test_masks_that_are_scored_keep_their_pairs(tmp_path):
    """Files left over are no reason to propose others of the same number."""
    write(tmp_path / "truth", "im{}", TRUTHS)
    write(tmp_path / "truth", "im{}_old", [1 - t % 2 for t in TRUTHS])
    write(tmp_path / "pred", "im{}", PREDS)
    assert " match with " not in problem_of(tmp_path, labels=3)


def test_numbers_of_folders_beside_numbered_files(tmp_path):
    """KiTS: case_00000/segmentation beside prediction_00000."""
    write(tmp_path / "truth", "case_{:05}/segmentation", TRUTHS)
    write(tmp_path / "truth", "case_{:05}/imaging", [t * 9 for t in TRUTHS])
    write(tmp_path / "pred", "prediction_{:05}", PREDS)
    said = problem_of(tmp_path, labels=3)
    key = r"(?<!\d)0*(\d+)[^\d/]*(?:/segmentation)?\.[^/]+$"
    assert f"--key '{key}'), mean IoU {100 * mean_iou():.2f} %" in said
    run = score_folder(tmp_path / "truth", tmp_path / "pred", labels=3, key=key)
    assert run.report().mean_iou == pytest.approx(mean_iou())


def test_files_with_one_name_in_folders_of_several_kinds(tmp_path):
    """KITTI: the same names below semantic, instance and semantic_rgb."""
    for kind in ("semantic", "instance", "semantic_rgb"):
        factor = {"instance": 257}.get(kind, 1)
        write(tmp_path / "truth" / kind, "{}_10", [t * factor for t in TRUTHS])
    write(tmp_path / "pred", "{}_10", PREDS)
    said = problem_of(tmp_path, labels=3)
    assert f"pass the place of the masks: '{tmp_path}/truth/semantic'" in said
    assert "undeclared" not in said  # in the files of the other kinds


def test_the_pattern_of_folders_of_masks(tmp_path):
    for i in range(3):
        write(tmp_path / f"truth/seq{i}/Labels", "0", [TRUTHS[i]])
        write(tmp_path / f"truth/seq{i}/Images", "0", [TRUTHS[i] * 80])
        write(tmp_path / f"pred/seq{i}", "0", [PREDS[i]])
    pattern = f"{tmp_path}/truth/*/Labels"
    assert f"pass the place of the masks: '{pattern}'" in problem_of(tmp_path, labels=3)
    run = score_folder(pattern, tmp_path / "pred", labels=3)
    assert run.report().mean_iou == pytest.approx(mean_iou())


def test_files_without_a_key_on_both_sides_are_noted(tmp_path):
    write(tmp_path / "truth", "im{}", TRUTHS)
    write(tmp_path / "pred", "im{}", PREDS)
    with pytest.warns(UserWarning, match="2 truth files and 2 predictions are skipped") as noted:
        run = score_folder(tmp_path / "truth", tmp_path / "pred", labels=3, key="im(1)")
    assert (run.ids, noted[0].filename) == (("1",), __file__)


def test_the_pattern_of_folders_per_sample(tmp_path):
    """Each key has the files of one sample only; the pattern is that of all samples."""
    for i in range(3):
        write(tmp_path / f"truth/s{i}/masks", f"s{i}", [TRUTHS[i]])
        write(tmp_path / f"truth/s{i}/images", f"s{i}", [TRUTHS[i] * 80])
        write(tmp_path / "pred", f"s{i}", [PREDS[i]])
    pattern = f"{tmp_path}/truth/*/masks"
    assert f"pass the place of the masks: '{pattern}'" in problem_of(tmp_path, labels=3)
    run = score_folder(pattern, tmp_path / "pred", labels=3)
    assert run.report().mean_iou == pytest.approx(mean_iou())


NUMBERED = [
    # The truth, other files, predictions with classes from 1, and the options that remain.
    ("s{}/Labels/0", "s{}/Images/0.png", "s{}/0", ""),
    ("s{}/Labels/0", "s{}/Images/0.jpg", "s{}/0", ""),
    ("s{}/Labels/im{}", "s{}/Images/im{}.png", "im{}", ""),
    ("s{}/masks/im{}_gt", "s{}/photos/im{}_gt.png", "im{}_net", ""),
    ("s{}/masks/frame_00{}", "s{}/photos/frame_00{}.png", "{}", "--key"),
    ("im{}/0007_gt", "im{}/0007_photo.jpg", "im{}", "--key"),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("truth", "other", "pred", "option"), NUMBERED)
def test_what_is_proposed_for_pairs_and_classes_works(
    tmp_path, monkeypatch, capsys, truth, other, pred, option
):
    """The command, or the options, that the first error prints give the mean IoU beside them."""
    monkeypatch.chdir(tmp_path)
    for i in range(3):
        photo(Path("truth", other.replace("{}", str(i))))
    write(Path("truth"), truth.replace("{}", "{0}"), TRUTHS)
    write(Path("pred"), pred.replace("{}", "{0}"), [one + 1 for one in PREDS])
    given = ["segiou", "score", "truth", "pred", "--labels", "3", "--quiet"]
    assert main(given[1:]) == 3
    said = capsys.readouterr().err
    row = next(row for row in said.splitlines() if row.endswith(f"  # {100 * mean_iou():.2f} %"))
    words = shlex.split(row.partition("  # ")[0])
    assert "--pred-labels" in words
    assert option in " ".join(words)
    command = words if words[0] == "segiou" else given + words
    assert main([*command[1:], "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean_iou"] == pytest.approx(mean_iou())
