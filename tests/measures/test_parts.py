"""Parts by hand: sums, rows, and bytes that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from segiou.measures import Field, Parts

LAYOUT = {
    "hits": Field((2,)),
    "sizes": Field((), rows=True),
    "cases": Field((2,), rows=True, floats=True),
}


def part(hits, sizes, cases):
    return Parts.of(LAYOUT, hits=hits, sizes=sizes, cases=cases)


def test_sums_are_added_and_rows_put_together():
    both = Parts.joined(LAYOUT, [part([1, 2], [3], [[0.5, np.nan]]), part([4, 0], [0, 5], [])])
    assert both["hits"].tolist() == [[1, 2], [4, 0]]
    assert both.total["hits"].tolist() == [[5, 2]]
    assert both.total["sizes"].tolist() == [3, 0, 5]
    assert both.owner("sizes").tolist() == [0, 1, 1]
    assert both.summed("sizes", np.array([1, 2, 4])).tolist() == [1, 6]
    turned = both.take([1, 0])
    assert turned["sizes"].tolist() == [0, 5, 3]
    assert turned.owner("cases").tolist() == [1]
    assert Parts.unpack(LAYOUT, both.pack()) == both


def test_what_is_left_out_is_zero_or_no_rows():
    nothing = Parts.of(LAYOUT)
    assert (nothing["hits"].tolist(), nothing["sizes"].tolist()) == ([[0, 0]], [])
    assert nothing["cases"].shape == (0, 2)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"misses": [1]}, TypeError, "no array 'misses'; it has hits, sizes, cases"),
        ({"hits": [0.5, 1]}, TypeError, "hits must contain integers"),
        ({"hits": ["a", "b"]}, TypeError, "hits must contain integers"),
        ({"hits": [1, 2, 3]}, ValueError, r"hits must have shape \(2,\)"),
        ({"hits": [1, -2]}, ValueError, "hits must not be negative"),
        ({"sizes": [[1]]}, ValueError, "sizes must have shape"),
        ({"cases": [1.0, 2.0]}, ValueError, "cases must have shape"),
    ],
)
def test_other_numbers_are_refused(given, error, text):
    with pytest.raises(error, match=text):
        Parts.of(LAYOUT, **given)


def test_a_sum_beyond_64_bits_is_an_error():
    large = Parts.of({"n": Field(())}, n=2**62)
    with pytest.raises(ValueError, match="the sum of n exceeds"):
        _ = (large + large).total


def test_an_array_without_the_axis_of_rows_is_a_single_row():
    layout = {"case": Field((2,), rows=True, floats=True, single=True)}
    part = Parts.of(layout, case=[1.5, 2.5])
    assert part["case"].tolist() == [[1.5, 2.5]]
    assert part == Parts.of(layout, case=[[1.5, 2.5]])
    assert Parts.unpack(layout, part.pack()) == part


@pytest.mark.parametrize(
    ("layout", "data"),
    [
        ({"n": Field((2,))}, b""),
        ({"n": Field((2,))}, b"\x02\x01"),
        ({"n": Field((2,))}, b"\x02\x03\x01"),  # beyond the array
        ({"n": Field((2,))}, b"\x02\x01\x05\x00"),  # more than there is
        ({"n": Field((2,))}, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ({"n": Field((), rows=True)}, b"\xff\xff\xff\xff\x0f\x00"),  # rows without numbers
        ({"n": Field((0,), rows=True)}, b"\xff\xff\xff\xff\x0f\x00"),
        ({"n": Field((0,), rows=True, floats=True)}, b"\xff\xff\xff\xff\x0f\x00"),
        ({"n": Field((1,), rows=True, floats=True)}, b"\x01\x07" + bytes(7)),
        ({"n": Field((1,), floats=True)}, b"\x00"),
    ],
)
def test_bytes_that_hold_something_else_are_refused(layout, data):
    with pytest.raises(ValueError, match=r"truncated|outside|more counts|too long|no cell|array"):
        Parts.unpack(layout, [data])


def test_parts_keep_their_numbers_when_the_array_is_reused():
    layout, array = {"n": Field((2,))}, np.array([3, 4])
    first = Parts.of(layout, n=array)
    array[:] = 9
    assert first["n"].tolist() == [[3, 4]]
