"""What the kernel of counting refuses: anything that would be written outside of the table."""

from __future__ import annotations

import numpy as np
import pytest

from segiou.counting import reference

kernel = pytest.importorskip(
    "segiou.counting._kernel", reason="the counting kernel is not built here"
)

SIMPLE = np.arange(3, dtype=np.uint16)
ONES = np.ones(4, np.uint8)
TABLE = np.zeros((3, 3), np.int64)
SWAPPED = TABLE.dtype.newbyteorder()


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({0: np.ones(4)}, TypeError, "truth must hold native integers or bool"),
        ({1: np.ones(4, complex)}, TypeError, "pred must hold native integers or bool"),
        ({1: np.ones(5, np.uint8)}, ValueError, "differ in shape"),
        ({1: np.ones((4, 1), np.uint8)}, ValueError, "differ in shape"),
        ({3: np.array([0, 3], np.uint16)}, ValueError, "truth code 3 is outside"),
        ({5: np.array([9, 0], np.uint16)}, ValueError, "pred code 9 is outside"),
        ({3: np.array([0, 1], np.int64)}, TypeError, "truth codes must be"),
        ({5: np.zeros((1, 2), np.uint16)}, TypeError, "pred codes must be"),
        ({6: np.zeros((3, 3), np.int32)}, TypeError, "table must be a native int64"),
        ({6: np.zeros((3, 3), SWAPPED)}, TypeError, "table must be a native int64"),
        ({6: np.zeros((3, 3), np.uint64)}, TypeError, "table must be a native int64"),
        ({6: np.zeros(9, np.int64)}, TypeError, "table must be a native int64"),
        ({6: np.zeros((0, 3), np.int64)}, ValueError, "1 to 65536"),
    ],
)
def test_what_the_kernel_refuses(change, error, text):
    arguments = [ONES, ONES, 0, SIMPLE, 0, SIMPLE, TABLE]
    for position, value in change.items():
        arguments[position] = value
    with pytest.raises(error, match=text):
        kernel.count_coded(*arguments)
    if {0, 1} & {*change}:  # where NumPy counts, the table and the codes are our own
        with pytest.raises(error, match=r"must (be|match)"):
            reference.count_coded(*arguments)
    assert not TABLE.any()


def test_other_byte_orders_are_left_to_numpy():
    assert kernel.count_coded(ONES.astype(SWAPPED), ONES, 0, SIMPLE, 0, SIMPLE, TABLE) is None
    assert not TABLE.any()


@pytest.mark.parametrize("table", [TABLE[::-1], TABLE.T[:2], np.broadcast_to(TABLE[:1], (3, 3))])
def test_a_table_that_cannot_take_counts_is_refused(table):
    with pytest.raises((TypeError, ValueError, BufferError)):
        kernel.count_coded(ONES, ONES, 0, SIMPLE, 0, SIMPLE, table)


def test_kernel_names_a_backend_that_it_cannot_run():
    with pytest.raises(ValueError, match="cannot run the backend 'abacus'"):
        kernel.count_coded(ONES, ONES, 0, SIMPLE, 0, SIMPLE, TABLE, "abacus")


@pytest.mark.parametrize(
    ("low", "error"), [(0.5, TypeError), (2**64, OverflowError), (-(2**63) - 1, OverflowError)]
)
def test_kernel_refuses_a_low_that_is_no_integer_of_64_bits(low, error):
    with pytest.raises(error):
        kernel.count_coded(ONES, ONES, low, SIMPLE, 0, SIMPLE, TABLE)


def test_kernel_refuses_too_few_arguments():
    with pytest.raises(TypeError, match="takes 7 or 8 arguments, not 2"):
        kernel.count_coded(ONES, ONES)
