"""Classes listed by names, values or both; and predictions without every class."""

from __future__ import annotations

import numpy as np
import pytest
from mask_files import score_pairs, write_pairs

from segiou import ConfusionMatrix, ScoreHistogram, load_labels, score
from segiou.cli.main import main
from segiou.labels import ClassOptions, LabelClass, LabelSet


def named(labels):
    return dict(zip(labels.class_names, labels.class_values, strict=True))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1-3", {"1": (1,), "2": (2,), "3": (3,)}),
        ("1-2,7", {"1": (1,), "2": (2,), "7": (7,)}),
        ("-1,4", {"-1": (-1,), "4": (4,)}),
        ("3", {"0": (0,), "1": (1,), "2": (2,)}),
        (range(1, 3), {"1": (1,), "2": (2,)}),
        ([0, 255], {"0": (0,), "255": (255,)}),
        (np.array([4, 5]), {"4": (4,), "5": (5,)}),
        ("road,car", {"road": (0,), "car": (1,)}),
        ("road, 1", {"road": (0,), "1": (1,)}),
        ("road=7, car=26,car=27", {"road": (7,), "car": (26, 27)}),
        ("x=y=3,z=-1", {"x=y": (3,), "z": (-1,)}),
    ],
)
def test_classes_are_listed_by_names_and_values(given, expected):
    assert named(load_labels(given)) == expected


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("3-1", ValueError, "'3-1': expected an increasing range"),
        ("0-99999999", ValueError, "of at most 65536 values"),
        ("1,1", ValueError, "maps to both"),
        ("none,1", ValueError, "only pred_labels may have 'none'"),
        ([0, "a"], TypeError, "labels must be an integer like the others, or all must be names"),
        ("none", ValueError, "unknown label set 'none'"),
        ("a=,b=1", ValueError, None),
    ],
)
def test_other_lists_are_refused(given, error, message):
    if message is None:
        assert named(load_labels(given)) == {"a=": (0,), "b=1": (1,)}
        return
    with pytest.raises(error, match=message):
        load_labels(given)


def test_a_file_named_like_values_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1-3").write_text('classes = ["one"]')
    assert load_labels("1-3").class_names == ("one",)


@pytest.mark.parametrize(
    ("pred_labels", "expected"),
    [
        # truth a, b, c = 7, 8, 9
        ("0-2", {"a": (0,), "b": (1,), "c": (2,)}),
        (3, {"a": (0,), "b": (1,), "c": (2,)}),
        ("3", {"a": (0,), "b": (1,), "c": (2,)}),
        ("none,0-1", {"b": (0,), "c": (1,)}),
        ([5, None, 4], {"a": (5,), "c": (4,)}),
        ("b,c", {"b": (0,), "c": (1,)}),
        (["c", "a"], {"c": (0,), "a": (1,)}),
        ({"a": 1, "c": []}, {"a": (1,)}),
        ("c=1,a=4", {"c": (1,), "a": (4,)}),
    ],
)
def test_predictions_list_the_declared_classes(pred_labels, expected):
    options = ClassOptions.of({"a": 7, "b": 8, "c": 9}, pred_labels=pred_labels)
    assert named(options.pred_labels) == expected
    assert ClassOptions.from_dict(options.to_dict()) == options


@pytest.mark.parametrize(
    ("pred_labels", "message"),
    [
        ("0-3", r"got 4 values for the 3 classes .* one per class, in order \('none' if"),
        ("2", "got 2 values for the 3 classes"),
        ("a,d", r"unknown \['d'\], missing \['b', 'c'\]"),
        ("0,0,1", "value 0 maps to both"),
        ({"a": [], "b": [], "c": []}, "has no values"),
    ],
)
def test_predictions_of_other_classes_are_refused(pred_labels, message):
    with pytest.raises(ValueError, match=message):
        ClassOptions.of("a,b,c", pred_labels=pred_labels)


def test_a_class_of_the_truth_needs_a_value(tmp_path):
    text = 'classes = [{ name = "a", values = 1 }, { name = "b", values = [] }]'
    (tmp_path / "l.toml").write_text(text)
    with pytest.raises(ValueError, match="class 'b' has no values; list the file values"):
        ConfusionMatrix(tmp_path / "l.toml")
    matrix = ConfusionMatrix({"a": 1, "b": 2}, pred_labels=tmp_path / "l.toml")
    assert matrix.update([1, 2], [1, 1]).matrix.tolist() == [[1, 0], [1, 0]]
    with pytest.raises(ValueError, match="undeclared"):
        matrix.update([1], [2])


def test_class_never_predicted_is_missed():
    # Truth 0 1 2 2; the network has no class 0 and numbers the others from 0.
    matrix = ConfusionMatrix(3, pred_labels="none,0-1").update([0, 1, 2, 2], [0, 0, 1, 0])
    assert matrix.matrix.tolist() == [[0, 1, 0], [0, 1, 0], [0, 1, 1]]
    assert matrix.iou().tolist() == [0, 1 / 3, 1 / 2]


@pytest.mark.needs("measures.surfaces")
def test_scores_need_a_value_for_each_class():
    options = {"labels": 3, "pred_labels": "none,0-1"}
    scores = np.eye(3)[None, :, None]
    with pytest.raises(ValueError, match="no value for class '0', but scores have a channel"):
        score([np.array([[0, 1, 2]])], scores, argmax=1, measures=["surfaces"], **options)
    with pytest.raises(ValueError, match="no value for class '0', but scores have a channel"):
        score([np.array([[0, 1, 2]])], scores, argmax=1, measures=["scores"], **options)
    assert ScoreHistogram(3).num_classes == 3


def test_colours_of_a_class_without_values_are_unknown(tmp_path):
    pred = LabelSet("p", (LabelClass("a", (1,), ("#ff0000",)), LabelClass("b", (), ("#00ff00",))))
    write_pairs(tmp_path, [[[1, 2]]], [np.array([[[255, 0, 0], [255, 0, 0]]], np.uint8)])
    scored = score_pairs(tmp_path, labels="a=1,b=2", pred_labels=pred)
    assert [row.iou for row in scored.report().classes] == [1 / 2, 0]


def test_pages_of_predictions_without_a_class(tmp_path, capsys):
    write_pairs(tmp_path, [[[1, 2, 3]]], [[[0, 1, 1]]])
    places = [str(tmp_path / "truth"), str(tmp_path / "pred")]
    page = tmp_path / "p.html"
    options = ["--labels", "x=1,y=2,z=3", "--pred-labels", "x,y", "--html", str(page)]
    assert main(["score", *places, *options, "--boundary", "--objects"]) == 0
    assert "50.00 %" in capsys.readouterr().out  # (1 + 1/2 + 0) / 3
    assert "Prediction labels" in page.read_text()


def test_lists_longer_than_any_name_of_a_file():
    assert load_labels(",".join(f"class {i}" for i in range(400))).num_classes == 400
    assert ClassOptions.of(400, pred_labels="none," * 300 + "0-99").pred_labels.num_classes == 100
    with pytest.raises(ValueError, match="unknown label set"):
        load_labels("x" * 5000)
