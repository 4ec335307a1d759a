"""One file per object: the scores are those of one mask of ids per image."""

from __future__ import annotations

import json
import re
import shlex
import shutil

import numpy as np
import pytest
from mask_files import write_mask

import segiou
from segiou import DataError
from segiou.cli.main import main

PATTERN = "{id}/masks/{object}"
RNG = np.random.default_rng(8)


def ids_of(number=3):
    """Images of ids, with gaps between the objects."""
    cells = [RNG.permutation(12)[:9].reshape(3, 3) for _ in range(number)]
    kept = np.kron(np.ones((3, 3), int), np.pad(np.ones((4, 5), int), 1))
    return [np.kron(one, np.ones((6, 7), int)) * kept for one in cells]


@pytest.fixture
def nuclei(tmp_path):
    """The layout of DSB 2018, predictions as masks of ids, and the truth as masks of ids."""
    truths, preds = ids_of(), ids_of()
    for i, (truth, pred) in enumerate(zip(truths, preds, strict=True)):
        name = f"{i}a{i}f"
        write_mask(tmp_path / f"stage1/{name}/images/{name}.png", truth * 20)
        for object in np.unique(truth)[1:]:
            hashed = f"{RNG.integers(1 << 40):x}"
            write_mask(tmp_path / f"stage1/{name}/masks/{hashed}.png", (truth == object) * 255)
        write_mask(tmp_path / f"pred/{name}.png", pred)
        write_mask(tmp_path / f"ids/{name}.png", truth)
    return tmp_path


def scores(capsys, *words):
    assert main(["score", *map(str, words), "--format", "json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "options", ["--objects labels", "--labels binary --truth-threshold 1 --pred-threshold 1"]
)
def test_the_first_error_leads_to_the_scores_of_masks_of_ids(nuclei, capsys, options):
    places = [nuclei / "stage1", nuclei / "pred"]
    assert main(["score", *map(str, places), *options.split()]) == 3
    said = " ".join(capsys.readouterr().err.split())
    proposed = shlex.split(re.search(r"\((--class-files .*?) --objects labels\)", said)[1])
    assert proposed == ["--class-files", PATTERN]
    found = scores(capsys, *places, *options.split(), *proposed)
    expected = scores(capsys, nuclei / "ids", nuclei / "pred", *options.split())
    for result in (found, expected):
        result.pop("provenance", None)
    assert found["mean_iou"] == expected["mean_iou"]
    assert found.get("objects") == expected.get("objects")
    assert bool(found["objects"]) == ("objects" in options)


def test_predictions_may_be_files_of_objects(nuclei):
    how = {"objects": "labels", "class_files": PATTERN}
    run = segiou.score_folder(nuclei / "ids", nuclei / "stage1", **how)
    assert run.report().pixel_accuracy == 1
    assert [
        round(row["pq"], 9) for row in run.report().to_dict()["objects"]["classes"] if row["pq"]
    ]


def test_objects_do_not_overlap(nuclei):
    write_mask(nuclei / "stage1/0a0f/masks/zz.png", np.ones((18, 21), int))
    with pytest.raises(DataError, match=r"zz\.png: shares \d+ pixels with a different object"):
        segiou.score_folder(
            nuclei / "stage1", nuclei / "pred", objects="labels", class_files=PATTERN
        )


def test_frames_of_videos_are_not_objects(tmp_path):
    for video in ("a", "b"):
        for frame in range(3):
            write_mask(tmp_path / f"truth/{video}/masks/{frame}.png", [[0, 1]])
            write_mask(tmp_path / f"pred/{video}_{frame}.png", [[0, 1]])
    with pytest.raises(DataError) as caught:
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=2)
    assert "per object" not in str(caught.value)


def test_the_objects_of_one_image_in_a_folder(nuclei, capsys):
    """The pattern {object} ended with an IndexError."""
    name = "0a0f"
    words = "--objects", "labels", "--class-files", "{object}"
    masks = nuclei / f"stage1/{name}/masks"
    shutil.copytree(masks, nuclei / "copy")
    next((nuclei / "copy").iterdir()).unlink()
    found = scores(capsys, masks, nuclei / "copy", *words)
    (row,) = [row for row in found["objects"]["classes"] if row["thing"]]
    assert (row["found"], row["false_positive"], row["missed"]) == (7, 0, 1)


def test_an_image_without_objects_is_a_file_of_zeros(nuclei, capsys):
    write_mask(nuclei / "pred/empty.png", np.zeros((24, 21), int))
    (nuclei / "stage1/empty/masks").mkdir(parents=True)
    places = str(nuclei / "stage1"), str(nuclei / "pred")
    words = *places, "--objects", "labels", "--class-files", PATTERN
    assert main(["score", *words, "-q"]) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert "has no truth; add one (for an empty image, one file of zeros)" in said
    write_mask(nuclei / "stage1/empty/masks/none.png", np.zeros((24, 21), int))
    assert len(segiou.score_folder(*places, objects="labels", class_files=PATTERN)) == 4


def test_a_wrong_pattern_is_shown_as_it_was_given(nuclei, capsys):
    words = str(nuclei / "stage1"), str(nuclei / "pred"), "--objects", "labels"
    assert main(["score", *words, "--class-files", "{object}/{object}"]) == 2
    assert "{class} or {object}, once, got '{object}/{object}'" in capsys.readouterr().err
