"""Means over named sets of classes: hand-computed values, options and outputs."""

import json
import math

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.labels import ClassOptions
from segiou.measures import Masks
from segiou.measures.class_sets import ClassSetOptions

NAMES = ["road", "sky", "bus", "train"]
#: IoU: road 2/3, sky 1/2, bus 1/2, train 0.
TRUTH, PRED = [[0, 0, 1, 1, 2, 3]], [[0, 0, 1, 0, 2, 2]]
SETS = {"novel": ["bus", "train"], "base": ["road", "sky"]}


def report_of(options, **more):
    return segiou.score([TRUTH], [PRED], labels=NAMES, measures=[options], **more).report()


def test_means_of_sets_and_their_harmonic_mean():
    report = report_of(ClassSetOptions(SETS))
    novel, base = (1 / 2 + 0) / 2, (2 / 3 + 1 / 2) / 2
    assert report.score("set_iou", "novel") == pytest.approx(novel)
    assert report.score("set_iou", "base") == pytest.approx(base)
    assert report.score("set_iou") == pytest.approx(2 * novel * base / (novel + base))


def test_the_rest_is_what_is_included_and_in_no_other_set():
    report = report_of(ClassSetOptions({"novel": [2], "base": "rest"}), exclude=["train"])
    assert report.score("set_iou", "novel") == 1 / 2
    assert report.score("set_iou", "base") == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_absent_classes_and_sets():
    options = ClassSetOptions({"novel": ["train"], "base": ["road"]})
    one = segiou.score([[[0, 0]]], [[[0, 0]]], labels=NAMES, measures=[options]).report()
    assert one.score("set_iou", "base") == 1
    assert math.isnan(one.score("set_iou", "novel"))
    assert math.isnan(one.score("set_iou"))
    zero = segiou.score([[[0, 3]]], [[[0, 1]]], labels=NAMES, measures=[options]).report()
    assert zero.score("set_iou") == 0


def test_predictions_of_no_class_are_missed():
    options = ClassSetOptions(SETS)
    run = segiou.score(
        [[[0, 1, 2, 3]]], [[[0, 1, 9, 3]]], labels=NAMES, unassigned="count", measures=[options]
    )
    assert run.report().score("set_iou", "novel") == (0 + 1) / 2


def test_every_command_has_them(tmp_path, command):
    places = [str(tmp_path / side) for side in ("sets_truth", "sets_pred", "sets_perfect")]
    for place, mask in zip(places, (TRUTH, PRED, TRUTH), strict=True):
        for name in ("a", "b"):
            path = tmp_path / place / f"{name}.png"
            path.parent.mkdir(exist_ok=True)
            Image.fromarray(np.array(mask, np.uint8)).save(path)
    sets = "--class-sets", "novel=bus,train", "--class-sets", "base=rest"
    options = "--labels", ",".join(NAMES), *sets, "--format", "json"
    runs = []
    for pred in places[1:]:
        runs.append(f"{pred}.segiou")
        code, out, _ = command("score", places[0], pred, *options, "--run", runs[-1])
        assert code == 0
    assert json.loads(out)["scores"]["set_iou"]["rows"]["novel"]["value"] == 1
    assert command("report", runs[0], "--fail-under", "set_iou:novel=0.3")[0] == 1
    assert command("report", runs[0], "--fail-under", "set_iou:base=0.3")[0] == 0
    code, out, _ = command("compare", *runs, "--metric", "set_iou:novel", "--group-by", "none")
    assert code == 0
    assert "novel" in out


@pytest.mark.parametrize(
    ("sets", "problem"),
    [
        ({"novel": [], "base": "rest"}, "'novel' is empty"),
        ({}, "sets is empty; expected names with their classes"),
        ((("a", ["bus"]), ("a", ["sky"])), "'a' is given twice"),
        ({"novel": ["tram"], "base": "rest"}, "tram"),
        ({"novel": ["bus"], "base": ["bus", "road"]}, "'bus' is in two sets"),
    ],
)
def test_refused(sets, problem):
    with pytest.raises(ValueError, match=problem):
        ClassSetOptions(sets).plan(ClassOptions.of(NAMES), Masks())


def test_a_command_without_sets_says_how(tmp_path, command):
    code, _, noted = command("score", tmp_path, tmp_path, "--labels", "2", "--class-sets", "novel")
    assert code == 2
    assert "--class-sets novel: expected NAME=CLASS,CLASS or NAME=rest" in " ".join(noted.split())


def test_by_default_all_classes_are_a_set():
    report = report_of("class_sets")
    assert report.score("set_iou") == report.score("set_iou", "all") == report.score("iou")


def test_options_survive_json():
    options = ClassSetOptions({"novel": ["bus"], "base": "rest"})
    assert ClassSetOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options


def test_sets_of_another_shape_are_named():
    with pytest.raises(ValueError, match="sets must be names with their classes"):
        ClassSetOptions(["novel"])
    with pytest.raises(TypeError, match="sets must be names with their classes"):
        ClassSetOptions(None)
    options = ClassSetOptions({"novel": np.array(["bus", "car"]), "first": (np.int64(0),)})
    assert json.loads(json.dumps(options.to_dict())) == {
        "sets": [["novel", ["bus", "car"]], ["first", [0]]]
    }
