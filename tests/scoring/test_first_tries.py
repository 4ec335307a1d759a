"""What the first tries of new users lead to."""

from __future__ import annotations

import numpy as np
import pytest
from mask_files import score_pairs, write_masks, write_pairs
from PIL import Image

import segiou
from segiou import DataError
from segiou.cli.main import main
from segiou.report.pages.picture_masks import read_indices, reader_of
from segiou.scoring import inspect_folder

TRUTH, PRED = [[0, 0, 1, 1]], [[0, 1, 1, 1]]
IOUS = [1 / 2, 2 / 3]


def ious(scored):
    return [row.iou for row in scored.report().classes]


def test_a_run_without_images_takes_other_options(tmp_path):
    write_pairs(tmp_path, [[[0, 0, 7, 7]]], [[[0, 7, 7, 7]]])
    run = tmp_path / "r.sqlite"
    with pytest.raises(DataError, match="undeclared values: 7"):
        score_pairs(tmp_path, labels=2, run=run)
    labels = {"no": 0, "yes": 7}
    assert ious(score_pairs(tmp_path, labels=labels, run=run)) == IOUS
    assert ious(segiou.Run.open(run)) == IOUS
    assert segiou.Run.open(run).skipped == ()


def test_other_options_of_a_run_show_the_earlier_command(tmp_path, capsys):
    write_pairs(tmp_path, [TRUTH], [PRED])
    command = ["score", str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels"]
    end = ["--run", str(tmp_path / "r.sqlite")]
    assert main([*command, "2", *end]) == 0
    assert main([*command, "3", *end]) == 2
    message = capsys.readouterr().err
    assert f"written by: segiou {' '.join([*command, '2', *end])}" in message


def test_run_files_are_local(tmp_path, capsys):
    write_pairs(tmp_path, [TRUTH], [PRED])
    with pytest.raises(ValueError, match=r"s3://a/r\.sqlite: run files are local"):
        score_pairs(tmp_path, labels=2, run="s3://a/r.sqlite")
    with pytest.raises(ValueError, match="run files are local"):
        segiou.Run.open("s3://a/r.sqlite")
    places = [str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels", "2"]
    for command in (["report", "s3://a/r.sqlite"], ["score", *places, "--run", "s3://a/r.sqlite"]):
        assert main(command) == 2
        assert "run files are local" in capsys.readouterr().err


def test_merging_an_unfinished_run_is_no_success(tmp_path, capsys):
    write_pairs(tmp_path, [TRUTH, [[9, 9, 9, 9]]], [PRED, PRED])
    run, merged = tmp_path / "r.sqlite", tmp_path / "m.sqlite"
    with pytest.raises(DataError):
        score_pairs(tmp_path, labels=2, run=run)
    assert main(["merge", str(run), "-o", str(merged)]) == 3
    assert "unfinished" in capsys.readouterr().err


def test_a_list_of_images_of_different_sizes():
    small, large = np.array(TRUTH), np.zeros((2, 3), int)
    matrix = segiou.ConfusionMatrix(2).update([small, large], [np.array(PRED), large])
    one = segiou.ConfusionMatrix(2).update(small, np.array(PRED)).update(large, large)
    assert matrix == one
    masks = [np.ones((1, 4), bool), np.zeros((2, 3), bool)]
    masked = segiou.ConfusionMatrix(2).update([small, large], [np.array(PRED), large], mask=masks)
    assert ious(masked) == IOUS
    with pytest.raises(ValueError, match="got 2 truth images but 1 predictions"):
        matrix.update([small, large], [small])
    assert matrix == one


def test_mappings_from_ids_to_images():
    truth, pred = {"a": np.array(TRUTH), "b": np.array(PRED)}, {"b": PRED, "a": PRED}
    run = segiou.score(truth, pred, labels=2)
    assert run.ids == ("a", "b")
    assert ious(run) == [2 / 3, 5 / 6]
    with pytest.raises(ValueError, match="truth and pred must have the same images; 'b' differs"):
        segiou.score(truth, {"a": PRED}, labels=2)
    assert segiou.score(TRUTH, PRED, labels=2, ids="street").ids == ("street",)


def test_groups_of_a_table_need_a_column(tmp_path, capsys):
    write_pairs(tmp_path, [TRUTH], [PRED])
    places = [str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels", "2"]
    assert main(["score", *places, "--group-by", "split.csv"]) == 2
    assert "of groups: split.csv:COLUMN" in capsys.readouterr().err


def test_problems_of_folders_are_sentences(tmp_path, capsys):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
    with pytest.raises(DataError, match=r"2 folders in .*: no mask files found"):
        score_pairs(tmp_path, labels=2)


def test_proposed_labels_cover_both_folders(tmp_path):
    write_masks(tmp_path / "truth", {"a": [[0, 1]]})
    write_masks(tmp_path / "pred", {"a": [[0, 2]]})
    found = inspect_folder(tmp_path / "truth", pred=tmp_path / "pred")
    assert [c.values for c in found.proposed_labels().classes] == [(0,), (1,), (2,)]


def test_proposed_labels_keep_the_palette(tmp_path):
    for side, pixels in (("truth", [[0, 1, 255]]), ("pred", [[0, 2, 1]])):
        (tmp_path / side).mkdir()
        image = Image.fromarray(np.array(pixels, np.uint8))
        image.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, *[9] * 756, 224, 224, 192])
        image.save(tmp_path / side / "a.png")
    colors = np.array([[[128, 0, 0], [5, 5, 5]]], np.uint8)
    Image.fromarray(colors).save(tmp_path / "pred" / "b.png")
    Image.fromarray(colors).save(tmp_path / "truth" / "b.png")
    labels = inspect_folder(tmp_path / "truth", pred=tmp_path / "pred").proposed_labels()
    assert [(c.values, c.colors) for c in labels.classes] == [
        ((0,), ((0, 0, 0),)),
        ((1,), ((128, 0, 0),)),
        ((2,), ((0, 128, 0),)),
        ((3,), ((5, 5, 5),)),
    ]
    assert labels.ignore_colors == ((224, 224, 192),)


def test_scores_as_truth_are_named_as_swapped():
    labels, scores = np.zeros((1, 4, 4), int), np.zeros((1, 3, 4, 4))
    for how in ({}, {"argmax": 1}):
        with pytest.raises(TypeError, match="truth and pred are swapped"):
            segiou.ConfusionMatrix(3).update(scores, labels, **how)


def test_values_of_a_preset_are_not_taken_for_an_image(tmp_path):
    write_pairs(tmp_path, [np.arange(19)[None]], [np.arange(19)[None]])
    with pytest.raises(DataError, match=r"has undeclared values(?s:.*)--labels cityscapes-tr"):
        score_pairs(tmp_path, labels=2)
    write_pairs(tmp_path, [np.arange(19)[None] % 2], [np.arange(19)[None]])
    with pytest.raises(DataError, match="they match label set 'cityscapes-train': --labels"):
        score_pairs(tmp_path, labels=2)
    write_pairs(tmp_path, [np.arange(0, 250, 7)[None]], [np.arange(0, 250, 7)[None]])
    with pytest.raises(DataError, match="too many undeclared values"):
        score_pairs(tmp_path, labels=3)


def test_pictures_of_one_folder_use_the_threshold_of_their_side(tmp_path):
    for name in ("a_gt", "a_pred"):
        Image.fromarray(np.array([[10, 60, 90, 250]], np.uint8)).save(tmp_path / f"{name}.png")
    sides = {"truth_suffix": "_gt", "pred_suffix": "_pred"}
    limits = {"truth_threshold": 50, "pred_threshold": 100}
    run = segiou.score_folder(tmp_path, tmp_path, labels=2, **sides, **limits)
    files = (str(tmp_path / "a_gt.png"), [str(tmp_path / "a_pred.png")])
    truth, pred = read_indices(*files, [reader_of(run)]).arrays
    assert truth.tolist() == [[0, 1, 1, 1]]
    assert pred.tolist() == [[0, 0, 0, 1]]


def test_scores_without_the_option_name_it_first(tmp_path, capsys):
    """Probabilities saved as integers would all be 0."""
    write_pairs(tmp_path, [TRUTH], [PRED])
    truth, pred = tmp_path / "truth", tmp_path / "scores"
    pred.mkdir()
    command = ["score", str(truth), str(pred), "--labels", "2", "-q"]
    plane = np.array(PRED) * 0.9
    for scores, options in ((np.stack([1 - plane, plane]), ""), (plane, " with a threshold")):
        np.savez(pred / "0.npz", probabilities=scores)
        assert main(command) == 3
        text = f"for scores, pass measures=['scores'] (--scores){options}"
        assert text in capsys.readouterr().err
    assert main([*command, "--scores", "--threshold", "0.5"]) == 0
    # As nnU-Net writes them: labels and probabilities side by side.
    write_masks(pred, {"0": PRED})
    assert main([*command, "--scores", "--threshold", "0.5"]) == 3
    assert "for scores, pred_suffix='.npz'" in capsys.readouterr().err


def test_ids_of_objects_beside_a_binary_mask(tmp_path):
    """Ids are read as one class by a threshold of 1, on the side that has them."""
    ids = np.kron([[0, 1, 2], [0, 7, 7]], np.ones((2, 2), int))
    write_pairs(tmp_path, [ids], [(ids > 1) * 1])
    for labels in ("binary", 2):
        with pytest.raises(DataError, match=r"ids of objects, (?s:.*)--truth-threshold 1\)"):
            score_pairs(tmp_path, labels=labels)
    report = score_pairs(tmp_path, labels="binary", truth_threshold=1).report()
    assert report.mean_iou == pytest.approx((2 / 3 + 3 / 4) / 2)
    with pytest.raises(DataError) as caught:  # three classes have no such reading
        score_pairs(tmp_path, labels=3)
    assert "threshold" not in str(caught.value)
