"""Masks larger than memory, read window by window.

Any array-like with a shape, an integer dtype and slicing works: zarr and dask
arrays, memory maps, and the views of TIFF, ``.npy`` and ``.nii`` files returned by
:func:`segiou.masks.open_windowed`. Counts add up, so windows give the same integers as the
whole mask.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, read_several
from segiou.masks.raw_mask import MaskError

#: Pixels per window: large enough that the overhead per window is negligible.
WINDOW_PIXELS = 1 << 20


class WindowedMask(Protocol):
    """The interface of a mask that can be counted window by window."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Size along each axis."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the pixels."""

    def __getitem__(self, index: Any, /) -> Any:
        """The window selected by a tuple of slices."""


def window_slices(
    shape: tuple[int, ...], steps: tuple[int, ...] | None = None, pixels: int = WINDOW_PIXELS
) -> Iterator[tuple[slice, ...]]:
    """Yield slices that cover an array exactly once, in windows of about ``pixels`` pixels.

    Parameters
    ----------
    shape : tuple of int
        Height and width, in pixels.
    steps : tuple of int, optional
        Chunk sizes of the array. Windows contain whole chunks along the first axis
        if they fit.
    pixels : int
        Maximum number of pixels per window, unless a single chunk has more.

    Yields
    ------
    tuple of slice

    Examples
    --------
    >>> list(window_slices((5, 4), pixels=8))
    [(slice(0, 2, None), slice(0, 4, None)), (slice(2, 4, None), slice(0, 4, None)),
     (slice(4, 5, None), slice(0, 4, None))]
    """
    shape = tuple(check_integer("a length", n, 0) for n in read_several("shape", shape, "lengths"))
    check_integer("pixels", pixels, 1)
    if steps is not None:
        several = read_several("steps", steps, "a step along each axis")
        steps = tuple(check_integer("a step", step, 1) for step in several)
        if len(steps) != len(shape):
            msg = f"steps {steps} must have one step per axis of shape {shape}"
            raise ValueError(msg)
    sizes = [max(1, length) for length in shape]
    # Cut the leading axes thin enough for the remaining axes to stay whole.
    for axis, length in enumerate(shape):
        rest = math.prod(shape[axis + 1 :])
        thin = max(1, pixels // max(1, rest))
        if steps is not None:
            thin = max(steps[axis], thin - thin % steps[axis])
        sizes[axis] = max(1, min(length, thin))
        if sizes[axis] * rest <= pixels:
            break
        pixels = max(1, pixels // sizes[axis])
    ranges = [range(0, length, size) for length, size in zip(shape, sizes, strict=True)]
    for starts in product(*ranges):
        yield tuple(
            slice(start, min(start + size, length))
            for start, size, length in zip(starts, sizes, shape, strict=True)
        )


def is_chunked(array: Any) -> bool:
    """Whether an array is stored in chunks, as in zarr, dask and h5py.

    Parameters
    ----------
    array : array_like
        Any array.
    """
    return not isinstance(array, np.ndarray) and chunks_of(array) is not None


def chunks_of(mask: Any) -> tuple[int, ...] | None:
    """Chunk sizes of a mask; None if it is not chunked."""
    # zarr has one size per axis, dask the sizes of all chunks.
    chunks = getattr(mask, "chunks", None)
    if not isinstance(chunks, tuple) or len(chunks) != len(mask.shape):
        return None
    return tuple(max(1, max(c) if isinstance(c, tuple) else int(c)) for c in chunks)


class ResizedMask:
    """A mask resized by nearest-neighbour interpolation.

    Parameters
    ----------
    mask : WindowedMask
        The mask.
    shape : tuple of int
        The new size in pixels.
    """

    def __init__(self, mask: WindowedMask, shape: tuple[int, ...]) -> None:
        self._mask = mask
        self.shape = shape
        self.dtype: Any = mask.dtype
        self._nearest = [
            ((2 * np.arange(new, dtype=np.int64) + 1) * old) // (2 * max(1, new))
            for old, new in zip(mask.shape, shape, strict=True)
        ]

    def __getitem__(self, index: tuple[slice, ...]) -> NDArray[Any]:
        if 0 in self.shape:
            sizes = [stop - start for start, stop in limits(index, self.shape)]
            return np.empty(sizes, dtype=self.dtype)
        wanted = [near[part] for near, part in zip(self._nearest, index, strict=True)]
        part = np.asarray(self._mask[tuple(slice(int(w[0]), int(w[-1]) + 1) for w in wanted)])
        for axis, nearest in enumerate(wanted):
            part = part.take(nearest - nearest[0], axis=axis)
        return part


def resized(mask: WindowedMask, shape: tuple[int, ...]) -> NDArray[Any]:
    """A whole mask, resized by nearest-neighbour interpolation."""
    source: WindowedMask = mask if mask.shape == shape else ResizedMask(mask, shape)
    return np.asarray(source[tuple(slice(0, length) for length in shape)])


def limits(index: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Start and stop along each axis of a window."""
    parts = zip(index, shape, strict=True)
    return tuple(part.indices(length)[:2] for part, length in parts)


