"""One file per class: structures in folders and in names, which may overlap."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.cli.main import main
from segiou.masks.sources.class_files import class_layout
from segiou.scoring import inspect_folder

CASES = Path(__file__).parents[2].parent / "shared" / "data" / "cases"
NAMES = ["background", "chair", "table"]
#: Rows of two classes that share a pixel; and their predictions.
TRUTH = {"chair": [1, 1, 1, 0, 0, 0], "table": [0, 0, 1, 1, 0, 0]}
PRED = {"chair": [1, 1, 0, 0, 0, 1], "table": [0, 0, 1, 1, 1, 0]}
#: By hand: 2 of 4 pixels, and 2 of 3.
IOU = [2 / 4, 2 / 3]


def save(folder, classes, name):
    for one, row in classes.items():
        path = folder / name.format(one)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.array([row], np.uint8) * 255).save(path)


@pytest.fixture(params=["{id}_class_{class}", "{id}/{class}", "{id}/segmentations/{class}"])
def folder(request, tmp_path):
    for side, classes in (("truth", TRUTH), ("pred", PRED)):
        for image in ("a", "b"):
            name = request.param.replace("{id}", image).replace("{class}", "{}")
            save(tmp_path / side, classes, f"{name}.png")
    return tmp_path, request.param


def test_each_class_is_counted_by_itself(folder):
    root, pattern = folder
    run = segiou.score_folder(root / "truth", root / "pred", labels=NAMES, class_files=pattern)
    assert run.total().iou()[1:].tolist() == IOU
    assert run.report().mean_iou == sum(IOU) / 2
    assert run.ids == ("a", "b")


def test_the_command_without_labels_names_the_one_that_counts(folder, capsys, tmp_path):
    root, pattern = folder
    places = [str(root / "truth"), str(root / "pred")]
    assert main(["score", *places]) == 2
    assert f"--class-files '{pattern}'" in capsys.readouterr().err
    command = ["score", *places, "--class-files", pattern, "-q"]
    page = ["--html", str(tmp_path / "page.html"), "--format", "json"]
    assert main([*command, *page]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["iou"] for one in found["classes"]][1:] == IOU
    assert main(["inspect", places[0], "-q"]) == 0
    assert f"--class-files '{pattern}'" in " ".join(capsys.readouterr().out.split())


def test_labels_of_the_classes_without_the_pattern_are_refused(folder):
    root, pattern = folder
    with pytest.raises(segiou.DataError, match="one file per class") as caught:
        segiou.score_folder(root / "truth", root / "pred", labels=NAMES)
    assert pattern in str(caught.value)


@pytest.mark.parametrize("labels", [["background", "table"], "binary"])
def test_classes_are_not_counted_as_one(folder, labels):
    root, pattern = folder
    if labels == "binary" and pattern == "{id}/{class}":
        pytest.skip("files in folders of images may be anything")
    with pytest.raises(segiou.DataError, match="one file per class"):
        segiou.score_folder(root / "truth", root / "pred", labels=labels)
    how = {"labels": ["background", "table"], "class_files": pattern, "extra": "skip"}
    run = segiou.score_folder(root / "truth", root / "pred", **how)
    assert run.total().iou()[1:].tolist() == IOU[1:]
    assert len(run.skipped) == 4  # chairs of two images on two sides
    run = segiou.score_folder(root / "truth", root / "pred", labels="binary", key="(.+)")
    assert len(run) == 4


def test_what_needs_one_class_per_pixel(folder):
    root, pattern = folder
    how = {"labels": NAMES, "class_files": pattern}
    with pytest.raises(segiou.DataError, match=r"ha(s|ve) several classes in 1 pixel,"):
        segiou.score_folder(root / "truth", root / "pred", boundary=True, **how)
    for side in ("truth", "pred"):
        for path in [*(root / side).rglob("*table*")]:
            row = PRED["table"] if side == "pred" else [0, 0, 0, 1, 0, 0]
            Image.fromarray(np.array([row], np.uint8)).save(path)
    run = segiou.score_folder(root / "truth", root / "pred", boundary=True, **how)
    assert run.total().iou()[1:].tolist() == [2 / 4, 1 / 3]


def test_a_label_map_on_the_other_side(folder):
    root, pattern = folder
    (root / "maps").mkdir()
    for image in ("a", "b"):  # the shared pixel is table; one pixel is ignored
        Image.fromarray(np.array([[1, 1, 2, 2, 0, 255]], np.uint8)).save(
            root / "maps" / f"{image}.png"
        )
    how = {"labels": NAMES, "class_files": pattern, "ignore": 255}
    run = segiou.score_folder(root / "maps", root / "pred", **how)
    assert run.total().iou()[1:].tolist() == [2 / 2, 2 / 3]
    assert run.total().ignored == 2


@pytest.mark.parametrize(
    ("paths", "layout"),
    [
        (
            ["s1/segmentations/liver.nii.gz", "s1/segmentations/spleen.nii.gz"],
            ("{id}/segmentations/{class}", ("liver", "spleen")),
        ),
        (["s1/liver.nii.gz", "s1/spleen.nii.gz"], None),
        (["a_class_x.png", "a_class_y.png"], ("{id}_class_{class}", ("x", "y"))),
        ([f"{city}/{city}_{n}_leftImg.png" for city in "ab" for n in range(2)], None),
        ([f"video{v}/{n:05}.png" for v in range(2) for n in range(3)], None),
        ([f"video{v}/frame_{n}.png" for v in range(2) for n in range(3)], None),
        ([f"{n}.png" for n in range(4)], None),
        (
            [f"s{n}/{one}.nii.gz" for n in range(3) for one in ("lung_left", "lung_right")],
            ("{id}/{class}", ("lung_left", "lung_right")),
        ),
    ],
)
def test_layouts(paths, layout):
    assert class_layout(paths) == layout
    assert class_layout(["0.png", "1.png"], ["0", "1", "2"]) is None


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not beside this checkout")
def test_structures_and_classes():
    wanted = json.loads((CASES / "expected.json").read_text())
    how = {"class_files": "{id}_class_{class}", "labels": NAMES}
    run = segiou.score_folder(CASES / "class_files/truth", CASES / "class_files/pred", **how)
    assert (
        dict(zip(NAMES[1:], run.total().iou()[1:].tolist(), strict=True))
        == (wanted["class_files"]["iou"])
    )
    pytest.importorskip("nibabel")
    names = ["background", *wanted["structures"]["dice_pooled"]]
    how = {"class_files": "{id}/segmentations/{class}", "labels": names}
    run = segiou.score_folder(CASES / "structures/truth", CASES / "structures/pred", **how)
    pooled = segiou.metrics.dice(run.total().counts)[1:].tolist()
    assert dict(zip(names[1:], pooled, strict=True)) == wanted["structures"]["dice_pooled"]
    cases = segiou.score_folder(
        CASES / "structures/truth", CASES / "structures/pred", protocol="nnunet", **how
    )
    assert cases.report().score("mean_dice") == pytest.approx(
        np.mean([*wanted["structures"]["dice_per_case_mean"].values()]), abs=1e-12
    )


def test_inspection_of_other_folders_is_silent(tmp_path):
    for side in ("v1", "v2"):
        save(tmp_path / side, {"00001": [0, 1], "00002": [1, 0]}, "{}.png")
    assert not any("one file per class" in text for text in inspect_folder(tmp_path).suspicions)


@pytest.mark.parametrize("place", ["s1/segmentations", "s1", ""])
@pytest.mark.parametrize("names", [("chair", "table"), ("table",)])
def test_files_of_a_single_image(tmp_path, place, names):
    """Its files are not images in which everything is the first class."""
    for side, classes in (("truth", TRUTH), ("pred", PRED)):
        save(tmp_path / side / place, {name: classes[name] for name in names}, "{}.png")
    sides = tmp_path / "truth", tmp_path / "pred"
    pattern = f"{place.replace('s1', '{id}')}/{{class}}".lstrip("/")
    with pytest.raises(segiou.DataError, match="one file per class") as caught:
        segiou.score_folder(*sides, labels={"background": 0, "chair": 255, "table": 2})
    assert f"--class-files '{pattern}'" in str(caught.value)
    run = segiou.score_folder(*sides, labels=NAMES, class_files=pattern)
    assert run.total().iou()[-len(names) :].tolist() == IOU[-len(names) :]
    assert len(run) == 1


def test_folders_of_classes(tmp_path, capsys):
    """They may also be videos, so both readings are named."""
    for side, classes in (("truth", TRUTH), ("pred", PRED)):
        for name, row in classes.items():
            save(tmp_path / side / name, {"a": row, "b": row}, "{}.png")
    places = [str(tmp_path / side) for side in ("truth", "pred")]
    assert main(["score", *places]) == 2
    text = capsys.readouterr().err
    assert "If the folders are classes (chair and table):" in text
    assert "--class-files '{class}/{id}'" in text
    with pytest.raises(segiou.DataError, match="one file per class"):
        segiou.score_folder(*places, labels={"background": 0, "chair": 255, "table": 2})
    run = segiou.score_folder(*places, labels=NAMES, class_files="{class}/{id}")
    assert run.total().iou()[1:].tolist() == IOU
    assert len(segiou.score_folder(*places, labels="binary")) == 4


@pytest.mark.parametrize("side", ["truth", "pred"])
def test_files_of_undeclared_classes_are_errors_or_listed(tmp_path, side, capsys):
    for one, classes in (("truth", TRUTH), ("pred", PRED)):
        named = {n.title() if (one, n) == (side, "table") else n: r for n, r in classes.items()}
        save(tmp_path / one, named, "a_class_{}.png")
    folders = tmp_path / "truth", tmp_path / "pred"
    options = {"labels": NAMES, "class_files": "{id}_class_{class}"}
    text = "class 'Table' of 1 file is not declared; did you mean table.*extra='skip'"
    with pytest.raises(segiou.DataError, match=text):
        segiou.score_folder(*folders, **options)
    run = segiou.score_folder(*folders, **options, extra="skip")
    assert [problem.where.rpartition("/")[2] for problem in run.skipped] == ["a_class_Table.png"]
    # By hand: of the chair 2 of 4 pixels; the table has pixels on one side only.
    assert run.total().iou()[1:].tolist() == [2 / 4, 0]
    words = ["score", *map(str, folders), "--labels", ",".join(NAMES)]
    assert main([*words, "--class-files", "{id}_class_{class}"]) == 3
    assert "class 'Table' of 1 file is not declared" in capsys.readouterr().err


def test_two_files_of_one_class_are_an_error(folder):
    root, pattern = folder
    name = pattern.replace("{id}", "a").replace("{class}", "chair")
    Image.new("L", (6, 1)).save(root / "truth" / f"{name}.bmp")
    with pytest.raises(segiou.DataError, match=r"is of the same image and class as .*bmp"):
        segiou.score_folder(root / "truth", root / "pred", labels=NAMES, class_files=pattern)


def test_files_of_one_class_are_not_lossy(folder):
    root, pattern = folder
    name = pattern.replace("{id}", "b").replace("{class}", "table")
    (root / "pred" / f"{name}.png").unlink()
    Image.new("L", (6, 1)).save(root / "pred" / f"{name}.jpg")
    places = (root / "truth", root / "pred")
    how = {"labels": NAMES, "class_files": pattern}
    with pytest.raises(segiou.DataError, match=rf"{name}.jpg: is a lossy JPEG"):
        segiou.score_folder(*places, **how)
    run = segiou.score_folder(*places, **how, allow_lossy=True)
    # Of image b, no pixel of table is predicted any more: 2 of 5 pixels.
    assert run.total().iou()[2] == 2 / 5


@pytest.mark.few(3)
@pytest.mark.parametrize("side", ["truth", "pred"])
def test_masks_that_the_pattern_does_not_match_are_listed(folder, side):
    root, pattern = folder
    save(root / side, {"c": [0] * 6, "x.photo": [0] * 6}, "{}.png")
    with pytest.warns(UserWarning, match=r"skipped 1 mask that class_files=.*, such as .*c.png$"):
        run = segiou.score_folder(root / "truth", root / "pred", labels=NAMES, class_files=pattern)
    assert run.total().iou()[1:].tolist() == IOU


def test_the_background_needs_a_class_without_files(folder):
    root, pattern = folder
    with pytest.raises(segiou.DataError, match=r"truth: every class has files; add a class"):
        segiou.score_folder(root / "truth", root / "pred", labels=NAMES[1:], class_files=pattern)
