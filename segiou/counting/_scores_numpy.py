"""Labels from scores in NumPy: the reference, and what serves without the compiled routines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import is_bfloat16

__all__ = ["above_into", "argmax_into"]

#: Scores are decided in blocks of about this many pixels, to stay in cache.
_BLOCK_PIXELS = 1 << 15


def argmax_into(planes: NDArray[Any], labels: NDArray[np.integer[Any]]) -> int:
    """Write the position of the first largest score along the first axis.

    Parameters
    ----------
    planes : ndarray of shape (C, ...)
        Scores of any type and strides.
    labels : ndarray of shape (...), of any integer dtype that holds C - 1
        Written to; of no meaning where a score is NaN.

    Returns
    -------
    int
        Pixels that have a NaN score.
    """
    # np.argmax over a leading axis first makes a transposed copy of all scores;
    # class plane by class plane, block by block, needs only one block.
    if labels.ndim == 0:
        return _argmax_block(planes[:, None], labels[None])
    return sum(_argmax_block(planes[:, *block], labels[block]) for block in _blocks(labels.shape))


def above_into(scores: NDArray[Any], threshold: np.generic, labels: NDArray[np.bool_]) -> int:
    """Write whether each score is above the threshold; gives the number of NaN scores."""
    if labels.ndim == 0:
        return above_into(scores[None], threshold, labels[None])
    nan = 0
    for block in _blocks(labels.shape):
        wide = _widened(scores[block])
        np.greater(wide, threshold, out=labels[block])
        nan += _nan_in(wide)
    return nan


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[int | slice, ...]]:
    """Cut along the first axis, or along the second where a row is too large, and so on."""
    if 0 in shape:
        return
    row_pixels = int(np.prod(shape[1:]))
    if row_pixels > _BLOCK_PIXELS:
        for i in range(shape[0]):
            yield from ((i, *block) for block in _blocks(shape[1:]))
        return
    rows = max(1, _BLOCK_PIXELS // row_pixels)
    for start in range(0, shape[0], rows):
        yield (slice(start, start + rows),)


def _argmax_block(planes: NDArray[Any], labels: NDArray[np.integer[Any]]) -> int:
    best = np.array(_widened(planes[0]))
    labels[...] = 0
    for k in range(1, len(planes)):
        plane = _widened(planes[k])
        # k only grows, so the last plane to beat the best so far has the largest k.
        beaten = np.greater(plane, best).view(np.uint8).astype(labels.dtype, copy=False)
        np.maximum(labels, beaten * labels.dtype.type(k), out=labels)
        np.maximum(best, plane, out=best)
    return _nan_in(best)


def _widened(scores: NDArray[Any]) -> NDArray[Any]:
    """Scores as they are, but those of 16 bits exactly as float32, which is compared faster."""
    if scores.dtype == np.float16:
        return scores.astype(np.float32)
    if not is_bfloat16(scores.dtype):
        return scores
    bits = scores.view(np.uint16).astype(np.uint32)  # the upper half of a float32
    return (bits << np.uint32(16)).view(np.float32)


def _nan_in(scores: NDArray[Any]) -> int:
    return int(np.isnan(scores).sum()) if scores.dtype.kind == "f" else 0
