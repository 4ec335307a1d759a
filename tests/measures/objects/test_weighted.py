"""Instance-weighted IoU by hand."""

import numpy as np
import pytest

from segiou.labels import LabelClass, LabelSet
from segiou.measures.objects import InstanceCounts, cityscapes_instances

# A car of four pixels found by half, one of one pixel missed, a person found; one crowd pixel.
TRUTH = np.array([26, 26, 26, 26, 26, 24, 26, 7])
OBJECT = np.array([1, 1, 1, 1, 2, 1, 0, 0])
PRED = np.array([26, 26, 7, 24, 7, 24, 26, 26])


def labels(**classes):
    return LabelSet("some", tuple(LabelClass(name, values) for name, values in classes.items()))


STREET = labels(road=(7,), car=(26,), person=(24,))


def counted(chosen=STREET, things=("car", "person"), **options):
    return InstanceCounts(chosen, things=things, **options).update(TRUTH, OBJECT, PRED)


def rows(counts):
    return sorted(zip(counts.label.tolist(), counts.size.tolist(), counts.tp.tolist(), strict=True))


def test_objects_by_hand():
    counts = counted()
    assert rows(counts) == [(24, 1, 1), (26, 1, 0), (26, 4, 2)]
    assert counts.average_sizes() == {24: 1.0, 26: 2.5}
    assert counts.fp.tolist() == [2, 1, 1]


def test_every_object_counts_alike():
    # Cars: half of 2.5 and none of 2.5, one false pixel. Persons: all of 1, one false pixel.
    scores = [np.nan, 1.25 / (1.25 + 1 + 1.25 + 2.5), 1 / 2]
    np.testing.assert_array_equal(counted().iou(), scores)
    fixed = counted().iou({26: 10, 24: 4})
    np.testing.assert_array_equal(fixed, [np.nan, 5 / (5 + 1 + 5 + 10), 4 / 5])


def test_classes_of_several_values():
    counts = counted(labels(road=(7,), mover=(24, 26)), ["mover"])
    assert rows(counts) == [(24, 1, 1), (26, 1, 0), (26, 4, 3)]
    score = (1.875 + 1) / (1.875 + 1 + 1 + 0.625 + 2.5)
    np.testing.assert_array_equal(counts.iou(), [np.nan, score])


def test_what_predictions_call_otherwise():
    given = labels(road=(0,), car=(1,), person=(2,))
    renamed = np.select([PRED == 26, PRED == 24], [1, 2], 0)
    counts = InstanceCounts(STREET, pred_labels=given, things=[1, 2])
    assert rows(counts.update(TRUTH, OBJECT, renamed)) == rows(counted())
    np.testing.assert_array_equal(counts.iou(), counted().iou())


def test_ignored_and_unassigned_pixels():
    counts = counted(labels(car=(26,), person=(24,)), None, ignore=7, unassigned="count")
    # The car that is predicted on the road is forgiven.
    assert counts.fp.tolist() == [0, 1]
    assert rows(counts) == rows(counted())


def test_classes_without_objects_have_no_score():
    counts = InstanceCounts(3, things=[1, 2]).update([0, 0], [0, 0], [0, 1])
    # The first is no class of objects; of the second there are none, but some are predicted.
    np.testing.assert_array_equal(counts.iou(), [np.nan, 0, np.nan])


def test_images_add_up_in_any_order():
    rng = np.random.default_rng(0)
    parts = [InstanceCounts(4).update(*rng.integers(0, 4, (3, 50))) for _ in range(5)]
    total = sum(parts)
    assert total.iou().tolist() == sum(parts[::-1]).iou().tolist()
    assert len(total.label) == sum(len(part.label) for part in parts)
    assert total.pairs == 5
    state = total.state_dict()
    with pytest.raises(ValueError, match="objects must be rows of value, size, tp and a number"):
        InstanceCounts.from_state_dict(state | {"objects": [[1, 2, 3, 1]]})
    with pytest.raises(ValueError, match="class '0' is a thing in only one of them"):
        total.merge(InstanceCounts(4, things=[1]))
    with pytest.raises(TypeError, match="only instance counts can be merged"):
        total.merge("objects")


def test_cityscapes_ids():
    truth, instances = cityscapes_instances(np.array([[24, 24001, 33000]], np.uint16))
    assert truth.tolist() == [[24, 24, 33]]
    assert instances.tolist() == [[0, 24001, 33000]]


def test_bad_input_is_refused():
    counts = InstanceCounts(STREET)
    with pytest.raises(ValueError, match=r"truth has shape \(8,\) but pred has \(3,\)"):
        counts.update(TRUTH, OBJECT, PRED[:3])
    with pytest.raises(TypeError, match="instances has dtype float64"):
        counts.update(TRUTH, OBJECT / 2, PRED)
    with pytest.raises(ValueError, match="truth contains undeclared values: 5; declare them"):
        counts.update([5], [0], [7])
    with pytest.raises(ValueError, match="pred contains undeclared values: 5; declare them"):
        counts.update([7], [0], [5])
    assert counts == InstanceCounts(STREET)
    with pytest.raises(ValueError, match="no entry for truth value 24"):
        counted().iou({26: 3.0})
