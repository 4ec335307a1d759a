"""Pictures of the worst images, as files."""

from __future__ import annotations

import numpy as np
import pytest
from mask_files import write_pairs
from PIL import Image

import segiou
from segiou.cli.main import main
from segiou.labels import LabelClass, LabelSet
from segiou.report import save_errors

CAR, ROAD, CORRECT = (255, 0, 0), (0, 0, 255), (232, 232, 232)
TRUE_POSITIVE, FALSE_NEGATIVE, FALSE_POSITIVE = (42, 165, 139), (109, 157, 224), (248, 180, 106)
CLASSES = (LabelClass("road", (0,), (ROAD,)), LabelClass("car", (1,), (CAR,)))
LABELS = LabelSet("streets", CLASSES, ignore=(9,))
TRUTH = np.array([[0, 0, 1], [0, 1, 9]], np.uint8)
WRONG = np.array([[0, 1, 0], [0, 1, 0]], np.uint8)


@pytest.fixture
def run(tmp_path):
    write_pairs(tmp_path, {"a": TRUTH, "b/c": TRUTH}, {"a": TRUTH, "b/c": WRONG})
    return segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=LABELS)


def colors(path):
    return [[tuple(pixel) for pixel in row] for row in np.asarray(Image.open(path)).tolist()]


def test_the_worst_image_comes_first(run, tmp_path):
    files = save_errors(tmp_path / "out", run, number=1)
    assert [path.name for path in files] == [
        "1_b_c_truth.png",
        "1_b_c_prediction.png",
        "1_b_c_difference.png",
        "legend.png",
    ]
    truth, pred, difference = map(colors, files[:3])
    ignored = truth[1][2]
    assert truth == [[ROAD, ROAD, CAR], [ROAD, CAR, ignored]]
    assert pred == [[ROAD, CAR, ROAD], [ROAD, CAR, ROAD]]
    assert difference == [[CORRECT, CAR, ROAD], [CORRECT, CORRECT, ignored]]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ("car", [[CORRECT, FALSE_POSITIVE, FALSE_NEGATIVE], [CORRECT, TRUE_POSITIVE]]),
        ("car:road", [[CORRECT, CORRECT, ROAD], [CORRECT, CORRECT]]),
        ("road:car", [[CORRECT, CAR, CORRECT], [CORRECT, CORRECT]]),
    ],
)
def test_errors_of_a_class_or_a_confusion(run, tmp_path, of, expected):
    _, _, difference, _ = save_errors(tmp_path / "out", run, of=of)
    found = colors(difference)
    assert [found[0], found[1][:2]] == expected


@pytest.mark.parametrize("names", [("background", "car"), ("car", "background")])
def test_binary_masks_have_two_kinds_of_errors_unasked(tmp_path, names):
    classes = [LabelClass(name, (int(name == "car"),), (CAR,) * (name == "car")) for name in names]
    write_pairs(tmp_path, {"a": TRUTH}, {"a": WRONG})
    labels = LabelSet("binary", classes, ignore=(9,))
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=labels)
    _, _, difference, _ = save_errors(tmp_path / "out", run)
    found = colors(difference)
    assert [found[0], found[1][:2]] == [
        [CORRECT, FALSE_POSITIVE, FALSE_NEGATIVE],
        [CORRECT, TRUE_POSITIVE],
    ]


def test_ignored_pixels_are_striped(tmp_path):
    truth = np.full((200, 200), 9, np.uint8)
    truth[:, :100] = 0
    write_pairs(tmp_path, {"a": truth}, {"a": np.zeros_like(truth)})
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=LABELS)
    for picture in save_errors(tmp_path / "out", run)[:3:2]:
        pixels = np.asarray(Image.open(picture))
        assert len(np.unique(pixels[:, :100].reshape(-1, 3), axis=0)) == 1
        stripes, pieces = np.unique(pixels[:, 100:].reshape(-1, 3), axis=0, return_counts=True)
        assert pieces.tolist() == [10_000, 10_000]
        assert np.ptp(stripes[:, 0].astype(int)) > 80  # they differ in black and white


def test_photos_that_do_not_match_are_reported(run, tmp_path):
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (3, 2)).save(tmp_path / "photos" / "other.jpg")
    with pytest.warns(UserWarning, match=r"Found photos for 0 of 1 images in .*other\.jpg"):
        save_errors(tmp_path / "out", run, number=1, images=tmp_path / "photos")


def test_the_plane_of_a_volume_with_the_most_errors(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    truth = np.zeros((4, 3, 2), np.uint8)
    pred = truth.copy()
    pred[:3, 1, 1] = 1
    pred[0, 0, 0] = 1
    for side, values in (("truth", truth), ("pred", pred)):
        (tmp_path / side).mkdir()
        nibabel.Nifti1Image(values, np.eye(4)).to_filename(tmp_path / side / "case.nii.gz")
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=2)
    _, pred_file, _, _ = save_errors(tmp_path / "out", run)
    assert (np.asarray(Image.open(pred_file)) != colors(pred_file)[0][0]).any(-1).sum() == 3


def test_unknown_classes_and_no_errors(run, tmp_path):
    with pytest.raises(ValueError, match="unknown class 'car:bus'; pass a class or TRUTH:PRED"):
        save_errors(tmp_path, run, of="car:bus")
    with pytest.raises(ValueError, match="unknown class 'car:car'"):
        save_errors(tmp_path, run, of="car:car")
    perfect = segiou.score_folder(run.images[0].truth, run.images[0].pred, labels=LABELS)
    with pytest.raises(ValueError, match="such errors do not occur"):
        save_errors(tmp_path, perfect, of="car")


def test_the_command(run, tmp_path, capsys):
    run.save(tmp_path / "run.sqlite")
    command = ["report", str(tmp_path / "run.sqlite"), "--quiet"]
    out = tmp_path / "out"
    assert main([*command, "--errors", str(out), "--errors-of", "car:road"]) == 0
    assert len(list(out.glob("*.png"))) == 4
    assert main([*command, "--errors-of", "car"]) == 2
    assert "--errors-of has no effect without --panel or --errors" in capsys.readouterr().err
    assert main([*command, "--errors", str(out), "--errors-of", "bus"]) == 2
    assert "unknown class 'bus'" in capsys.readouterr().err


def test_the_command_reports_that_no_photo_matched(run, tmp_path, capsys):
    run.save(tmp_path / "run.sqlite")
    (tmp_path / "photos").mkdir()
    options = ["--errors", tmp_path / "out", "--images", tmp_path / "photos"]
    assert main([str(one) for one in ("report", tmp_path / "run.sqlite", *options)]) == 0
    assert "Found photos for 0 of 2 images in " in capsys.readouterr().err
