"""Integer counts per class and full confusion matrices, from which every score is computed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_integer, check_kind, check_several
from segiou.counting.arrays import as_array

#: The largest count in int64.
LARGEST = (1 << 63) - 1
#: Assumed if the system does not report its memory.
_USUAL_MEMORY = 1 << 35


@dataclass(frozen=True, eq=False)
class Counts:
    """True and false positives and negatives per class, one class against the rest.

    Attributes
    ----------
    tp, fp, fn, tn : ndarray of int64, shape (..., C)
        Pixels. Leading axes may represent images, resamples or anything else.

    Raises
    ------
    TypeError
        If an array does not contain integers.
    ValueError
        If the shapes differ, or a count is negative or exceeds int64.
    OverflowError
        If TP + FP + FN + TN of a class exceeds int64.

    Examples
    --------
    >>> counts = Counts(tp=[3, 1], fp=[1, 0], fn=[0, 1], tn=[1, 3])
    >>> counts.truth, counts.pooled().tp
    (array([3, 2]), array([4]))
    >>> (counts + counts).tp
    array([6, 2])
    """

    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    fn: NDArray[np.int64]
    tn: NDArray[np.int64]

    if TYPE_CHECKING:  # the arguments may be lists; the attributes are arrays

        def __init__(self, tp: ArrayLike, fp: ArrayLike, fn: ArrayLike, tn: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        self.__dict__.update({name: counts_array(data, name) for name, data in vars(self).items()})
        shapes = {name: array.shape for name, array in vars(self).items()}
        if len(set(shapes.values())) != 1:
            msg = f"tp, fp, fn and tn must have the same shape, got {shapes}"
            raise ValueError(msg)
        if sum(int(x.max(initial=0)) for x in self._arrays) > LARGEST:
            sum_exactly(np.stack(self._arrays), 0, "tp + fp + fn + tn")

    @classmethod
    def trusted(cls, *arrays: NDArray[np.int64]) -> Counts:
        """Build from valid counts of one shape without checks or copies.

        Parameters
        ----------
        *arrays : ndarray of int64
            TP, FP, FN and TN, each of shape (..., C).
        """
        counts = object.__new__(cls)
        counts.__dict__.update(zip(("tp", "fp", "fn", "tn"), arrays, strict=True))
        return counts

    def __repr__(self) -> str:
        return f"Counts(tp={self.tp}, fp={self.fp}, fn={self.fn}, tn={self.tn})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        pairs = zip(self._arrays, other._arrays, strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def __getitem__(self, index: Any) -> Counts:
        """Pick images, resamples or classes."""
        return Counts.trusted(*(np.asarray(x[index]) for x in self._arrays))

    def __add__(self, other: object) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        pairs = zip(("tp", "fp", "fn", "tn"), self._arrays, other._arrays, strict=True)
        return Counts(*(add_exactly(mine, theirs, name) for name, mine, theirs in pairs))

    @property
    def _arrays(self) -> tuple[NDArray[np.int64], ...]:
        return self.tp, self.fp, self.fn, self.tn

    @property
    def truth(self) -> NDArray[np.int64]:
        """Pixels of each class in the truth, TP + FN."""
        return self.tp + self.fn

    @property
    def pred(self) -> NDArray[np.int64]:
        """Pixels of each class in the prediction, TP + FP."""
        return self.tp + self.fp

    @property
    def total(self) -> NDArray[np.int64]:
        """Valid pixels, TP + FP + FN + TN; the same for every class of a label map."""
        return self.tp + self.fp + self.fn + self.tn

    def pooled(self) -> Counts:
        """Sum over the classes, as a single class, from which micro averages are computed."""
        return Counts(*(x[..., None] for x in self._sums(-1)))

    def summed(self) -> Counts:
        """Sum over all leading axes, such as the images of a data set."""
        leading = tuple(range(self.tp.ndim - 1))
        return Counts(*self._sums(leading))

    def _sums(self, axis: int | tuple[int, ...]) -> Iterator[NDArray[np.int64]]:
        for name, array in zip(("tp", "fp", "fn", "tn"), self._arrays, strict=True):
            yield sum_exactly(array, axis, name)

    def one_vs_rest(self) -> Counts:
        """Each class against the rest as a labelling of two classes, shape (..., C, 2).

        Use it for the kappa, Matthews correlation or pixel accuracy of one class
        against the rest, or of one of several overlapping channels.

        Examples
        --------
        >>> from segiou.metrics import pixel_accuracy
        >>> counts = Counts(tp=[1, 0], fp=[1, 0], fn=[0, 2], tn=[8, 8])
        >>> pixel_accuracy(counts.one_vs_rest())
        array([0.9, 0.8])
        """
        tp, fp, fn, tn = self._arrays
        pairs = ((tp, tn), (fp, fn), (fn, fp), (tn, tp))
        return Counts.trusted(*(np.stack(pair, axis=-1) for pair in pairs))


def counts_array(data: Any, name: str) -> NDArray[np.int64]:
    """An array of counts; raises unless they are integers, not negative and within int64."""
    array = as_array(data, name)
    if array.dtype.kind not in "iu":
        msg = f"{name} must be integers, got {array.dtype}"
        raise TypeError(msg)
    if array.size and int(array.min()) < 0:
        msg = f"{name} must not be negative, got {int(array.min())}"
        raise ValueError(msg)
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        msg = f"{name} must be below 2^63, got {int(array.max())}"
        raise ValueError(msg)
    return array.astype(np.int64, copy=False)


def sum_exactly(
    counts: NDArray[np.int64], axis: int | tuple[int, ...], name: str
) -> NDArray[np.int64]:
    """Sum counts over axes; an OverflowError if a sum exceeds int64."""
    total = np.asarray(counts.sum(axis))
    if counts.size and int(counts.max()) > LARGEST // counts.size:
        # In two halves, whose sums cannot overflow.
        low = (counts & 0xFFFFFFFF).sum(axis)
        high = (counts >> 32).sum(axis) + (low >> 32)
        _refuse_past_int64(np.asarray(high > LARGEST >> 32), name)
    return total


def add_exactly(mine: NDArray[np.int64], theirs: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    """Add counts; an OverflowError if a sum exceeds int64."""
    total = np.asarray(mine + theirs)
    if total.min(initial=0) < 0:  # the sum of two non-negative counts wraps at most once
        _refuse_past_int64(total < 0, name)
    return total


def _refuse_past_int64(wrong: NDArray[np.bool_], name: str) -> None:
    if wrong.any():
        index = tuple(np.argwhere(wrong)[0].tolist())
        where = f" at index {index if index[1:] else index[0]}" if index else ""
        msg = f"{name}{where} must not exceed {LARGEST} (int64)"
        raise OverflowError(msg)


def broadcast_counts(data: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Counts in this shape; ValueError if they have another."""
    array = counts_array(data, name)
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        msg = f"{name} must be an integer, or have shape {shape}, got {array.shape}"
        raise ValueError(msg) from error


