"""Encodes many sparse tables of integers as LEB128 bytes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from segiou._support.optional import load_part, warn_missing

_COMPILED = "segiou.counting._varints"
_varints = load_part(_COMPILED)

Ints = NDArray[np.int64]
#: 63 bits take nine bytes.
_MAX_BYTES = 9


def encode_cells(sizes: Ints, cells: Ints, values: Ints) -> list[bytes]:
    r"""Encode the counts of several images, columns as in :class:`Columns`, as LEB128.

    >>> encode_cells(np.array([2, 0]), np.array([0, 3]), np.array([5, 300]))
    [b'\x01\x05\x03\xac\x02', b'']
    """
    if _varints is None:
        warn_missing(_COMPILED)
        return _encoded(sizes, cells, values)
    arrays = (np.ascontiguousarray(each, np.int64) for each in (sizes, cells, values))
    return _split(*_varints.encode(*arrays))


def encode_tables(sizes: Ints, tables: Ints, *, add_one: bool = False) -> list[bytes]:
    r"""The same from all cells of several images; those with 0 are left out, or 1 is added to each.

    >>> encode_tables(np.array([4, 1]), np.array([5, 0, 0, 300, 0]))
    [b'\x01\x05\x03\xac\x02', b'']
    """
    if _varints is None:
        warn_missing(_COMPILED)
        values = tables + add_one
        filled, stops = values.nonzero()[0], np.cumsum(sizes)
        numbers = np.diff(np.searchsorted(filled, stops), prepend=0)
        return _encoded(numbers, filled - np.repeat(stops - sizes, numbers), values[filled])
    arrays = (np.ascontiguousarray(each, np.int64) for each in (sizes, tables))
    return _split(*_varints.encode_tables(*arrays, add_one))


def _split(data: bytes, ends: bytes) -> list[bytes]:
    """The bytes of each image."""
    return [data[a:b] for a, b in pairwise([0, *np.frombuffer(ends, np.int64).tolist()])]


def _encoded(sizes: Ints, cells: Ints, values: Ints) -> list[bytes]:
    numbers = np.empty(2 * len(cells), dtype=np.int64)
    stops = sizes.cumsum()
    steps = numbers[0::2]
    np.subtract(cells[1:], cells[:-1], out=steps[1:])
    firsts = (stops - sizes)[sizes > 0]
    steps[firsts] = cells[firsts] + 1
    numbers[1::2] = values
    ends = np.ones(len(numbers) + 1, dtype=np.int64)
    ends[0] = 0
    for bits in range(7, int(numbers.max(initial=0)).bit_length(), 7):
        ends[1:] += numbers >= 1 << bits
    ends.cumsum(out=ends)
    encoded, places = np.empty(ends[-1], np.uint8), ends[:-1]
    encoded[places] = numbers & 0x7F
    while len(longer := np.flatnonzero(numbers > 0x7F)):
        numbers, places = numbers[longer] >> 7, places[longer] + 1
        encoded[places - 1] |= 0x80
        encoded[places] = numbers & 0x7F
    data = encoded.tobytes()
    return [data[a:b] for a, b in pairwise([0, *ends[2 * stops].tolist()])]


def decode_cells(blobs: list[bytes], num_cells: int) -> tuple[Ints, Ints, Ints]:
    r"""Decode the bytes of :func:`encode_cells`; a ValueError if they are malformed.

    >>> decode_cells([b'\x01\x05\x03\xac\x02', b''], 6)
    (array([2, 0]), array([0, 3]), array([  5, 300]))
    """
    data, lengths = b"".join(blobs), np.array([*map(len, blobs)], np.int64)
    if _varints is None:
        warn_missing(_COMPILED)
        return _decoded(np.frombuffer(data, np.uint8), lengths, num_cells)
    arrays = _varints.decode(data, lengths, num_cells)
    sizes, cells, values = (np.frombuffer(each, np.int64) for each in arrays)
    return sizes, cells, values


def _decoded(data: NDArray[np.uint8], of_blobs: Ints, num_cells: int) -> tuple[Ints, Ints, Ints]:
    last = np.flatnonzero(data < 0x80)
    stops = np.cumsum(of_blobs)
    _check(not (data[stops[stops > 0] - 1] >= 0x80).any(), "a number of its counts is truncated")
    lengths = np.diff(last, prepend=-1)
    longest = int(lengths.max(initial=0))
    _check(longest <= _MAX_BYTES, "a number of its counts is too long")
    numbers = np.zeros(len(last), dtype=np.int64)
    used = np.arange(len(last))
    for k in range(longest):
        used = used[lengths[used] > k]
        part = data[last[used] - lengths[used] + 1 + k] & 0x7F
        numbers[used] |= part.astype(np.int64) << (7 * k)
    sizes, odd = np.divmod(np.diff(np.searchsorted(last, stops), prepend=0), 2)
    _check(not odd.any(), "a count has no cell")
    steps, values = numbers[0::2], numbers[1::2]
    outside = "a cell of its counts lies outside the table"
    _check(not ((steps < 1) | (steps > num_cells)).any(), outside)
    ends = np.cumsum(sizes)
    cells = np.cumsum(steps)
    cells -= np.repeat(np.append(0, cells)[ends - sizes], sizes) + 1
    _check(not (cells[ends[sizes > 0] - 1] >= num_cells).any(), outside)
    _check(not (values < 1).any(), "a count is not positive")
    return sizes, cells, values


def _check(is_right: bool, problem: str) -> None:
    if not is_right:
        raise ValueError(problem)
