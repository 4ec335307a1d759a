"""Counts of images: arrays by name that add up, and their form as bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_kind
from segiou._support.text import Json
from segiou.counting.varints import decode_cells, encode_cells, encode_tables

#: More numbers than one image can have.
_MOST_NUMBERS = 1 << 40
#: Images whose sparse arrays are decoded at a time.
_DECODED = 16
#: Numbers that are processed at once.
_PART = 1 << 17


class Field(NamedTuple):
    """One array of a part.

    Attributes
    ----------
    shape : tuple of int
        Shape of the array of an image, or of one row.
    rows : bool
        Whether an image has any number of rows, which are concatenated; the
        arrays of images are added by default.
    floats : bool
        Whether the numbers are float64; non-negative integers by default.
    sparse : bool
        Whether most integers are 0, so that the arrays of N images are a SciPy sparse
        array of N flat rows.
    single : bool
        Whether an image has exactly one row, such as the scores of a case; others are corrupt.

    Examples
    --------
    >>> Field((3, 4)).size, Field((2,), rows=True, floats=True).dtype
    (12, dtype('float64'))
    """

    shape: tuple[int, ...]
    rows: bool = False
    floats: bool = False
    sparse: bool = False
    single: bool = False

    @property
    def size(self) -> int:
        """Numbers in the array of an image, or in a row."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[np.float64 | np.int64]:
        """Type of the numbers."""
        return np.dtype(np.float64 if self.floats else np.int64)


Layout = Mapping[str, Field]


def check_layout(layout: Layout) -> None:
    """Raise TypeError or ValueError unless the entries are fields of sane shapes."""
    for name, field in layout.items():
        check_kind("the name of an array", name, str, "text")
        check_kind(f"the array {name!r} of a layout", field, Field, "a Field")
        check_kind(f"the shape of {name!r}", field.shape, tuple, "a tuple of integers")
        for length in field.shape:
            check_integer(f"the shape of {name!r}", length, 0, _MOST_NUMBERS)
        if field.sparse and (field.rows or field.floats):
            msg = f"{name!r} is sparse, so it must contain sums of integers"
            raise ValueError(msg)
        if field.single and not field.rows:
            msg = f"{name!r} has a single row per image, so it must have rows=True"
            raise ValueError(msg)


