from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image
from skimage.metrics import contingency_table
from sklearn.metrics import confusion_matrix

from segiou import ConfusionMatrix
from segiou.counting import Encoding, UndeclaredValuesError, count_pairs, scores_to_labels

INTEGERS = ["|u1", "|i1", "<u2", ">u2", "<i2", ">i2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8"]


@st.composite
def label_pairs(draw):
    """Two label arrays of any layout, the number of classes, the ignored values."""
    classes = draw(st.integers(1, 20))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9))
    ignored = draw(st.sets(st.integers(classes, 100), max_size=3))
    values = st.sampled_from([*range(classes), *ignored])
    truth = draw(hnp.arrays(np.int64, shape, elements=values))
    pred = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, classes - 1)))
    # Labels that look like one-hot channels are refused.
    assume(classes not in shape or max(truth.max(initial=0), pred.max(initial=0)) > 1)
    arrays = []
    for array in (truth, pred):
        cast = array.astype(draw(st.sampled_from(INTEGERS)))
        if cast.ndim and draw(st.booleans()):
            wide = np.repeat(cast, 2, axis=-1)
            cast = wide[..., ::2] if draw(st.booleans()) else wide[..., ::-2][..., ::-1]
        if cast.ndim and draw(st.booleans()):
            cast = np.asfortranarray(cast)
        cast.setflags(write=False)
        arrays.append(cast)
    return arrays[0], arrays[1], classes, ignored


@given(label_pairs())
def test_agrees_with_scikit_learn_on_any_layout(case):
    truth, pred, classes, ignored = case
    table = count_pairs(truth, pred, classes, ignore=ignored)
    valid = ~np.isin(np.asarray(truth, dtype=np.int64), list(ignored))
    t, p = np.asarray(truth)[valid].astype(int), np.asarray(pred)[valid].astype(int)
    # One more label that never occurs spares scikit-learn a warning about one-class input.
    expected = np.zeros((classes + 1, classes + 1), dtype=int)
    if t.size:
        expected = confusion_matrix(t, p, labels=range(classes + 1))
    expected = expected[:classes, :classes]
    np.testing.assert_array_equal(table[:, :-1], expected)
    assert not table[:, -1].any()
    assert table.dtype == np.int64


@given(hnp.arrays(np.uint8, (7, 9), elements=st.integers(0, 5)), st.integers(0, 2**32 - 1))
def test_agrees_with_scikit_image(truth, seed):
    pred = np.random.default_rng(seed).integers(0, 6, truth.shape).astype(np.uint8)
    expected = np.zeros((6, 6))
    found = contingency_table(truth, pred).toarray()
    expected[: found.shape[0], : found.shape[1]] = found
    np.testing.assert_array_equal(count_pairs(truth, pred, 6)[:, :-1], expected)


@pytest.mark.parametrize("empty", [[], [[]]])
def test_empty_lists_have_no_pixels(empty):
    assert count_pairs(empty, empty, 2).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_swapping_transposes():
    rng = np.random.default_rng(0)
    truth, pred = rng.integers(0, 5, (2, 30, 40))
    one, other = count_pairs(truth, pred, 5), count_pairs(pred, truth, 5)
    np.testing.assert_array_equal(one[:, :-1], other[:, :-1].T)


def test_small_dtypes_do_not_wrap():
    # 18 * 19 + 7 = 349 is 93 in eight bits.
    truth, pred = np.uint8([[18] * 5]), np.uint8([[7] * 5])
    assert count_pairs(truth, pred, 19)[18, 7] == 5
    every = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(count_pairs(every, every, 256)[:, :-1], np.eye(256))
    wide = np.arange(1000, dtype=np.uint16)
    assert np.trace(count_pairs(wide, wide[::-1][::-1], 1000)) == 1000


def test_ignored_truth_takes_any_prediction():
    table = count_pairs([-1, 0, 255], [200, 0, -7], 1, ignore=(-1, 255))
    np.testing.assert_array_equal(table, [[1, 0]])


def test_a_value_far_outside_does_not_wrap_into_range():
    huge = np.array([2**63 + 1, 0], dtype=np.uint64)
    with pytest.raises(UndeclaredValuesError, match=f"{2**63 + 1}"):
        count_pairs(huge, [0, 0], 2)
    with pytest.raises(UndeclaredValuesError, match="-256"):
        count_pairs(np.array([-256], dtype=np.int16), [0], 2)


def test_undeclared_truth_is_an_error_with_value_and_count():
    with pytest.raises(
        UndeclaredValuesError,
        match=r"truth has values that are neither a class nor ignored: 21 \(2 pixels\), "
        r"9 \(1 pixel\); .*ignore=\(21, 9\)",
    ) as caught:
        count_pairs([21, 0, 9, 21], [0, 0, 0, 0], 2)
    assert caught.value.side == "truth"
    assert caught.value.values == {21: 2, 9: 1}


