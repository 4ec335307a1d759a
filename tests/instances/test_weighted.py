"""Instance-weighted IoU by hand."""

import numpy as np
import pytest

from segiou.counting.counts import Counts
from segiou.instances.weighted import (
    InstanceCounts,
    cityscapes_instances,
    count_instances,
    instance_weighted_iou,
)

# A car of four pixels found by half, one of one pixel missed, a person found; one crowd pixel.
TRUTH = np.array([26, 26, 26, 26, 26, 24, 26, 7])
OBJECT = np.array([1, 1, 1, 1, 2, 1, 0, 0])
PRED = np.array([26, 26, 7, 24, 7, 24, 26, 26])
RIGHT = {26: {26}, 24: {24}}


def rows(counts):
    return sorted(zip(counts.label.tolist(), counts.size.tolist(), counts.tp.tolist(), strict=True))


def test_objects_by_hand():
    objects = count_instances(TRUTH, OBJECT, PRED, RIGHT)
    assert rows(objects) == [(24, 1, 1), (26, 1, 0), (26, 4, 2)]
    assert objects.average_sizes() == {24: 1.0, 26: 2.5}


def test_every_object_counts_alike():
    objects = count_instances(TRUTH, OBJECT, PRED, RIGHT)
    counts = Counts(tp=[3, 1], fp=[1, 1], fn=[3, 0], tn=[1, 6])
    scores = instance_weighted_iou(counts, objects, [{26}, {24}])
    # Cars: half of 2.5 and none of 2.5, one false pixel. Persons: all of 1, one false pixel.
    assert scores.tolist() == [1.25 / (1.25 + 1 + 1.25 + 2.5), 1 / 2]
    fixed = instance_weighted_iou(counts, objects, [{26}, {24}], {26: 10, 24: 4})
    assert fixed.tolist() == [5 / (5 + 1 + 5 + 10), 4 / 5]


def test_unions_of_classes():
    either = {26: {26, 24}, 24: {26, 24}}
    objects = count_instances(TRUTH, OBJECT, PRED, either)
    assert rows(objects) == [(24, 1, 1), (26, 1, 0), (26, 4, 3)]
    counts = Counts(tp=[5], fp=[1], fn=[2], tn=[0])
    score = instance_weighted_iou(counts, objects, [{24, 26}])
    assert score.tolist() == [(1.875 + 1) / (1.875 + 1 + 1 + 0.625 + 2.5)]


def test_classes_without_objects_have_no_score():
    objects = count_instances(TRUTH, OBJECT, PRED, {})
    counts = Counts(tp=[3, 3], fp=[0, 2], fn=[0, 0], tn=[0, 0])
    # The first is no class of objects; of the second there are none, but some are predicted.
    scores = instance_weighted_iou(counts, objects, [set(), {26}])
    np.testing.assert_array_equal(scores, [np.nan, 0.0])
    nothing = Counts([0], [0], [0], [0])
    assert np.isnan(instance_weighted_iou(nothing, objects, [{26}])).all()


def test_images_add_up_in_any_order():
    rng = np.random.default_rng(0)
    parts = [
        count_instances(*rng.integers(24, 28, (3, 50)), {v: {v} for v in range(24, 28)})
        for _ in range(5)
    ]
    counts = Counts(*rng.integers(0, 90, (4, 4)))
    members = [{v} for v in range(24, 28)]
    forward = instance_weighted_iou(counts, sum(parts), members)
    backward = instance_weighted_iou(counts, sum(parts[::-1]), members)
    assert forward.tolist() == backward.tolist()
    assert len(sum(parts)) == sum(map(len, parts))
    with pytest.raises(TypeError):
        parts[0] + "objects"


def test_cityscapes_ids():
    truth, instances = cityscapes_instances(np.array([[24, 24001, 33000]], np.uint16))
    assert truth.tolist() == [[24, 24, 33]]
    assert instances.tolist() == [[0, 24001, 33000]]


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"truth has shape \(8,\) but pred has \(3,\)"):
        count_instances(TRUTH, OBJECT, PRED[:3], RIGHT)
    with pytest.raises(TypeError, match="instances is float64"):
        count_instances(TRUTH, OBJECT / 2, PRED, RIGHT)
    objects = count_instances(TRUTH, OBJECT, PRED, RIGHT)
    counts = Counts([1], [1], [1], [1])
    with pytest.raises(ValueError, match=r"2 members do not fit counts of shape \(1,\)"):
        instance_weighted_iou(counts, objects, [{26}, {24}])
    with pytest.raises(ValueError, match="no average size for objects of truth value 24"):
        instance_weighted_iou(counts, objects, [{26}], {26: 3.0})
    assert isinstance(objects, InstanceCounts)
