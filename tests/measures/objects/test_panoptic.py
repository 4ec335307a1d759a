"""Panoptic quality: by hand, as published, and as the peers' own rules count it."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from segiou.measures.objects import ObjectOptions, PanopticCounts

VOID = 4


def scene(rng, classes=5, ids=4):
    """Class and id maps of blocks, some of them void."""
    shape = rng.integers(4, 15, 2)
    blocks = rng.integers(0, 8, -(-shape // 3))
    blocks = np.repeat(np.repeat(blocks, 3, 0), 3, 1)[: shape[0], : shape[1]]
    return rng.integers(0, classes, 8)[blocks], rng.integers(0, ids, 8)[blocks]


def like(rng, truth, classes=5, ids=4):
    """A prediction with three of ten pixels at random."""
    changed = rng.random(truth[0].shape) < 0.3
    sides = zip(truth, (classes, ids), strict=True)
    return tuple(np.where(changed, rng.integers(0, n, changed.shape), side) for side, n in sides)


def pairs(seed, number=300):
    rng = np.random.default_rng(seed)
    for _ in range(number):
        truth = scene(rng)
        yield truth, like(rng, truth)


def iou_sums(counts):
    sums = np.zeros(counts.num_classes)
    for index, intersection, union, often in counts.overlaps.tolist():
        sums[index] += often * intersection / union
    return sums


def coco_objects(truth, pred, crowd):
    """panopticapi's evaluation.py, written out segment by segment."""
    tp, fp, fn, iou = np.zeros((4, 4))

    def segment(label, number):
        return "void" if label == VOID else (int(label), int(number))

    sides = [
        [segment(*x) for x in zip(*map(np.ravel, side), strict=True)] for side in (truth, pred)
    ]
    areas = [Counter(side) for side in sides]
    both = Counter(zip(*sides, strict=True))
    matched = set()
    for (t, p), pixels in both.items():
        if "void" in (t, p) or t in crowd or t[0] != p[0]:
            continue
        union = areas[0][t] + areas[1][p] - pixels - both["void", p]
        if pixels / union > 0.5:
            tp[t[0]] += 1
            iou[t[0]] += pixels / union
            matched |= {("t", t), ("p", p)}
    for t in areas[0]:
        if t != "void" and ("t", t) not in matched and t not in crowd:
            fn[t[0]] += 1
    for p in areas[1]:
        if p != "void" and ("p", p) not in matched:
            forgiven = both["void", p] + sum(both[t, p] for t in crowd if t[0] == p[0])
            fp[p[0]] += forgiven / areas[1][p] <= 0.5
    return tp, fp, fn, iou


def test_counted_by_hand():
    # Ten pixels: grass 4, dog 1 of 3 pixels, dog 2 of 3; dog 2 is found in two pieces.
    truth = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    pred = [0, 0, 0, 1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 9, 9, 9, 9, 5, 6, 7]
    counts = PanopticCounts(["grass", "dog"], things=["dog"]).update(*truth, *pred)
    assert counts.tp.tolist() == [1, 1]
    assert counts.fp.tolist() == [0, 3]
    assert counts.fn.tolist() == [0, 1]
    assert counts.overlaps.tolist() == [[0, 3, 4, 1], [1, 3, 4, 1]]
    np.testing.assert_allclose(counts.pq(), [0.75, 0.75 / 3])
    np.testing.assert_allclose(counts.sq(), [0.75, 0.75])
    np.testing.assert_allclose(counts.rq(), [1, 1 / 3])
    assert counts.panoptic_quality()["pq"] == (0.75 + 0.25) / 2
    assert counts.panoptic_quality("stuff") == {"pq": 0.75, "sq": 0.75, "rq": 1.0, "classes": 1}


def test_one_half_is_not_enough():
    counts = PanopticCounts(1).update([0, 0], [1, 1], [0, 0], [1, 2])
    assert (counts.tp.tolist(), counts.fp.tolist(), counts.fn.tolist()) == ([0], [2], [1])
    assert counts.panoptic_quality() == {"pq": 0.0, "sq": 0.0, "rq": 0.0, "classes": 1}


def test_what_occurs_nowhere_is_undefined_and_left_out():
    counts = PanopticCounts(3).update([0, 0], [1, 1], [0, 0], [1, 1])
    np.testing.assert_array_equal(counts.pq(), [1, np.nan, np.nan])
    assert counts.panoptic_quality()["classes"] == 1
    assert np.isnan(PanopticCounts(3).panoptic_quality()["pq"])