def test_undeclared_prediction_is_an_error_or_counted_as_missed():
    truth, pred = [0, 1, 1, 255], [7, 7, 1, 7]
    with pytest.raises(UndeclaredValuesError, match=r"pred .*7 \(2 pixels\).*unassigned='count'"):
        count_pairs(truth, pred, 2, ignore=255)
    table = count_pairs(truth, pred, 2, ignore=255, unassigned="count")
    np.testing.assert_array_equal(table, [[0, 0, 1], [0, 1, 1]])


def test_many_undeclared_values_are_abridged():
    with pytest.raises(UndeclaredValuesError, match="and 92 more values"):
        count_pairs(np.arange(2, 102), np.zeros(100, int), 2)


def test_mask_of_valid_pixels():
    encoding = Encoding.of([(0,), (1,)], ignore=[255])
    truth, pred = [[0, 1], [255, 9]], [[0, 0], [5, 5]]
    tally = encoding.count(truth, pred, mask=[[True, True], [True, False]])
    np.testing.assert_array_equal(tally.table, [[1, 0, 0], [1, 0, 0]])
    assert tally.ignored == 2
    with pytest.raises(UndeclaredValuesError, match="9"):
        encoding.count(truth, pred, mask=np.ones((2, 2), bool))


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [([[1, 0]], TypeError, "must be bool"), ([True], ValueError, "shape")],
)
def test_a_bad_mask_is_refused(mask, error, message):
    with pytest.raises(error, match=message):
        Encoding.of([(0,)]).count([[0, 0]], [[0, 0]], mask=mask)


def test_values_map_at_once_and_arrays_stay_as_they_are():
    truth = np.array([6, 9], dtype=np.uint8)
    encoding = Encoding.of([(9,), (6,), (7,)])
    np.testing.assert_array_equal(
        encoding.count(truth, truth).table, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    )
    np.testing.assert_array_equal(truth, [6, 9])


@pytest.mark.parametrize(
    ("truth", "error", "message"),
    [
        (np.zeros(3, np.float32), TypeError, "truth has dtype float32.*argmax=AXIS"),
        (np.zeros(3, complex), TypeError, "complex128"),
        (np.array(["a", "b", "c"]), TypeError, "labels must be integers or bool"),
        ([[1, 2], [3]], ValueError, "not a rectangular array"),
        (np.ma.masked_array([1, 2, 3]), TypeError, "masked array"),
        (Image.new("RGB", (3, 1)), TypeError, "PIL image of mode 'RGB'"),
        ([0, 1], ValueError, r"truth has shape \(2,\) but pred has \(3,\)"),
    ],
)
def test_what_is_not_labels_is_refused(truth, error, message):
    with pytest.raises(error, match=message):
        count_pairs(truth, [0, 0, 0], 2)


def test_odd_options_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        count_pairs([0], [0], 0)
    with pytest.raises(ValueError, match="'error' or 'count'"):
        count_pairs([0], [0], 1, unassigned="drop")
    with pytest.raises(ValueError, match="more than 16777216 values"):
        Encoding.of([(0,), (1 << 30,)])


def test_kinds_of_array_that_are_taken():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return np.array([[0, 1]], dtype=np.int32)

    class Exchanged:
        def __init__(self):
            self.array = np.array([[0, 1]], dtype=np.int16)

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    palette = Image.fromarray(np.uint8([[0, 1]]), "L").convert("P")
    palette.putdata([0, 1])
    for data in ([[0, 1]], ((0, 1),), Tensor(), Exchanged(), palette, np.array([[False, True]])):
        np.testing.assert_array_equal(count_pairs(data, [[0, 1]], 2), [[1, 0, 0], [0, 1, 0]])


def test_argmax_over_any_axis_equals_numpy():
    rng = np.random.default_rng(1)
    scores = rng.random((3, 4, 5, 6)).astype(np.float32)
    for axis in (0, 1, -1, 2):
        np.testing.assert_array_equal(scores_to_labels(scores, argmax=axis), scores.argmax(axis))
    tied = np.zeros((4, 3))
    np.testing.assert_array_equal(scores_to_labels(tied, argmax=0), [0, 0, 0])
    assert scores_to_labels([0.1, 0.9], argmax=0) == 1
    big = rng.random((5, 300, 400)).astype(np.float32)
    np.testing.assert_array_equal(scores_to_labels(big, argmax=0), big.argmax(0))
    assert scores_to_labels(np.zeros((3, 0, 2)), argmax=0).shape == (0, 2)


@pytest.mark.parametrize(
    ("scores", "decision", "error", "message"),
    [
        ([[0.0]], {}, ValueError, "exactly one of argmax"),
        ([[0.0]], {"argmax": 0, "threshold": 0.5}, ValueError, "exactly one of argmax"),
        ([[0.0]], {"argmax": 2}, ValueError, "argmax=2 is out of range"),
        (np.zeros((0, 2)), {"argmax": 0}, ValueError, "no classes"),
        ([[np.nan], [0.0]], {"argmax": 0}, ValueError, "NaN scores on 1 pixel"),
        ([np.nan], {"threshold": 0.5}, ValueError, "NaN"),
        (["a"], {"threshold": 0.5}, TypeError, "must be numbers"),
        (None, {"argmax": 1}, TypeError, "must be numbers"),
    ],
)
def test_scores_without_a_clear_decision_are_refused(scores, decision, error, message):
    with pytest.raises(error, match=message):
        scores_to_labels(scores, **decision)