def check_counts(counts: object, name: str = "counts") -> None:
    """Raise a TypeError unless the argument is :class:`Counts`.

    Parameters
    ----------
    counts : object
        The argument to check.
    name : str, default "counts"
        Its name in the error message.
    """
    wanted = "segiou.Counts, such as cm.counts or run.counts"
    check_kind(name, counts, Counts, wanted)


def check_memory(num_classes: int, tables: int = 1) -> None:
    """Raise a ValueError if tables of all pairs of classes do not fit in memory."""
    memory = _memory()
    needed = tables * 8 * num_classes * (num_classes + 1)
    if needed > memory:
        msg = (
            f"the confusion matrices of {num_classes} classes need {needed / 2**30:.1f} GiB, but "
            f"{memory / 2**30:.1f} GiB of memory fit {isqrt(memory // (8 * tables)) - 1} classes; "
            "declare only the classes that occur"
        )
        raise ValueError(msg)


def _memory() -> int:
    """Bytes of memory that this process may use."""
    try:
        import resource

        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    except (ImportError, AttributeError, ValueError, OSError):
        return _USUAL_MEMORY
    return memory if limit == resource.RLIM_INFINITY else min(memory, limit)


class Cells(NamedTuple):
    """The non-zero cells of a table, which are few if an image has few of many classes."""

    indices: NDArray[np.int64]
    """Flat indices ``t * (C + 1) + p`` into the (C, C + 1) table, ascending."""
    values: NDArray[np.int64]
    """Pixels of each."""
    ignored: int
    """Pixels dropped."""


