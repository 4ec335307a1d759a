"""Polygons of YOLO, drawn as Ultralytics draws them."""

from __future__ import annotations

import numpy as np
import pytest
from mask_files import write_masks
from PIL import Image

import segiou
from segiou import DataError
from segiou.cli.main import main
from segiou.masks import open_source
from segiou.masks.sources.yolo_files import YoloFolder

#: The masks of the data set.
MASKS = {"a": [[0] * 4, [0, 1, 1, 0], [0, 1, 1, 0], [0] * 4], "b": [[2] * 4] * 4}


@pytest.fixture
def dataset(tmp_path):
    """Two classes in an image of 4 × 4 pixels, and an image without objects."""
    for place in ("images/val", "labels/val"):
        (tmp_path / place).mkdir(parents=True)
    for name in "ab":
        Image.new("RGB", (4, 4)).save(tmp_path / "images" / "val" / f"{name}.jpg")
    # Corners (0, 0) to (3, 3), and (1, 1) to (2, 2); the smaller polygon is on top.
    small = "1 0.25 0.25 0.74 0.25 0.74 0.74 0.25 0.74"
    large = "0 0 0 0.99 0 0.99 0.99 0 0.99"
    (tmp_path / "labels" / "val" / "a.txt").write_text(f"{small}\n{large}\n")
    (tmp_path / "data.yaml").write_text("names: [hut, cat]\n")
    return tmp_path


def read(root, name):
    raw, _ = YoloFolder(str(root)).read(f"{root}/{name}.txt")
    return [[raw.names[value] for value in row] for row in raw.values.tolist()]


def test_smaller_polygons_cover_larger_ones(dataset):
    edge = ["0"] * 4
    inner = ["0", "1", "1", "0"]
    assert read(dataset / "labels" / "val", "a") == [edge, inner, inner, edge]
    assert read(dataset / "labels" / "val", "b") == [[""] * 4] * 4


def test_images_without_a_file_are_background(dataset):
    pred = np.full((4, 4), 2)
    write_masks(dataset / "pred", {"a": pred, "b": pred})
    run = segiou.score_folder(
        dataset / "labels" / "val", dataset / "pred", labels=dataset / "data.yaml"
    )
    assert run.report().class_names == ("hut", "cat", "background")
    # hut 12, cat 4, background 16 of 32 pixels, all predicted as background.
    assert [row.iou for row in run.report().classes] == [0, 0, 1 / 2]


def test_a_single_class_is_1(dataset):
    (dataset / "data.yaml").write_text("names: [hut]\n")
    (dataset / "labels" / "val" / "a.txt").write_text("0 0 0 0.49 0 0.49 0.99 0 0.99\n")
    write_masks(dataset / "pred", {"a": [[1, 1, 0, 0]] * 4, "b": [[0, 0, 0, 1]] * 4})
    run = segiou.score_folder(
        dataset / "labels" / "val", dataset / "pred", labels=dataset / "data.yaml"
    )
    assert [row.iou for row in run.report().classes] == [20 / 24, 8 / 12]


def test_predictions_have_a_confidence(dataset):
    labels = dataset / "predict" / "labels"
    labels.mkdir(parents=True)
    for name in "ab":
        Image.new("RGB", (4, 4)).save(dataset / "predict" / f"{name}.jpg")
    text = (dataset / "labels" / "val" / "a.txt").read_text()
    (labels / "a.txt").write_text("".join(f"{line} 0.87\n" for line in text.splitlines()))
    how = {"labels": dataset / "data.yaml", "run": dataset / "r.sqlite"}
    for _ in range(2):
        run = segiou.score_folder(dataset / "labels" / "val", labels, **how)
        assert [row.iou for row in run.report().classes] == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        ("0 0.5 0.5 1 1", "data.yaml", "has a box, which has no mask"),
        ("0 0 0 1 0 1 x", "data.yaml", "has no polygon"),
        ("5 0 0 1 0 1 1", "data.yaml", "has '5', not declared"),
        ("0 0 0 1 0 1 1", 2, "data.yaml of its data set"),
    ],
)
def test_faults_are_named(dataset, text, labels, message):
    (dataset / "labels" / "val" / "b.txt").write_text(text)
    write_masks(dataset / "pred", {"a": np.zeros((4, 4)), "b": np.zeros((4, 4))})
    labels = dataset / labels if isinstance(labels, str) else labels
    with pytest.raises(DataError, match=message):
        segiou.score_folder(dataset / "labels" / "val", dataset / "pred", labels=labels)


def test_images_are_needed_for_their_sizes(dataset, capsys):
    labels = dataset / "predict" / "labels"
    labels.mkdir(parents=True)
    (labels / "a.txt").write_text((dataset / "labels" / "val" / "a.txt").read_text())
    command = ["score", str(dataset / "labels" / "val"), str(labels), "--missing", "skip"]
    assert main([*command, "--labels", str(dataset / "data.yaml")]) == 3
    assert f"put the images into {dataset / 'predict'}" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["", "labels", "labels/val"])
def test_files_that_tools_leave_beside_polygons(dataset, place):
    """Ultralytics writes caches, Label Studio classes.txt."""
    for name in ("labels/val.cache", "labels/val/labels.cache", "labels/val/classes.txt"):
        (dataset / name).write_text("hut\ncat\n")
    write_masks(dataset / "pred" / ("" if place == "labels/val" else "val"), MASKS)
    how = {"labels": dataset / "data.yaml"}
    run = segiou.score_folder(dataset / place, dataset / "pred", **how)
    assert [row.iou for row in run.report().classes] == [1, 1, 1]


@pytest.mark.parametrize("ending", ["jpg", "png"])
def test_images_beside_polygons(dataset, tmp_path, ending):
    flat = tmp_path / "flat"
    flat.mkdir()
    for name in "ab":
        Image.new("RGB", (4, 4)).save(flat / f"{name}.{ending}")
    (flat / "a.txt").write_text((dataset / "labels" / "val" / "a.txt").read_text())
    write_masks(dataset / "pred", MASKS)
    run = segiou.score_folder(flat, dataset / "pred", labels=dataset / "data.yaml")
    assert [row.iou for row in run.report().classes] == [1, 1, 1]
    if ending == "png":  # masks beside polygons are masks
        write_masks(flat, MASKS)
        assert not isinstance(open_source(flat), YoloFolder)


def test_other_text_files_are_no_polygons(tmp_path):
    write_masks(tmp_path / "masks", {"a": [[0, 1]]})
    (tmp_path / "masks" / "classes.txt").write_text("road\n")
    assert not isinstance(open_source(tmp_path / "masks"), YoloFolder)
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "val.txt").write_text("a\nb\n")
    assert not isinstance(open_source(tmp_path / "lists"), YoloFolder)
