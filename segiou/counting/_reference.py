"""Counting label pairs with NumPy alone: the oracle of the kernel, and what serves without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["count_coded"]

_BLOCK = 1 << 16
_MAX_CODES = 1 << 16


def count_coded(
    truth: NDArray[Any],
    pred: NDArray[Any],
    truth_low: int,
    truth_codes: NDArray[np.uint16],
    pred_low: int,
    pred_codes: NDArray[np.uint16],
    table: NDArray[np.int64],
) -> bool:
    """Add the counts of all label pairs to `table`; see `segiou.counting._backend`."""
    _check_arrays(truth, pred, table)
    _check_codes("truth", truth_codes, table.shape[0])
    _check_codes("pred", pred_codes, table.shape[1])
    meanings = (
        _Meaning(truth.dtype, truth_low, truth_codes, table.shape[0] - 1),
        _Meaning(pred.dtype, pred_low, pred_codes, table.shape[1] - 1),
    )
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
            _count_block(truth_block, pred_block, meanings, table)
    return bool(table[-1].any() or table[:, -1].any())


class _Meaning:
    """What the values of one array stand for."""

    def __init__(
        self, dtype: np.dtype[Any], low: int, codes: NDArray[np.uint16], undeclared: int
    ) -> None:
        lowest, highest = (0, 1) if dtype.kind == "b" else _limits(dtype)
        start = min(max(lowest - low, 0), len(codes))
        stop = min(max(highest - low + 1, start), len(codes))
        # Two's complement, so that one unsigned comparison checks both ends of the range.
        self.first = np.uint64((low + start) % 2**64)
        self.codes = np.append(codes[start:stop], np.uint16(undeclared)).astype(np.intp)
        self.of_bytes: NDArray[np.intp] | None = None
        if dtype.itemsize == 1:
            self.of_bytes = self._look_up(np.arange(256, dtype=np.uint8).view(dtype))

    def codes_of(self, values: NDArray[Any]) -> NDArray[np.intp]:
        if self.of_bytes is None:
            return self._look_up(values)
        found: NDArray[np.intp] = self.of_bytes[values.view(np.uint8)]
        return found

    def _look_up(self, values: NDArray[Any]) -> NDArray[np.intp]:
        if values.dtype.kind == "b":
            values = values.view(np.uint8) != 0
        if values.dtype != np.uint64:
            values = values.astype(np.int64).view(np.uint64)
        outside = np.uint64(len(self.codes) - 1)
        index = np.minimum(values - self.first, outside)
        found: NDArray[np.intp] = self.codes[index.astype(np.intp)]
        return found


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _count_block(
    truth: NDArray[Any],
    pred: NDArray[Any],
    meanings: tuple[_Meaning, _Meaning],
    table: NDArray[np.int64],
) -> None:
    changes = truth[1:] != truth[:-1]
    changes |= pred[1:] != pred[:-1]
    if np.count_nonzero(changes) > len(truth) // 4:
        _add(truth, pred, 1, meanings, table)
    else:
        starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
        lengths = np.diff(starts, append=len(truth))
        _add(truth[starts], pred[starts], lengths, meanings, table)


def _add(
    truth: NDArray[Any],
    pred: NDArray[Any],
    weights: NDArray[np.int64] | int,
    meanings: tuple[_Meaning, _Meaning],
    table: NDArray[np.int64],
) -> None:
    index = meanings[0].codes_of(truth) * table.shape[1] + meanings[1].codes_of(pred)
    if isinstance(weights, int) and table.size <= len(index):
        table += np.bincount(index, minlength=table.size).reshape(table.shape)
    else:
        np.add.at(table.reshape(-1), index, weights)


def _check_arrays(truth: NDArray[Any], pred: NDArray[Any], table: NDArray[np.int64]) -> None:
    for name, array in (("truth", truth), ("pred", pred)):
        if array.dtype.kind not in "bui":
            msg = f"{name} must hold integers or bool, not {array.dtype}"
            raise TypeError(msg)
    if truth.shape != pred.shape:
        msg = f"truth and pred differ in shape: {truth.shape} and {pred.shape}"
        raise ValueError(msg)
    if table.dtype != np.int64 or table.ndim != 2 or not table.flags.carray:
        msg = "table must be a native int64 array of two axes, contiguous and writable"
        raise TypeError(msg)
    if not all(1 <= length <= _MAX_CODES for length in table.shape):
        msg = f"table must be of 1 to {_MAX_CODES} rows and columns, not {table.shape}"
        raise ValueError(msg)


def _check_codes(name: str, codes: NDArray[np.uint16], states: int) -> None:
    if codes.dtype != np.uint16 or codes.ndim != 1:
        msg = f"{name} codes must be one row of native uint16"
        raise TypeError(msg)
    if codes.size and int(codes.max()) >= states:
        msg = f"{name} code {codes.max()} is outside of the table, which has {states}"
        raise ValueError(msg)