@dataclass(frozen=True, eq=False)
class ConfusionCounts:
    """A confusion matrix with its unassigned and ignored pixels.

    Holds the counts of one pair of masks, of a data set, or of many images
    along leading axes. ``table.sum() + ignored`` is the number of pixels seen.

    Attributes
    ----------
    table : ndarray of int64, shape (..., C, C + 1)
        ``[t, p]`` is the number of valid pixels of truth ``t`` predicted as
        ``p``; the last column counts those with an undeclared prediction.
    ignored : ndarray of int64, shape (...)
        Pixels dropped by their truth value or by a mask; a scalar is broadcast.

    Raises
    ------
    TypeError
        If an array does not contain integers.
    ValueError
        If the shapes do not fit, or a count is negative.
    OverflowError
        If the number of pixels exceeds int64.

    Examples
    --------
    >>> tally = ConfusionCounts([[3, 1, 0], [0, 4, 2]], ignored=5)
    >>> int(tally.pixels), tally.counts
    (15, Counts(tp=[3 4], fp=[0 1], fn=[1 2], tn=[6 3]))
    """

    table: NDArray[np.int64]
    ignored: NDArray[np.int64] = 0  # type: ignore[assignment]

    if TYPE_CHECKING:  # the arguments may be lists; the attributes are arrays

        def __init__(self, table: ArrayLike, ignored: ArrayLike = 0) -> None: ...

    def __post_init__(self) -> None:
        table = counts_array(self.table, "table")
        if table.ndim < 2 or table.shape[-1] != table.shape[-2] + 1:
            msg = f"table must have shape (..., C, C + 1), got {table.shape}"
            raise ValueError(msg)
        ignored = broadcast_counts(self.ignored, "ignored", table.shape[:-2]).copy()
        add_exactly(sum_exactly(table, (-2, -1), "pixels"), ignored, "pixels")
        self.__dict__.update({"table": table, "ignored": ignored})

    @classmethod
    def of_matrix(
        cls, matrix: ArrayLike, unassigned: ArrayLike = 0, ignored: ArrayLike = 0
    ) -> ConfusionCounts:
        """Build from a confusion matrix and its unassigned pixels.

        Parameters
        ----------
        matrix : array_like of int, shape (..., C, C)
            Counts, truth in rows.
        unassigned : array_like of int, shape (..., C), default 0
            Valid pixels of each truth class with an undeclared prediction.
        ignored : array_like of int, shape (...), default 0
            Ignored pixels.

        Examples
        --------
        >>> ConfusionCounts.of_matrix([[3, 1], [0, 4]], [0, 2]).table.tolist()
        [[3, 1, 0], [0, 4, 2]]
        """
        cells = counts_array(matrix, "matrix")
        if cells.ndim < 2 or cells.shape[-1] != cells.shape[-2]:
            msg = f"matrix must have shape (..., C, C), got {cells.shape}"
            raise ValueError(msg)
        column = broadcast_counts(unassigned, "unassigned", cells.shape[:-1])
        return cls(np.concatenate([cells, column[..., None]], axis=-1), ignored)

    @classmethod
    def trusted(cls, table: NDArray[np.int64], ignored: Any) -> ConfusionCounts:
        """Build from valid counts without checks, which take as long as a small image.

        Parameters
        ----------
        table : ndarray of int64, shape (..., C, C + 1)
            Counts, unassigned pixels last.
        ignored : array_like of int
            Ignored pixels.
        """
        tally = object.__new__(cls)
        tally.__dict__.update({"table": table, "ignored": np.asarray(ignored, dtype=np.int64)})
        return tally

    @cached_property
    def num_classes(self) -> int:
        """Number of classes, C."""
        return int(self.table.shape[-2])

    @property
    def matrix(self) -> NDArray[np.int64]:
        """The confusion matrix, (..., C, C)."""
        return self.table[..., :-1]

    @property
    def unassigned(self) -> NDArray[np.int64]:
        """Valid pixels of each truth class with an undeclared prediction, (..., C)."""
        return self.table[..., -1]

    @cached_property
    def cells(self) -> Cells:
        """The non-zero cells of a single table."""
        flat = self.table.ravel()
        (indices,) = flat.nonzero()
        return Cells(indices, flat[indices], int(self.ignored))

    @property
    def counts(self) -> Counts:
        """Counts of each class against the rest."""
        tp = self.table.diagonal(axis1=-2, axis2=-1).copy()
        rows, columns = np.add.reduce(self.table, -1), np.add.reduce(self.table, -2)
        fn, fp = rows - tp, columns[..., :-1] - tp
        return Counts.trusted(tp, fp, fn, rows.sum(-1, keepdims=True) - rows - fp)

    @property
    def valid(self) -> NDArray[np.int64]:
        """Valid pixels: seen and not ignored."""
        return np.asarray(self.table.sum((-2, -1)))

    @property
    def pixels(self) -> NDArray[np.int64]:
        """Pixels counted, including ignored ones."""
        return self.valid + self.ignored

    def group_counts(
        self, groups: Sequence[Sequence[int]], *, grouped_truth_only: bool = False
    ) -> Counts:
        """Counts of groups of classes, each against the rest, (..., G); groups may overlap.

        Confusion within a group is correct. A prediction of the group is a
        false positive if the truth is a class outside the group.

        Parameters
        ----------
        groups : sequence of sequence of int
            Class indices of each of the G groups.
        grouped_truth_only : bool
            Whether to drop the pixels whose truth is in none of the groups.

        Raises
        ------
        ValueError
            If an index is not a class.

        Examples
        --------
        >>> tally = ConfusionCounts.of_matrix([[5, 2, 1], [3, 6, 0], [0, 4, 7]])
        >>> tally.group_counts([[0, 1], [1]])
        Counts(tp=[16  6], fp=[4 6], fn=[1 3], tn=[ 7 13])
        """
        check_several("groups", groups, "a sequence of sequences of class indices")
        member = _membership([*groups], self.num_classes)
        table = self.table * member.max(1, initial=0)[:, None] if grouped_truth_only else self.table
        matrix = table[..., :-1]
        tp = ((matrix @ member) * member).sum(-2)
        pred = matrix.sum(-2) @ member
        truth = table.sum(-1) @ member
        valid = table.sum((-2, -1))[..., None]
        return Counts.trusted(tp, pred - tp, truth - tp, valid - truth - pred + tp)