FAR = [-(2**63), -(2**31), -32768, 2**24 + 5, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.mark.parametrize("value", FAR)
@pytest.mark.parametrize("dtype", ["int16", "int32", "uint32", "int64", "uint64", ">i4"])
def test_any_integer_can_be_ignored(value, dtype):
    info = np.iinfo(dtype)
    if not info.min <= value <= info.max:
        pytest.skip("no such value in this type")
    truth = np.array([[0, value, 1], [value, 1, 1]], dtype=dtype)
    pred = np.array([[0, 7, 1], [1, 0, 1]])
    for ignore in (value, FAR, [255, *FAR, *range(1000, 1020)]):
        np.testing.assert_array_equal(
            count_pairs(truth, pred, 2, ignore=ignore), [[1, 0, 0], [1, 2, 0]]
        )
    counted = ConfusionMatrix(2, ignore=FAR).update(truth, pred)
    assert counted.ignored == 2
    mask = np.array([[True, True, True], [False, False, True]])
    tally = Encoding.of([(0,), (1,)], ignore=FAR).count(truth, pred, mask=mask)
    assert (tally.ignored, tally.matrix.tolist()) == (3, [[1, 0], [0, 2]])


def test_undeclared_values_beside_far_ignored_ones_are_refused_and_change_nothing():
    nodata = -(2**31)
    counted = ConfusionMatrix(2, ignore=nodata).update([nodata, 0], [5, 0])
    before = counted.copy()
    for truth, pred, text in (
        ([nodata, 17, 0], [0, 1, 1], r"truth has values .*ignored: 17 \(1 pixel\); "),
        ([nodata, -5, 2**31 - 1], [0, 1, 1], r"-5 \(1 pixel\), 2147483647 \(1 pixel\); "),
        ([nodata, 0, 1], [9, 1, 9], r"pred has undeclared values.*: 9 \(1 pixel\); "),
    ):
        with pytest.raises(UndeclaredValuesError, match=text):
            counted.update(np.array(truth), np.array(pred))
        assert counted == before


def test_classes_that_spread_too_far_are_refused():
    with pytest.raises(ValueError, match="class values range from 0 to 4294967295"):
        Encoding.of([(0,), (2**32 - 1,)])


@pytest.mark.parametrize("classes", [3, 256, 257, 1000])
@pytest.mark.parametrize("unassigned", ["error", "count"])
def test_cells_are_those_of_the_table_that_are_not_zero(classes, unassigned):
    rng = np.random.default_rng(classes)
    encoding = Encoding.of_indices(classes, [classes, 2**32 - 1], unassigned)
    few = rng.integers(0, classes, 5)
    truth = rng.choice([*few, classes, 2**32 - 1], (30, 40))
    pred = rng.choice([*few[:3], *([60_000] if unassigned == "count" else [])], (30, 40))
    table = encoding.empty_table()
    encoding.count_into(table, truth, pred)
    tally, cells = encoding.tally(table), encoding.count(truth, pred).cells
    flat = tally.table.ravel()
    assert cells.indices.tolist() == np.flatnonzero(flat).tolist()
    assert cells.values.tolist() == flat[flat > 0].tolist()
    assert cells.ignored == tally.ignored > 0
    nothing = encoding.count(np.full((2, 2), classes), np.zeros((2, 2), int)).cells
    assert (len(nothing.indices), nothing.ignored) == (0, 4)


def test_a_table_of_many_classes_counts_as_a_small_one():
    encoding = Encoding.of_indices(12_000)
    table = encoding.empty_table()
    encoding.count_into(table, [0, 11_999, 11_999], [5, 0, 0])
    assert (table[0, 5], table[11_999, 0], table[11_999, :9].sum()) == (1, 2, 2)
    assert table.shape == (12_002, 12_001)


def test_cells_of_undeclared_values_are_refused_as_tables_are():
    encoding = Encoding.of_indices(1000, 5000)
    for truth, pred in (([1, 5000, 7000], [1, 2, 3]), ([1, 5000, 999], [1, 8000, 8001])):
        with pytest.raises(UndeclaredValuesError) as dense:
            encoding.count_into(encoding.empty_table(), truth, pred)
        with pytest.raises(UndeclaredValuesError) as sparse:
            encoding.count(truth, pred)
        assert str(sparse.value) == str(dense.value)


@pytest.mark.parametrize("num_classes", [65535, 10**9, 2**63])
def test_too_many_classes_are_an_error_at_once(num_classes):
    with pytest.raises(ValueError, match="num_classes must be at most 65534"):
        count_pairs([0], [0], num_classes)
