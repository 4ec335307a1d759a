"""The integers that every number is made of: counts per class, and whole confusion matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_integer, check_kind, check_several

__all__ = [
    "LARGEST",
    "Cells",
    "Counts",
    "Tally",
    "add_exactly",
    "check_counts",
    "counts_array",
    "sum_exactly",
]

#: The largest count that int64 holds.
LARGEST = (1 << 63) - 1


@dataclass(frozen=True, eq=False)
class Counts:
    """True and false positives and negatives per class, one class against the rest.

    Attributes
    ----------
    tp, fp, fn, tn : ndarray of int64, shape (..., C)
        Pixels. Leading axes may be images, resamples or anything else.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the shapes differ, or a count is negative or past the range of int64.
    OverflowError
        If TP + FP + FN + TN of a class is.

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

    if TYPE_CHECKING:  # lists are taken too; the attributes are arrays

        def __init__(self, tp: ArrayLike, fp: ArrayLike, fn: ArrayLike, tn: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        for name in ("tp", "fp", "fn", "tn"):
            object.__setattr__(self, name, counts_array(getattr(self, name), name))
        shapes = {name: getattr(self, name).shape for name in ("tp", "fp", "fn", "tn")}
        if len(set(shapes.values())) != 1:
            msg = f"the counts must have one shape, got {shapes}"
            raise ValueError(msg)
        if sum(int(x.max(initial=0)) for x in self._arrays) > LARGEST:
            sum_exactly(np.stack(self._arrays), 0, "tp + fp + fn + tn")

    @classmethod
    def trusted(cls, *arrays: NDArray[np.int64]) -> Counts:
        """Take over TP, FP, FN and TN that are known to be counts of one shape, unchecked."""
        counts = object.__new__(cls)
        for name, array in zip(("tp", "fp", "fn", "tn"), arrays, strict=True):
            object.__setattr__(counts, name, array)
        return counts

    def __repr__(self) -> str:
        return f"Counts(tp={self.tp}, fp={self.fp}, fn={self.fn}, tn={self.tn})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        pairs = zip(self._arrays, other._arrays, strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    __hash__ = None  # type: ignore[assignment]

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
        """Sum over the classes, kept as one class: what micro averages are made of."""
        return Counts(*(x[..., None] for x in self._sums(-1)))

    def summed(self) -> Counts:
        """Sum over all leading axes: a data set from its images."""
        leading = tuple(range(self.tp.ndim - 1))
        return Counts(*self._sums(leading))

    def _sums(self, axis: int | tuple[int, ...]) -> Iterator[NDArray[np.int64]]:
        for name, array in zip(("tp", "fp", "fn", "tn"), self._arrays, strict=True):
            yield sum_exactly(array, axis, name)

    def one_vs_rest(self) -> Counts:
        """Each class and its rest as a labelling of two classes, shape (..., C, 2).

        Kappa, Matthews correlation and pixel accuracy of one class against the
        rest, or of one of several overlapping channels, are those of this.

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
    """Read counts; refuse what is no integer, negative or past int64."""
    array = np.asarray(data)
    if array.dtype.kind not in "iu":
        msg = f"{name} must be integers, got {array.dtype}; ratios are never counts"
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
    """Sum counts over axes; an OverflowError where a sum leaves int64."""
    total = np.asarray(counts.sum(axis))
    if counts.size and int(counts.max()) > LARGEST // counts.size:
        # In two halves, whose sums cannot overflow.
        low = (counts & 0xFFFFFFFF).sum(axis)
        high = (counts >> 32).sum(axis) + (low >> 32)
        _refuse_past_int64(np.asarray(high > LARGEST >> 32), name)
    return total


def add_exactly(mine: NDArray[np.int64], theirs: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    """Add counts; an OverflowError where a sum leaves int64."""
    total = np.asarray(mine + theirs)
    if total.min(initial=0) < 0:  # two counts that are not negative wrap once at most
        _refuse_past_int64(total < 0, name)
    return total


def _refuse_past_int64(wrong: NDArray[np.bool_], name: str) -> None:
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        where = f" at index {place if place[1:] else place[0]}" if place else ""
        msg = f"{name}{where}: more than {LARGEST}, the largest count that 64 bits hold"
        raise OverflowError(msg)


def check_counts(counts: object, name: str = "counts") -> None:
    """Refuse what is no :class:`Counts`."""
    wanted = "segiou.Counts, such as cm.counts or run.counts"
    check_kind(name, counts, Counts, wanted)


class Cells(NamedTuple):
    """A table's cells that are not zero: few, where an image has few of many classes."""

    indices: NDArray[np.int64]
    """Flat indices ``t * (C + 1) + p`` into the (C, C + 1) table, ascending."""
    values: NDArray[np.int64]
    """Pixels of each."""
    ignored: int
    """Pixels dropped."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Everything that was counted: a confusion matrix, and what it leaves out.

    The counts of one pair of masks, of a data set, or of many images along
    leading axes. ``table.sum() + ignored`` is the number of pixels seen.

    Attributes
    ----------
    table : ndarray of int64, shape (..., C, C + 1)
        ``[t, p]`` valid pixels of truth ``t`` predicted ``p``; the last column
        holds those whose prediction names no class.
    ignored : ndarray of int64, shape (...)
        Pixels dropped by their truth value or by a mask; one number stands for all.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the shapes do not fit, or a count is negative.
    OverflowError
        If there are more pixels than int64 holds.

    Examples
    --------
    >>> tally = Tally([[3, 1, 0], [0, 4, 2]], ignored=5)
    >>> int(tally.pixels), tally.counts
    (15, Counts(tp=[3 4], fp=[0 1], fn=[1 2], tn=[6 3]))
    """

    table: NDArray[np.int64]
    ignored: NDArray[np.int64] = 0  # type: ignore[assignment]

    if TYPE_CHECKING:  # lists are taken too; the attributes are arrays

        def __init__(self, table: ArrayLike, ignored: ArrayLike = 0) -> None: ...

    def __post_init__(self) -> None:
        table = counts_array(self.table, "table")
        if table.ndim < 2 or table.shape[-1] != table.shape[-2] + 1:
            msg = f"a table of shape {table.shape} does not fit: it must be (..., C, C + 1)"
            raise ValueError(msg)
        ignored = np.broadcast_to(counts_array(self.ignored, "ignored"), table.shape[:-2]).copy()
        add_exactly(sum_exactly(table, (-2, -1), "pixels"), ignored, "pixels")
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "ignored", ignored)

    @classmethod
    def of_matrix(
        cls, matrix: ArrayLike, unassigned: ArrayLike = 0, ignored: ArrayLike = 0
    ) -> Tally:
        """Put a (..., C, C) matrix and its (..., C) unassigned pixels into one table.

        Examples
        --------
        >>> Tally.of_matrix([[3, 1], [0, 4]], [0, 2]).table.tolist()
        [[3, 1, 0], [0, 4, 2]]
        """
        cells = counts_array(matrix, "matrix")
        column = np.broadcast_to(counts_array(unassigned, "unassigned"), cells.shape[:-1])
        return cls(np.concatenate([cells, column[..., None]], axis=-1), ignored)

    @classmethod
    def trusted(cls, table: NDArray[np.int64], ignored: Any) -> Tally:
        """Take over what was counted here, unchecked: checks cost as much as a small image."""
        tally = object.__new__(cls)
        object.__setattr__(tally, "table", table)
        object.__setattr__(tally, "ignored", np.asarray(ignored, dtype=np.int64))
        return tally

    @property
    def num_classes(self) -> int:
        """C."""
        return int(self.table.shape[-2])

    @property
    def matrix(self) -> NDArray[np.int64]:
        """The confusion matrix, (..., C, C)."""
        return self.table[..., :-1]

    @property
    def unassigned(self) -> NDArray[np.int64]:
        """Valid pixels of each truth class whose prediction names no class, (..., C)."""
        return self.table[..., -1]

    @property
    def cells(self) -> Cells:
        """The cells that are not zero, of one table."""
        flat = self.table.ravel()
        indices = np.flatnonzero(flat)
        return Cells(indices, flat[indices], int(self.ignored))

    @property
    def counts(self) -> Counts:
        """Counts of each class against the rest."""
        tp = np.diagonal(self.matrix, axis1=-2, axis2=-1)
        fn = self.table.sum(-1) - tp
        fp = self.matrix.sum(-2) - tp
        return Counts.trusted(tp, fp, fn, self.valid[..., None] - tp - fp - fn)

    @property
    def valid(self) -> NDArray[np.int64]:
        """Valid pixels: seen and not ignored."""
        return np.asarray(self.table.sum((-2, -1)))

    @property
    def pixels(self) -> NDArray[np.int64]:
        """Pixels seen, ignored ones included."""
        return self.valid + self.ignored

    def group_counts(
        self, groups: Sequence[Sequence[int]], *, grouped_truth_only: bool = False
    ) -> Counts:
        """Counts of unions of classes, each against the rest; unions may overlap.

        Confusion within a group is correct. A prediction of the group is a
        false positive wherever the truth is of no class of the group.

        Parameters
        ----------
        groups : sequence of sequence of int
            Class indices of each of the G groups.
        grouped_truth_only : bool
            Whether to leave out the pixels whose truth is in no group.

        Returns
        -------
        Counts of shape (..., G)

        Raises
        ------
        ValueError
            If there is no such class.

        Examples
        --------
        >>> tally = Tally.of_matrix([[5, 2, 1], [3, 6, 0], [0, 4, 7]])
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


def _membership(groups: Sequence[Sequence[int]], num_classes: int) -> NDArray[np.int64]:
    member = np.zeros((num_classes, len(groups)), dtype=np.int64)
    for g, classes in enumerate(groups):
        check_several(f"group {g}", classes, "a sequence of class indices")
        for index in classes:
            check_integer(f"an index of group {g}", index)
            if not 0 <= index < num_classes:
                msg = f"group {g} names class {index}, but there are 0 to {num_classes - 1}"
                raise ValueError(msg)
            member[index, g] = 1
    return member