class SparseConfusionCounts(ConfusionCounts):
    """Confusion counts that store only non-zero cells; the (C, C + 1) table is built on demand."""

    def __init__(self, num_classes: int, cells: Cells) -> None:
        self.__dict__ |= {
            "num_classes": num_classes,
            "cells": cells,
            "ignored": np.asarray(cells.ignored, dtype=np.int64),
        }

    @classmethod
    def summed(cls, num_classes: int, parts: Iterable[Cells]) -> SparseConfusionCounts:
        """Sum cells, in any order and with repeats; an OverflowError if the sum exceeds int64."""
        none: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        indices, values, ignored = none, none, 0
        size = num_classes * (num_classes + 1)
        for part in parts:
            indices = np.concatenate([indices, part.indices])
            indices, values = _merged(indices, np.concatenate([values, part.values]), size)
            ignored += part.ignored
        pixels = sum_exactly(values, 0, "pixels")
        _refuse_past_int64(np.asarray(int(pixels) + ignored > LARGEST), "pixels")
        return cls(num_classes, Cells(indices, values, ignored))

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """All cells; a ValueError if they do not fit in memory."""
        check_memory(self.num_classes)
        table = np.zeros(self.num_classes * (self.num_classes + 1), dtype=np.int64)
        table[self.cells.indices] = self.cells.values
        return table.reshape(self.num_classes, self.num_classes + 1)

    @cached_property
    def unassigned(self) -> NDArray[np.int64]:
        """Valid pixels of each truth class with an undeclared prediction, (C,)."""
        truth, pred = np.divmod(self.cells.indices, self.num_classes + 1)
        missed = np.zeros(self.num_classes, dtype=np.int64)
        missed[truth[pred == self.num_classes]] = self.cells.values[pred == self.num_classes]
        return missed

    @cached_property
    def counts(self) -> Counts:
        """Counts of each class against the rest."""
        sizes = np.array([len(self.cells.indices)])
        return counts_of_cells(sizes, *self.cells[:2], self.num_classes)[0]

    @property
    def valid(self) -> NDArray[np.int64]:
        """Valid pixels: seen and not ignored."""
        return np.asarray(self.cells.values.sum())

    def group_counts(
        self, groups: Sequence[Sequence[int]], *, grouped_truth_only: bool = False
    ) -> Counts:
        """As for a table, from the cells alone."""
        check_several("groups", groups, "a sequence of sequences of class indices")
        sizes, (indices, values, _) = np.array([len(self.cells.indices)]), self.cells
        counts = group_counts_of_cells(
            *(sizes, indices, values, [*groups], self.num_classes),
            grouped_truth_only=grouped_truth_only,
        )
        return counts[0]


