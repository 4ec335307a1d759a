"""Polygons of YOLO, drawn as Ultralytics draws them."""

from __future__ import annotations

import contextlib
import os
import tracemalloc

import numpy as np
import pytest
from mask_files import required, write_masks
from PIL import Image

import segiou
from segiou import DataError, MaskError
from segiou.annotations.yolo import YoloFolder
from segiou.cli.main import main
from segiou.masks import open_source
from segiou.masks.sources import folders

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


@pytest.mark.parametrize("truth", ["labels/val", "masks", "predict/labels"])
def test_sizes_without_images_are_those_of_the_other_masks(dataset, truth):
    """Predictions that were saved without images, and masks that were copied without them."""
    labels = dataset / "predict" / "labels"
    labels.mkdir(parents=True)
    (labels / "a.txt").write_text((dataset / "labels" / "val" / "a.txt").read_text())
    (labels / "b.txt").write_text("")
    write_masks(dataset / "masks", MASKS)
    pred = labels if truth != "predict/labels" else dataset / "masks"
    run = segiou.score_folder(dataset / truth, pred, labels=dataset / "data.yaml", workers=1)
    assert [row.iou for row in run.report().classes] == [1, 1, 1]
    if truth == "labels/val":  # pictures have the size of the truth
        assert run.report().to_html(run=run).count('"problem":""') == 2


def test_images_are_needed_if_neither_mask_has_a_size(dataset, capsys):
    for side in ("old", "new"):
        labels = dataset / side / "labels"
        labels.mkdir(parents=True)
        (labels / "a.txt").write_text((dataset / "labels" / "val" / "a.txt").read_text())
    command = ["score", str(dataset / "old" / "labels"), str(dataset / "new" / "labels")]
    assert main([*command, "--labels", str(dataset / "data.yaml")]) == 3
    problems = " ".join(capsys.readouterr().err.split())
    assert f"put a.jpg into {dataset / 'old'}, or pair it with a mask" in problems


def test_an_image_without_predictions_needs_an_empty_file_or_its_image(dataset, capsys):
    labels = dataset / "predict" / "labels"
    labels.mkdir(parents=True)
    (labels / "a.txt").write_text((dataset / "labels" / "val" / "a.txt").read_text())
    command = ["score", str(dataset / "labels" / "val"), str(labels)]
    assert main([*command, "--labels", str(dataset / "data.yaml")]) == 3
    assert "for an empty image, an empty text file" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("place", ["", "labels", "labels/val"])
def test_files_that_tools_leave_beside_polygons(dataset, place):
    """Ultralytics writes caches, Label Studio classes.txt."""
    for name in ("labels/val.cache", "labels/val/labels.cache", "labels/val/classes.txt"):
        (dataset / name).write_text("hut\ncat\n")
    write_masks(dataset / "pred" / ("" if place == "labels/val" else "val"), MASKS)
    how = {"labels": dataset / "data.yaml"}
    run = segiou.score_folder(dataset / place, dataset / "pred", **how)
    assert [row.iou for row in run.report().classes] == [1, 1, 1]


@pytest.mark.parametrize("first", ["images", "labels"])
def test_many_images_hide_no_polygons(tmp_path, monkeypatch, first):
    """The system lists the folders in any order, and more images than are looked at."""
    for name in range(25):
        for place in ("images", "labels"):
            (tmp_path / place).mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / "images" / f"{name}.jpg")
        (tmp_path / "labels" / f"{name}.txt").write_text("0 0 0 1 0 1 1 0 1")
    listed = os.scandir

    def scandir(folder):
        entries = sorted(listed(folder), key=lambda entry: (entry.name != first, entry.name))
        return contextlib.nullcontext(entries)

    monkeypatch.setattr(folders.os, "scandir", scandir)
    assert open_source(tmp_path) == YoloFolder(str(tmp_path / "labels"))


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


def test_patterns_of_masks_and_text_are_patterns_of_masks(tmp_path):
    write_masks(tmp_path / "masks", {"a": [[0, 1]]})
    (tmp_path / "masks" / "a.txt").write_text("0 0 0 1 0 1 1")
    assert [*open_source(tmp_path / "masks" / "*").find()] == ["a.png"]


def test_other_text_files_are_no_polygons(tmp_path):
    write_masks(tmp_path / "masks", {"a": [[0, 1]]})
    (tmp_path / "masks" / "classes.txt").write_text("road\n")
    assert not isinstance(open_source(tmp_path / "masks"), YoloFolder)
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "val.txt").write_text("a\nb\n")
    assert not isinstance(open_source(tmp_path / "lists"), YoloFolder)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("0 0.5 0.5 0.2 0.2 0.9 3", "3"),  # a box, its confidence, and the number of its track
        ("0 1 1 5 1 5 5", "5"),  # in pixels
        ("0 -0.2 0 1 0 1 1", "-0.2"),
    ],
)
def test_corners_outside_the_image_are_named(dataset, line, value):
    (dataset / "labels" / "val" / "b.txt").write_text(f"\n{line}")
    with pytest.raises(MaskError, match=f"b.txt: has the coordinate {value} in line 2; expected"):
        read(dataset / "labels" / "val", "b")


