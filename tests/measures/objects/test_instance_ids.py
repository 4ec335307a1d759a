"""Objects of folders of masks whose values hold ids: Cityscapes, KITTI and SemanticKITTI."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.measures.objects import ObjectOptions
from segiou.report.pages.picture_masks import read_indices, reader_of
from segiou.scoring import DataError


def test_the_instance_ids_of_cityscapes(tmp_path):
    truth = np.array([[7, 7, 26000, 26000, 26001, 26, 26, 0]], np.uint16)
    pred = np.array([[7, 7, 26005, 26005, 7, 26001, 26001, 7]], np.uint16)
    for side, values in (("truth", truth), ("pred", pred)):
        (tmp_path / side).mkdir()
        Image.fromarray(values).save(tmp_path / side / "x.png")
    run = segiou.score_folder(
        tmp_path / "truth", tmp_path / "pred", labels="cityscapes", objects="cityscapes"
    )
    road, car = (run.labels.index(name) for name in ("road", "car"))
    assert run.counts_of("objects").things[car] and not run.counts_of("objects").things[road]
    # Car 26000 is found, 26001 is not; 26001 of the prediction lies on a group of cars.
    assert run.counts_of("objects").detections[car].tolist() == [1, 0, 1]
    assert run.counts_of("objects").overlaps.tolist() == [[road, 2, 3, 1], [car, 2, 2, 1]]
    assert run.total().matrix[car, car] == 4
    (files,) = run._images.files
    drawn = read_indices(files.truth, [files.pred], [reader_of(run)]).arrays
    assert drawn[0].tolist() == [[road, road, car, car, car, car, car, run.options.num_classes]]
    assert drawn[1].tolist() == [[road, road, car, car, road, car, car, road]]


def cityscapes_pair(folder, truth, pred, objects="cityscapes"):
    for side, values in (("truth", truth), ("pred", pred)):
        (folder / side).mkdir(exist_ok=True)
        Image.fromarray(np.array([values])).save(folder / side / "x.png")
    return segiou.score_folder(
        folder / "truth", folder / "pred", labels="cityscapes", objects=objects
    )


def test_the_sums_are_over_the_classes_of_the_mean():
    options = {"labels": ["ground", "cell"], "exclude": "ground", "objects": True}
    report = segiou.score([[[0, 1, 0, 1]]], [[[0, 1, 0, 0]]], **options).report()
    assert "mean 66.67 % 1 1 0 100.00 % 66.67 %" in " ".join(str(report).split())


def test_ids_of_8_bits_hold_no_objects(tmp_path):
    run = cityscapes_pair(tmp_path, np.uint8([7, 7, 26, 0]), np.uint8([7, 7, 7, 0]))
    road = run.labels.index("road")
    assert run.counts_of("objects").overlaps.tolist() == [[road, 2, 3, 1]]


def test_void_of_cityscapes_may_be_negative(tmp_path):
    for side, ids in (("truth", [7, 26001, -1]), ("pred", [7, 26002, 7])):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "x.npy", np.array([ids]))
    options = {"labels": "cityscapes", "ignore": -1, "objects": "cityscapes"}
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", **options)
    assert run.counts_of("objects").overlaps[:, 1:].tolist() == [[1, 1, 1], [1, 1, 1]]


def test_ids_with_loss_are_refused_like_classes(tmp_path):
    cityscapes_pair(tmp_path, *[np.uint8([7, 7, 7, 7])] * 2)
    Image.open(tmp_path / "pred" / "x.png").save(tmp_path / "pred" / "x.jpg", quality=100)
    (tmp_path / "pred" / "x.png").unlink()
    folders = tmp_path / "truth", tmp_path / "pred"
    options = {"labels": "cityscapes", "objects": "cityscapes"}
    with pytest.raises(DataError, match="is a lossy JPEG"):
        segiou.score_folder(*folders, **options)
    assert (
        segiou.score_folder(*folders, **options, allow_lossy=True).counts_of("objects").tp.sum()
        == 1
    )


def test_class_maps_in_the_place_of_instance_ids_are_recognised(tmp_path):
    plain, ids = np.uint8([7, 7, 26, 26]), np.uint16([7, 7, 26000, 26001])
    problem = r"pred/x.png: contains class ids only: car is 26, but instances would be 26000 \+"
    for name, truth in (("both", plain), ("pred", ids)):
        (tmp_path / name).mkdir()
        with pytest.raises(DataError, match=problem):
            cityscapes_pair(tmp_path / name, truth, plain)
    (tmp_path / "truth").mkdir()
    report = cityscapes_pair(tmp_path / "truth", plain, ids).report()
    assert "are these class" in " ".join(str(report).split())
    (tmp_path / "none").mkdir()
    assert "class maps" not in str(cityscapes_pair(tmp_path / "none", ids, ids).report())
    with pytest.raises(DataError, match="Cityscapes instanceIds, use objects='cityscapes'"):
        cityscapes_pair(tmp_path, ids, ids, objects=True)


def test_the_points_of_semantickitti(tmp_path):
    for side, objects in (("truth", (1, 2)), ("pred", (5, 5))):
        points = np.repeat(np.array([40, *(10 | n << 16 for n in objects), 0], "<u4"), 40)
        (tmp_path / side).mkdir()
        (tmp_path / side / "000000.label").write_bytes(points.tobytes())
    labels = tmp_path / "labels.toml"
    labels.write_text(
        'name = "points"\nignore = [0]\n'
        'classes = [{name = "car", values = [10]}, {name = "road", values = [40]}]\n'
    )
    options = ObjectOptions("kitti", things=("car",))
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=labels, objects=options)
    assert run.counts_of("objects").detections.tolist() == [[0, 1, 2], [1, 0, 0]]
    assert run.counts_of("objects").summary()["protocol"] == "semantickitti"
    assert "absent classes count as 0" in " ".join(str(run.report()).split())
    assert run.total().matrix.tolist() == [[80, 0], [0, 40]]
    plain = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=labels)
    assert plain.total() == run.total() and plain.counts_of("objects") is None
    (tmp_path / "pred" / "000000.label").write_bytes(b"12345")
    with pytest.raises(DataError, match="5 bytes is not a multiple of 4"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=labels)


def test_values_of_one_class_of_semantickitti_are_different_objects(tmp_path):
    # Cars that stand and cars that move (10, 252) are numbered apart, road and lanes (40, 60) too.
    points = np.repeat(np.array([10 | 1 << 16, 252 | 1 << 16, 40, 60], "<u4"), 40)
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "000000.label").write_bytes(points.tobytes())
    folders = tmp_path / "truth", tmp_path / "pred"
    run = segiou.score_folder(*folders, labels="semantickitti", objects="kitti")
    found = dict(zip(run.class_names, run.counts_of("objects").tp.tolist(), strict=True))
    assert {name: n for name, n in found.items() if n} == {"car": 2, "road": 2}
    options = ObjectOptions("kitti", things=("car",))
    run = segiou.score_folder(*folders, labels="semantickitti", objects=options)
    assert run.counts_of("objects").tp[run.class_names.index("road")] == 1
