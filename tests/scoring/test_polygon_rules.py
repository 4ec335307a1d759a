"""A note if polygons of truth and predictions are drawn by different rules."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from mask_files import write_masks
from PIL import Image

from segiou import score_folder

CORNERS = [[2, 2], [12, 2], [12, 9], [2, 9]]


def labelme(folder, kind="polygon"):
    shapes = [{"label": "car", "points": CORNERS[:: 2 if kind == "rectangle" else 1]}]
    shapes[0]["shape_type"] = kind
    folder.mkdir()
    text = json.dumps({"shapes": shapes, "imageHeight": 16, "imageWidth": 20})
    (folder / "a.json").write_text(text)
    return f"{folder}/*.json"


def supervisely(folder):
    shape = {"classTitle": "car", "geometryType": "polygon"}
    shape["points"] = {"exterior": CORNERS, "interior": []}
    folder.mkdir()
    text = json.dumps({"size": {"height": 16, "width": 20}, "objects": [shape]})
    (folder / "a.json").write_text(text)
    return f"{folder}/*.json"


def yolo(folder):
    folder.mkdir()
    Image.fromarray(np.zeros((16, 20, 3), np.uint8)).save(folder / "a.jpg")
    numbers = " ".join(f"{x / 20} {y / 16}" for x, y in CORNERS)
    (folder / "a.txt").write_text(f"0 {numbers}\n")
    return folder


def notes(truth, pred):
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        score_folder(truth, pred, labels=["background", "car"])
    return " ".join(str(one.message) for one in noted)


def test_different_rules_are_named(tmp_path):
    said = notes(labelme(tmp_path / "t"), yolo(tmp_path / "p"))
    assert "the truth are drawn as Pillow draws them and those of predictions as OpenCV" in said
    assert "See segiou help formats." in said


@pytest.mark.parametrize("kind", ["rectangle", "masks"])
def test_without_polygons_on_both_sides_nothing_is_said(tmp_path, kind):
    truth = tmp_path / "t"
    if kind == "masks":
        write_masks(truth, {"a": np.eye(16, 20)})
    place = truth if kind == "masks" else labelme(truth, "rectangle")
    assert "drawn" not in notes(place, yolo(tmp_path / "p"))


def test_the_same_rule_is_silent(tmp_path):
    assert "drawn" not in notes(supervisely(tmp_path / "t"), yolo(tmp_path / "p"))
