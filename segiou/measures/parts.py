"""What a measure counted of images: arrays by name that add up, and their one form as bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import Json
from segiou.counting.varints import decode_cells, encode_cells

#: Of one image, more numbers than there can be.
_MOST_NUMBERS = 1 << 40


@dataclass(frozen=True, slots=True)
class Field:
    """One array of a part: of one image ``shape``; rows are put together, others are added."""

    shape: tuple[int, ...]
    rows: bool = False
    floats: bool = False

    @property
    def size(self) -> int:
        """Numbers of an image, or of a row."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[np.float64 | np.int64]:
        """The type of the numbers."""
        return np.dtype(np.float64 if self.floats else np.int64)


Layout = Mapping[str, Field]


class Parts:
    """What was counted of N images: sums (N, …), and rows (M, …) with how many each image has."""

    __slots__ = ("_arrays", "_sizes", "layout", "number")

    def __init__(
        self, layout: Layout, number: int, arrays: Mapping[str, Any], sizes: Mapping[str, Any]
    ) -> None:
        self.layout: dict[str, Field] = dict(layout)
        self.number: int = number
        self._arrays: dict[str, NDArray[Any]] = dict(arrays)
        self._sizes: dict[str, NDArray[np.int64]] = dict(sizes)

    @classmethod
    def of(cls, layout: Layout, **arrays: Any) -> Parts:
        """The part of one image; what is not given is 0, or no rows."""
        found, sizes = {}, {}
        for name, field in layout.items():
            shape = (-1, *field.shape) if field.rows else (1, *field.shape)
            array = np.asarray(arrays.get(name, np.zeros(0 if field.rows else field.shape)))
            found[name] = array.astype(field.dtype, copy=False).reshape(shape)
            if field.rows:
                sizes[name] = np.array([len(found[name])])
        return cls(layout, 1, found, sizes)

    @classmethod
    def joined(cls, layout: Layout, several: Iterable[Parts]) -> Parts:
        """The images of several parts, one after the other."""
        parts = [*several]
        arrays: dict[str, NDArray[Any]] = {}
        for name, field in layout.items():
            none = np.zeros((0, *field.shape), field.dtype)
            arrays[name] = np.concatenate([none, *(part[name] for part in parts)])
        rows = [name for name, field in layout.items() if field.rows]
        none = np.zeros(0, np.int64)
        sizes = {name: np.concatenate([none, *(p._sizes[name] for p in parts)]) for name in rows}
        return cls(layout, sum(part.number for part in parts), arrays, sizes)

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def owner(self, name: str) -> NDArray[np.int64]:
        """The image of each row, (M,)."""
        return np.repeat(np.arange(self.number), self._sizes[name])

    def take(self, indices: Any) -> Parts:
        """Some of the images, in the order of the indices."""
        arrays, sizes = {}, {}
        for name, field in self.layout.items():
            places = np.asarray(indices, np.int64)
            if field.rows:
                sizes[name] = self._sizes[name][places]
                starts = (np.cumsum(self._sizes[name]) - self._sizes[name])[places]
                ends = np.cumsum(sizes[name])
                within = np.arange(int(sizes[name].sum())) - np.repeat(
                    ends - sizes[name], sizes[name]
                )
                places = np.repeat(starts, sizes[name]) + within
            arrays[name] = self[name][places]
        return Parts(self.layout, len(indices), arrays, sizes)

    @property
    def total(self) -> Parts:
        """All images as one: sums are added, rows are put together."""
        arrays, sizes = {}, {}
        for name, field in self.layout.items():
            arrays[name] = self[name] if field.rows else self[name].sum(0, keepdims=True)
            if field.rows:
                sizes[name] = self._sizes[name].sum(keepdims=True)
        return Parts(self.layout, 1, arrays, sizes)

    def __add__(self, other: Parts) -> Parts:
        return Parts.joined(self.layout, [self, other]).total

    def summed(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Sum values of rows (M, …) over each image, (N, …)."""
        found = np.zeros((self.number, *values.shape[1:]), values.dtype)
        np.add.at(found, self.owner(name), values)
        return found

    def pack(self) -> list[bytes]:
        """Each image as bytes: of each array how many bytes, and of integers the filled cells."""
        packed: list[list[bytes]] = [[] for _ in range(self.number)]
        for name, field in self.layout.items():
            array = self[name].reshape(-1, field.size)
            stops = np.cumsum(self._sizes[name] if field.rows else np.ones(self.number, int))
            images = np.split(array, stops[:-1]) if self.number else []
            for parts, image in zip(packed, images, strict=True):
                if field.rows:
                    parts.append(_varint(len(image)))
                flat = image.ravel()
                if field.floats:
                    data = flat.astype("<f8").tobytes()
                else:
                    cells = np.flatnonzero(flat)
                    data = encode_cells(np.array([len(cells)]), cells, flat[cells])[0]
                parts += [_varint(len(data)), data]
        return [b"".join(parts) for parts in packed]

    @classmethod
    def unpack(cls, layout: Layout, packed: Sequence[bytes], only: str = "") -> Parts:
        """Read what :meth:`pack` gave, of the arrays whose names begin with ``only``.

        Raises ValueError where it is not that.
        """
        places = [0] * len(packed)
        arrays, sizes = {}, {}
        for name, field in layout.items():
            lengths, blobs = [], []
            for i, data in enumerate(packed):
                place = places[i]
                length = 1
                if field.rows:
                    length, place = _read_varint(data, place)
                size, place = _read_varint(data, place)
                places[i] = place + size
                if places[i] > len(data) or length * field.size > _MOST_NUMBERS:
                    msg = f"what was counted of {name} is cut off"
                    raise ValueError(msg)
                lengths.append(length)
                blobs.append(data[place : places[i]])
            if not name.startswith(only):
                continue
            counts = np.array(lengths, dtype=np.int64)
            if field.floats:
                flat = np.frombuffer(b"".join(blobs), "<f8").astype(np.float64)
                if any(len(b) != 8 * n * field.size for b, n in zip(blobs, lengths, strict=True)):
                    msg = f"what was measured of {name} is cut off"
                    raise ValueError(msg)
            else:
                filled, cells, values = decode_cells(blobs, _MOST_NUMBERS)
                # A row of zeros is none: a short text must not stand for a huge array.
                if field.rows and (counts > 64 + filled * field.size).any():
                    msg = f"{name} has rows without numbers"
                    raise ValueError(msg)
                room = counts * field.size
                if (cells >= np.repeat(room, filled)).any():
                    msg = f"a number of {name} lies outside its rows"
                    raise ValueError(msg)
                flat = np.zeros(int(room.sum()), np.int64)
                flat[np.repeat(np.cumsum(room) - room, filled) + cells] = values
            arrays[name] = flat.reshape(-1, *field.shape)
            if field.rows:
                sizes[name] = counts
        if any(place != len(data) for place, data in zip(places, packed, strict=True)):
            msg = "more was counted than its measures have"
            raise ValueError(msg)
        kept = {name.removeprefix(only): layout[name] for name in arrays}
        named = ({n.removeprefix(only): a for n, a in d.items()} for d in (arrays, sizes))
        return cls(kept, len(packed), *named)

    def to_dict(self) -> dict[str, Json]:
        """The total as plain lists."""
        return {name: self.total[name].tolist() for name in self.layout}

    @classmethod
    def from_dict(cls, layout: Layout, data: Mapping[str, Any]) -> Parts:
        """Read what :meth:`to_dict` gave."""
        one = {n: v if layout[n].rows else v[0] for n, v in data.items()}
        return cls.of(layout, **one)


def merged_layout(layouts: Mapping[str, Layout]) -> dict[str, Field]:
    """The arrays of several measures as those of one: ``key/name``."""
    return {f"{key}/{name}": f for key, layout in layouts.items() for name, f in layout.items()}


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while place < len(data) and shift < 63:
        byte = data[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place
    msg = "what was measured is cut off"
    raise ValueError(msg)
