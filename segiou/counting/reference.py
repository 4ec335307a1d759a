"""What the compiled kernels do, in NumPy: the same integers, slower."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import check_labels, check_same_shape, is_bfloat16

_BLOCK = 1 << 16
#: Gives the codes of values.
Finder = Callable[[NDArray[Any]], NDArray[np.intp]]


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
    rows = _finder(truth.dtype, truth_low, truth_codes, table.shape[0] - 1)
    columns = _finder(pred.dtype, pred_low, pred_codes, table.shape[1] - 1)
    blocks = np.nditer(
        [truth, pred],
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_flags=[["readonly"], ["readonly"]],
        op_dtypes=[truth.dtype.newbyteorder("="), pred.dtype.newbyteorder("=")],
        casting="equiv",
        buffersize=_BLOCK,
    )
    for truth_block, pred_block in blocks:
        if truth_block.size:
            _count_block(truth_block, pred_block, rows, columns, table)
    return bool(table[-1].any() or table[:, -1].any())


def _finder(dtype: np.dtype[Any], low: int, codes: NDArray[np.uint16], undeclared: int) -> Finder:
    """What gives the codes of values of this type."""
    limits = np.iinfo(np.uint8 if dtype.kind == "b" else dtype)
    start = min(max(int(limits.min) - low, 0), len(codes))
    stop = min(max(int(limits.max) - low + 1, start), len(codes))
    # Two's complement, so that one unsigned comparison checks both ends of the range.
    first, beyond = np.uint64((low + start) % 2**64), np.uint64(stop - start)
    table = np.append(codes[start:stop], np.uint16(undeclared)).astype(np.intp)

    def look_up(values: NDArray[Any]) -> NDArray[np.intp]:
        if dtype.kind == "b":
            values = values.view(np.uint8) != 0
        if values.dtype != np.uint64:
            values = values.astype(np.int64).view(np.uint64)
        return table[np.minimum(values - first, beyond).astype(np.intp)]

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


#: So many bytes of 0 or 1 add up in a byte.
_BYTE_ROWS = 255


def count_bytes(
    truth: NDArray[Any],
    pred: NDArray[Any],
    outer: int,
    channels: int,
    inner: int,
    totals: NDArray[np.int64],
) -> bool:
    """Add the sums of ``truth & pred``, ``truth`` and ``pred`` to the (3, channels) totals.

    The bytes, in the order (outer, channels, inner), must be 0 or 1, or the
    result is False and the totals are of no use.
    """
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
    # count_nonzero is fast on a contiguous run of bool and slow along an axis.
    runs = bits.view(np.bool_)
    sums = [[np.count_nonzero(run) for run in image] for image in runs]
    per_image: NDArray[np.int64] = np.asarray(sums, dtype=np.int64).reshape(runs.shape[:2])
    return np.asarray(per_image.sum(0))


#: Scores are decided in blocks of about this many pixels, to stay in cache.
_BLOCK_PIXELS = 1 << 15


def decide_into(planes: NDArray[Any], limit: np.generic | None, labels: NDArray[Any]) -> int:
    """Write the first largest score along the first axis, or whether the only one is above a limit.

    Gives the number of pixels with a NaN score, whose labels mean nothing.
    """
    # np.argmax over a leading axis first makes a transposed copy of all scores;
    # class plane by class plane, block by block, needs only one block.
    if labels.ndim == 0:
        return decide_into(planes[:, None], limit, labels[None])
    blocks = _blocks(labels.shape)
    return sum(_decide_block(planes[:, *block], limit, labels[block]) for block in blocks)


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


def _decide_block(planes: NDArray[Any], limit: np.generic | None, labels: NDArray[Any]) -> int:
    if limit is not None:
        scores = _widened(planes[0])
        np.greater(scores, limit, out=labels)
        return _nan_in(scores)
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
