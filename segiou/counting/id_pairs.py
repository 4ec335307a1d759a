"""Pairs of object ids → the pixels of each pair, from which all object scores are computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, read_several
from segiou._support.optional import fallback, load_part
from segiou.counting.arrays import compiled_view, label_arrays, memory_ordered

_id_pairs = load_part("segiou.counting._id_pairs")

#: Pixels whose runs are sorted at a time.
_PIECE = 1 << 20
#: Up to so many pairs, sorting by two keys is faster than making one of them.
_FEW = 1000
#: Fewer ids are mapped one by one, and ids in a smaller range by a table.
_FEW_IDS, _SMALL_RANGE = 1 << 10, 1 << 16

Ids = NDArray[np.integer[Any] | np.bool_]
Ints = NDArray[np.int64]


def count_id_pairs(
    truth_ids: Any, pred_ids: Any, *, ignore: Iterable[int] = ()
) -> tuple[Ids, Ids, Ints]:
    """Count how many pixels have truth id *i* and prediction id *j*.

    Parameters
    ----------
    truth_ids, pred_ids : array_like of int or bool, equal shapes
        Any ids up to 64 bits, any number of objects.
    ignore : iterable of int
        Truth ids whose pixels are not counted.

    Returns
    -------
    truth_ids, pred_ids : ndarray of int, shape (P,)
        The pairs that occur, in the dtypes of the arguments, sorted by truth
        id, then by prediction id.
    pixels : ndarray of int64, shape (P,)
        Pixels of each pair, at least 1. Memory grows with the number of pairs
        only.

    Raises
    ------
    TypeError
        If an array does not contain integers.
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> truth = [[7, 7, 0], [7, 9, 9]]
    >>> pred = [[1, 1, 0], [2, 2, 2]]
    >>> for found in count_id_pairs(truth, pred):
    ...     print(found)
    [0 7 7 9]
    [0 1 2 2]
    [1 2 1 2]
    """
    in_truth, in_pred, pixels = id_pairs(truth_ids, pred_ids, in_order=True)
    for value in read_several("ignore", ignore, "a sequence of ids"):
        kept = in_truth != check_integer("ignore", value)
        in_truth, in_pred, pixels = in_truth[kept], in_pred[kept], pixels[kept]
    return in_truth, in_pred, pixels


def id_pairs(truth_ids: Any, pred_ids: Any, *, in_order: bool = False) -> tuple[Ids, Ids, Ints]:
    """As :func:`count_id_pairs`, in any order unless it is wanted."""
    lines = _lines(*label_arrays(truth_ids, pred_ids, ("truth_ids", "pred_ids")))
    if _id_pairs is None:
        return fallback("segiou.counting._id_pairs", _sorted_runs)(*lines)
    return _count_runs(*lines, in_order)


def count_run_pairs(
    truth: tuple[Ids, Ids], pred: tuple[Ids, Ids], length: int
) -> tuple[Ids, Ids, Ints]:
    """As :func:`count_id_pairs`, from the first pixel and the id of each run of both sides."""
    runs = (*truth, *pred)
    if _id_pairs is not None and all(each.dtype == np.uint32 for each in runs):
        table = _id_pairs.count_overlaps(*runs, length)
        return _table_pairs(table, truth[1].dtype, pred[1].dtype)
    starts = np.union1d(truth[0], pred[0])
    in_truth, in_pred = (
        ids[np.searchsorted(firsts, starts, "right") - 1] for firsts, ids in (truth, pred)
    )
    return _summed(in_truth, in_pred, np.diff(starts, append=length).astype(np.int64, copy=False))


def count_ids(ids: Ids) -> dict[int, int]:
    """Number of pixels of each id, ascending."""
    present, _, pixels = count_id_pairs(ids, np.zeros_like(ids, bool))
    return dict(zip(map(int, present.tolist()), pixels.tolist(), strict=True))


def _lines(truth: Ids, pred: Ids) -> tuple[Ids, Ids]:
    """Both as lines of native integers in one order: memory order if both agree on it."""
    first, second = (side.ravel() for side in memory_ordered(truth, pred))
    return compiled_view(first), compiled_view(second)


def _count_runs(truth: Ids, pred: Ids, in_order: bool) -> tuple[Ids, Ids, Ints]:
    table = _id_pairs.count_pairs(
        *(truth, truth.itemsize, truth.dtype.kind == "i"),
        *(pred, pred.itemsize, pred.dtype.kind == "i"),
    )
    if table is None:  # very many pairs of ids that span more than 32 bits
        return _sorted_runs(truth, pred)
    if isinstance(table[0], int):  # very many others, and these are the lowest ids
        return _sorted_pairs(truth, pred, table)
    return _table_pairs(table, truth.dtype, pred.dtype, in_order)


def _table_pairs(
    table: tuple[bytes, bool], truth: np.dtype[Any], pred: np.dtype[Any], in_order: bool = True
) -> tuple[Ids, Ids, Ints]:
    """The pairs of a compiled table, whose last row means nothing, as ids of these types."""
    content, is_sorted = table
    rows = np.frombuffer(content, np.uint64).reshape(-1, 3)[:-1]
    in_truth, in_pred = _ids_of_bits(rows[:, 0], truth), _ids_of_bits(rows[:, 1], pred)
    pixels = rows[:, 2].astype(np.int64)
    if is_sorted or not in_order:
        return in_truth, in_pred, pixels
    order = _order(in_truth, in_pred)
    return in_truth[order], in_pred[order], pixels[order]


def _order(*columns: Ids) -> NDArray[np.intp]:
    """Order by the first column, then by the next ones; one sort if rows are many and fit."""
    if len(columns) == 1:
        return columns[0].argsort()
    if len(columns[0]) > _FEW:
        lows = [int(column.min()) for column in columns]
        spans = [int(column.max()) - low + 1 for column, low in zip(columns, lows, strict=True)]
        if math.prod(spans) <= 1 << 64:
            keys = np.zeros(len(columns[0]), np.uint64)
            for column, low, span in zip(columns, lows, spans, strict=True):
                keys *= np.uint64(span % (1 << 64))  # 2**64 only beside spans of 1
                keys += _offsets(column, low)
            return keys.argsort()
    return np.lexsort(columns[::-1])


def _sorted_pairs(truth: Ids, pred: Ids, lows: tuple[int, int]) -> tuple[Ids, Ids, Ints]:
    """Pairs of ids less than 2³² above the lowest, and the pixels of each."""
    keys = _keys(truth, pred, lows)
    keys.sort()
    is_first = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    pixels = np.empty(len(starts), np.int64)
    np.subtract(starts[1:], starts[:-1], out=pixels[:-1])
    pixels[-1] = len(keys) - starts[-1]
    keys = keys[starts]
    in_pred = _ids_of_bits(keys.astype(np.uint32), pred.dtype, lows[1])
    keys >>= np.uint64(32)
    return _ids_of_bits(keys, truth.dtype, lows[0]), in_pred, pixels


def _keys(truth: Ids, pred: Ids, lows: tuple[int, int]) -> NDArray[np.uint64]:
    """Single numbers for such pairs, in the order of the pairs."""
    keys = _offsets(truth, lows[0]).astype(np.uint64)
    keys <<= np.uint64(32)  # in place: fresh memory costs more than the arithmetic
    keys |= _offsets(pred, lows[1])
    return keys


def _offsets(ids: Ids, low: int) -> NDArray[np.unsignedinteger[Any]]:
    """Offsets of ids from the lowest id, which may be given as its bits."""
    bits = ids.view(f"u{ids.itemsize}")
    return bits - bits.dtype.type(low % (1 << 8 * ids.itemsize)) if low else bits


def _ids_of_bits(bits: NDArray[np.unsignedinteger[Any]], dtype: np.dtype[Any], low: int = 0) -> Ids:
    """Ids from their bits, or from how far they are above the lowest."""
    ids = bits.astype(f"u{dtype.itemsize}")
    if low:
        ids += ids.dtype.type(low)
    return ids.view(dtype)


def _sorted_runs(truth: Ids, pred: Ids) -> tuple[Ids, Ids, Ints]:
    """Pairs of ids of any width, and the pixels of each; also without the compiled routine."""
    parts = []
    for start in range(0, len(truth), _PIECE):
        t, p = truth[start : start + _PIECE], pred[start : start + _PIECE]
        changed = (t[1:] != t[:-1]) | (p[1:] != p[:-1])
        starts = np.concatenate([[0], 1 + np.flatnonzero(changed)])
        runs = np.diff(starts, append=len(t))
        parts.append(_summed(t[starts], p[starts], runs))
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _summed(*columns) if parts else (truth, pred, np.zeros(0, np.int64))


def _summed(in_truth: Ids, in_pred: Ids, pixels: Ints) -> tuple[Ids, Ids, Ints]:
    """Pixels of equal pairs added up, sorted by truth and prediction."""
    (truths, t), (preds, p), pixels = add_up((in_truth,), (in_pred,), pixels)
    return truths[0][t], preds[0][p], pixels


#: Distinct keys, each column an array, and the place of each entry among them.
Side = tuple[tuple[NDArray[Any], ...], NDArray[np.intp]]


def add_up(
    in_truth: tuple[Ids, ...], in_pred: tuple[Ids, ...], pixels: Ints
) -> tuple[Side, Side, Ints]:
    """Keys of either side; of each two that share pixels, their places and how many."""
    truth, pred = distinct(*in_truth), distinct(*in_pred)
    columns = max(1, len(pred[0][0]))
    (pairs,), of_pair = distinct(truth[1] * columns + pred[1])
    t, p = np.divmod(pairs, columns)
    return (truth[0], t), (pred[0], p), sums(of_pair, pixels, len(pairs))


def distinct(*columns: NDArray[Any]) -> Side:
    """The distinct rows of columns, sorted by the first column, then by the next ones."""
    order = _order(*columns)
    rows = [column[order] for column in columns]
    is_new = np.ones(len(order), bool)
    np.not_equal(rows[0][1:], rows[0][:-1], out=is_new[1:])
    for row in rows[1:]:
        is_new[1:] |= row[1:] != row[:-1]
    places = np.empty(len(order), np.intp)
    places[order] = is_new.cumsum() - 1
    return tuple(row[is_new] for row in rows), places


def sums(at: Ids, pixels: Ints, length: int) -> Ints:
    """The pixels of each place."""
    totals = np.zeros(length, dtype=np.int64)
    np.add.at(totals, at, pixels)
    return totals


def mapped(ids: Ids, meaning: Mapping[int, int], dtype: Any = np.int64) -> NDArray[Any]:
    """Map each id to its value; other ids become 0."""
    if ids.dtype == dtype == np.uint8:  # several times as fast as a table of NumPy
        table = bytes(meaning.get(number, 0) for number in range(256))
        return np.frombuffer(bytearray(ids).translate(table), np.uint8).reshape(ids.shape)
    if ids.size < _FEW_IDS:
        few = [meaning.get(number, 0) for number in ids.ravel().tolist()]
        return np.array(few, dtype).reshape(ids.shape)
    present = count_id_pairs(ids, np.zeros_like(ids, bool))[0]
    values = np.array([meaning.get(number, 0) for number in present.tolist()], dtype)
    by_table = ids.dtype != np.bool_ and int(present[-1]) - int(present[0]) < _SMALL_RANGE
    lookup = _looked_up if by_table else _searched
    if ids.ndim < 3:
        return lookup(ids, present, values)
    result = np.empty(ids.shape, dtype)
    for plane, target in zip(ids, result, strict=True):  # plane by plane to save memory
        target[...] = lookup(plane, present, values)
    return result


def _searched(ids: Ids, present: Ids, values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values[np.searchsorted(present, ids)])


def _looked_up(ids: Ids, present: Ids, values: NDArray[Any]) -> NDArray[Any]:
    # Differences that exceed a signed type wrap, so they are right when read as unsigned.
    unsigned = np.dtype(f"u{ids.dtype.itemsize}")
    table = np.zeros(int(present[-1]) - int(present[0]) + 1, values.dtype)
    table[(present - present[0]).view(unsigned)] = values
    return np.asarray(table[(ids - present[0]).view(unsigned)])


def id_areas(ids: NDArray[Any], pixels: NDArray[np.int64] | None = None) -> dict[int, int]:
    """Number of pixels of each id, ascending unless each entry represents several pixels."""
    if pixels is not None:
        areas: dict[int, int] = {}
        for number, some in zip(ids.tolist(), pixels.tolist(), strict=True):
            areas[number] = areas.get(number, 0) + some
        return areas
    return count_ids(ids)