class Parts:
    r"""Counts of a measure for N images.

    Sums have one array per image. Rows, for what does not add up or varies in
    number, belong to the image that :meth:`owner` names. :attr:`total` is one
    image of all: sums are added, rows concatenated.

    Parameters
    ----------
    layout : mapping of str to Field
        The arrays.
    number : int
        N.
    arrays : mapping of str to ndarray
        Sums (N, \*shape) and rows (M, \*shape).
    sizes : mapping of str to ndarray of int, shape (N,)
        How many of the rows each image has.

    Examples
    --------
    >>> layout = {"hits": Field((2,)), "sizes": Field((), rows=True)}
    >>> both = Parts.joined(layout, [Parts.of(layout, hits=[1, 0], sizes=[7, 9]),
    ...                              Parts.of(layout, hits=[2, 5])])
    >>> both.total["hits"].tolist(), both["sizes"].tolist(), both.owner("sizes").tolist()
    ([[3, 5]], [7, 9], [0, 0])
    >>> Parts.unpack(layout, both.pack()) == both
    True
    """

    __slots__ = ("_arrays", "_sizes", "layout", "number")

    def __init__(
        self, layout: Layout, number: int, arrays: Mapping[str, Any], sizes: Mapping[str, Any]
    ) -> None:
        self.layout: dict[str, Field] = dict(layout)
        self.number: int = number
        self._arrays: dict[str, NDArray[Any]] = dict(arrays)
        self._sizes: dict[str, NDArray[np.int64]] = dict(sizes)

    def copied(self) -> Parts:
        """A copy with separate arrays."""
        return deepcopy(self)

    def of_places(self, layout: Layout, places: Sequence[int]) -> Parts:
        """The parts with some of the places along the first axis of every array.

        Parameters
        ----------
        layout : mapping of str to Field
            Their arrays.
        places : sequence of int
            The places, in order.
        """
        arrays = {name: array[:, places] for name, array in self._arrays.items()}
        return Parts(layout, self.number, arrays, self._sizes)

    @classmethod
    def of(cls, layout: Layout, **arrays: Any) -> Parts:
        """Make the part of one image; omitted arrays are 0, or have no rows.

        Parameters
        ----------
        layout : mapping of str to Field
            The arrays.
        **arrays : array_like
            Numbers by name.

        Raises
        ------
        TypeError
            If the layout has no such array, or counts are not integers.
        ValueError
            If an array has another shape, or a count is negative.
        """
        if unknown := arrays.keys() - layout.keys():
            msg = f"the layout has no array {min(unknown)!r}; it has {', '.join(layout)}"
            raise TypeError(msg)
        checked, sizes = {}, {}
        for name, field in layout.items():
            array = arrays.get(name)
            if array is None:
                array = np.zeros((0 if field.rows else 1, *field.shape), field.dtype)
            # A copy, because a plan may return one array for every image.
            checked[name] = _checked(name, field, np.array(array))
            if field.sparse:
                checked[name] = _sparse(checked[name].reshape(1, field.size))
            if field.rows:
                sizes[name] = np.array([len(checked[name])])
        return cls(layout, 1, checked, sizes)

    @classmethod
    def joined(cls, layout: Layout, several: Iterable[Parts]) -> Parts:
        """Concatenate the images of several parts.

        Parameters
        ----------
        layout : mapping of str to Field
            The arrays, for an empty sequence of parts.
        several : iterable of Parts
            Parts of this layout.
        """
        parts = [*several]
        arrays: dict[str, NDArray[Any]] = {}
        for name, field in layout.items():
            several_of = [part[name] for part in parts]
            if field.sparse:
                arrays[name] = _sparse_rows(several_of, field.size)
                continue
            nothing = np.zeros((0, *field.shape), field.dtype)
            arrays[name] = np.concatenate([nothing, *several_of])
        rows = [name for name, field in layout.items() if field.rows]
        none = np.zeros(0, np.int64)
        sizes = {name: np.concatenate([none, *(p._sizes[name] for p in parts)]) for name in rows}
        return cls(layout, sum(part.number for part in parts), arrays, sizes)

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def dense(self, name: str) -> NDArray[Any]:
        r"""A sparse array as a dense NumPy array, (N, \*shape).

        Parameters
        ----------
        name : str
            Name of an array.
        """
        array: Any = self[name]
        if self.layout[name].sparse:
            return np.asarray(array.toarray().reshape(self.number, *self.layout[name].shape))
        return np.asarray(array)

    def sizes(self, name: str) -> NDArray[np.int64]:
        """Number of rows of each image.

        Parameters
        ----------
        name : str
            Name of an array of rows.

        Returns
        -------
        ndarray of int64, shape (N,)
        """
        return self._sizes[name]

    def owner(self, name: str) -> NDArray[np.int64]:
        """Index of the image of each row.

        Parameters
        ----------
        name : str
            Name of an array of rows.

        Returns
        -------
        ndarray of int64, shape (M,)
        """
        return np.repeat(np.arange(self.number), self._sizes[name])

    def take(self, indices: Any) -> Parts:
        """Some of the images, in the order of the indices.

        Parameters
        ----------
        indices : array_like of int
            Positions of the images.
        """
        places = np.asarray(indices, np.int64)
        arrays, sizes = {}, {}
        for name, field in self.layout.items():
            chosen = places
            if field.rows:
                sizes[name] = self._sizes[name][places]
                chosen = rows_of(self._sizes[name], places)
            arrays[name] = self[name][chosen]
        return Parts(self.layout, len(places), arrays, sizes)

    @property
    def total(self) -> Parts:
        """All images as one: sums are added, rows concatenated."""
        arrays, sizes = {}, {}
        for name, field in self.layout.items():
            arrays[name] = self[name] if field.rows else _added(name, field, self[name])
            if field.rows:
                sizes[name] = self._sizes[name].sum(keepdims=True)
        return Parts(self.layout, 1, arrays, sizes)

    def __add__(self, other: Parts) -> Parts:
        return Parts.joined(self.layout, [self, other]).total

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parts):
            return NotImplemented
        if self.layout != other.layout or self.number != other.number:
            return False
        pairs = [(self.dense(name), other.dense(name)) for name in self.layout]
        pairs += [(sizes, other._sizes[name]) for name, sizes in self._sizes.items()]
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {self[name].shape}" for name in self.layout)
        return f"<Parts of {self.number}: {shapes}>"

    def summed(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Sum values of the rows over each image.

        Parameters
        ----------
        name : str
            Name of an array of rows.
        values : ndarray, shape (M, ...)
            Values of the rows.

        Returns
        -------
        ndarray, shape (N, ...)
        """
        sums = np.zeros((self.number, *values.shape[1:]), values.dtype)
        np.add.at(sums, self.owner(name), values)
        return sums

    def pack(self) -> list[bytes]:
        """Encode each image as bytes, which :meth:`unpack` reads.

        Each array is its number of rows (for rows), its length in bytes, and its
        numbers: integers as steps and values of the filled cells in LEB128, floats as
        little-endian float64.
        """
        packed: list[list[bytes]] = [[] for _ in range(self.number)]
        for name, field in self.layout.items():
            table: Any = self[name]
            lengths = self._sizes[name].tolist() if field.rows else [1] * self.number
            room = [field.size * length for length in lengths]
            if field.sparse:
                blobs = encode_cells(np.diff(table.indptr), table.indices, table.data)
            elif not len(table):
                blobs = [b""] * self.number
            elif field.floats:
                flat = table.ravel().astype("<f8")
                stops = accumulate(room)
                blobs = [flat[n - m : n].tobytes() for n, m in zip(stops, room, strict=True)]
            else:
                # Numbers of rows begin with 1: none is omitted, so bytes bound the rows.
                blobs = encode_tables(np.array(room), table.ravel(), add_one=field.rows)
            for parts, blob, length in zip(packed, blobs, lengths, strict=True):
                if field.rows:
                    parts.append(_varint(length))
                parts += [_varint(len(blob)), blob]
        return [b"".join(parts) for parts in packed]

    @classmethod
    def unpack(cls, layout: Layout, packed: Sequence[bytes], only: str = "") -> Parts:
        """Decode the result of :meth:`pack`.

        Parameters
        ----------
        layout : mapping of str to Field
            The arrays that were packed.
        packed : sequence of bytes
            One entry per image.
        only : str
            Read only the arrays whose names begin with this, and drop it from the names.

        Raises
        ------
        ValueError
            If the bytes do not hold such arrays.
        """
        places = [0] * len(packed)
        arrays, sizes = {}, {}
        for name, field in layout.items():
            lengths, blobs = [], []
            for i, data in enumerate(packed):
                offset, length = places[i], 1
                if field.rows:
                    length, offset = _read_varint(data, offset)
                size, offset = _read_varint(data, offset)
                places[i] = offset + size
                if places[i] > len(data) or length * field.size > _MOST_NUMBERS:
                    raise _cut_off(name)
                lengths.append(length)
                blobs.append(data[offset : places[i]])
            if name.startswith(only):
                counts = np.array(lengths, dtype=np.int64)
                if field.single and (counts != 1).any():
                    msg = f"{name} must have one row per image"
                    raise ValueError(msg)
                short = name.removeprefix(only)
                arrays[short] = _decoded(short, field, counts, blobs)
                if field.rows:
                    sizes[short] = counts
        if any(offset != len(data) for offset, data in zip(places, packed, strict=True)):
            msg = "there are more counts than its measures define"
            raise ValueError(msg)
        kept = {n.removeprefix(only): f for n, f in layout.items() if n.startswith(only)}
        return cls(kept, len(packed), arrays, sizes)

    def to_dict(self) -> dict[str, Json]:
        """The total as lists by name."""
        total = self.total
        return {
            name: (total.dense(name) if field.sparse else total[name]).tolist()
            for name, field in self.layout.items()
        }

    @classmethod
    def from_dict(cls, layout: Layout, data: Mapping[str, Any]) -> Parts:
        """Read the result of :meth:`to_dict`.

        Parameters
        ----------
        layout : mapping of str to Field
            The arrays.
        data : mapping of str to list
            Lists by name.
        """
        return cls.of(layout, **data)


def rows_of(sizes: NDArray[np.int64], images: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of the rows of some images, of which each has ``sizes`` rows together."""
    chosen = sizes[images]
    shift = (np.cumsum(sizes) - sizes)[images] - np.cumsum(chosen) + chosen
    return np.arange(int(chosen.sum())) + np.repeat(shift, chosen)


def merged_layout(layouts: Mapping[str, Layout]) -> dict[str, Field]:
    """The arrays of several measures as those of one: ``key/name``."""
    return {f"{key}/{name}": f for key, layout in layouts.items() for name, f in layout.items()}


def _checked(name: str, field: Field, array: NDArray[Any]) -> NDArray[Any]:
    """The numbers of one image, (1, *shape), or its rows, (M, *shape)."""
    if array.size and array.dtype.kind not in ("biuf" if field.floats else "biu"):
        expected = "numbers" if field.floats else "integers"
        msg = f"{name} must contain {expected}, not {array.dtype}"
        raise TypeError(msg)
    if (field.single or not field.rows) and array.shape == field.shape:
        array = array[None]
    if not array.size and field.rows:
        array = array.reshape(0 if field.size else len(array), *field.shape)
    if array.shape[1:] != field.shape or (not field.rows and len(array) != 1):
        rows = "(rows, ...)" if field.rows else "one image"
        msg = f"{name} must have shape {field.shape} for {rows}, got {array.shape}"
        raise ValueError(msg)
    if not field.floats and array.size and int(array.min()) < 0:
        msg = f"{name} must not be negative, because counts are added"
        raise ValueError(msg)
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 1 << 63:
        msg = f"{name} must be less than 2^63, got {int(array.max())}"
        raise ValueError(msg)
    if field.floats and not field.rows and not np.isfinite(array).all():
        msg = f"{name} must be finite, because sums are added; use rows for values of cases"
        raise ValueError(msg)
    return array.astype(field.dtype, copy=False)


def _added(name: str, field: Field, array: NDArray[Any]) -> NDArray[Any]:
    """The sum of arrays (N, ...) as one, (1, ...)."""
    if not field.floats and (array.sum(0, dtype=np.float64) >= 2.0**63).any():
        msg = f"the sum of {name} exceeds 2^63"
        raise ValueError(msg)
    if field.sparse:
        table: NDArray[Any] = _sparse(array.sum(0)[None])
        return table
    return np.asarray(array.sum(0, keepdims=True))


def _sparse(rows: NDArray[Any]) -> Any:
    from scipy import sparse  # type: ignore[import-untyped, unused-ignore]

    return sparse.csr_array(rows.astype(np.int64, copy=False))


def _sparse_rows(tables: Sequence[Any], size: int) -> Any:
    from scipy import sparse  # type: ignore[import-untyped, unused-ignore]

    return sparse.vstack([_sparse(np.zeros((0, size))), *tables], format="csr")


def _decoded(
    name: str, field: Field, lengths: NDArray[np.int64], blobs: list[bytes]
) -> NDArray[Any]:
    """The array of so many rows per image; ValueError if the bytes contain something else."""
    if field.sparse and len(blobs) > _DECODED:  # decoding takes many times the room of the result
        starts = range(0, len(blobs), _DECODED)
        parts = [(lengths[i : i + _DECODED], blobs[i : i + _DECODED]) for i in starts]
        joined: NDArray[Any] = _sparse_rows(
            [_decoded(name, field, *part) for part in parts], field.size
        )
        return joined
    room, total = lengths * field.size, int(lengths.sum())
    if not field.size and total > len(lengths):
        raise _cut_off(name)  # bytes do not bound rows without numbers
    if field.floats:
        if [len(blob) for blob in blobs] != (8 * room).tolist():
            raise _cut_off(name)
        flat: NDArray[Any] = np.frombuffer(b"".join(blobs), "<f8").astype(np.float64)
        return flat.reshape(total, *field.shape)
    if field.sparse:
        filled, cells, values = _cells(name, field, room, blobs)
        return _csr(values, cells, filled, field.size)
    if field.rows and (2 * room > [*map(len, blobs)]).any():
        raise _cut_off(name)  # a number takes at least two bytes
    flat = np.zeros(int(room.sum()), np.int64)
    begins, step = np.cumsum(room) - room, max(1, _PART * len(room) // max(len(flat), 1))
    for part in (slice(i, i + step) for i in range(0, len(room), step)):
        filled, cells, values = _cells(name, field, room[part], blobs[part])
        flat[np.repeat(begins[part], filled) + cells] = values - field.rows
    return flat.reshape(total, *field.shape)


def _cells(
    name: str, field: Field, room: NDArray[np.int64], blobs: list[bytes]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Number of filled cells of each image, the cells and their values."""
    filled, cells, values = decode_cells(blobs, _MOST_NUMBERS)
    if field.rows and (filled != room).any():
        raise _cut_off(name)
    if (cells >= np.repeat(room, filled)).any():
        msg = f"a number of {name} is outside its rows"
        raise ValueError(msg)
    return filled, cells, values


def _csr(
    values: NDArray[np.int64], cells: NDArray[np.int64], filled: NDArray[np.int64], width: int
) -> NDArray[Any]:
    """A sparse table from the filled cells of its rows."""
    from scipy import sparse  # type: ignore[import-untyped, unused-ignore]

    stops = np.append(0, np.cumsum(filled))
    table: NDArray[Any] = sparse.csr_array((values, cells, stops), (len(filled), width))
    return table


def _cut_off(name: str) -> ValueError:
    return ValueError(f"{name} is truncated")


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    number = shift = 0
    while offset < len(data) and shift < 63:
        byte = data[offset]
        number |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return number, offset
    msg = "a number of its counts is truncated"
    raise ValueError(msg)


def row_parts(table: Any) -> Iterator[NDArray[Any]]:
    """The rows of a dense or sparse table as dense parts."""
    step = max(1, _PART // max(table.shape[1], 1))
    for start in range(0, max(table.shape[0], 1), step):
        part = table[start : start + step]
        yield part if isinstance(part, np.ndarray) else part.toarray()
