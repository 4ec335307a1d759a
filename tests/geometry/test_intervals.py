import numpy as np
import pytest
from hypothesis import given, strategies as st

from segiou.geometry import interval_iou, interval_set_iou, merge_intervals


def test_all_pairs_and_one_by_one():
    truth, pred = [[0, 10], [20, 30]], [[5, 15], [20, 30], [30, 40]]
    np.testing.assert_array_equal(interval_iou(truth, pred), [[5 / 15, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(interval_iou(truth, pred[:2], elementwise=True), [5 / 15, 1])
    assert interval_iou([0.0, 1.0], [0.5, 1.0], elementwise=True) == 0.5


def test_moments_without_length():
    np.testing.assert_array_equal(interval_iou([[3, 3]], [[3, 3], [0, 6]]), [[np.nan, 0]])


def test_integers_of_the_whole_range():
    far = 2**62
    assert interval_iou([far, far + 4], [far + 1, far + 4], elementwise=True) == 0.75
    low, high = -(2**63), 2**63 - 1
    assert interval_iou([low, high], [0, high], elementwise=True) == pytest.approx(0.5)
    assert interval_set_iou([[low, low + 3], [far, far + 5]], [[far + 1, far + 5]]) == 0.5


def test_merging():
    np.testing.assert_array_equal(
        merge_intervals([[5, 8], [0, 2], [7, 9], [2, 3], [4, 4], [5, 6]]), [[0, 3], [5, 9]]
    )
    assert merge_intervals([[0, 1]]).dtype == np.int64
    assert merge_intervals([]).shape == (0, 2)


def test_sets_count_a_moment_once():
    assert interval_set_iou([[0, 4], [2, 6]], [[3, 8]]) == 3 / 8
    assert interval_set_iou([[0, 1], [2, 3]], [[1, 2]]) == 0
    assert interval_set_iou([[0, 1], [1, 2]], [[0, 2]]) == 1
    assert interval_set_iou([[0, 1]], []) == 0
    assert np.isnan(interval_set_iou([], [[2, 2]]))


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([[0, 1], [3, 2]], ValueError, r"truth interval 1 ends before it starts: \[3, 2\]"),
        ([[0, np.nan]], ValueError, "truth interval 0 is not finite"),
        ([[0, 1, 2]], ValueError, "must have 2 numbers"),
        ([0, 1], ValueError, "elementwise=True"),
        ([["0", "1"]], TypeError, "integers or floats"),
        ([[-1.7e308, 1.7e308]], ValueError, "overflow"),
    ],
)
def test_bad_intervals(values, error, message):
    with pytest.raises(error, match=message):
        interval_iou(values, [[0, 1]])


def test_bad_sets():
    with pytest.raises(ValueError, match="interval 0 ends before"):
        interval_set_iou([[1, 0]], [])
    with pytest.raises(ValueError, match=r"\(N, 2\)"):
        merge_intervals([0, 1])


intervals = st.tuples(st.integers(-10, 10), st.integers(-10, 10)).map(sorted)
sets = st.lists(intervals, max_size=6)


@given(sets, sets)
def test_sets_equal_counting_unit_steps(truth, pred):
    ours, theirs = (
        {step for start, end in side for step in range(start, end)} for side in (truth, pred)
    )
    whole = len(ours | theirs)
    expected = len(ours & theirs) / whole if whole else np.nan
    np.testing.assert_equal(interval_set_iou(truth, pred), expected)
    np.testing.assert_equal(interval_set_iou(pred, truth), expected)
    quarters = interval_set_iou(np.array(truth) / 4, np.array(pred) / 4)
    np.testing.assert_equal(quarters, expected)


@given(intervals, intervals)
def test_an_interval_is_a_set_of_one(first, second):
    one = interval_iou(first, second, elementwise=True)
    np.testing.assert_equal(float(one), interval_set_iou([first], [second]))
    if not np.isnan(one):
        assert 0 <= one <= 1
        assert (one == 1) == (first == second)
