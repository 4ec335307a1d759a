"""Which label set masks are of: ranked, proposed, and recognised where it is wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import tifffile
from mask_files import score_pairs, write_pairs
from PIL import Image

import segiou
from segiou import DataError
from segiou.cli.main import main
from segiou.scoring import inspect_folder
from segiou.scoring.label_set_advice import label_set_question


def save(path, values, kind="u1"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values, dtype=kind)).save(path)


@pytest.fixture
def camvid(tmp_path):
    """Masks with every class of CamVid, values 0 to 10, and its ignored value 11."""
    for i in range(3):
        truth = np.arange(12).repeat(4).reshape(6, 8)
        save(tmp_path / "truth" / f"{i}.png", truth)
        save(tmp_path / "pred" / f"{i}.png", np.where(truth == 11, 3, np.roll(truth, i) % 11))
    return tmp_path


def test_sets_are_ranked_by_how_well_they_fit(camvid):
    found = inspect_folder(camvid / "truth")
    quality = {fit.name: fit.quality for fit in found.fits}
    assert found.fits[0].name == "camvid"
    assert [fit.quality for fit in found.fitting] == sorted(
        [fit.quality for fit in found.fitting], reverse=True
    )
    # 44 of 48 pixels belong to classes, and all classes occur.
    assert quality["camvid"] == 44 / 48
    # All pixels do, and 12 of 21 classes occur.
    assert quality["voc2012"] == 12 / 21
    assert found.proposal == ""
    assert found.to_dict()["fits"][0]["quality"] == 44 / 48
    lines = [line for line in found.to_text().splitlines() if line.startswith("  --labels")]
    assert lines[0] == "  --labels camvid (11 of 11 classes occur)"
    assert len(lines) == 6


def test_a_number_of_classes_is_proposed_where_no_preset_fits(tmp_path):
    save(tmp_path / "a.png", [[0, 1, 2], [3, 5, 65535]], "u2")
    found = inspect_folder(tmp_path)
    assert found.proposal == "--labels 6 --ignore 65535"
    assert "--labels 6 --ignore 65535\n" in found.to_text()


def test_ids_of_objects_are_no_classes(tmp_path):
    save(tmp_path / "a.png", [[0, 24001, 24002]], "u2")
    assert inspect_folder(tmp_path).proposal == ""


def test_a_wrong_set_whose_values_are_undeclared_is_one_line(camvid):
    with pytest.raises(DataError) as error:
        score_pairs(camvid, labels="cityscapes")
    lines = str(error.value).splitlines()
    assert "have undeclared values: 3, 6" in lines[0]
    assert "--unassigned" not in lines[0]
    assert lines[-1].startswith(
        "Label set 'cityscapes' looks wrong (3 of 19 classes occur); better"
    )
    assert "--labels camvid (11 of 11 classes occur)" in lines[-1]
    assert len(error.value.problems) == 3


def test_a_wrong_set_that_declares_every_value_is_warned_of(camvid, capsys):
    text = "label set 'voc2012' looks wrong .* --labels camvid"
    with pytest.warns(UserWarning, match=text):
        score_pairs(camvid, labels="voc2012")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score_pairs(camvid, labels="camvid")
        score_pairs(camvid, labels=21)
    places = [str(camvid / side) for side in ("truth", "pred")]
    assert main(["score", *places, "--labels", "voc2012"]) == 0
    assert "label set 'voc2012' looks wrong" in capsys.readouterr().err


def test_without_a_label_set_the_candidates_are_listed_as_commands(camvid, capsys):
    places = [str(camvid / side) for side in ("truth", "pred")]
    assert main(["score", *places]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert "Best match for the masks in" in lines[0]
    assert (
        lines[1] == f"  segiou score {' '.join(places)} --labels camvid  # 11 of 11 classes occur"
    )
    assert "cityscapes-train" in lines[2]


def test_without_a_label_set_where_no_preset_fits(tmp_path, capsys):
    for side in ("truth", "pred"):
        save(tmp_path / side / "a.png", [[0, 1, 2], [3, 5, 65535]], "u2")
    places = [str(tmp_path / side) for side in ("truth", "pred")]
    assert main(["score", *places]) == 2
    assert (
        capsys.readouterr()
        .err.rstrip()
        .endswith("--labels 6 --ignore 65535  # no preset fits well")
    )


def test_few_masks_of_few_classes_are_of_any_set(tmp_path):
    for side in ("truth", "pred"):
        save(tmp_path / side / "a.png", [[0, 1, 2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score_pairs(tmp_path, labels="cityscapes-train")


def test_a_proposal_declares_every_value_and_colour(tmp_path):
    folder = tmp_path / "masks"
    folder.mkdir()
    Image.fromarray(np.array([[0, 3, 255]], np.uint8)).save(folder / "values.png")
    Image.fromarray(np.array([[[1, 2, 3], [1, 2, 3], [9, 0, 0]]], np.uint8)).save(folder / "c.png")
    file = tmp_path / "proposed.toml"
    assert main(["inspect", str(folder), "--propose", str(file), "--quiet"]) == 0
    labels = segiou.load_labels(file)
    assert labels.ignore == (255,)
    assert [(c.name, c.values, c.colors) for c in labels.classes] == [
        ("value 0", (0,), ()),
        ("value 3", (3,), ()),
        ("color #010203", (1,), ((1, 2, 3),)),
        ("color #090000", (2,), ((9, 0, 0),)),
    ]


def test_no_label_set_is_proposed_of_very_many_values(tmp_path):
    np.save(tmp_path / "a.npy", (np.arange(2000) + 256).reshape(40, 50))
    with pytest.raises(ValueError, match="has 2000 values and 0 colours or names"):
        inspect_folder(tmp_path).proposed_labels()


@pytest.mark.parametrize("name", ["a.npy", "a.tif"])
def test_large_masks_are_inspected_window_by_window(tmp_path, monkeypatch, name):
    mask = np.zeros((40, 50), np.uint16)
    mask[:7] = 300
    if name == "a.npy":
        np.save(tmp_path / name, mask)
    else:
        tifffile.imwrite(tmp_path / name, mask, tile=(16, 16), compression="zlib")
    whole = inspect_folder(tmp_path).to_dict()
    monkeypatch.setattr("segiou.scoring.file_values._BIG_PIXELS", 100)
    monkeypatch.setattr("segiou.scoring.file_values.open_mask", None)
    assert inspect_folder(tmp_path).to_dict() == whole
    assert whole["values"][1] == {"value": 300, "pixels": 350, "share": 0.175, "files": 1}


def test_pairs_of_other_sizes_are_listed(tmp_path):
    for name, size in {"a": 3, "b": 4}.items():
        save(tmp_path / "truth" / f"{name}.png", np.zeros((3, 3)))
        save(tmp_path / "pred" / f"{name}.png", np.zeros((3, size)))
    found = inspect_folder(tmp_path / "truth", pred=tmp_path / "pred")
    (problem,) = found.disagreements
    assert problem.where.endswith("b.png")
    assert problem.text.startswith("is 4 × 3 pixels, but the truth is 3 × 3 pixels")
    assert (found.spacings, found.orientations) == ({}, {})
    assert found.pairs == 2
    assert "pairs   2\n" in str(found)


def test_pairs_that_agree_are_told(tmp_path):
    truth, pred = tmp_path / "truth", tmp_path / "pred"
    save(truth / "a.png", np.zeros((3, 3)))
    save(pred / "a.png", np.zeros((3, 3)))
    assert "pairs   1, all with the same size\n" in str(inspect_folder(truth, pred=pred))
    assert "pairs" not in str(inspect_folder(truth))


def test_what_predictions_hold_is_shown_too(tmp_path):
    save(tmp_path / "truth/a.png", [[0, 1]])
    save(tmp_path / "pred/a.png", [[0, 7]])
    found = inspect_folder(tmp_path / "truth", pred=tmp_path / "pred")
    assert (found.values, found.pred.values) == ({0: 1, 1: 1}, {0: 1, 7: 1})
    assert found.to_dict()["pred"]["values"][1]["value"] == 7
    said = str(found)
    assert "  7  50.00 %" in said[said.index("Values in the predictions:") :]
    assert "Values in the predictions:" not in str(inspect_folder(tmp_path / "truth"))


@pytest.mark.parametrize("dtype", ["i1", "u1", ">i2", "i8", "u8", "?"])
def test_values_of_all_types_are_counted(tmp_path, dtype):
    info = (0, 1) if dtype == "?" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    cases = {"both": [info[0], info[1], info[1]], "high": [info[1] - 1, info[1]]}
    for name, values in cases.items():
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", np.array([values], dtype))
        found = inspect_folder(tmp_path / name)
        assert found.values == {v: values.count(v) for v in sorted(values)}


def test_colours_beside_volumes_are_counted_in_pixels(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    volume = nibabel.Nifti1Image(np.zeros((4, 4, 4), np.uint8), np.eye(4))
    nibabel.save(volume, tmp_path / "volume.nii")
    Image.fromarray(np.full((4, 4, 3), [9, 0, 0], np.uint8)).save(tmp_path / "colours.png")
    heads = [line for line in str(inspect_folder(tmp_path)).splitlines() if " share " in line]
    assert "voxels" in heads[0]
    assert "pixels" in heads[1]


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ([0, 1, 2], "Classes without names: --labels 3"),
        ([0, 1, 255], "Classes without names: --labels 2 --ignore 255"),
        ([0, 2], None),
    ],
)
def test_consecutive_values_suggest_a_number_of_classes(tmp_path, values, hint):
    Image.fromarray(np.array([values], np.uint8)).save(tmp_path / "a.png")
    lines = label_set_question(tmp_path, "segiou score a b").splitlines()
    assert [line for line in lines if line.startswith("Classes without")] == [hint] * bool(hint)


def test_the_id_of_a_single_volume_has_no_extension(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    image = nibabel.Nifti1Image(np.ones((2, 2, 2), np.uint8), np.eye(4))
    for name in ("truth.nii.gz", "pred.nii.gz"):
        nibabel.save(image, tmp_path / name)
    run = segiou.score_folder(tmp_path / "truth.nii.gz", tmp_path / "pred.nii.gz", labels=2)
    assert run.ids == ("truth",)
    assert "Dice over 1 case;" in " ".join(run.report().to_text().split())


COLORS = np.array([[128, 0, 0], [0, 0, 0], [0, 128, 0]], np.uint8)


def test_colours_numbered_by_frequency_are_not_mixed_with_values(tmp_path, capsys):
    classes = np.array([[0, 0, 0, 1, 1, 2]])
    write_pairs(tmp_path, [COLORS[classes]], [(classes + 1) % 3])
    write_pairs(tmp_path / "colours", [COLORS[classes]], [COLORS[classes]])
    file = tmp_path / "p.toml"
    assert main(["inspect", str(tmp_path / "truth"), "--propose", str(file)]) == 0
    assert "values in the order of their frequency" in " ".join(capsys.readouterr().err.split())
    text = file.read_text()
    assert 'notes = "Colours have values in the order of their frequency.' in text
    with pytest.raises(DataError, match=r"numbers its colours by frequency .class 'color #"):
        score_pairs(tmp_path, labels=file)
    assert score_pairs(tmp_path / "colours", labels=file).report().mean_iou == 1
    file.write_text(text.replace("color #", "class "))
    run = score_pairs(tmp_path, labels=file, pred_labels=[1, 2, 0])
    assert [row.name for row in run.report().classes] == [
        *("class 800000", "class 000000", "class 008000"),
    ]
    assert run.report().mean_iou == 1
