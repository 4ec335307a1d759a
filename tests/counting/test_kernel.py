"""The kernel against the NumPy reference and a double loop, for every kind of array.

``SEGIOU_FUZZ_INPUTS=20000`` asks for that many inputs instead of the usual few.
"""

from __future__ import annotations

import os
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from segiou.counting import encoding, reference

kernel = pytest.importorskip(
    "segiou.counting._kernel", reason="the counting kernel is not built here"
)

INPUTS = int(os.environ.get("SEGIOU_FUZZ_INPUTS", settings.default.max_examples))
INTEGERS = [np.dtype(order + kind) for kind in "bBhHiIqQ" for order in "<>"]
DTYPES = [*dict.fromkeys(INTEGERS), np.dtype(bool)]
SIMPLE = np.arange(3, dtype=np.uint16)


def code_of(value, low, codes, undeclared):
    """What a value means, in Python's own integers."""
    index = int(value) - low
    return int(codes[index]) if 0 <= index < len(codes) else undeclared


def double_loop(truth, pred, truth_low, truth_codes, pred_low, pred_codes, shape):
    table = np.zeros(shape, np.int64)
    for t, p in zip(truth.ravel().tolist(), pred.ravel().tolist(), strict=True):
        row = code_of(t, truth_low, truth_codes, shape[0] - 1)
        column = code_of(p, pred_low, pred_codes, shape[1] - 1)
        table[row, column] += 1
    return table


@st.composite
def label_arrays(draw, shape):
    """Runs of equal values in any dtype, then turned, thinned, broadcast or frozen."""
    dtype = draw(st.sampled_from(DTYPES))
    size = int(np.prod(shape))
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    usual = st.integers(max(low, -2), min(high, 6))
    values = draw(st.lists(st.one_of(usual, st.integers(low, high)), min_size=1, max_size=8))
    longest = draw(st.sampled_from([1, 2, 20, 300]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    picks = np.repeat(rng.integers(0, len(values), size), rng.integers(1, longest + 1, size))
    array = np.array([int(v) for v in values], dtype=dtype)[picks[:size]].reshape(shape)
    layout = draw(st.sampled_from(["C", "F", "reversed", "thinned", "broadcast", "offset"]))
    return laid_out(array, layout)


def laid_out(array, layout):
    """The same labels in another layout; for "broadcast", fewer different ones."""
    if layout == "F":
        array = np.array(array, order="F")
    elif layout == "reversed":
        array = np.flip(np.flip(array).copy())
    elif layout == "thinned" and array.ndim:
        wide = np.zeros((*array.shape[:-1], 3 * array.shape[-1]), array.dtype)
        wide[..., ::3] = array
        array = wide[..., ::3]
    elif layout == "broadcast" and array.ndim and array.shape[0]:
        array = np.broadcast_to(array[:1], array.shape)
    elif layout == "offset":
        raw = np.zeros(array.nbytes + 1, np.uint8)
        moved = raw[1:].view(array.dtype).reshape(array.shape)
        moved[...] = array
        array = moved
        array.flags.writeable = False
    return array


@st.composite
def calls(draw):
    """The arguments of one call, but for the table, and the table's shape."""
    shape = draw(
        st.one_of(
            st.lists(st.integers(0, 9), max_size=4).map(tuple),
            st.tuples(st.integers(0, 9000)),
            st.tuples(st.integers(0, 12), st.integers(180, 700)),
        )
    )
    arguments, states = [], []
    for _ in range(2):
        count = draw(st.sampled_from([1, 2, 5, 21, 257, 258, 300]))
        length = draw(st.sampled_from([0, 1, 4, 20, 255, 256, 257, 300]))
        seed = draw(st.integers(0, 2**32 - 1))
        codes = np.random.default_rng(seed).integers(0, count, length).astype(np.uint16)
        low = draw(
            st.one_of(
                st.integers(-3, 3),
                st.integers(-(2**63), -(2**63) + 300),
                st.integers(2**63 - 300, 2**63 + 3),
                st.integers(2**64 - 300, 2**64 - 1),
                st.integers(-(2**63), 2**64 - 1),
            )
        )
        arguments += [low, codes]
        states.append(count)
    return [draw(label_arrays(shape)), draw(label_arrays(shape)), *arguments], tuple(states)


@given(calls())
@settings(max_examples=INPUTS, deadline=None)
def test_every_backend_gives_the_same_table(call):
    arguments, shape = call
    expected = np.full(shape, 7, np.int64)
    expected[-1] = expected[:, -1] = 0
    before = expected.copy()
    any_last = reference.count_coded(*arguments, expected)
    assert expected.sum() == before.sum() + arguments[0].size
    for name in kernel.BACKENDS:
        table = before.copy()
        assert encoding.count_coded(*arguments, table, name) is any_last
        np.testing.assert_array_equal(table, expected, err_msg=name)


@given(calls().filter(lambda call: call[0][0].size <= 2000))
@settings(max_examples=INPUTS, deadline=None)
def test_every_backend_agrees_with_a_double_loop(call):
    arguments, shape = call
    expected = double_loop(*arguments, shape)
    any_last = bool(expected[-1].sum() + expected[:, -1].sum())
    table = np.zeros(shape, np.int64)
    assert reference.count_coded(*arguments, table) is any_last
    np.testing.assert_array_equal(table, expected)
    for name in kernel.BACKENDS:
        table = np.zeros(shape, np.int64)
        assert encoding.count_coded(*arguments, table, name) is any_last
        np.testing.assert_array_equal(table, expected, err_msg=name)


def test_four_pixels_by_hand(count):
    table = np.zeros((3, 3), np.int64)
    truth = np.array([[0, 0], [1, 9]], np.uint8)
    pred = np.array([[0, 1], [1, 0]], np.int64)
    count(truth, pred, 0, SIMPLE, 0, SIMPLE, table)
    assert table.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 0]]