@pytest.mark.parametrize("number", ["1e+00", "+1", "1.", "1.004"])
def test_numbers_as_programs_write_them(dataset, number):
    (dataset / "labels" / "val" / "b.txt").write_text(f"0 0 0 {number} 0 {number} 1 0 1")
    assert read(dataset / "labels" / "val", "b") == [["0"] * 4] * 4


def test_empty_files_are_images_without_objects(dataset):
    folder = dataset / "labels" / "val"
    for name in "ab":
        (folder / f"{name}.txt").write_text("")
    write_masks(dataset / "pred", {"a": np.full((4, 4), 2), "b": np.full((4, 4), 2)})
    run = segiou.score_folder(folder, dataset / "pred", labels=dataset / "data.yaml")
    assert run.total().counts.tp.tolist() == [0, 0, 32]
    for image in (dataset / "images" / "val").iterdir():
        image.unlink()
    assert not isinstance(open_source(folder), YoloFolder)


def test_files_of_systems_are_not_labels(dataset):
    folder = dataset / "labels" / "val"
    for name in ("Thumbs.db", "desktop.ini", "._a.txt", ".DS_Store"):
        (folder / name).write_bytes(b"\0\1")
    (dataset / "images" / "val" / "._b.jpg").write_bytes(b"\0")
    assert [*open_source(folder).find()] == ["a.txt", "b.txt"]


def test_extensions_in_capitals_are_read(dataset):
    folder = dataset / "labels" / "val"
    (folder / "a.txt").rename(folder / "b.TXT")
    path = open_source(folder).find()["b.txt"]
    raw, _ = open_source(folder).read(path)
    assert raw.values.any()
    (folder / "b.txt").write_text("0 0 0 1 0 1 1")
    if len([*folder.iterdir()]) > 1:  # where systems distinguish them
        with pytest.raises(ValueError, match=r"b.TXT: has the name of .*b.txt; keep one"):
            open_source(folder).find()


def test_one_broken_file_is_named(dataset):
    folder = dataset / "labels" / "val"
    (folder / "b.txt").write_bytes(bytes(range(256)))
    write_masks(dataset / "pred", MASKS)
    how = {"labels": dataset / "data.yaml"}
    with pytest.raises(DataError, match=r"b.txt: is neither UTF-8 nor UTF-16 text"):
        segiou.score_folder(folder, dataset / "pred", **how)
    (folder / "b.txt").unlink()
    (folder / "b.txt").symlink_to(folder / "nowhere.txt")
    with pytest.raises(DataError, match=r"b.txt: is a broken link"):
        segiou.score_folder(folder, dataset / "pred", **how)


def test_two_images_of_one_name_have_one_size(dataset):
    Image.new("RGB", (4, 4)).save(dataset / "images" / "val" / "b.png")
    assert read(dataset / "labels" / "val", "b") == [[""] * 4] * 4
    Image.new("RGB", (8, 4)).save(dataset / "images" / "val" / "b.png")
    with pytest.raises(ValueError, match=r"b.jpg: differs in size from .*b.png; keep one"):
        open_source(dataset / "labels" / "val").find()


@pytest.mark.gate
def test_many_polygons_of_a_large_image_take_little_memory(dataset):
    """A mask of the whole image per polygon would be 2 GB."""
    Image.new("L", (1 << 12, 1 << 12)).save(dataset / "images" / "val" / "b.png")
    (dataset / "images" / "val" / "b.jpg").unlink()
    corners = [(i % 16 / 16, i // 16 / 16) for i in range(128)]
    lines = [f"0 {x} {y} {x + 0.01} {y} {x + 0.01} {y + 0.01}" for x, y in corners]
    (dataset / "labels" / "val" / "b.txt").write_text("\n".join(lines))
    folder = YoloFolder(str(dataset / "labels" / "val"))
    tracemalloc.start()
    raw, _ = folder.read(f"{folder.root}/b.txt")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.count_nonzero(raw.values) > 128 * 800
    assert most < 200 << 20


def test_polygons_are_those_of_opencv(dataset):
    cv2 = required("cv2")
    random = np.random.default_rng(4)
    image = dataset / "images" / "val" / "b.jpg"
    for _ in range(60):
        height, width = random.integers(3, 40, 2)
        Image.new("RGB", (width, height)).save(image)
        expected = np.full((height, width), "", object)
        drawn, lines = [], []
        for _ in range(random.integers(1, 6)):
            corners = (random.random((random.integers(3, 8), 2)) * 0.99).round(4)
            name = str(random.integers(0, 3))
            ending = " 0.5" if random.random() < 0.5 else ""
            lines.append(f"{name} {' '.join(map(str, corners.ravel().tolist()))}{ending}")
            pixels = (corners.astype(np.float32) * np.float32([width, height])).astype(np.int32)
            area = cv2.fillPoly(np.zeros((height, width), np.uint8), [pixels], 1)
            drawn.append((-int(area.sum()), name, area > 0))
        for _, name, area in sorted(drawn, key=lambda entry: entry[0]):
            expected[area] = name
        (dataset / "labels" / "val" / "b.txt").write_text("\n".join(lines))
        assert read(dataset / "labels" / "val", "b") == expected.tolist()
