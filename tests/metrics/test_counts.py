"""The integers: Counts and ConfusionCounts."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from segiou import Counts
from segiou.counting import ConfusionCounts
from segiou.counting.counts import Cells, SparseConfusionCounts

MATRIX = [[3, 1, 0], [2, 4, 0], [0, 5, 7]]
UNASSIGNED = [1, 0, 2]


def tables(leading=()):
    shape = st.integers(1, 5).map(lambda c: (*leading, c, c + 1))
    return hnp.arrays(np.int64, shape, elements=st.integers(0, 9))


def test_counts_of_a_matrix_by_hand():
    counts = ConfusionCounts.of_matrix(MATRIX, UNASSIGNED, 4).counts
    assert counts == Counts(tp=[3, 4, 7], fp=[2, 6, 0], fn=[2, 2, 7], tn=[18, 13, 11])
    assert counts.total.tolist() == [25, 25, 25]
    assert ConfusionCounts.of_matrix(MATRIX, UNASSIGNED, 4).pixels == 29


@given(tables())
def test_counts_are_what_a_double_loop_counts(table):
    num_classes = len(table)
    pairs = [
        (t, p)
        for t in range(num_classes)
        for p in range(num_classes + 1)
        for _ in range(table[t, p])
    ]
    counts = ConfusionCounts(table).counts
    for c in range(num_classes):
        assert counts.tp[c] == sum(t == c and p == c for t, p in pairs)
        assert counts.fp[c] == sum(t != c and p == c for t, p in pairs)
        assert counts.fn[c] == sum(t == c and p != c for t, p in pairs)
        assert counts.tn[c] == sum(t != c and p != c for t, p in pairs)


@given(tables(leading=(3,)))
def test_leading_axes_and_sums(table):
    tally = ConfusionCounts(table, ignored=np.zeros(3, np.int64))
    for i in range(3):
        assert tally.counts[i] == ConfusionCounts(table[i]).counts
    assert tally.counts.summed() == ConfusionCounts(table.sum(0)).counts
    assert tally.counts[0] + tally.counts[1] + tally.counts[2] == tally.counts.summed()


@given(tables())
def test_swapping_truth_and_prediction_transposes(table):
    matrix = table[:, :-1]
    nothing = np.zeros(len(matrix), np.int64)
    counts, swapped = (
        ConfusionCounts.of_matrix(matrix, nothing, 0).counts,
        ConfusionCounts.of_matrix(matrix.T, nothing, 0).counts,
    )
    assert swapped == Counts(counts.tp, counts.fn, counts.fp, counts.tn)


def test_one_class_against_the_rest():
    pair = Counts(tp=[1, 0], fp=[2, 3], fn=[4, 5], tn=[6, 7]).one_vs_rest()
    assert pair == Counts([[1, 6], [0, 7]], [[2, 4], [3, 5]], [[4, 2], [5, 3]], [[6, 1], [7, 0]])


@pytest.mark.parametrize("grouped_truth_only", [False, True])
def test_a_group_is_counted_as_one_mask_against_the_rest(grouped_truth_only):
    rng = np.random.default_rng(1)
    truth, pred = rng.integers(0, 5, 400), rng.integers(0, 6, 400)  # 5 names no class
    table = np.histogram2d(truth, pred, bins=[range(6), range(7)])[0].astype(np.int64)
    groups = [[3, 0], [4, 3], [0], []]
    counts = ConfusionCounts(table).group_counts(groups, grouped_truth_only=grouped_truth_only)
    kept = np.isin(truth, [0, 3, 4]) if grouped_truth_only else np.ones(400, bool)
    for g, members in enumerate(groups):
        t, p = np.isin(truth, members)[kept], np.isin(pred, members)[kept]
        cells = [int(cell.sum()) for cell in (t & p, ~t & p, t & ~p, ~t & ~p)]
        assert [int(x[g]) for x in (counts.tp, counts.fp, counts.fn, counts.tn)] == cells


@given(tables(), st.integers(0, 5), st.booleans())
def test_cells_count_what_their_table_counts(table, ignored, grouped_truth_only):
    dense = ConfusionCounts(table, ignored)
    # Half of every cell, in another order, and then the other half.
    once, again = (
        ConfusionCounts(table // 2, ignored).cells,
        ConfusionCounts(table - table // 2).cells,
    )
    halves = [Cells(once.indices[::-1], once.values[::-1], once.ignored), again]
    cells = SparseConfusionCounts.summed(len(table), halves)
    assert [x.tolist() for x in cells.cells[:2]] == [x.tolist() for x in dense.cells[:2]]
    assert cells.table.tolist() == table.tolist()
    assert cells.unassigned.tolist() == dense.unassigned.tolist()
    assert cells.counts == dense.counts
    assert (cells.num_classes, cells.ignored) == (len(table), ignored)
    assert (cells.valid, cells.pixels) == (dense.valid, dense.pixels)
    groups = [[0], [*range(len(table))], [], [len(table) - 1, 0]]
    found, wanted = (
        tally.group_counts(groups, grouped_truth_only=grouped_truth_only)
        for tally in (cells, dense)
    )
    assert found == wanted


def test_cells_of_more_classes_than_a_table_is_made_for():
    classes = 60_000
    last = classes * (classes + 1) - 1  # the last class, predicted as none
    tally = SparseConfusionCounts.summed(
        classes, [Cells(np.array([last, 0, last]), np.array([1, 5, 2]), 0)]
    )
    assert [x.tolist() for x in tally.cells[:2]] == [[0, last], [5, 3]]
    assert (tally.counts.fn[-1], tally.unassigned[-1], tally.counts.tp[0]) == (3, 3, 5)
    groups = tally.group_counts([[0, classes - 1]])
    assert groups == Counts(tp=[5], fp=[0], fn=[3], tn=[0])


def test_cells_past_64_bits_are_refused():
    with pytest.raises(OverflowError, match="pixels must not exceed 9223372036854775807"):
        SparseConfusionCounts.summed(2, [Cells(np.array([0]), np.array([2**61]), 2**62)] * 2)


def test_groups_keep_leading_axes_and_single_classes_are_the_classes():
    tally = ConfusionCounts.of_matrix(
        np.array([MATRIX, MATRIX]), np.array([UNASSIGNED] * 2), np.array([4, 0])
    )
    assert tally.group_counts([[0], [1], [2]]) == tally.counts
    assert tally.group_counts([[0, 1]]).tp.tolist() == [[10], [10]]


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ([[0], [3]], "group 1 has class index 3; indices are 0 to 2"),
        ([[-1]], "group 0 has class index -1"),
    ],
)
def test_bad_groups_are_refused(groups, text):
    with pytest.raises(ValueError, match=text):
        ConfusionCounts.of_matrix(MATRIX, UNASSIGNED, 0).group_counts(groups)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Counts([0.5], [0], [0], [0]), TypeError, "tp must be integers, got float64"),
        (lambda: Counts([1], [0], [-2], [0]), ValueError, "fn must not be negative, got -2"),
        (lambda: Counts([1], [0], [0, 1], [0]), ValueError, "same shape"),
        (
            lambda: Counts([0], np.array([2**63], np.uint64), [0], [0]),
            ValueError,
            "fp must be below 2\\^63, got 9223372036854775808",
        ),
        (lambda: ConfusionCounts([[1, 2, 0]]), ValueError, r"table must have shape"),
        (
            lambda: ConfusionCounts.of_matrix([[1, 2]], [0, 0], 0),
            ValueError,
            "matrix must have shape",
        ),
        (lambda: ConfusionCounts.of_matrix([[1]], [0], [0]), ValueError, "or have shape"),
        (lambda: ConfusionCounts.of_matrix([[1.0]], [0], 0), TypeError, "matrix must be integers"),
    ],
)
def test_what_is_no_count_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_counts_take_any_integer_dtype_and_leave_the_arrays_alone():
    small = np.array([200], dtype=np.uint8)
    small.setflags(write=False)
    counts = Counts(small, small, small, small)
    assert counts.total.tolist() == [800]
    assert small.dtype == np.uint8


def test_counts_compare_and_do_not_hash():
    counts = Counts([1], [2], [3], [4])
    assert counts == Counts([1], [2], [3], [4])
    assert counts != Counts([1], [2], [3], [5])
    assert counts != "counts"
    with pytest.raises(TypeError):
        hash(counts)
    with pytest.raises(TypeError):
        counts + 1
