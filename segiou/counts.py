"""The integers that every number is a function of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counts", "Tally"]


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
        If the shapes differ or a count is negative.

    Examples
    --------
    >>> Counts(tp=[3], fp=[1], fn=[0], tn=[4]).pooled().tp
    array([3])
    """

    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    fn: NDArray[np.int64]
    tn: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in ("tp", "fp", "fn", "tn"):
            object.__setattr__(self, name, _counts_array(getattr(self, name), name))
        shapes = {name: getattr(self, name).shape for name in ("tp", "fp", "fn", "tn")}
        if len(set(shapes.values())) != 1:
            msg = f"the counts must have one shape, got {shapes}"
            raise ValueError(msg)

    def __repr__(self) -> str:
        return f"Counts(tp={self.tp}, fp={self.fp}, fn={self.fn}, tn={self.tn})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("tp", "fp", "fn", "tn")
        )

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> Counts:
        """Pick images, resamples or classes."""
        return Counts(self.tp[index], self.fp[index], self.fn[index], self.tn[index])

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
        return Counts(*(x.sum(-1, keepdims=True) for x in (self.tp, self.fp, self.fn, self.tn)))

    def summed(self) -> Counts:
        """Sum over all leading axes: a data set from its images."""
        leading = tuple(range(self.tp.ndim - 1))
        return Counts(*(x.sum(leading) for x in (self.tp, self.fp, self.fn, self.tn)))


def _counts_array(data: Any, name: str) -> NDArray[np.int64]:
    array = np.asarray(data)
    if array.dtype.kind not in "iu":
        msg = f"{name} must be integers, got {array.dtype}; ratios are never counts"
        raise TypeError(msg)
    if array.size and int(array.min()) < 0:
        msg = f"{name} must not be negative, got {int(array.min())}"
        raise ValueError(msg)
    return array.astype(np.int64, copy=False)


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
        Pixels dropped by their truth value or by a mask.
    """

    matrix: NDArray[np.int64]
    unassigned: NDArray[np.int64]
    ignored: NDArray[np.int64]

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

    def merged_classes(self, groups: list[list[int]]) -> Tally:
        """Merge rows and columns: the tally of unions of classes.

        Confusion within a group becomes correct. A class in no group becomes
        unassigned where it was predicted; its truth pixels become ignored.

        Parameters
        ----------
        groups : list of list of int
            Class indices of each group; a class is in one group at most.
        """
        member = np.zeros((self.num_classes, len(groups)), dtype=np.int64)
        for g, classes in enumerate(groups):
            member[classes, g] = 1
        if (member.sum(1) > 1).any():
            msg = f"class {int(np.argmax(member.sum(1) > 1))} is in more than one group"
            raise ValueError(msg)
        rows = np.einsum("...tp,tg->...gp", self.matrix, member)
        outside = rows @ (1 - member.sum(1))
        unassigned = np.einsum("...t,tg->...g", self.unassigned, member) + outside
        matrix = rows @ member
        kept = matrix.sum((-2, -1)) + unassigned.sum(-1)
        return Tally(matrix, unassigned, self.pixels - kept)
