"""Options that choose or change masks as they are read: arrays, thresholds, regions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from deletable import kind_of_scores
from mask_files import score_pairs, write_masks, write_pairs
from PIL import Image

import segiou
from segiou import DataError
from segiou.cli.main import main
from segiou.report.pages.picture_masks import read_indices, reader_of

CASES = Path(__file__).parents[3] / "shared" / "data" / "cases"
#: At 128: 0 0 1 1 and 0 1 1 1.
SOFT = [[0, 7, 200, 255]]
PRED = [[3, 128, 250, 255]]


@pytest.fixture(scope="module")
def expected():
    """The cases with their right values, if they are there."""
    if not (CASES / "expected.json").is_file():
        pytest.skip("shared/data/cases is not there")
    return json.loads((CASES / "expected.json").read_text())


def ious(run):
    return [row.iou for row in run.report().classes]


def test_soft_edges_are_cut_at_the_threshold(tmp_path):
    write_pairs(tmp_path, [SOFT], [PRED])
    run = score_pairs(tmp_path, labels="binary", truth_threshold=128, pred_threshold=128)
    assert ious(run) == [1 / 2, 2 / 3]
    with pytest.raises(DataError, match=r"--truth-threshold 128"):
        score_pairs(tmp_path, labels="binary")
    with pytest.raises(ValueError, match="truth_threshold requires two classes, got 3"):
        score_pairs(tmp_path, labels=3, truth_threshold=128)


def test_a_threshold_reads_grey_jpeg(tmp_path):
    write_pairs(tmp_path, [], [np.repeat([[0, 1]], 8, axis=1).repeat(8, axis=0)])
    grey = np.repeat([[0, 255]], 8, axis=1).repeat(8, axis=0).astype(np.uint8)
    (tmp_path / "truth").mkdir()
    Image.fromarray(np.stack([grey] * 3, axis=-1)).save(tmp_path / "truth" / "0.jpg")
    with pytest.raises(DataError, match=r"is a lossy JPEG.*--truth-threshold 128"):
        score_pairs(tmp_path, labels="binary")
    assert ious(score_pairs(tmp_path, labels="binary", truth_threshold=128)) == [1, 1]


def test_a_threshold_never_hides_all_of_a_class(tmp_path):
    write_pairs(tmp_path, [[[0, 1]]], [[[0, 1]]])
    with pytest.raises(DataError, match="values 0 and 1, all below the threshold 128; set it to 1"):
        score_pairs(tmp_path, labels=2, truth_threshold=128)


def test_a_threshold_of_colours_is_refused(tmp_path):
    write_pairs(tmp_path, [[[[9, 0, 0], [200, 200, 200]]]], [[[0, 1]]])
    with pytest.raises(DataError, match="is a colour image; save it as greyscale"):
        score_pairs(tmp_path, labels=2, truth_threshold=128)


@pytest.mark.parametrize("kind", ["png", "jpg"])
def test_cases_with_soft_edges(expected, kind):
    folder = CASES / "soft_edges"
    how = {"truth_threshold": 128, "pred_threshold": 128}
    run = segiou.score_folder(folder / f"truth_{kind}", folder / "pred", labels="binary", **how)
    assert ious(run) == expected["soft_edges"][f"iou_{kind}_at_128"]


# Several arrays --------------------------------------------------------------------------

MASK = np.array([[[0, 1], [1, 1]], [[0, 0], [0, 1]]], np.uint8)


def write_arrays(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


def test_the_only_array_of_labels_is_the_mask(tmp_path):
    write_arrays(tmp_path / "truth" / "a.npz", img=MASK / 2, mask=MASK, boxes=np.zeros((1, 4), int))
    write_arrays(tmp_path / "pred" / "a.npz", segs=MASK)
    assert ious(score_pairs(tmp_path, labels=2, array_axes="zyx")) == [1, 1]


def test_the_key_names_the_mask_of_several(tmp_path):
    image, volumes = np.ones_like(MASK), {"labels": 2, "array_axes": "zyx"}
    write_arrays(tmp_path / "truth" / "a.npz", imgs=image, gts=MASK)
    write_arrays(tmp_path / "pred" / "a.npz", segs=MASK, probs=image)
    with pytest.raises(DataError, match=r"imgs uint8 \(2, 2, 2\), gts uint8.*--array-key"):
        score_pairs(tmp_path, labels=2)
    with pytest.raises(DataError, match=r"has no array 'gt' .imgs uint8"):
        score_pairs(tmp_path, labels=2, array_key="gt,segs")
    assert ious(score_pairs(tmp_path, array_key="gts,segs", **volumes)) == [1, 1]
    files = [tmp_path / side / "a.npz" for side in ("truth", "pred")]
    assert ious(segiou.score_folder(*files, array_key="gts,segs", **volumes)) == [1, 1]
    one = segiou.score_folder(files[0] / "gts", files[1] / "segs", **volumes)
    assert ious(one) == [1, 1]
    # Two arrays of one file.
    one = segiou.score_folder(files[0] / "gts", files[0] / "imgs", **volumes)
    assert ious(one) == [0, 4 / 8]


@pytest.mark.needs("measures.surfaces")
@pytest.mark.parametrize(
    ("shape", "spacing", "distance"),
    [
        ((4, 9, 9), (1, 1, 3), 3),  # x, y, z: the slices are apart
        ((4, 9, 9), (3, 1, 1), 3),
        ((4, 9, 8), (2, 2, 2), 2),
    ],
)
def test_the_spacing_of_a_file_is_that_of_its_axes(tmp_path, shape, spacing, distance):
    truth, pred = np.zeros((2, *shape), np.uint8)
    truth[1, 2:6, 2:6], pred[2, 2:6, 2:6] = 1, 1
    write_arrays(tmp_path / "truth" / "a.npz", gts=truth, spacing=np.array(spacing))
    write_arrays(tmp_path / "pred" / "a.npz", segs=pred)
    run = score_pairs(tmp_path, labels=2, surfaces=True)
    (row,) = run.counts_of("surfaces")
    assert row["hausdorff"] == distance


def test_a_spacing_of_unknown_order_is_refused_where_it_matters(tmp_path):
    volume = np.zeros((3, 4, 5), np.uint8)
    volume[1, 1:3, 1:3] = 1
    write_arrays(tmp_path / "truth" / "a.npz", gts=volume, spacing=np.array([1, 1, 3]))
    write_arrays(tmp_path / "pred" / "a.npz", segs=volume)
    assert ious(score_pairs(tmp_path, labels=2)) == [1, 1]
    kind_of_scores("surfaces")
    with pytest.raises(DataError, match=r"order of its axes or reversed.*--spacing A,B,C"):
        score_pairs(tmp_path, labels=2, surfaces=True)
    assert ious(score_pairs(tmp_path, labels=2, surfaces=True, spacing=(3, 1, 1))) == [1, 1]


def test_cases_of_several_arrays(expected):
    folder, wanted = CASES / "several_arrays", expected["several_arrays"]
    run = segiou.score_folder(folder / "truth", folder / "pred", labels=4, array_key="gts,segs")
    assert ious(run) == wanted["iou"]


# Regions of interest ---------------------------------------------------------------------

TRUTH = [[0, 0, 1, 1], [0, 0, 1, 1], [1, 0, 0, 0]]
WRONG = [[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
#: Without the right column and the last row.
ROI = [[255, 255, 255, 0], [255, 255, 255, 0], [0, 0, 0, 0]]


@pytest.fixture
def in_region(tmp_path):
    write_pairs(tmp_path, {"1_manual": TRUTH}, {"1_pred": WRONG})
    write_masks(tmp_path / "roi", {"1_mask": ROI})
    return tmp_path


def test_pixels_outside_the_region_are_ignored(in_region):
    run = score_pairs(in_region, labels=2, roi=in_region / "roi")
    assert ious(run) == [3 / 4, 2 / 3]
    assert run.total().ignored == 6


def test_measures_see_the_same_pixels_as_with_a_mask(in_region):
    measured = {"boundary": True, "objects": True, "labels": 2}
    mask = np.array(ROI) > 0
    direct = segiou.score([TRUTH], [WRONG], mask=[mask], **measured)
    run = score_pairs(in_region, roi=in_region / "roi", **measured)
    assert run.total() == direct.total()
    for key in ("boundaries", "objects"):
        assert run.counts_of(key) == direct.counts_of(key)
    assert run.counts_of("objects") != score_pairs(in_region, **measured).counts_of("objects")


def test_a_changed_region_is_scored_again(in_region):
    how = {"labels": 2, "roi": in_region / "roi", "run": in_region / "r.sqlite"}
    assert ious(score_pairs(in_region, **how)) == [3 / 4, 2 / 3]
    write_masks(in_region / "roi", {"1_mask": np.ones((3, 4))})
    assert ious(score_pairs(in_region, **how)) == ious(score_pairs(in_region, labels=2))
    del how["roi"]
    with pytest.raises(ValueError, match="roi is None here and"):
        score_pairs(in_region, **how)


def test_pages_draw_the_region_as_ignored(in_region):
    run = score_pairs(in_region, labels=2, roi=in_region / "roi")
    (files,) = run._images.files
    truth, _ = read_indices(files.truth, [files.pred], [reader_of(run)]).arrays
    assert truth.tolist() == [[0, 0, 1, 2], [0, 0, 1, 2], [2, 2, 2, 2]]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"other_mask": ROI, "x_mask": ROI}, "has no region of interest"),
        ({"1_mask": [[0, 255]]}, r"has shape \(1, 2\), but its mask \(3, 4\)"),
        (
            {"1_mask": SOFT * 3},
            "has the values 0, 7, 200 and 255; a region of interest has 0 outside",
        ),
    ],
)
def test_a_region_that_does_not_fit_is_refused(tmp_path, files, message):
    write_pairs(tmp_path, {"1_manual": TRUTH}, {"1_pred": WRONG})
    write_masks(tmp_path / "roi", files)
    with pytest.raises(DataError, match=message):
        score_pairs(tmp_path, labels=2, roi=tmp_path / "roi")


def test_cases_with_a_field_of_view(expected, tmp_path, capsys):
    folder = CASES / "field_of_view"
    command = [str(folder / "truth"), str(folder / "scores"), "--labels", "binary", "--format"]
    command += ["json", "--scores", "--threshold", "0.5"]
    for options, key in (([], "iou_whole"), (["--roi", str(folder / "mask")], "iou_inside")):
        assert main(["score", *command, *options]) == 0
        found = json.loads(capsys.readouterr().out)["classes"]
        assert [one["iou"] for one in found] == expected["field_of_view"][key]
