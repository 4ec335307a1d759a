"""Masks larger than memory, counted window by window.

Anything with a shape, an integer dtype and slices is enough: zarr and dask
arrays, memory maps, and the views of tiled or striped TIFF and of ``.npy``
files that :func:`segiou.windows.open_big` gives. Counts add up, so that windows
give the same integers as the whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from segiou.counting import Encoding, PairCount, UndeclaredValuesError

__all__ = ["BigMask", "ResizedMask", "count_windows", "is_lazy", "window_slices"]

#: Pixels of a window: large enough that steps between cost nothing.
_WINDOW_PIXELS = 1 << 20


class BigMask(Protocol):
    """What a mask must have to be counted window by window."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its size along each axis."""

    @property
    def dtype(self) -> Any:
        """What its pixels are."""

    def __getitem__(self, index: Any, /) -> Any:
        """A part, by a tuple of slices."""


def window_slices(
    shape: tuple[int, ...], steps: tuple[int, ...] | None = None, pixels: int = _WINDOW_PIXELS
) -> Iterator[tuple[slice, ...]]:
    """Slices that cover an array once, in windows of about so many pixels.

    Parameters
    ----------
    shape : tuple of int
    steps : tuple of int, optional
        Sizes of the chunks it is stored in. Windows are made of whole chunks
        along the first axis, as far as that is not too much at once.
    pixels : int
        How many pixels a window has at most, unless a single chunk has more.

    Examples
    --------
    >>> list(window_slices((5, 4), pixels=8))
    [(slice(0, 2, None), slice(0, 4, None)), (slice(2, 4, None), slice(0, 4, None)),
     (slice(4, 5, None), slice(0, 4, None))]
    """
    sizes = [max(1, length) for length in shape]
    # From the first axis on, cut as thin as it takes for the rest to be whole.
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


def count_windows(
    encoding: Encoding,
    truth: BigMask,
    pred: BigMask,
    *,
    pixels: int = _WINDOW_PIXELS,
    decoded: tuple[Callable[[Any], Any], Callable[[Any], Any]] = (np.asarray, np.asarray),
) -> PairCount:
    """Count a pair of masks without ever holding them whole.

    Parameters
    ----------
    encoding : Encoding
        What values mean, as :meth:`segiou.classes.ClassOptions.encoding` gives.
    truth, pred : array-like with shape, dtype and slices, equal shapes
        zarr and dask arrays, memory maps, :class:`BigMask`.
    pixels : int
        Pixels of a window; memory is a few bytes times that.
    decoded : pair of callables
        How a window of either side becomes an array of labels.

    Raises
    ------
    ValueError
        If the shapes differ.
    UndeclaredValuesError
        As :meth:`segiou.counting.Encoding.count`, with the values of the whole.

    Examples
    --------
    >>> from segiou.classes import ClassOptions
    >>> truth = np.zeros((100, 100), dtype=np.uint8)
    >>> count_windows(ClassOptions.of(2).encoding(), truth, truth, pixels=1000).table.tolist()
    [[10000, 0, 0], [0, 0, 0]]
    """
    if truth.shape != pred.shape:
        msg = f"truth has shape {truth.shape} but pred has {pred.shape}; they must be equal"
        raise ValueError(msg)
    table = np.zeros((encoding.num_classes, encoding.num_classes + 1), dtype=np.int64)
    ignored = 0
    undeclared: dict[str, Counter[int]] = {"truth": Counter(), "pred": Counter()}
    for window in window_slices(tuple(truth.shape), _steps(truth, pred), pixels):
        try:
            count = encoding.count(decoded[0](truth[window]), decoded[1](pred[window]))
        except UndeclaredValuesError as error:
            undeclared[error.side].update(error.values)
            continue
        table += count.table
        ignored += count.ignored
    for side, values in undeclared.items():
        if values:
            raise UndeclaredValuesError(side, values)
    return PairCount(table, ignored)


def is_lazy(array: Any) -> bool:
    """Whether an array is stored in chunks, as those of zarr, dask and h5py are."""
    return not isinstance(array, np.ndarray) and _chunks(array) is not None


def _steps(truth: BigMask, pred: BigMask) -> tuple[int, ...] | None:
    """Chunks of both; the larger where they differ, so that few are read twice."""
    found = [steps for steps in (_chunks(truth), _chunks(pred)) if steps is not None]
    return tuple(max(sizes) for sizes in zip(*found, strict=True)) if found else None


def _chunks(mask: Any) -> tuple[int, ...] | None:
    # zarr tells one size an axis, dask the sizes of all chunks.
    chunks = getattr(mask, "chunks", None)
    if not isinstance(chunks, tuple) or len(chunks) != len(mask.shape):
        return None
    return tuple(max(1, max(c) if isinstance(c, tuple) else int(c)) for c in chunks)


class ResizedMask:
    """A mask seen at another size, each pixel the nearest of the mask."""

    def __init__(self, mask: BigMask, shape: tuple[int, ...]) -> None:
        self._mask = mask
        self.shape = shape
        self.dtype = mask.dtype
        self._nearest = [
            ((2 * np.arange(new, dtype=np.int64) + 1) * old) // (2 * max(1, new))
            for old, new in zip(mask.shape, shape, strict=True)
        ]

    def __getitem__(self, index: tuple[slice, ...]) -> NDArray[Any]:
        if 0 in self.shape:
            return np.empty(
                [len(range(*part.indices(n))) for part, n in zip(index, self.shape, strict=True)],
                dtype=self.dtype,
            )
        wanted = [near[part] for near, part in zip(self._nearest, index, strict=True)]
        part = np.asarray(self._mask[tuple(slice(int(w[0]), int(w[-1]) + 1) for w in wanted)])
        for axis, nearest in enumerate(wanted):
            part = part.take(nearest - nearest[0], axis=axis)
        return part