#: Reads bytes from a start to a stop offset.
Reader = Callable[[int, int], bytes]


def unread(_start: int, _stop: int) -> bytes:
    """The reader of masks whose bytes a library reads."""
    raise NotImplementedError


class RemoteFile(NamedTuple):
    """An open remote file, its size and reader, and its fsspec file system and name."""

    file: Any
    size: int
    read: Reader
    files: Any
    name: str


class FileMask(ABC):
    """A mask that stays in its file; windows are read, not mapped.

    If the file is truncated meanwhile, reading raises an error, whereas a memory
    map would crash the process.

    Parameters
    ----------
    path : str or Path
        The file.
    shape : tuple of int
        Height and width, in pixels.
    dtype : dtype
        Type of the values.
    chunks : tuple of int, optional
        Sizes of the pieces that are stored together.
    read : Reader, optional
        Reads byte ranges; by default from the file.
    """

    def __init__(
        self,
        path: str | Path,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        chunks: tuple[int, ...] | None = None,
        read: Reader | None = None,
    ) -> None:
        self.path: str = str(path)
        self.shape = shape
        self.dtype = dtype
        self.chunks = chunks
        self._closing = ExitStack()
        self._read = read or self._open()

    def _open(self) -> Reader:
        handle = os.open(self.path, os.O_RDONLY)
        self._closing.callback(os.close, handle)
        return lambda start, stop: os.pread(handle, stop - start, start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._closing.close()

    @abstractmethod
    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        """A window."""

    def _bytes(self, start: int, count: int) -> bytes:
        stop = start + count
        parts: list[bytes] = []
        while start < stop:
            parts.append(self._read(start, stop)[: stop - start])
            if not parts[-1]:
                raise MaskError(self.path, f"is truncated: expected at least {stop} bytes")
            start += len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)


class ArrayFile(FileMask):
    """A file with uncompressed values from an offset on, in C or Fortran order.

    ``decoded`` converts stored values to labels.
    """

    def __init__(
        self,
        path: str | Path,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        offset: int,
        *,
        fortran: bool,
        decoded: Callable[[NDArray[Any]], NDArray[Any]] = lambda values: values,
    ) -> None:
        super().__init__(path, shape, dtype, (*shape[:-1], 1) if fortran else None)
        self._offset, self._fortran, self._decoded = offset, fortran, decoded

    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        step = -1 if self._fortran else 1
        window = self._window(index[::step], self.shape[::step])
        return self._decoded(window.transpose() if self._fortran else window)

    def _window(self, index: tuple[slice, ...], shape: tuple[int, ...]) -> NDArray[Any]:
        spans = limits(index, shape)
        out = np.empty([stop - start for start, stop in spans], dtype=self.dtype)
        # From this axis on, the window is contiguous.
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
