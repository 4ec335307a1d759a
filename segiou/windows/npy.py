"""``.npy`` files window by window."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.readers import MaskError
from segiou.windows.files import FileMask

__all__ = ["open_npy"]


def open_npy(path: str | Path, least: int) -> NpyMask | None:
    """A view of a large ``.npy`` file, None of a small one.

    Raises
    ------
    MaskError
        If it is damaged, or does not hold integers.
    """
    try:
        # Mapped for its header only: nothing of the map is ever touched.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, OverflowError) as error:
        raise MaskError(path, f"is a damaged or unsafe .npy file: {error}") from error
    if array.size < least:
        return None
    if array.dtype.kind not in "biu":
        raise MaskError(path, f"holds {array.dtype}; labels must be integers: array.astype(int)")
    return NpyMask(path, array)


class NpyMask(FileMask):
    """A large ``.npy`` file."""

    mode = "npy"
    kind = "NPY"

    def __init__(self, path: str | Path, array: np.memmap[Any, Any]) -> None:
        super().__init__(path, array.shape, array.dtype)
        self._offset = int(array.offset)
        self._fortran = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
        if self._fortran:
            self.chunks = (*self.shape[:-1], 1)

    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        if self._fortran:
            return self._read(index[::-1], self.shape[::-1]).transpose()
        return self._read(index, self.shape)

    def _read(self, index: tuple[slice, ...], shape: tuple[int, ...]) -> NDArray[Any]:
        """Read a window of an array whose last axis runs fastest."""
        spans = [part.indices(length)[:2] for part, length in zip(index, shape, strict=True)]
        out = np.empty([stop - start for start, stop in spans], dtype=self.dtype)
        # From this axis on, what is wanted lies in one piece.
        cut = len(shape) - 1
        while cut > 0 and spans[cut] == (0, shape[cut]):
            cut -= 1
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        for at in product(*(range(*span) for span in spans[:cut])):
            first = sum(i * stride for i, stride in zip(at, strides, strict=False))
            first += spans[cut][0] * strides[cut]
            target = out[tuple(i - span[0] for i, span in zip(at, spans, strict=False))]
            data = self._bytes(self._offset + first * self.dtype.itemsize, target.nbytes)
            target[...] = np.frombuffer(data, dtype=self.dtype).reshape(target.shape)
        return out
