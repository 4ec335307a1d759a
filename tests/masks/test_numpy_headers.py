"""Headers of NumPy files: the same layout as NumPy's, whoever wrote them and whatever runs."""

from __future__ import annotations

import ast
import gc
import io

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segiou import MaskError, read_mask
from segiou.masks.formats.numpy_files import NpyHeader
from segiou.masks.read import from_bytes

SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=12)
INTEGERS = arrays.integer_dtypes(endianness="?") | arrays.unsigned_integer_dtypes(endianness="?")
DTYPES = st.one_of(INTEGERS, arrays.boolean_dtypes(), arrays.floating_dtypes(endianness="?"))


@given(st.tuples(DTYPES, SHAPES, st.sampled_from("CF")))
def test_files_that_numpy_wrote(layout):
    dtype, shape, order = layout
    array = np.zeros(shape, dtype, order)
    file = io.BytesIO()
    np.save(file, array)
    content = file.getvalue()
    is_fortran = array.flags.fnc
    offset = len(content) - array.nbytes
    assert NpyHeader.of(content, "a.npy") == (shape, is_fortran, array.dtype, offset)


def content_of(header, values, version=1):
    """A file with this header, which other programs pad to any length."""
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + values


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }     \n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2,3), }\n",
        "{'shape': (2, 3), 'fortran_order': False, 'descr': '|u1'}\n",
        '{"descr": "|u1", "fortran_order": False, "shape": (2, 3)}\n',
    ],
)
def test_files_of_other_programs(header, version):
    mask = from_bytes(content_of(header, bytes(range(6)), version), "a.npy")
    assert mask.values.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2, -3), }\n",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (2, 3), }\n",
        "{'descr': 'unknown', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 99999999999999999999), }\n",
    ],
)
def test_damaged_headers_are_refused(header, tmp_path):
    content = content_of(header, bytes(range(6)))
    (tmp_path / "a.npy").write_bytes(content)
    for cut in (len(content), len(content) - 6, 40, 9):
        with pytest.raises(MaskError, match=r"is a corrupt (or unsafe )?\.npy file"):
            from_bytes(content[:cut], "a.npy")
    with pytest.raises(MaskError, match=r"is a corrupt (or unsafe )?\.npy file"):
        read_mask(tmp_path / "a.npy")


def test_a_header_is_read_while_other_code_parses_python(tmp_path):
    """In Python before 3.11.8, a thread or finalizer that parses makes another parser fail."""
    np.save(tmp_path / "a.npy", np.uint8([[1, 2], [3, 4]]))
    np.savez(tmp_path / "a.npz", np.uint8([[1, 2], [3, 4]]))

    def parse(phase, info):
        ast.literal_eval("(1, 2)")

    often = gc.get_threshold()
    gc.callbacks.append(parse)
    gc.set_threshold(1)
    try:
        masks = [read_mask(tmp_path / name) for name in ("a.npy", "a.npz")]
    finally:
        gc.set_threshold(*often)
        gc.callbacks.remove(parse)
    assert [mask.tolist() for mask in masks] == [[[1, 2], [3, 4]]] * 2