def published():
    preds = [
        [[6, 0], [0, 0], [6, 0], [6, 0]],
        [[0, 0], [0, 0], [6, 0], [0, 1]],
        [[0, 0], [0, 0], [6, 0], [0, 1]],
        [[0, 0], [7, 0], [6, 0], [1, 0]],
        [[0, 0], [7, 0], [7, 0], [7, 0]],
    ]
    target = [
        [[6, 0], [0, 1], [6, 0], [0, 1]],
        [[0, 1], [0, 1], [6, 0], [0, 1]],
        [[0, 1], [0, 1], [6, 0], [1, 0]],
        [[0, 1], [7, 0], [1, 0], [1, 0]],
        [[0, 1], [7, 0], [7, 0], [7, 0]],
    ]
    return np.moveaxis(target, -1, 0), np.moveaxis(preds, -1, 0)


def classes_0_1_6_7():
    from segiou.labels import LabelClass, LabelSet

    return LabelSet("four", tuple(LabelClass(f"class {v}", (v,)) for v in (0, 1, 6, 7)))


def test_the_figures_of_torchmetrics_documentation():
    labels, things = classes_0_1_6_7(), ["class 0", "class 1"]
    truth, pred = published()
    counts = PanopticCounts(labels, things=things, protocol="torchmetrics").update(*truth, *pred)
    found = counts.panoptic_quality()
    assert found["pq"] == pytest.approx(0.5463, abs=5e-5)
    assert found["sq"] == pytest.approx(0.6111, abs=5e-5)
    assert found["rq"] == pytest.approx(0.6667, abs=5e-5)


def test_the_figure_of_torchmetrics_documentation_for_the_modified_quality():
    truth = [0, 0, 6, 7, 6, 255], [1, 0, 0, 0, 0, 0]
    pred = [0, 0, 6, 7, 0, 1], [0, 1, 0, 0, 2, 0]
    options = {"ignore": 255, "things": ["class 0", "class 1"]}
    counts = PanopticCounts(classes_0_1_6_7(), protocol="torchmetrics-modified", **options)
    assert counts.update(*truth, *pred).panoptic_quality()["pq"] == pytest.approx(0.7667, abs=5e-5)
    counts = PanopticCounts(classes_0_1_6_7(), protocol="torchmetrics", **options)
    assert counts.update(*truth, *pred).panoptic_quality()["pq"] == pytest.approx(0.6, abs=5e-5)


def test_the_figures_of_semantickittis_self_test():
    pred = [0] * 50 + [1] * 40 + [2] * 10 + [2] * 40 + [1] * 10 + [3] * 350
    pred_ids = [0] * 150 + [35] * 50 + [8] * 200 + [95] * 100
    truth = [0] * 50 + [1] * 50 + [2] * 50 + [4] * 50 + [3] * 300
    truth_ids = [0] * 150 + [22] * 50 + [33] * 150 + [42] * 50 + [11] * 100
    names = ["ignore", "grass", "sky", "person", "dog"]
    counts = PanopticCounts(names, ignore=0, exclude="ignore", protocol="semantickitti")
    found = counts.update(truth, truth_ids, pred, pred_ids).panoptic_quality()
    assert found["pq"] == pytest.approx(0.47916666666666663, abs=1e-15)
    assert found["sq"] == pytest.approx(0.5520833333333333, abs=1e-15)
    assert found["rq"] == pytest.approx(0.6666666666666666, abs=1e-15)


def test_small_segments_of_semantickitti_do_not_count():
    truth = np.zeros(100, int), np.repeat([1, 2], [71, 29])
    counts = PanopticCounts(1, protocol="semantickitti").update(*truth, truth[0], truth[1] + 5)
    assert (counts.tp.tolist(), counts.fp.tolist(), counts.fn.tolist()) == ([2], [0], [0])
    counts.reset().update(*truth, truth[0], np.arange(100))
    assert (counts.tp.tolist(), counts.fp.tolist(), counts.fn.tolist()) == ([0], [0], [1])


@pytest.mark.parametrize(
    ("seed", "number"),
    [(0, 100), *(pytest.param(seed, 300, marks=pytest.mark.gate) for seed in range(4))],
)
def test_coco_is_the_rule_of_panopticapi(seed, number):
    rng = np.random.default_rng(100 + seed)
    for truth, pred in pairs(seed, number):
        classes, ids = truth
        at = tuple(rng.integers(0, n) for n in classes.shape)
        crowd, crowd_ids = set(), ()
        if classes[at] != VOID and rng.random() < 0.5:
            ids = np.where((classes == classes[at]) & (ids == ids[at]), 77, ids)
            crowd, crowd_ids = {(int(classes[at]), 77)}, (77,)
        counts = PanopticCounts(4, ignore=VOID)
        counts.update(classes, ids, *pred, crowd=crowd_ids)
        tp, fp, fn, iou = coco_objects((classes, ids), pred, crowd)
        np.testing.assert_array_equal(counts.state_dict()["counts"], np.stack([tp, fp, fn], 1))
        np.testing.assert_allclose(iou_sums(counts), iou, rtol=1e-14)


def counted(images, **options):
    counts = PanopticCounts(4, ignore=VOID, **options)
    for truth, pred in images:
        counts.update(*truth, *pred)
    return counts


