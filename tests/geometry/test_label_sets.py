import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import jaccard_score

from segiou.geometry import count_indicators, count_label_sets

TRUTH = [
    ["Airplane", "Boat", "Car"],
    ["Airplane", "Car"],
    ["Boat", "Car"],
    ["Airplane", "Boat", "Car"],
]
PRED = [
    ["Boat"],
    ["Airplane", "Boat", "Car"],
    ["Airplane", "Boat", "Car"],
    ["Airplane", "Boat", "Car"],
]


def test_published_label_sets():
    scores = count_label_sets(TRUTH, PRED)
    assert scores.class_names == ("Airplane", "Boat", "Car")
    np.testing.assert_array_equal(scores.iou(), [1 / 2, 3 / 4, 3 / 4])
    assert scores.macro_iou() == pytest.approx(2 / 3, abs=1e-15)
    assert scores.micro_iou() == 8 / 12
    np.testing.assert_array_equal(scores.sample_iou(), [1 / 3, 2 / 3, 2 / 3, 1])
    np.testing.assert_array_equal(scores.per_class.tp, [2, 3, 3])
    np.testing.assert_array_equal(scores.per_class.fp, [1, 1, 0])
    np.testing.assert_array_equal(scores.per_class.fn, [1, 0, 1])


def test_published_counts_in_the_binary_case():
    truth = np.repeat([1, 0, 1, 0], [100, 25, 75, 60])
    pred = np.repeat([1, 1, 0, 0], [100, 25, 75, 60])
    scores = count_indicators(truth, pred)
    np.testing.assert_array_equal(scores.iou(), [1 / 2])
    assert scores.micro_iou() == scores.macro_iou() == jaccard_score(truth, pred) == 1 / 2
    assert scores.per_class.tn[0] == 60


def test_one_label_per_sample():
    scores = count_label_sets([[0], [1], [2], [2]], [[0], [2], [1], [2]])
    assert scores.class_names == (0, 1, 2)
    np.testing.assert_array_equal(scores.iou(), [1, 0, 1 / 3])
    np.testing.assert_array_equal(
        scores.iou(), jaccard_score([0, 1, 2, 2], [0, 2, 1, 2], average=None)
    )


def test_empty_samples_by_choice():
    scores = count_indicators([[1, 1], [0, 0]], [[1, 0], [0, 0]])
    np.testing.assert_array_equal(scores.sample_iou(), [0.5, np.nan])
    np.testing.assert_array_equal(scores.sample_iou(empty=1), [0.5, 1])
    assert scores.mean_sample_iou() == 0.5
    assert scores.mean_sample_iou(empty=1) == 0.75
    assert scores.mean_sample_iou(empty=0) == 0.25
    with pytest.raises(ValueError, match="0, 1 or nan"):
        scores.sample_iou(empty=0.5)


def test_classes_that_nobody_named():
    scores = count_label_sets([["a"], []], [["a"], []], class_names=["b", "a"])
    np.testing.assert_array_equal(scores.iou(), [np.nan, 1])
    assert (scores.macro_iou(), scores.weighted_iou(), scores.defined_classes) == (1, 1, 1)
    nothing = count_label_sets([[]], [[]], class_names=["a"])
    for value in (nothing.macro_iou(), nothing.micro_iou(), nothing.weighted_iou()):
        assert np.isnan(value)
    assert np.isnan(nothing.mean_sample_iou())
    assert nothing.defined_classes == 0


def test_repeated_names_and_any_collection():
    scores = count_label_sets([("a", "a"), {"b"}], [np.array(["a"]), frozenset("b")])
    np.testing.assert_array_equal(scores.iou(), [1, 1])


def test_bad_indicators():
    with pytest.raises(ValueError, match=r"found 2 at \(0, 1\)"):
        count_indicators([[0, 2]], [[0, 1]])
    with pytest.raises(TypeError, match="pred must contain booleans or 0 and 1"):
        count_indicators([[0, 1]], [[0.0, 1.0]])
    with pytest.raises(ValueError, match="but pred has"):
        count_indicators([[0, 1]], [[0], [1]])
    with pytest.raises(ValueError, match=r"\(N, C\)"):
        count_indicators(np.zeros((1, 1, 1), bool), np.zeros((1, 1, 1), bool))
    with pytest.raises(ValueError, match="expected 2 class names"):
        count_indicators([[0, 1]], [[0, 1]], class_names=["a"])
    with pytest.raises(ValueError, match="duplicates: a"):
        count_indicators([[0, 1]], [[0, 1]], class_names=["a", "a"])


def test_bad_label_sets():
    with pytest.raises(TypeError, match=r"truth sample 1 must be a list or set, got 'cat'"):
        count_label_sets([["cat"], "cat"], [["cat"], ["cat"]])
    with pytest.raises(TypeError, match="pred sample 0 must be a list"):
        count_label_sets([["cat"]], [3])
    with pytest.raises(ValueError, match="truth has 1 samples but pred has 2"):
        count_label_sets([["cat"]], [["cat"], ["cat"]])
    with pytest.raises(ValueError, match="pred sample 0 has labels not in class_names: dog, eel"):
        count_label_sets([["cat"]], [["eel", "dog"]], class_names=["cat"])


tables = st.tuples(st.integers(1, 8), st.integers(2, 4)).flatmap(
    lambda shape: st.tuples(*[hnp.arrays(np.int8, shape, elements=st.integers(0, 1))] * 2)
)


@given(tables)
@pytest.mark.gate
def test_against_scikit_learn(pair):
    truth, pred = pair
    scores = count_indicators(truth, pred)

    def reference(average):
        return jaccard_score(truth, pred, average=average, zero_division=0)

    np.testing.assert_allclose(np.nan_to_num(scores.iou()), reference(None), atol=1e-15)
    named = ~np.isnan(scores.iou())
    assert scores.defined_classes == named.sum()
    if named.all():
        assert scores.macro_iou() == pytest.approx(reference("macro"))
    assert np.nan_to_num(scores.micro_iou()) == pytest.approx(reference("micro"))
    assert np.nan_to_num(scores.weighted_iou()) == pytest.approx(reference("weighted"))
    assert scores.mean_sample_iou(empty=0) == pytest.approx(reference("samples"))
    as_lists = [[np.flatnonzero(row).tolist() for row in side] for side in pair]
    by_name = count_label_sets(*as_lists, class_names=range(truth.shape[1]))
    assert by_name.per_class == scores.per_class
    assert by_name.per_sample == scores.per_sample
