"""Next steps: gains against recounting with the pixels put right."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given, strategies as st
from PIL import Image

import segiou
from segiou.analysis.gap import steps as module
from segiou.analysis.gap.gains import steps_with_images
from segiou.analysis.gap.steps import top_steps
from segiou.runs import Columns

CAMVID = Path(__file__).parents[3] / "shared" / "data" / "camvid"


def put_right(step, names, truths, preds):
    """The predictions with the pixels of a step put right."""
    fixed = []
    for truth, pred in zip(truths, preds, strict=True):
        chosen = truth != pred
        if step.kind == "swapped_classes":
            both = [names.index(step.truth), names.index(step.pred)]
            fixed.append(np.where(np.isin(truth, both) & np.isin(pred, both), truth, pred))
            continue
        if step.truth is not None:
            chosen &= truth == names.index(step.truth)
        if step.kind not in ("missed_class", "few_images"):
            wanted = 99 if step.pred is None else names.index(step.pred)
            chosen &= pred == wanted
        fixed.append(np.where(chosen, truth, pred))
    return fixed


def gains_hold(truths, preds, protocol="segiou", **options):
    run = segiou.score(truths, preds, **options)
    report = run.report(protocol)
    names = list(run.class_names)
    assert report.next_steps
    for step in report.next_steps:
        fixed = segiou.score(truths, put_right(step, names, truths, preds), **options)
        assert step.gain == fixed.report(protocol).mean_iou - report.mean_iou
        assert 0 < step.gain <= 1
    order = [-step.gain for step in report.next_steps]
    assert order == sorted(order)
    return report


@pytest.mark.parametrize("protocol", ["segiou", "detectron2", "ade20k", "paddleseg"])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.gate
def test_gains_are_those_of_recounting(protocol, seed):
    rng = np.random.default_rng(seed)
    truths = list(rng.choice([0, 1, 2, 4], (3, 6, 10), p=[0.6, 0.3, 0.08, 0.02]))
    # Class 3 is only predicted, class 4 never.
    wrong = rng.choice([0, 1, 2, 3, 99], (3, 6, 10))
    changed = [(rng.random(t.shape) < 0.3) | (t == 4) for t in truths]
    preds = [np.where(*three) for three in zip(changed, wrong, truths, strict=True)]
    options = {"labels": list("abcde"), "unassigned": "count", "exclude": "b"}
    report = gains_hold(truths, preds, protocol, **options)
    kinds = {step.kind for step in report.next_steps}
    assert "missed_class" in kinds


@pytest.mark.skipif(not CAMVID.is_dir(), reason="the CamVid frames are not here")
@pytest.mark.parametrize("model", ["base", "small"])
@pytest.mark.gate
def test_gains_of_real_frames(model):
    def read(folder):
        return [np.asarray(Image.open(p)) for p in sorted((CAMVID / folder).iterdir())]

    names = segiou.load_labels("camvid").class_names
    gains_hold(read("truth"), read(model), labels=names, ignore=11)


def test_classes_that_are_taken_for_each_other():
    truths = [np.array([[0] * 6 + [1] * 5 + [2] * 4])]
    preds = [np.array([[1] * 4 + [0] * 2 + [0] * 3 + [1] * 2 + [2] * 4])]
    step = gains_hold(truths, preds, labels=["left", "right", "sky"]).next_steps[0]
    assert (step.kind, step.truth, step.pred) == ("swapped_classes", "left", "right")
    # Before: 2 / 9, 2 / 9 and 1; after: all of it.
    assert (step.pixels, step.share) == (7, 7 / 11)
    assert step.gain == 1 - (2 / 9 + 2 / 9 + 1) / 3
    assert "check for swapped labels" in str(step)
    # Half of each class is what chance would give.
    preds[0][0, 0] = 0
    assert "swapped_classes" not in {s.kind for s in gains_hold(truths, preds, labels=3).next_steps}


@pytest.mark.parametrize(("images", "named"), [(9, False), (10, True)])
def test_a_class_in_two_images_of_many(images, named):
    truths = [np.array([[0, 0, 0, 0]])] * images
    truths[3] = truths[5] = np.array([[1, 1, 1, 0]])
    preds = [np.array([[0, 0, 0, 0]])] * 3 + [np.array([[1, 1, 0, 0]])] * (images - 3)
    report = gains_hold(truths, preds, labels=["road", "pole"])
    steps = {step.kind: step for step in report.next_steps}
    assert ("few_images" in steps) == named
    if named:
        step = steps["few_images"]
        assert (step.truth, step.pixels, step.share) == ("pole", 2, 1 / 3)
        assert step.images == ("3", "5")[: len(step.images)]
        assert "pole occurs in only one or two images" in str(step)
        assert "few" not in report.verdict


def test_found_pixels_are_not_among_the_missed_ones_of_a_class_in_two_images():
    truths, preds = np.zeros((2, 11, 1, 1000), int)
    for image, pixels, missed in ((3, 903, 200), (5, 897, 201)):
        truths[image, :, :pixels] = 1
        preds[image, :, : pixels - missed] = 1
    report = segiou.score([*truths], [*preds], labels=["road", "pole"]).report()
    few, confusion = sorted(report.next_steps, key=lambda step: step.kind != "few_images")
    assert (few.kind, confusion.kind) == ("few_images", "confusion")
    assert few.images == confusion.images == ("5",)
    assert few.high < 1
    assert (few.gain, few.low, few.high) == (confusion.gain, confusion.low, confusion.high)


def test_a_class_that_is_nowhere_in_the_truth():
    matrix = segiou.ConfusionMatrix(["road", "car", "bus"]).update([0, 0, 1, 1], [0, 2, 1, 2])
    step = matrix.report().next_steps[0]
    # Without the false pixels bus is in neither, so the mean is over two classes: 1.
    assert (step.kind, step.truth, step.pred, step.pixels) == ("false_class", None, "bus", 2)
    assert step.gain == 1 - (0.5 + 0.5 + 0) / 3
    assert str(step).startswith("bus is predicted on 2 pixels but never occurs in the truth")


@pytest.mark.parametrize(("images", "known"), [(2, False), (3, True)])
def test_gains_have_intervals_from_three_images_on(images, known):
    run = segiou.score([[[0, 0, 1, 1]]] * images, [[[0, 1, 1, 1]]] * images, labels=2)
    assert np.isfinite(run.report().next_steps[0].high) == known


def test_images_are_those_with_most_of_the_pixels():
    truths = [[[0] * 10]] * 4
    preds = [[[1] * n + [0] * (10 - n)] for n in (1, 5, 0, 4)]
    run = segiou.score(truths, preds, labels=["road", "car"], ids=list("wxyz"))
    (step,) = run.report().next_steps
    assert step.images == ("x",)
    assert "Start with x." in str(step)
    run = segiou.score(truths * 10, preds * 10, labels=["road", "car"])
    assert len(run.report().next_steps[0].images) == 10


def test_nothing_to_do():
    assert segiou.ConfusionMatrix(2).update([0, 1], [0, 1]).report().next_steps == ()
    assert segiou.ConfusionMatrix(2).report().next_steps == ()
    assert segiou.ChannelCounts(2).report().next_steps == ()


def test_of_very_many_cells_the_best_are_still_found(monkeypatch):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 30, 3000)
    pred = np.where(rng.random(3000) < 0.4, rng.integers(0, 30, 3000), truth)
    report = segiou.ConfusionMatrix(30).update(truth, pred).report
    every = report().next_steps
    monkeypatch.setattr(module, "_CANDIDATES", 60)
    monkeypatch.setattr(module, "_AT_ONCE", 90)
    assert report().next_steps == every


def test_the_first_steps_are_of_different_classes():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 5, 500)
    report = segiou.ConfusionMatrix(5).update(truth, rng.integers(0, 5, 500)).report()
    first = top_steps(report.next_steps)
    assert len({step.truth for step in first}) == len(first) == 3
    assert first[0] == report.next_steps[0]


def test_each_false_class_is_one_step():
    # Weed becomes animal, road becomes bus and rock, and no truth has any of the three.
    names = ["road", "weed", "animal", "bus", "rock"]
    truth, pred = np.repeat([0, 1], 50), np.repeat([0, 3, 4, 2, 1], [30, 15, 5, 10, 40])
    steps = segiou.ConfusionMatrix(names).update(truth, pred).report().next_steps
    kinds = [(step.kind, step.truth, step.pred) for step in steps]
    assert sorted(kinds) == [("false_class", None, name) for name in ("animal", "bus", "rock")]
    assert top_steps(steps) == [*steps]
    # Of animal, one pixel more is road: the confusion with weed is part of the step.
    pred[0] = 2
    steps = segiou.ConfusionMatrix(names).update(truth, pred).report().next_steps
    assert ("confusion", "weed", "animal") in [(s.kind, s.truth, s.pred) for s in steps]
    assert {step.kind for step in top_steps(steps)} == {"false_class"}


def test_json_and_page_hold_the_steps():
    run = segiou.score([[[0, 0, 1]]] * 3, [[[0, 1, 1]]] * 3, labels=["<i>road", "car"])
    report = run.report()
    (step,) = report.to_dict()["next_steps"]
    assert step["truth"] == "<i>road" and step["pred"] == "car" and step["kind"] == "confusion"
    assert step["gain"] == report.next_steps[0].gain
    assert step["images"] == ["0", "1"]
    page = report.to_html(run=run)
    assert "50.00\N{NO-BREAK SPACE}% of &lt;i&gt;road pixels predicted as car" in page


def test_images_of_a_missed_and_of_a_false_class():
    truths = [[[0, 0, 2, 2]], [[0, 0, 0, 2]], [[0, 0, 0, 0]]]
    preds = [[[0, 0, 0, 1]], [[0, 1, 1, 0]], [[0, 0, 0, 0]]]
    run = segiou.score(truths, preds, labels=["road", "bus", "pole"], ids=["x", "y", "z"])
    images = {step.kind: (step.pixels, step.images) for step in run.report().next_steps[::-1]}
    # Of three pixels of pole x holds two; of three predicted as bus y holds two.
    assert images["missed_class"] == (3, ("x",))
    assert images["false_class"] == (3, ("y",))


def scored_images(confusions):
    """A run of images with 100 pixels of each class; each table moves pixels to other classes."""
    truths, preds = [], []
    for moved in confusions:
        truth = np.repeat(np.arange(3), 100)
        pred = truth.copy()
        for (a, b), number in moved.items():
            pred[100 * a : 100 * a + number] = b
        truths.append(truth[None])
        preds.append(pred[None])
    return segiou.score(truths, preds, labels=["road", "pole", "fence"])


def test_an_error_of_one_image_is_marked_and_keeps_its_place():
    rng = np.random.default_rng(0)
    tables = [{(1, 0): int(rng.integers(8, 13))} for _ in range(8)]
    tables[3][2, 0] = 100  # all of the fence of one image, more than the poles of all
    report = scored_images(tables).report()
    first, second = report.next_steps[:2]
    assert (first.truth, second.truth) == ("fence", "pole")
    assert first.gain > second.gain
    assert (first.uncertain, second.uncertain) == (True, False)
    assert first.low == 0
    assert ", within noise" in str(first) and "noise" not in str(second)
    gain = f"{100 * first.gain:.2f}"
    headline = f"12.50 % of fence pixels predicted as road ({gain} points, within noise)"
    assert headline in report.verdict


def headline_is_first(report):
    first = top_steps(report.next_steps)[0]
    assert first == report.next_steps[0]
    headline = report.verdict.partition("Costliest error: ")[2]
    assert f"({100 * first.gain:.2f} points" in headline or "points each" in headline


@given(st.integers(0, 2**32 - 1), st.integers(3, 8))
@examples(60)
def test_the_headline_is_the_first_step(seed, images):
    rng = np.random.default_rng(seed)
    truths = rng.integers(0, 5, (images, 6, 6)) * (rng.random((images, 1, 1)) < 0.7)
    wrong = rng.random(truths.shape) < rng.random((images, 1, 1)) ** 3
    preds = np.where(wrong, rng.integers(0, 5, truths.shape), truths)
    report = segiou.score([*truths], [*preds], labels=5).report()
    if report.next_steps:
        headline_is_first(report)


@pytest.mark.gate
@pytest.mark.skipif(not CAMVID.is_dir(), reason="the CamVid frames are not here")
def test_the_headline_is_the_first_step_of_three_frames():
    # Each of the first six steps may be 0 on other images; the next had no interval.
    def read(folder):
        return [np.asarray(Image.open(p)) for p in sorted((CAMVID / folder).iterdir())]

    truths, preds = read("truth"), read("base")
    for frames in combinations(range(0, len(truths), 6), 3):
        of = [[masks[i] for i in frames] for masks in (truths, preds)]
        headline_is_first(segiou.score(*of, labels="camvid").report())


def test_images_of_steps_do_not_depend_on_blocks():
    """Images with equal numbers of pixels are in the order of their ids."""
    rng = np.random.default_rng(0)
    truths = rng.integers(0, 4, (60, 5, 5))
    preds = np.where(rng.random(truths.shape) < 0.2, rng.integers(0, 4, truths.shape), truths)
    run = segiou.score([*truths], [*preds], labels=4)
    report = run.report()
    for size in (1, 7, 60):
        parts = Columns.of(run.images).parts(size)
        found = steps_with_images(report.next_steps, run.class_names, parts)
        assert [step.images for step in found] == [step.images for step in report.next_steps]
    (step,) = (s for s in report.next_steps if (s.kind, s.truth, s.pred) == ("confusion", "0", "1"))
    pixels = {i: -run.tally(i).table[0, 1] for i in range(60)}
    expected = [run.ids[i] for i in sorted(pixels, key=pixels.__getitem__)]
    assert list(step.images) == expected[: len(step.images)]


def test_the_interval_of_a_gain_is_that_of_left_out_images():
    tables = [{(1, 0): n} for n in (8, 9, 12, 10)]
    run = scored_images(tables)
    (step,) = run.report().next_steps
    left = []
    for i in range(4):
        (other,) = scored_images(tables[:i] + tables[i + 1 :]).report().next_steps
        left.append(other.gain)
    reach = 3.182446305284263 * np.sqrt(((step.gain - np.array(left)) ** 2).sum())  # t, 3 df
    apart = np.exp(reach / step.gain)  # on the log scale
    assert (step.low, step.high) == pytest.approx((step.gain / apart, step.gain * apart))
    data = step.to_dict()
    assert (data["low"], data["high"]) == (step.low, step.high)
    assert f"{100 * step.low:.2f} to {100 * step.high:.2f}" in str(step)


def test_gains_that_cannot_be_told_apart_are_tied():
    rng = np.random.default_rng(1)
    tables = [
        {(1, 0): int(rng.integers(15, 25)), (2, 0): int(rng.integers(15, 25)), (0, 1): 1}
        for _ in range(8)
    ]
    report = scored_images(tables).report()
    first, second, third = report.next_steps[:3]
    assert {first.truth, second.truth} == {"pole", "fence"}
    assert (first.tied, second.tied, third.tied) == (False, True, False)
    assert "pole" in report.verdict and "fence" in report.verdict
    assert "noise" in report.verdict


def test_two_images_give_no_interval():
    (step,) = scored_images([{(1, 0): 8}, {(1, 0): 9}]).report().next_steps
    assert np.isnan(step.low) and not step.uncertain
    assert step.to_dict()["low"] is None
    assert "interval" not in str(step)


def test_gains_are_over_the_units_of_the_intervals():
    tables = [{(1, 0): n} for n in (8, 9, 12, 10, 11, 7)]
    run = scored_images(tables)
    (step,) = run.report(intervals=run.intervals(groups=[*"aabbcc"])).next_steps
    left = []
    for i in (0, 2, 4):
        (other,) = scored_images(tables[:i] + tables[i + 2 :]).report().next_steps
        left.append(other.gain)
    reach = 4.302652729911275 * np.sqrt(((step.gain - np.array(left)) ** 2).sum())  # t, 2 df
    apart = np.exp(reach / step.gain)
    assert (step.low, step.high) == pytest.approx((step.gain / apart, step.gain * apart))
    two = run.intervals(groups=[*"aaabbb"])
    assert np.isnan(run.report(intervals=two).next_steps[0].low)
