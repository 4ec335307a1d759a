"""IoU (Jaccard index) of label sets: multi-label or binary classification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_kind, read_several
from segiou.counting.arrays import as_array, check_same_shape
from segiou.counting.counts import Counts
from segiou.metrics.overall import average, mean
from segiou.metrics.per_class import iou


@dataclass(frozen=True, eq=False)
class LabelSetCounts:
    """Counts of correct and wrong labels, per class and per sample.

    Attributes
    ----------
    per_class : Counts, shape (C,)
        Counts of samples, each class against the rest.
    per_sample : Counts, shape (N, 1)
        Counts of the labels of each sample.
    class_names : tuple of length C
        Names of the classes; by default their indices.
    """

    per_class: Counts
    per_sample: Counts
    class_names: tuple[Hashable, ...]

    def iou(self) -> NDArray[np.float64]:
        """IoU of each class over the samples, (C,); NaN for an absent class."""
        return iou(self.per_class)

    def macro_iou(self) -> float:
        """Mean IoU over the classes with a defined IoU (`defined_classes` of them)."""
        return float(average(iou, self.per_class, "macro"))

    def micro_iou(self) -> float:
        """IoU of the labels pooled over all samples."""
        return float(average(iou, self.per_class, "micro"))

    def weighted_iou(self) -> float:
        """Mean IoU of the classes, weighted by their number of true samples."""
        return float(average(iou, self.per_class, "weighted"))

    @property
    def defined_classes(self) -> int:
        """Number of classes in truth or prediction, which the macro mean averages."""
        return int(np.count_nonzero(~np.isnan(self.iou())))

    def sample_iou(self, *, empty: float = float("nan")) -> NDArray[np.float64]:
        """IoU of the true and predicted labels of each sample, (N,).

        Parameters
        ----------
        empty : {nan, 0, 1}
            Value of a sample without labels in truth and prediction: undefined (NaN) by default, 1
            to count it as agreement, 0 as scikit-learn does by default.

        Raises
        ------
        ValueError
            If `empty` is a different number.
        """
        if not (empty in (0, 1) or np.isnan(empty)):
            msg = f"empty must be 0, 1 or nan, got {empty!r}"
            raise ValueError(msg)
        values = iou(self.per_sample)[:, 0]
        return np.where(np.isnan(values), empty, values)

    def mean_sample_iou(self, *, empty: float = float("nan")) -> float:
        """Mean of `sample_iou` over the samples where it is defined.

        Parameters
        ----------
        empty : float, default float("nan")
            Value of a sample without labels; see `sample_iou`.
        """
        return float(mean(self.sample_iou(empty=empty)))


def count_indicators(
    truth: ArrayLike, pred: ArrayLike, *, class_names: Sequence[Hashable] | None = None
) -> LabelSetCounts:
    """Count labels given as indicators: 1 if a sample has a class, otherwise 0.

    Parameters
    ----------
    truth, pred : array_like of bool or of the integers 0 and 1, shape (N, C)
        One row per sample; shape (N,) for binary classification.
    class_names : sequence of length C, optional
        Names of the columns.

    Returns
    -------
    LabelSetCounts
        The counts, with methods for each kind of IoU.

    Raises
    ------
    TypeError
        If an array is neither boolean nor integer.
    ValueError
        If a value is neither 0 nor 1, or shapes do not match.

    Examples
    --------
    >>> scores = count_indicators([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]])
    >>> scores.iou()
    array([ 1.,  0., nan])
    >>> scores.micro_iou(), scores.sample_iou(), scores.mean_sample_iou(empty=1)
    (0.5, array([0.5, nan]), 0.75)
    """
    ours, theirs = _indicators(truth, "truth"), _indicators(pred, "pred")
    check_same_shape(ours, theirs)
    names = tuple(range(ours.shape[1])) if class_names is None else _unique(class_names)
    if len(names) != ours.shape[1]:
        msg = f"expected {ours.shape[1]} class names, one per column, got {len(names)}"
        raise ValueError(msg)
    return _count(ours, theirs, names)


def count_label_sets(
    truth: Sequence[Collection[Hashable]],
    pred: Sequence[Collection[Hashable]],
    *,
    class_names: Sequence[Hashable] | None = None,
) -> LabelSetCounts:
    """Count labels given as collections of names, one collection per sample.

    Parameters
    ----------
    truth, pred : sequences of length N of lists, tuples or sets of names
        The labels of each sample. Duplicates within a sample count once.
    class_names : sequence, optional
        All classes, in the order of the results. By default all names present, sorted.

    Returns
    -------
    LabelSetCounts
        The counts, with methods for each kind of IoU.

    Raises
    ------
    TypeError
        If the labels of a sample are not a collection, for example a string.
    ValueError
        If truth and prediction differ in length, or a name is not among `class_names`.

    Examples
    --------
    >>> scores = count_label_sets([["cat", "dog"], ["dog"]], [["cat"], ["dog"]])
    >>> scores.class_names, scores.iou(), scores.macro_iou()
    (('cat', 'dog'), array([1. , 0.5]), 0.75)
    """
    ours, theirs = _names(truth, "truth"), _names(pred, "pred")
    if len(ours) != len(theirs):
        msg = f"truth has {len(ours)} samples but pred has {len(theirs)}"
        raise ValueError(msg)
    if class_names is None:
        occurring: set[Hashable] = set().union(*ours, *theirs)
        class_names = sorted(occurring, key=lambda name: (str(name), type(name).__name__))
    names = _unique(class_names)
    return _count(
        _as_indicators(ours, names, "truth"), _as_indicators(theirs, names, "pred"), names
    )


def _count(
    truth: NDArray[np.bool_], pred: NDArray[np.bool_], names: tuple[Hashable, ...]
) -> LabelSetCounts:
    cells = (truth & pred, ~truth & pred, truth & ~pred, ~(truth | pred))
    per_class = Counts(*(np.count_nonzero(cell, axis=0) for cell in cells))
    per_sample = Counts(*(np.count_nonzero(cell, axis=1)[:, None] for cell in cells))
    return LabelSetCounts(per_class, per_sample, names)


def _indicators(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    array = as_array(values, name)
    if array.size == 0:
        array = array.astype(np.bool_)
    if array.dtype.kind not in "biu":
        msg = f"{name} must contain booleans or 0 and 1, got dtype {array.dtype}"
        raise TypeError(msg)
    if array.ndim not in (1, 2):
        msg = f"{name} must have shape (N, C), or (N,) for one class, got {array.shape}"
        raise ValueError(msg)
    others = np.argwhere((array != 0) & (array != 1))
    if len(others):
        index = tuple(others[0].tolist())
        msg = (
            f"{name} must contain only 0 and 1, found {array[index]} at {index}; "
            "for labels by name or number, use count_label_sets"
        )
        raise ValueError(msg)
    indicators: NDArray[np.bool_] = array.astype(np.bool_)
    return indicators[:, None] if indicators.ndim == 1 else indicators


def _names(samples: Sequence[Collection[Hashable]], side: str) -> list[set[Hashable]]:
    several = read_several(side, samples, "a sequence of samples, each with its labels")
    for index, labels in enumerate(several):
        if isinstance(labels, str | bytes) or not isinstance(labels, Collection | np.ndarray):
            msg = f"the labels of {side} sample {index} must be a list or set, got {labels!r}"
            raise TypeError(msg)
        for label in labels:
            check_kind(f"a label of {side} sample {index}", label, Hashable, "hashable, as text is")
    return [set(labels) for labels in several]


def _unique(names: Sequence[Hashable]) -> tuple[Hashable, ...]:
    names = read_several("class_names", names, "names of classes")
    for name in names:
        check_kind("a class name", name, Hashable, "hashable, such as text")
    if twice := sorted(str(name) for name, count in Counter(names).items() if count > 1):
        msg = f"class names must be unique; duplicates: {', '.join(twice)}"
        raise ValueError(msg)
    return tuple(names)


def _as_indicators(
    samples: list[set[Hashable]], names: tuple[Hashable, ...], side: str
) -> NDArray[np.bool_]:
    columns = {name: column for column, name in enumerate(names)}
    array = np.zeros((len(samples), len(names)), dtype=np.bool_)
    for index, labels in enumerate(samples):
        if unknown := sorted(map(str, labels - columns.keys())):
            msg = f"{side} sample {index} has labels not in class_names: {', '.join(unknown)}"
            raise ValueError(msg)
        array[index, [columns[name] for name in labels]] = True
    return array
