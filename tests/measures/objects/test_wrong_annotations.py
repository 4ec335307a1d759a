"""Annotations of COCO that do not fit the masks, and ids that cannot be counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from coco_files import write_coco
from PIL import Image

import segiou
from segiou.labels import load_labels
from segiou.measures.objects import ObjectOptions
from segiou.scoring import DataError


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_ids_beyond_32_bits_are_refused(tmp_path, dtype):
    ids = {"truth": 5_000_000_001, "pred": 5_000_001}
    for side, id in ids.items():
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "a.npy", np.full((3, 4), id, dtype))
    options = ObjectOptions("cityscapes", things=("car",))
    labels = {"car": [5_000_000, 5_000]}
    with pytest.raises(DataError, match=r"truth_ids contains 5000000001; expected 0 to 4294967295"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=labels, objects=options)


@pytest.fixture
def problem(tmp_path):
    """What is said of a prediction whose annotation was changed."""

    def do(change) -> str:
        Image.fromarray(np.array([[0, 0, 1]], np.uint8)).save(tmp_path / "mask.png")
        labels = load_labels(["a", "b"])
        for side in ("truth", "pred"):
            write_coco(tmp_path / side, {"x": tmp_path / "mask.png"}, labels, things=())
        file = tmp_path / "pred.json"
        found = json.loads(file.read_text())
        change(found["annotations"])
        file.write_text(json.dumps(found))
        with pytest.raises(DataError) as caught:
            segiou.score_folder(
                tmp_path / "truth",
                file.with_suffix(""),
                labels=tmp_path / "truth.json",
                objects="coco",
            )
        return str(caught.value)

    return do


def set_first(**values):
    return lambda annotations: annotations[0]["segments_info"][0].update(values)


def also(**values):
    return lambda annotations: annotations[0]["segments_info"].append(values)


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_first(area=3), "segment 1 has 2 pixels, but its annotation has area 3; regenerate"),
        (set_first(area="2"), "segment 1 has 2 pixels, but its annotation has area '2'"),
        (set_first(id="1"), "requires COCO annotations"),
        (set_first(id=7), "segment ids missing from its annotation: 1"),
        (also(id=7, category_id=1), "does not contain segment ids of its annotation: 7"),
        (also(id=0, category_id=1), "does not contain segment ids of its annotation: 0"),
        (also(id=1, category_id=2), "segment 1 has two classes, 1 and 2"),
        (lambda annotations: annotations.clear(), "has no annotation in"),
        (set_first(category_id=9), "9: 2 px"),
        (lambda annotations: annotations[0].pop("file_name"), "requires COCO annotations;"),
        (
            lambda annotations: annotations.append(
                {"image_id": annotations.pop()["image_id"], "category_id": 1, "segmentation": []}
            ),
            "has no panoptic annotation (segments_info) in",
        ),
    ],
)
def test_annotations_that_do_not_fit_are_named(problem, change, message):
    text = problem(change)
    assert message in text
    assert "pred/x.png" in text


@pytest.mark.few(6)
@pytest.mark.parametrize("side", ["truth", "pred"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"area": 2.0}, ""),
        ({"area": None}, ""),
        ({"area": 3}, "segment 1 has 2 pixels, but its annotation has area 3"),
        ({"area": "2"}, "segment 1 has 2 pixels, but its annotation has area '2'"),
        ({"id": 7}, "contains segment ids missing from its annotation: 1"),
        ({"id": -1}, "contains segment ids missing from its annotation: 1"),
        ({"id": 1 + (1 << 32)}, "contains segment ids missing from its annotation: 1"),
        ({"id": 1 << 70, "area": None}, "contains segment ids missing from its annotation: 1"),
        ({"id": 0, "area": None}, "contains segment ids missing from its annotation: 1"),
        ("absent", "does not contain segment ids of its annotation: 7"),
        ("absent with area 0", "does not contain segment ids of its annotation: 7"),
    ],
)
def test_one_annotation_of_a_batch_that_does_not_fit(tmp_path, side, values, message):
    Image.fromarray(np.array([[0, 0, 1]], np.uint8)).save(tmp_path / "mask.png")
    labels, names = load_labels(["a", "b"]), [f"x{i}" for i in range(8)]
    for each in ("truth", "pred"):
        write_coco(tmp_path / each, dict.fromkeys(names, tmp_path / "mask.png"), labels, things=())
    file = tmp_path / f"{side}.json"
    found = json.loads(file.read_text())
    segments = found["annotations"][6]["segments_info"]
    if isinstance(values, str):
        segments.append({"id": 7, "category_id": 1, "area": 0 if "area" in values else None})
    else:
        segments[0].update(values)
    file.write_text(json.dumps(found))
    options = {"labels": tmp_path / "truth.json", "objects": "coco", "workers": 1}
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", on_error="skip", **options)
    problems = {Path(problem.where).stem: problem.text for problem in run.skipped}
    assert [*problems] == ["x6"] * bool(message)
    assert message in problems.get("x6", "")
    assert run.counts_of("objects").detections.tolist() == [[8 - bool(message), 0, 0]] * 2