def test_counts_are_added(count):
    table = np.array([[10, 20]], np.int64)
    none = np.array([], np.uint16)
    count(np.zeros(5, np.uint8), np.zeros(5, np.uint8), 0, none, 0, none, table)
    assert table.tolist() == [[10, 25]]


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (1, 1, 1), (2,) * 12])
def test_any_number_of_axes(count, shape):
    table = np.zeros((3, 3), np.int64)
    ones = np.ones(shape, np.int32)
    count(ones, ones, 0, SIMPLE, 0, SIMPLE, table)
    assert table[1, 1] == table.sum() == ones.size


def test_uint64_past_the_signed_range_does_not_wrap(count):
    table = np.zeros((4, 3), np.int64)
    truth = np.array([2**64 - 1, 2**63, 0, 1], np.uint64)
    codes = np.array([0, 1, 2], np.uint16)  # of the values -1, 0, 1
    count(truth, np.zeros(4, np.uint8), -1, codes, 0, SIMPLE, table)
    assert table[:, 0].tolist() == [0, 1, 1, 2]


def test_minus_one_is_a_value(count):
    table = np.zeros((4, 3), np.int64)
    truth = np.array([-1, 0, 1, 2, -2], np.int8)
    codes = np.array([2, 0, 1], np.uint16)
    count(truth, np.zeros(5, np.int64), -1, codes, 0, SIMPLE, table)
    assert table[:, 0].tolist() == [1, 1, 1, 2]


def test_any_nonzero_byte_is_true(count):
    table = np.zeros((3, 3), np.int64)
    truth = np.array([0, 1, 2, 255], np.uint8).view(bool)
    count(truth, truth, 0, SIMPLE, 0, SIMPLE, table)
    assert table.tolist() == [[1, 0, 0], [0, 3, 0], [0, 0, 0]]


