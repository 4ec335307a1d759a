"""Checks of MATLAB files before version 7.3, which SciPy reads without a check of its own."""

from __future__ import annotations

import math
import struct

from segiou.masks.formats.decompression import inflater, pieces

#: Bytes before the first element.
_HEADER = 128
#: Types of numbers and text; SciPy takes the address of a type from a table without a bound.
_VALUES = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18})
_MATRIX, _COMPRESSED = 14, 15
_ARRAYS = frozenset({_MATRIX})
#: Cells, structs, objects, functions and opaque ones, which contain others.
_OF_OTHERS = frozenset({1, 2, 3, 16, 17})
_SPARSE, _OPAQUE = 5, 17
#: Limits of arrays in each other, of structs without fields, and of the bytes of all axes.
_DEEPEST, _MOST_EMPTY, _MOST_AXES = 64, 1 << 16, 128


def checked_file(data: bytes, most: int) -> bytes:
    """The file without strings, tables and other objects of MATLAB, which SciPy cannot list.

    ValueError for a type that is not MATLAB's, or a size beyond the end. Compressed elements may
    have at most ``most`` bytes.
    """
    if 0 in data[:4]:  # of version 4, whose parts have no types
        return data
    order = ">" if data[126:128] == b"MI" else "<"
    at, kept, start = _HEADER, [], 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        begin, at = at, at + 8
        if kind == _COMPRESSED:
            packed = data[at : at + size]
            content = b"".join(pieces(inflater.decompressobj(), packed, most))
            _check_elements(content, order, 0, len(content), _ARRAYS, 0)
            is_opaque = _class_of(content, order, 8) == _OPAQUE
        elif kind == _MATRIX:
            _check_matrix(data, order, at, min(at + size, len(data)), 0)
            is_opaque = _class_of(data, order, at) == _OPAQUE
        else:
            raise _unknown(kind)
        at += size
        if is_opaque:
            kept.append(data[start:begin])
            start = at
    return b"".join((*kept, data[start:])) if kept else data


def _class_of(data: bytes, order: str, at: int) -> int:
    """The class of an array; 0 if it is empty."""
    return struct.unpack_from(f"{order}I", data, at + 8)[0] & 0xFF if at + 12 <= len(data) else 0


def _check_matrix(data: bytes, order: str, at: int, end: int, depth: int) -> None:
    """The elements of an array: flags, axes, name, and values or other arrays."""
    if at == end:  # an empty element of a cell
        return
    if depth > _DEEPEST or at + 16 > end:
        msg = "an array is truncated, or nested too deeply"
        raise ValueError(msg)
    (flags,) = struct.unpack_from(f"{order}I", data, at + 8)
    kind, is_complex = flags & 0xFF, flags >> 11 & 1
    kinds = _VALUES | _ARRAYS if kind in _OF_OTHERS else _VALUES
    elements = _check_elements(data, order, at, end, kinds, depth)
    wanted = (6 if kind == _SPARSE else 4) + is_complex
    if kind not in _OF_OTHERS and len(elements) < wanted:
        msg = f"an array has {len(elements)} elements; expected {wanted}"
        raise ValueError(msg)
    if kind in _OF_OTHERS and kind != _OPAQUE and len(elements) > 1:
        axes = elements[1][1]
        number = math.prod(struct.unpack(f"{order}{len(axes) // 4}I", axes[: len(axes) // 4 * 4]))
        if number > max(_MOST_EMPTY, sum(kind == _MATRIX for kind, _ in elements)):
            msg = f"an array declares {number} arrays that it does not contain"
            raise ValueError(msg)


def _check_elements(
    data: bytes, order: str, at: int, end: int, kinds: frozenset[int], depth: int
) -> list[tuple[int, bytes]]:
    """The types of elements one after the other, which must be of these, and their first bytes."""
    elements = []
    while at + 8 <= end:
        kind, size = struct.unpack_from(f"{order}II", data, at)
        begin, after = at + 8, at + 8 + size + -size % 8
        if kind >> 16:  # up to four bytes in place of the size
            kind, size, begin, after = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        if kind not in kinds:
            raise _unknown(kind)
        if begin + size > min(after, end):
            msg = f"an element of {size} bytes is beyond the end of its array"
            raise ValueError(msg)
        if kind == _MATRIX:
            _check_matrix(data, order, begin, begin + size, depth + 1)
        elements.append((kind, data[begin : begin + min(size, _MOST_AXES)]))
        at = after
    return elements


def _unknown(kind: int) -> ValueError:
    return ValueError(f"unknown type {kind} of an element")
