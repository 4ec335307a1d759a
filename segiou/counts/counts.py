"""The integers that every number is a function of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._arguments import check_kind

__all__ = ["Counts", "check_counts", "counts_array"]


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