def counts_of_cells(
    sizes: NDArray[np.int64],
    cells: NDArray[np.int64],
    values: NDArray[np.int64],
    num_classes: int,
) -> Counts:
    """Counts (N, C) of N tables that have ``sizes`` non-zero cells each."""
    num = len(sizes)
    owner = np.repeat(np.arange(num) * num_classes, sizes)
    truth, pred = np.divmod(cells, num_classes + 1)

    def summed(classes: NDArray[np.int64], chosen: NDArray[np.bool_] | slice) -> Any:
        index = owner[chosen] + classes[chosen]
        return _sums(index, values[chosen], num * num_classes).reshape(num, num_classes)

    rows = summed(truth, slice(None))
    tp = summed(truth, truth == pred)
    fp = summed(pred, pred < num_classes) - tp
    fn = rows - tp
    return Counts.trusted(tp, fp, fn, rows.sum(1, keepdims=True) - tp - fp - fn)


def group_counts_of_cells(
    sizes: NDArray[np.int64],
    cells: NDArray[np.int64],
    values: NDArray[np.int64],
    groups: Sequence[Sequence[int]],
    num_classes: int,
    *,
    grouped_truth_only: bool = False,
) -> Counts:
    """Counts (N, G) of groups of classes in N such tables, each against the rest."""
    member = _membership(groups, num_classes) > 0
    num, owner = len(sizes), np.repeat(np.arange(len(sizes)), sizes)
    truth, pred = np.divmod(cells, num_classes + 1)
    if grouped_truth_only:
        kept = np.asarray(member.any(1))[truth]
        owner, truth, pred, values = owner[kept], truth[kept], pred[kept], values[kept]
    inside = np.vstack([member, np.zeros(len(groups), bool)])  # undeclared is in none
    counts = np.zeros((3, num, len(groups)), np.int64)
    for g, in_group in enumerate(inside.T):
        in_truth, in_pred = in_group[truth], in_group[pred]
        for array, kept in zip(counts, (in_truth & in_pred, in_truth, in_pred), strict=True):
            array[:, g] = _sums(owner[kept], values[kept], num)
    (tp, of_truth, of_pred), total = counts, _sums(owner, values, num)[:, None]
    return Counts.trusted(tp, of_pred - tp, of_truth - tp, total - of_truth - of_pred + tp)


def _merged(
    indices: NDArray[np.int64], values: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct cells in ascending order, and the sum of each."""
    if size > 8 * len(indices):  # a full table would mostly be empty
        filled, inverse = np.unique(indices, return_inverse=True)
        return filled, _sums(inverse, values, len(filled))
    sums = _sums(indices, values, size)
    filled = np.flatnonzero(sums)
    return filled, sums[filled]


def _sums(index: NDArray[np.int64], values: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    # bincount adds in float64, which is exact for sums below 2^53.
    if len(values) == 0 or int(values.max()) < (1 << 53) // len(values):
        return np.bincount(index, values, size).astype(np.int64)
    sum_exactly(values, 0, "the pixels of the images")  # bounds every sum below
    out = np.zeros(size, dtype=np.int64)
    np.add.at(out, index, values)
    return out


def _membership(groups: Sequence[Sequence[int]], num_classes: int) -> NDArray[np.int64]:
    member = np.zeros((num_classes, len(groups)), dtype=np.int64)
    for g, classes in enumerate(groups):
        check_several(f"group {g}", classes, "a sequence of class indices")
        for index in classes:
            check_integer(f"an index of group {g}", index)
            if not 0 <= index < num_classes:
                msg = f"group {g} has class index {index}; indices are 0 to {num_classes - 1}"
                raise ValueError(msg)
            member[index, g] = 1
    return member
