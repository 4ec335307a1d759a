"""Counts of pixels: what every number is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_integer, check_kind, check_several

__all__ = ["ChannelTally", "Counts", "Tally", "check_counts", "counts_array"]


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
        return Counts(self.tp[index], self.fp[index], self.fn[index], self.tn[index])

    def __add__(self, other: object) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        pairs = zip(self._arrays, other._arrays, strict=True)
        return Counts(*(mine + theirs for mine, theirs in pairs))

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
        return Counts(*(x.sum(-1, keepdims=True) for x in self._arrays))

    def summed(self) -> Counts:
        """Sum over all leading axes: a data set from its images."""
        leading = tuple(range(self.tp.ndim - 1))
        return Counts(*(x.sum(leading) for x in self._arrays))

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
        return Counts(*(np.stack(pair, axis=-1) for pair in pairs))


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


def check_counts(counts: object, name: str = "counts") -> None:
    """Refuse what is no :class:`Counts`."""
    wanted = "segiou.Counts, such as cm.counts or run.counts"
    check_kind(name, counts, Counts, wanted)


@dataclass(frozen=True, eq=False)
class Tally:
    """A confusion matrix with what it leaves out: everything that was counted.

    ``matrix.sum() + unassigned.sum() + ignored`` is the number of pixels seen.

    Attributes
    ----------
    matrix : ndarray of int64, shape (..., C, C)
        ``[t, p]`` valid pixels of truth ``t`` predicted ``p``.
    unassigned : ndarray of int64, shape (..., C)
        Valid pixels of each truth class whose prediction names no class.
    ignored : ndarray of int64, shape (...)
        Pixels dropped by their truth value or by a mask; one number stands for all.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the shapes do not fit, or a count is negative.

    Examples
    --------
    >>> tally = Tally(matrix=[[3, 1], [0, 4]], unassigned=[0, 2], ignored=5)
    >>> int(tally.pixels), tally.counts
    (15, Counts(tp=[3 4], fp=[0 1], fn=[1 2], tn=[6 3]))
    """

    matrix: NDArray[np.int64]
    unassigned: NDArray[np.int64]
    ignored: NDArray[np.int64]

    if TYPE_CHECKING:  # lists are taken too; the attributes are arrays

        def __init__(
            self, matrix: ArrayLike, unassigned: ArrayLike, ignored: ArrayLike
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("matrix", "unassigned", "ignored"):
            object.__setattr__(self, name, counts_array(getattr(self, name), name))
        leading, num_classes = self.unassigned.shape[:-1], self.unassigned.shape[-1:]
        if self.matrix.shape != (*leading, *num_classes, *num_classes):
            msg = (
                f"matrix {self.matrix.shape} and unassigned {self.unassigned.shape} do not fit: "
                "they must be (..., C, C) and (..., C)"
            )
            raise ValueError(msg)
        object.__setattr__(self, "ignored", np.broadcast_to(self.ignored, leading).copy())

    @classmethod
    def of_table(cls, table: NDArray[np.int64], ignored: Any = 0) -> Tally:
        """Split a (..., C, C + 1) table whose last column is unassigned."""
        return cls(table[..., :-1], table[..., -1], np.asarray(ignored, dtype=np.int64))

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.unassigned.shape[-1])

    @property
    def counts(self) -> Counts:
        """Counts of each class against the rest."""
        tp = np.diagonal(self.matrix, axis1=-2, axis2=-1)
        fn = self.matrix.sum(-1) + self.unassigned - tp
        fp = self.matrix.sum(-2) - tp
        valid = self.matrix.sum((-2, -1)) + self.unassigned.sum(-1)
        return Counts(tp, fp, fn, valid[..., None] - tp - fp - fn)

    @property
    def valid(self) -> NDArray[np.int64]:
        """Valid pixels: seen and not ignored."""
        return np.asarray(self.matrix.sum((-2, -1)) + self.unassigned.sum(-1))

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
        >>> tally = Tally([[5, 2, 1], [3, 6, 0], [0, 4, 7]], [0, 0, 0], 0)
        >>> tally.group_counts([[0, 1], [1]])
        Counts(tp=[16  6], fp=[4 6], fn=[1 3], tn=[ 7 13])
        """
        check_several("groups", groups, "a sequence of sequences of class indices")
        member = _membership([*groups], self.num_classes)
        matrix, unassigned = self.matrix, self.unassigned
        if grouped_truth_only:
            grouped = member.max(1, initial=0)
            matrix, unassigned = matrix * grouped[:, None], unassigned * grouped
        tp = ((matrix @ member) * member).sum(-2)
        pred = matrix.sum(-2) @ member
        truth = (matrix.sum(-1) + unassigned) @ member
        valid = matrix.sum((-2, -1)) + unassigned.sum(-1)
        return Counts(tp, pred - tp, truth - tp, valid[..., None] - truth - pred + tp)


@dataclass(frozen=True, eq=False)
class ChannelTally:
    """Everything that was counted of overlapping channels, in the terms of a :class:`Tally`.

    No pairs of channels are counted: the matrix is empty. The unit is values,
    one a pixel and channel.

    Attributes
    ----------
    counts : Counts of shape (C,)
    ignored : ndarray of int64, shape ()
        Values dropped by a mask.
    """

    counts: Counts
    ignored: NDArray[np.int64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ignored", counts_array(self.ignored, "ignored"))

    @property
    def matrix(self) -> NDArray[np.int64]:
        """No pairs of channels, (0, 0)."""
        return np.zeros((0, 0), dtype=np.int64)

    @property
    def unassigned(self) -> NDArray[np.int64]:
        """Zeros, (C,): a channel says yes or no, there is nothing else to predict."""
        return np.zeros_like(self.counts.tp)

    @property
    def valid(self) -> NDArray[np.int64]:
        """Valid values."""
        return np.asarray(self.counts.total.sum(-1))

    @property
    def pixels(self) -> NDArray[np.int64]:
        """Values seen, ignored ones included."""
        return self.valid + self.ignored

    def group_counts(
        self,
        groups: Sequence[Sequence[int]],
        *,
        grouped_truth_only: bool = False,
    ) -> NoReturn:
        """Refuse: the union of overlapping channels is not a function of their counts."""
        msg = (
            f"{len(groups)} groups of overlapping channels cannot be scored from the counts of "
            "each channel; unite the masks before they are counted"
        )
        raise ValueError(msg)


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
