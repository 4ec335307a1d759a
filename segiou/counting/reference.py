"""NumPy reference implementation of the compiled kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import as_float, check_labels, check_same_shape, native_blocks

#: Maps values to codes.
Finder = Callable[[NDArray[Any]], NDArray[Any]]


def count_coded(
    truth: NDArray[Any],
    pred: NDArray[Any],
    truth_low: int,
    truth_codes: NDArray[np.uint16],
    pred_low: int,
    pred_codes: NDArray[np.uint16],
    table: NDArray[np.int64],
) -> bool:
    """Add the counts of all label pairs to `table`; see `segiou.counting.encoding`."""
    check_labels(truth, "truth")
    check_labels(pred, "pred")
    check_same_shape(truth, pred)
    rows = finder(truth.dtype, truth_low, truth_codes.astype(np.intp), table.shape[0] - 1)
    columns = finder(pred.dtype, pred_low, pred_codes.astype(np.intp), table.shape[1] - 1)
    for truth_block, pred_block in native_blocks(truth, pred):
        if truth_block.size:
            _count_block(truth_block, pred_block, rows, columns, table)
    return bool(table[-1].any() or table[:, -1].any())


def values_table(
    dtype: np.dtype[Any], low: int, codes: NDArray[Any], undeclared: int
) -> tuple[int, NDArray[Any]]:
    """First value that this dtype holds, modulo 2^64; codes from it on, last that of all others."""
    limits = np.iinfo(np.uint8 if dtype.kind == "b" else dtype)
    start = min(max(int(limits.min) - low, 0), len(codes))
    stop = min(max(int(limits.max) - low + 1, start), len(codes))
    return (low + start) % 2**64, np.append(codes[start:stop], codes.dtype.type(undeclared))


def finder(dtype: np.dtype[Any], low: int, codes: NDArray[Any], undeclared: int) -> Finder:
    """A function that maps values of this dtype to codes, of the type that the codes have."""
    start, table = values_table(dtype, low, codes, undeclared)
    # Two's complement: one unsigned comparison checks both ends of the range.
    first, beyond = np.uint64(start), np.uint64(len(table) - 1)

    def look_up(values: NDArray[Any]) -> NDArray[Any]:
        if dtype.kind == "b":
            values = values.view(np.uint8) != 0
        index = values.astype(np.int64).view(np.uint64)
        index -= first
        np.minimum(index, beyond, out=index)
        return table.take(index.view(np.int64), mode="clip")  # inside; other modes check it again

    if dtype.itemsize > 1:
        return look_up
    of_bytes = look_up(np.arange(256, dtype=np.uint8).view(dtype))
    return lambda values: of_bytes[values.view(np.uint8)]


def _count_block(
    truth: NDArray[Any],
    pred: NDArray[Any],
    rows: Finder,
    columns: Finder,
    table: NDArray[np.int64],
) -> None:
    changes = truth[1:] != truth[:-1]
    changes |= pred[1:] != pred[:-1]
    are_runs = np.count_nonzero(changes) <= len(truth) // 4
    lengths: NDArray[np.intp] | int = 1
    if are_runs:
        starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
        lengths = np.diff(starts, append=len(truth))
        truth, pred = truth[starts], pred[starts]
    index = rows(truth) * table.shape[1] + columns(pred)
    if not are_runs and table.size <= len(index):
        table += np.bincount(index, minlength=table.size).reshape(table.shape)
    else:
        np.add.at(table.reshape(-1), index, lengths)


#: Number of bytes of 0 or 1 whose sum fits in a byte.
_BYTE_ROWS = 255


def count_bytes(
    truth: NDArray[Any],
    pred: NDArray[Any],
    outer: int,
    channels: int,
    inner: int,
    totals: NDArray[np.int64],
) -> bool:
    """Add sums of truth & pred, truth and pred to totals; False if a byte is neither 0 nor 1."""
    # The bytes have the order (outer, channels, inner).
    t, p = (x.view(np.uint8).reshape(outer, channels, inner) for x in (truth, pred))
    if any(x.size and x.max() > 1 for x in (t, p)):
        return False
    for row, bits in zip(totals, (t & p, t, p), strict=True):
        row += _columns(bits[:, :, 0]) if inner == 1 else _planes(bits)
    return True


def _columns(bits: NDArray[np.uint8]) -> NDArray[np.int64]:
    whole = len(bits) // _BYTE_ROWS * _BYTE_ROWS
    blocks = bits[:whole].reshape(-1, _BYTE_ROWS, bits.shape[1])
    sums = np.add.reduce(blocks, axis=1, dtype=np.uint8).sum(0, dtype=np.int64)
    return np.asarray(sums + bits[whole:].sum(0, dtype=np.int64))


def _planes(bits: NDArray[np.uint8]) -> NDArray[np.int64]:
    # count_nonzero is fast for contiguous bool and slow along an axis.
    runs = bits.view(np.bool_)
    sums = [[np.count_nonzero(run) for run in image] for image in runs]
    per_image: NDArray[np.int64] = np.asarray(sums, dtype=np.int64).reshape(runs.shape[:2])
    return np.asarray(per_image.sum(0))


#: Pixels are read in blocks of about this many, to stay in cache.
_BLOCK_PIXELS = 1 << 15


def decide_into(planes: NDArray[Any], limit: np.generic | None, labels: NDArray[Any]) -> int:
    """Write argmax labels, or whether the only score is above the limit; returns the NaN pixels."""
    # np.argmax over a leading axis first makes a transposed copy of all scores.
    if labels.ndim == 0:
        return decide_into(planes[:, None], limit, labels[None])
    blocks = iter_blocks(labels.shape)
    return sum(_decide_block(planes[:, *block], limit, labels[block]) for block in blocks)


def iter_blocks(
    shape: tuple[int, ...], pixels: int = _BLOCK_PIXELS
) -> Iterator[tuple[int | slice, ...]]:
    """Blocks along the first axis, or along the second if a row is too large, and so on."""
    if not shape:
        yield ()
    if not shape or 0 in shape:
        return
    row_pixels = int(np.prod(shape[1:]))
    if row_pixels > pixels:
        for i in range(shape[0]):
            yield from ((i, *block) for block in iter_blocks(shape[1:], pixels))
        return
    rows = max(1, pixels // row_pixels)
    for start in range(0, shape[0], rows):
        yield (slice(start, start + rows),)


def _decide_block(planes: NDArray[Any], limit: np.generic | None, labels: NDArray[Any]) -> int:
    if limit is not None:
        scores = _widened(planes[0])
        np.greater(scores, limit, out=labels)
        return _nan_in(scores)
    best = np.array(_widened(planes[0]))
    labels[...] = 0
    for k in range(1, len(planes)):
        plane = _widened(planes[k])
        # k increases, so the last plane that beats the best one has the largest k.
        beaten = np.greater(plane, best).view(np.uint8).astype(labels.dtype, copy=False)
        np.maximum(labels, beaten * labels.dtype.type(k), out=labels)
        np.maximum(best, plane, out=best)
    return _nan_in(best)


def _widened(scores: NDArray[Any]) -> NDArray[Any]:
    """Scores with 16 bits converted to float32, which is exact and compared faster."""
    return scores.astype(np.float32) if scores.dtype == np.float16 else as_float(scores)


def _nan_in(scores: NDArray[Any]) -> int:
    return int(np.isnan(scores).sum()) if scores.dtype.kind == "f" else 0