def test_quality_does_not_depend_on_the_order():
    images = list(pairs(3, 40))
    whole = counted(images)
    parts = [counted(images[start::5]) for start in range(5)]
    for order in (parts, parts[::-1]):
        assert sum(order).panoptic_quality() == whole.panoptic_quality()
    twice = whole.copy()
    twice.merge(twice)
    assert twice.tp.tolist() == (2 * whole.tp).tolist()
    assert twice.panoptic_quality() == whole.panoptic_quality()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "torchmetrics"}, "protocol 'coco' and 'torchmetrics'"),
        ({"things": [0]}, "class '1' is a thing in only one of them"),
        ({"exclude": [0]}, "cannot merge panoptic counts"),
    ],
)
def test_what_differs_is_not_merged(options, message):
    with pytest.raises(ValueError, match=message):
        counted(()).merge(counted((), **options))
    with pytest.raises(ValueError, match="2 classes here and 3 there"):
        PanopticCounts(2).merge(PanopticCounts(3))


def test_wrong_arguments_are_named():
    counts = PanopticCounts(2)
    with pytest.raises(ValueError, match="truth_classes contains undeclared values: 5;"):
        counts.update([5], [0], [0], [0])
    with pytest.raises(ValueError, match="pred_classes contains undeclared values: 7;"):
        counts.update([0], [0], [7], [0])
    with pytest.raises(ValueError, match="pred_ids contains -1; expected 0 to 4294967295"):
        counts.update([0], [0], [0], [-1])
    with pytest.raises(ValueError, match=r"truth_ids has shape \(1,\) but pred_ids has \(2,\)"):
        counts.update([0], [0], [0, 0], [0, 0])
    with pytest.raises(ValueError, match=r"pred_classes has shape \(2,\) but pred_ids has \(1,\)"):
        counts.update([0, 0], [0, 0], [0, 0], [0])
    with pytest.raises(TypeError, match="truth_ids"):
        counts.update([0], [0.5], [0], [0])
    assert counts == PanopticCounts(2)
    for crowd, problem in ((3, "a sequence of ids"), (["3"], "an integer")):
        with pytest.raises(TypeError, match=f"crowd must be {problem}"):
            counts.update([0], [3], [0], [3], crowd=crowd)
    assert repr(counts) == "<PanopticCounts: 2 classes, 0 pairs>"
    assert PanopticCounts(["a", "b"], things="b").things.tolist() == [False, True]
    with pytest.raises(ValueError, match=r"things: no class 5, .* 0 to 1"):
        PanopticCounts(2, things=[5])
    with pytest.raises(ValueError, match="protocol must be"):
        PanopticCounts(2, protocol="voc")


def test_a_declared_class_that_is_ignored_is_void_in_the_prediction():
    counts = PanopticCounts(2, ignore=0)
    counts.update([[1, 1, 1, 1]], [[1, 1, 1, 1]], [[1, 1, 1, 0]], [[1, 1, 1, 0]])
    assert (counts.tp.tolist(), counts.fp.tolist(), counts.fn.tolist()) == ([0, 1], [0, 0], [0, 0])
    assert counts.panoptic_quality()["pq"] == 0.75


@pytest.mark.parametrize(
    ("counts", "overlaps"),
    [([[1, 0, 0]], [[0, 4, 4, 5]]), ([[1, 0, 0]], [[0, 1, 4, 1]]), ([[2, 0, 0]], [[0, 4, 4, 1]])],
)
def test_states_whose_matches_disagree_are_refused(counts, overlaps):
    state = PanopticCounts(1).update([[0]], [[1]], [[0]], [[1]]).state_dict()
    with pytest.raises(ValueError, match="overlaps must be rows"):
        PanopticCounts.from_state_dict({**state, "counts": counts, "overlaps": overlaps})


@pytest.mark.gate
def test_a_state_read_during_updates_is_one_snapshot():
    counts, layers = PanopticCounts(1), ([[0, 0]], [[1, 2]])
    with ThreadPoolExecutor(2) as pool:
        work = [pool.submit(counts.update, *layers, *layers) for _ in range(300)]
        while not all(one.done() for one in work):
            state = counts.state_dict()
            found = sum(row[-1] for row in state["overlaps"])
            assert state["counts"][0][0] == found == 2 * state["pairs"]


def test_options_of_another_kind_are_errors():
    for wrong in ("4", True, 4.0):
        with pytest.raises(TypeError, match="connectivity must be an integer"):
            ObjectOptions(connectivity=wrong)
    with pytest.raises(ValueError, match="connectivity must be 4, 8, 6, 18 or 26, got 5"):
        ObjectOptions(connectivity=5)
    with pytest.raises(TypeError, match="protocol must be"):
        ObjectOptions(protocol=0)
    assert type(ObjectOptions(merge=np.int8(1)).merge) is int
