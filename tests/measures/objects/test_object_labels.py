"""Images with one id per object: touching objects are separate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.cli.main import main
from segiou.measures.objects import ObjectOptions
from segiou.scoring import inspect_folder

CASES = Path(__file__).parents[3].parent / "shared" / "data" / "cases"
#: Objects 1 and 2 touch; the prediction has other ids, finds the first (3 of 4 pixels) and the
#: second (2 of 3), and invents one; the third is missed.
TRUTH = [[1, 1, 1, 1, 2, 2, 0, 0, 3, 0, 0]]
PRED = [[9, 9, 9, 5, 5, 5, 0, 0, 0, 0, 7]]
NAMES = ["background", "object"]


@pytest.fixture
def folder(tmp_path):
    for side, row in (("truth", TRUTH), ("pred", PRED)):
        (tmp_path / side).mkdir()
        Image.fromarray(np.array(row, np.uint16)).save(tmp_path / side / "a.png")
    return tmp_path


def scored(folder, **how):
    return segiou.score_folder(folder / "truth", folder / "pred", **{"labels": NAMES} | how)


@pytest.mark.parametrize("kind", ["png", "npy"])
def test_objects_are_those_of_the_ids(folder, kind):
    if kind == "npy":
        for side, row in (("truth", TRUTH), ("pred", PRED)):
            (folder / side / "a.png").unlink()
            np.save(folder / side / "a.npy", np.array(row, np.int64))
    run = scored(folder, objects="labels")
    counts = run.counts_of("objects")
    assert [counts.tp[1], counts.fp[1], counts.fn[1]] == [2, 1, 1]
    assert counts.pq()[1] == pytest.approx((3 / 4 + 2 / 3) / 3)
    assert run.total().matrix.tolist() == [[3, 1], [1, 6]]


def test_the_command_needs_no_labels(folder, capsys):
    command = ["score", str(folder / "truth"), str(folder / "pred"), "--objects", "labels"]
    assert main([*command, "--format", "json", "-q", "--html", str(folder / "page.html")]) == 0
    found = json.loads(capsys.readouterr().out)["objects"]
    assert found["all"]["pq"] == pytest.approx((3 / 4 + 2 / 3) / 3)  # without the background


def test_more_classes_than_the_objects_are_refused(folder):
    with pytest.raises(ValueError, match="needs two classes"):
        scored(folder, labels=3, objects="labels")
    assert scored(
        folder, labels=["cell", "rest"], objects=ObjectOptions("labels", things=("cell",))
    ).total().matrix.tolist() == [[6, 1], [1, 3]]


def test_negative_ids_are_refused(folder):
    (folder / "truth" / "a.png").unlink()
    np.save(folder / "truth" / "a.npy", np.array(TRUTH) - 1)
    with pytest.raises(segiou.DataError, match="negative ids"):
        scored(folder, objects="labels")


def test_consecutive_ids_are_not_a_preset(tmp_path, capsys):
    for number in (9, 12):
        Image.fromarray(np.arange(number, dtype=np.uint16)[None]).save(tmp_path / f"{number}.png")
    found = inspect_folder(tmp_path)
    assert not found.fits
    assert found.proposal == "--objects labels"
    assert main(["score", str(tmp_path), str(tmp_path)]) == 2
    assert "--objects labels" in capsys.readouterr().err
    Image.fromarray(np.arange(9, dtype=np.uint8)[None]).save(tmp_path / "classes.png")
    assert inspect_folder(tmp_path).fits


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not beside this checkout")
def test_touching_nuclei():
    wanted = json.loads((CASES / "expected.json").read_text())["object_labels"]
    counts = scored(CASES / "object_labels", objects="labels").counts_of("objects")
    found = {name: getattr(counts, name)[1] for name in ("tp", "fp", "fn")}
    assert found == {name: wanted[name] for name in found}
    assert counts.pq()[1] == pytest.approx(wanted["pq"], abs=1e-12)


def cells(seed):
    """Ids above 255 of the nearest of nine points, (D, H, W), and 0 far from all."""
    rng = np.random.default_rng(seed)
    at = np.stack(np.indices((6, 10, 12)), -1)[..., None, :]
    far = ((at - rng.integers(0, (6, 10, 12), (9, 3))) ** 2).sum(-1)
    return np.where(far.min(-1) < 14, 300 + far.argmin(-1), 0).astype(np.uint16)


def write_volume(folder, kind, ids, flip=False):
    """A volume with axes (z, y, x), or as NIfTI with (x, y, z)."""
    if kind == "npy":
        np.save(folder / "a.npy", ids)
    elif kind == "tif":
        pages = [Image.fromarray(page) for page in ids]
        pages[0].save(folder / "a.tif", save_all=True, append_images=pages[1:])
    else:
        nibabel = pytest.importorskip("nibabel")
        values = ids.T.astype(np.int16)
        affine = np.diag([-1.0 if flip else 1.0, 1, 2, 1])
        affine[0, 3] = 11 if flip else 0
        nibabel.save(
            nibabel.Nifti1Image(values[::-1] if flip else values, affine), folder / "a.nii"
        )


@pytest.mark.parametrize(
    ("truth", "pred"),
    [("npy", "npy"), ("tif", "tif"), ("nii", "nii"), ("nii", "flipped"), ("nii", "tif")],
)
def test_partitions_of_volumes_equal_scikit_image(tmp_path, truth, pred):
    from skimage.metrics import adapted_rand_error, variation_of_information

    sides = cells(1), np.where(np.arange(12) < 8, cells(1), cells(2))
    for name, kind, ids in zip(("truth", "pred"), (truth, pred), sides, strict=True):
        (tmp_path / name).mkdir()
        flip = kind == "flipped"
        write_volume(tmp_path / name, "nii" if flip else kind, ids, flip=flip)
    how = {"geometry": "reorient"} if "nii" in (truth, pred) else {"array_axes": "zyx"}
    run = scored(tmp_path, objects="labels", measures=["partitions"], **how)
    error, recall, precision = adapted_rand_error(*sides, ignore_labels=(0,))
    split, merge = variation_of_information(*sides, ignore_labels=(0,))
    found = [run.report().score(name) for name in run.plans[1].scores]
    assert found == pytest.approx([error, precision, recall, split, merge], abs=1e-12)
    assert 0.1 < error < 0.9
    alone = scored(tmp_path, objects="labels", **how)  # ids are shared
    assert alone.total().matrix.tolist() == run.total().matrix.tolist()


def test_pages_of_a_stack_have_one_shape(tmp_path):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        pages = [Image.new("L", size) for size in ((4, 3), (5, 3))]
        pages[0].save(tmp_path / side / "a.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(segiou.scoring.DataError, match="contain 2 images; save each as a sep"):
        scored(tmp_path, objects="labels")


def test_few_ids_of_objects_are_named_beside_the_presets(tmp_path, capsys):
    """Ids end at another value in each image; those of classes have gaps, or the same end."""
    for side in ("truth", "pred", "classes"):
        (tmp_path / side).mkdir()
        for last in (1, 2, 3):
            row = [[0, *range(1, last + 1)]] if side != "classes" else [[0, last]]
            Image.fromarray(np.uint8(row)).save(tmp_path / side / f"{last}.png")
    ids, classes = (inspect_folder(tmp_path / side) for side in ("truth", "classes"))
    assert "if they are ids of objects, pass --objects labels" in ids.suspicions[0]
    assert ids.fits
    assert not any("ids of objects" in text for text in classes.suspicions)
    assert main(["score", str(tmp_path / "truth"), str(tmp_path / "pred")]) == 2
    assert "ids of objects:\n  segiou score" in capsys.readouterr().err
