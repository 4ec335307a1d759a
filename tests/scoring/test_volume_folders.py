"""Folders of volumes, from the command line and in Python."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

import segiou
from segiou import DataError
from segiou.cli.main import main
from segiou.counting import count_pairs
from segiou.masks import read as reading, read_volume
from segiou.masks.sources import folders as sources
from segiou.report import write_html
from segiou.scoring import inspect_folder, open_mask

if os.environ.get("SEGIOU_REQUIRE_EXTRAS") != "1":
    pytest.importorskip("nibabel")
nibabel = importlib.import_module("nibabel")

AFFINE = np.array([[0, 0, 2.0, 5], [-0.5, 0, 0, 7], [0, -0.75, 0, -3], [0, 0, 0, 1]])


def save(path, values, affine=AFFINE):
    path.parent.mkdir(exist_ok=True)
    image = nibabel.Nifti1Image(values, affine)
    image.header.set_xyzt_units("mm")
    image.to_filename(path)


@pytest.fixture
def cases(tmp_path):
    """Three cases of labels 0, 1, 2 with one voxel in four predicted at random."""
    rng = np.random.default_rng(0)
    tables = np.zeros((3, 3), int)
    for case in range(3):
        truth = rng.integers(0, 3, (6, 5, 4 + case)).astype(np.uint8)
        pred = np.where(rng.random(truth.shape) < 0.25, rng.integers(0, 3, truth.shape), truth)
        np.add.at(tables, (truth.ravel(), pred.ravel()), 1)
        save(tmp_path / "truth" / f"case_{case}.nii.gz", truth)
        save(tmp_path / "pred" / f"case_{case}.nii.gz", pred.astype(np.uint8))
    return tmp_path, tables


def test_a_folder_is_scored(cases, capsys):
    folder, table = cases
    command = ["score", str(folder / "truth"), str(folder / "pred"), "--labels", "3"]
    assert main([*command, "--format", "json", "--run", str(folder / "run")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["matrix"] == table.tolist()
    assert segiou.Run.open(folder / "run").ids == ("case_0", "case_1", "case_2")


def test_another_geometry_is_refused_with_both_values(cases, capsys):
    folder, table = cases
    path = folder / "pred" / "case_1.nii.gz"
    values = np.asanyarray(nibabel.load(path).dataobj)
    save(path, values, AFFINE @ np.diag([1, 1, 1.5, 1]))
    with pytest.raises(segiou.DataError) as caught:
        segiou.score_folder(folder / "truth", folder / "pred", labels=3)
    text = str(caught.value)
    assert "case_1.nii.gz: has spacing 0.5 × 0.75 × 3 mm, but its truth has 0.5 × 0.75 × 2" in text
    assert "--geometry ignore" in text
    assert str(folder / "truth" / "case_1.nii.gz") in text
    run = segiou.score_folder(folder / "truth", folder / "pred", labels=3, geometry="ignore")
    np.testing.assert_array_equal(run.total().matrix, table)
    command = ["score", str(folder / "truth"), str(folder / "pred"), "--labels", "3"]
    assert main(command) == 3
    assert main([*command, "--geometry", "ignore"]) == 0
    capsys.readouterr()


def test_axes_are_exchanged_where_asked(cases):
    folder, table = cases
    path = folder / "pred" / "case_2.nii.gz"
    nibabel.as_closest_canonical(nibabel.load(path)).to_filename(path)
    with pytest.raises(
        segiou.DataError, match="has orientation RAS, but its truth has PIR; reorient"
    ):
        segiou.score_folder(folder / "truth", folder / "pred", labels=3)
    options = {"labels": 3, "geometry": "reorient", "run": folder / "run"}
    run = segiou.score_folder(folder / "truth", folder / "pred", **options)
    np.testing.assert_array_equal(run.total().matrix, table)
    assert "pairs, prediction axes reoriented" in str(run.report())
    page = write_html(folder / "page.html", run.report(), run=run).read_text()
    assert "<dd>3, prediction axes reoriented to match the truth</dd>" in page
    with pytest.raises(ValueError, match="geometry"):
        segiou.score_folder(folder / "truth", folder / "pred", labels=3, run=folder / "run")


def test_an_unknown_geometry_is_refused(cases):
    folder, _ = cases
    with pytest.raises(ValueError, match="geometry must be 'check', 'ignore' or 'reorient'"):
        segiou.score_folder(folder / "truth", folder / "pred", labels=3, geometry="none")


@pytest.fixture
def all_big(monkeypatch):
    """Take every NIfTI file that is not packed for one that does not fit into memory."""
    monkeypatch.setattr(reading, "WHOLE_PIXELS", 1)
    monkeypatch.setattr(open_mask, "_BIG_BYTES", 1)
    # Small files are read whole as soon as they are a moment old.
    monkeypatch.setattr(sources, "read_small", lambda *_: None)


def test_large_volumes_score_as_small_ones(tmp_path, all_big):
    rng = np.random.default_rng(0)
    truth, pred = rng.integers(0, 3, (2, 9, 8, 7)).astype(np.uint8)
    for name in ("a.nii", "b.nii.gz"):  # the second is packed, and read whole
        save(tmp_path / "truth" / name, truth)
        save(tmp_path / "pred" / name, pred)
    moved = AFFINE + np.array([0, 0, 0, 1.0])
    save(tmp_path / "moved" / "a.nii", pred, moved)
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=3)
    assert run.tally(0).matrix.tolist() == count_pairs(truth, pred, 3)[:, :-1].tolist()
    assert run.images[0].same_counts(run.images[1])
    a = tmp_path / "truth" / "a.nii"
    with pytest.raises(DataError, match=r"a.nii: has affine .*but its truth has"):
        segiou.score_folder(a, tmp_path / "moved" / "a.nii", labels=3)
    one = {"labels": 3, "geometry": "ignore"}
    assert (
        segiou.score_folder(a, tmp_path / "moved" / "a.nii", **one)
        .images[0]
        .same_counts(run.images[0])
    )
    save(tmp_path / "turned" / "a.nii", pred, np.diag([2.0, 2, 2, 1]))
    one["geometry"] = "reorient"
    with pytest.raises(DataError, match="is too large to be reoriented"):
        segiou.score_folder(a, tmp_path / "turned" / "a.nii", **one)


FIXTURE = Path(__file__).parents[2] / "fixtures" / "volumes"


@pytest.mark.parametrize("model", ["model_a", "model_b"])
def test_ten_patients_are_counted_as_by_hand(model):
    expected = json.loads((FIXTURE / "expected.json").read_text())
    labels = FIXTURE / "dataset.json"
    run = segiou.score_folder(FIXTURE / "truth", FIXTURE / model, labels=labels)
    assert run.ids == tuple(expected["cases"])
    for index, id in enumerate(run.ids):
        tally, numbers = run.tally(index), expected["preds"][model]["images"][id]
        assert (tally.matrix.tolist(), tally.ignored) == (numbers["matrix"], numbers["ignored"])
        volume = read_volume(FIXTURE / "truth" / f"{id}.nii.gz")
        case = expected["cases"][id]
        assert volume.spacing == pytest.approx(case["spacing"])
        assert (volume.orientation, list(volume.values.shape)) == (
            case["orientation"],
            case["shape"],
        )
    total = run.total()
    assert {"matrix": total.matrix.tolist(), "ignored": total.ignored} == (
        expected["preds"][model]["total"]
    )


def test_inspect_says_where_voxels_are_and_which_pairs_disagree(tmp_path, capsys):
    found = inspect_folder(FIXTURE / "truth", pred=FIXTURE / "model_a")
    assert len(found.sizes) > 1 and "different sizes" not in found.to_text()
    assert found.spacings["0.8 × 0.8 × 2.5 mm"] == 2
    assert sum(found.spacings.values()) == 10
    assert found.orientations == {"RAS": 6, "LPS": 2, "PIR": 1, "LAS": 1}
    assert list(found.values) == [0, 1, 2, 3, 4]
    assert found.disagreements == ()
    assert "disagrees" not in found.to_text()
    assert "orientation RAS (6), LPS (2), PIR (1), LAS (1)" in found.to_text()
    truth = " ".join(found.to_text(width=300).split())
    assert f"suspicious: 1 file has a single value: {FIXTURE / 'truth'}" in truth
    turned = inspect_folder(FIXTURE / "model_a", pred=FIXTURE / "truth").to_text(width=300)
    assert "suspicious in the predictions: 1 file has a single value" in " ".join(turned.split())
    values = np.zeros((4, 4, 4), np.uint8)
    thick = AFFINE * np.array([1, 1, 1.5, 1])
    for name, affine in {"same": AFFINE, "thick": thick, "turned": np.eye(4)}.items():
        save(tmp_path / "truth" / f"{name}.nii.gz", values)
        save(tmp_path / "pred" / f"{name}.nii.gz", values, affine)
    save(tmp_path / "pred" / "short.nii.gz", values[:3])
    save(tmp_path / "truth" / "short.nii.gz", values)
    save(tmp_path / "truth" / "alone.nii.gz", values)
    folders = [str(tmp_path / name) for name in ("truth", "pred")]
    assert main(["inspect", folders[0], "--pred", folders[1], "--format", "json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert data["orientations"] == {"PIR": 5}
    found = {Path(entry["file"]).name: entry["problem"] for entry in data["disagreements"]}
    assert sorted(found) == ["alone.nii.gz", *(f"{n}.nii.gz" for n in ("short", "thick", "turned"))]
    # Values of unequal shapes cannot be compared voxel by voxel.
    assert "its truth has (4, 4, 4); resample it" in found["short.nii.gz"]
    assert "--geometry ignore" not in found["short.nii.gz"]
    assert (
        "has spacing 0.5 × 0.75 × 3 mm, but its truth has 0.5 × 0.75 × 2" in (found["thick.nii.gz"])
    )
    assert found["turned.nii.gz"].startswith("has orientation RAS, but its truth has PIR")
    assert "has no prediction" in found["alone.nii.gz"]
