from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segiou._support.optional import load_part
from segiou.counting import varints
from segiou.counting.varints import encode_tables
from segiou.runs.image_counts import decode_cells, encode_cells


@pytest.fixture(params=["c", "numpy"], scope="module", autouse=True)
def program(request):
    """Either routine."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(varints, "_varints", None)
        elif varints._varints is None:
            pytest.skip("the compiled routine was not built")
        yield


def ints(*values):
    return np.array(values, dtype=np.int64)


def test_bytes_are_those_of_the_documented_encoding():
    # Cell 0 is one step from −1; 300 = 0b10_0101100 → ac 02.
    assert encode_cells(ints(1), ints(0), ints(300)) == [b"\x01\xac\x02"]
    assert encode_cells(ints(0, 2), ints(3, 5), ints(1, 127)) == [b"", b"\x04\x01\x02\x7f"]


def test_tables_are_encoded_without_zeros_or_with_one_added():
    tables = ints(5, 0, 0, 300, 0, 7)
    assert encode_tables(ints(4, 0, 2), tables) == [b"\x01\x05\x03\xac\x02", b"", b"\x02\x07"]
    assert encode_tables(ints(2, 1), ints(0, 127, 3), add_one=True) == [
        b"\x01\x01\x01\x80\x01",
        b"\x01\x04",
    ]
    assert encode_tables(ints(), ints()) == []


@st.composite
def images(draw):
    num_cells = draw(st.integers(1, 400))
    chosen = st.lists(st.integers(0, num_cells - 1), unique=True, max_size=12).map(sorted)
    cells = draw(st.lists(chosen, max_size=6))
    values = [
        draw(st.lists(st.integers(1, 2**62), min_size=len(c), max_size=len(c))) for c in cells
    ]
    return num_cells, cells, values


@given(images())
def test_decoding_undoes_encoding(case):
    num_cells, cells, values = case
    sizes = ints(*map(len, cells))
    all_cells, all_values = list(chain(*cells)), list(chain(*values))
    blobs = encode_cells(sizes, ints(*all_cells), ints(*all_values))
    back = decode_cells(blobs, num_cells)
    assert back[0].tolist() == sizes.tolist()
    assert back[1].tolist() == all_cells
    assert back[2].tolist() == all_values


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        (b"\x01", "a count has no cell"),
        (b"\x01\x80", "truncated"),
        (b"\x80", "truncated"),
        (b"\x01" + b"\xff" * 9, "truncated"),
        (b"\x00\x05", "outside the table"),
        (b"\x07\x05", "outside the table"),
        (b"\x04\x05\x03\x05", "outside the table"),
        (b"\x01\x00", "not positive"),
        (b"\x01" + b"\xff" * 9 + b"\x01", "too long"),
    ],
)
def test_bytes_that_are_no_counts_are_refused(blob, text):
    with pytest.raises(ValueError, match=text):
        decode_cells([b"\x01\x05", blob], 6)


def test_arrays_that_do_not_match_are_refused():
    if (routines := load_part("segiou.counting._varints")) is None:
        pytest.skip("the compiled routine was not built")
    for lengths in (ints(1), ints(3), ints(-1, 3), ints(2)[:0], np.ones(3, np.uint8)):
        with pytest.raises(ValueError, match="add up"):
            routines.decode(b"\x01\x05", lengths, 6)
    for arrays in ((ints(2), ints(0), ints(1)), (ints(1), ints(0), ints(1, 2)), (ints(-1, 2),) * 3):
        with pytest.raises(ValueError, match="match"):
            routines.encode(*arrays)
