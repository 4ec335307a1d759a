"""Label files of other tools."""

import json

import pytest

import segiou


def of(tmp_path, description):
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps(description))
    return segiou.load_labels(path)


def test_labels_of_nnunet(tmp_path):
    found = of(tmp_path, {"name": "spleen", "labels": {"background": 0, "spleen": 1, "ignore": 7}})
    assert (found.name, found.class_names, found.ignore) == (
        "spleen",
        ("background", "spleen"),
        (7,),
    )
    assert dict(found.groups) == {}


def test_regions_of_nnunet_overlap(tmp_path):
    labels = {"background": 0, "whole": [1, 2, 3], "core": [2, 3], "enhancing": [3]}
    found = of(tmp_path, {"labels": labels, "regions_class_order": [1, 2, 3]})
    assert found.class_names == ("background", "label 1", "label 2", "enhancing")
    assert [c.values for c in found.classes] == [(0,), (1,), (2,), (3,)]
    assert dict(found.groups) == {
        "whole": ("label 1", "label 2", "enhancing"),
        "core": ("label 2", "enhancing"),
        "enhancing": ("enhancing",),
    }
    matrix = segiou.ConfusionMatrix(found).update([0, 1, 2, 3], [0, 1, 3, 0])
    assert {g["name"]: g["iou"] for g in matrix.report().to_dict()["groups"]} == {
        "whole": 2 / 3,
        "core": 1 / 2,
        "enhancing": 0.0,
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[1]", "has no 'labels'"),
        ('{"labels": {}}', "has no 'labels'"),
        ('{"labels": {"a": "1"}}', "label 'a' must have an integer, or a list of them, not '1'"),
        ('{"labels": {"a": [true]}}', "label 'a' must have an integer"),
        ('{"labels": {"a": []}}', "label 'a' must have an integer"),
    ],
)
def test_other_json_is_refused(tmp_path, content, message):
    path = tmp_path / "dataset.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        segiou.load_labels(path)