def test_memory_mapped_labels(count, tmp_path):
    np.arange(3000, dtype=">i2").tofile(tmp_path / "labels")
    truth = np.memmap(tmp_path / "labels", ">i2", mode="r", shape=(3000,))
    table = np.zeros((3, 3), np.int64)
    count(truth[::-1], truth, 0, SIMPLE, 0, SIMPLE, table)
    assert table.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 2996]]


def test_more_classes_than_bytes_can_name(count):
    codes = np.arange(1000, dtype=np.uint16)
    truth = np.repeat(np.arange(1001, dtype=np.int32), 5)
    pred = truth[::-1].astype(np.uint16)
    table = np.zeros((1001, 1001), np.int64)
    count(truth, pred, 0, codes, 0, codes, table)
    np.testing.assert_array_equal(table, 5 * np.eye(1001, dtype=np.int64)[::-1])


@pytest.mark.few(6)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.uint64])
def test_labels_that_are_far_apart(count, dtype):
    for length, states in product([256, 257, 65535, 65536, 70000], [3, 300, 65536]):
        codes = (np.arange(length) * 7 % states).astype(np.uint16)
        values = [0, 1, 255, 256, length - 1, length, 2**32 - 1, 2**64 - 1]
        values = [v for v in values if v <= np.iinfo(dtype).max]
        values = [0, length] if dtype == np.int32 else values
        truth = np.array(values * 40, dtype)
        pred = np.repeat(np.array(values, dtype), 40)
        table = np.zeros((states, 4), np.int64)
        count(truth, pred, 0, codes, 0, SIMPLE, table)
        expected = double_loop(truth, pred, 0, codes, 0, SIMPLE, table.shape)
        np.testing.assert_array_equal(table, expected, f"{length} codes, {states} states")


@pytest.mark.parametrize("classes", [2, 100, 300])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
def test_every_pixel_starts_a_run(count, classes, dtype):
    codes = np.arange(classes, dtype=np.uint16)
    for size in (1, 2, 31, 32, 33, 63, 64, 65, 257, 4095, 4096, 4097, 8193):
        truth = (np.arange(size) % 2).astype(dtype)
        table = np.zeros((classes + 1, classes + 1), np.int64)
        count(truth, truth[::-1].copy(), 0, codes, 0, codes, table)
        expected = np.zeros_like(table)
        np.add.at(expected, (truth, truth[::-1]), 1)
        np.testing.assert_array_equal(table, expected, f"{size} pixels")


@pytest.mark.parametrize("classes", [20, 100])
@pytest.mark.parametrize("dtypes", [("int64", "int64"), ("uint8", "int64"), ("int32", "uint16")])
def test_noise_with_areas_of_one_label(count, classes, dtypes):
    rng = np.random.default_rng(classes)
    sides = rng.integers(0, classes + 3, (2, 30_000))  # the last three are undeclared
    for start, stop in ((5000, 9500), (12_000, 12_700), (20_001, 28_500)):
        sides[:, start:stop] = sides[:, start : start + 1]
    codes = np.arange(classes, dtype=np.uint16)
    table, expected = np.zeros((2, classes + 1, classes + 1), np.int64)
    count(*map(np.ndarray.astype, sides, dtypes), 0, codes, 0, codes, table)
    np.add.at(expected, tuple(sides.clip(max=classes)), 1)
    np.testing.assert_array_equal(table, expected)


def test_labels_and_codes_are_left_alone(count):
    truth = np.array([0, 1, 7], ">i4")
    codes = SIMPLE.copy()
    count(truth, truth, 0, codes, 0, codes, np.zeros((3, 3), np.int64))
    assert truth.tolist() == [0, 1, 7]
    assert codes.tolist() == [0, 1, 2]


def test_counting_uses_the_best_backend():
    assert kernel.BACKENDS[0] == encoding.BACKEND
    assert kernel.BACKENDS[-1] == "c"
