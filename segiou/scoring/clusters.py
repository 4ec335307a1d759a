"""Predictions whose values are cluster numbers: the class of each, matched over all images.

Unsupervised models number their clusters arbitrarily. The pixels of each class and cluster are
counted over the whole data set, and each cluster is assigned a class. Pairs are then scored as if
these values had been passed as labels of the predictions, so every measure and output has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from segiou._support.arguments import check_choice
from segiou._support.numbers import count, percent
from segiou._support.text import called, listed, plural
from segiou.counting.counts import counts_array
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelClass, LabelSet
from segiou.masks.reading import MATCHES, Match
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.measure import Measure
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Plan
from segiou.measures.score import Score

#: Most clusters; more values than these are scores or ids of objects.
_MOST = 1 << 16
#: Largest cluster number, which floats hold exactly.
_LARGEST = 1 << 53
#: Values that are counted in a table instead of being sorted.
_TABLE = 1 << 22
#: Classes and clusters that the text of a match names.
_NAMED = 40

Ints = NDArray[np.int64]


def match_clusters(matrix: ArrayLike, how: Match = "hungarian") -> NDArray[np.intp]:
    """Match clusters to classes by their numbers of common pixels.

    Parameters
    ----------
    matrix : array_like of int, shape (C, K)
        Pixels by true class and cluster, of the whole data set.
    how : {"hungarian", "majority"}
        ``"hungarian"`` matches one to one with the most correct pixels (Hungarian algorithm).
        ``"majority"`` assigns to each cluster the class with which it shares most pixels, the
        first one in ties.

    Returns
    -------
    ndarray of int, shape (K,)
        Index of the class; -1 for clusters that are not matched, because there are more clusters
        than classes or they have no pixel.

    Raises
    ------
    TypeError
        If the matrix does not contain integers.
    ValueError
        If it is not a matrix, a number is negative, or ``how`` is unknown.

    Notes
    -----
    Ties between matches are resolved by SciPy's ``linear_sum_assignment``, as in the code of
    STEGO. If there are fewer classes than clusters, every class has a cluster, even if they
    share no pixel.

    References
    ----------
    X. Ji et al., Invariant information clustering (IIC), ICCV 2019; J. H. Cho et al., PiCIE,
    CVPR 2021; M. Hamilton et al., STEGO, ICLR 2022.

    Examples
    --------
    >>> pixels = [[0, 9, 1], [8, 1, 2]]
    >>> match_clusters(pixels), match_clusters(pixels, "majority")
    (array([ 1,  0, -1]), array([1, 0, 1]))
    """
    check_choice("how", how, MATCHES)
    table = counts_array(matrix, "matrix")
    if table.ndim != 2:
        msg = f"matrix must have shape (classes, clusters), got {table.shape}"
        raise ValueError(msg)
    classes = np.full(table.shape[1], -1)
    filled = np.flatnonzero(table.any(0))
    if how == "majority":
        classes[filled] = table[:, filled].argmax(0) if len(table) else -1
        return classes
    # SciPy is slow to import.
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped, unused-ignore]

    # With clusters as rows, ties are resolved as in STEGO.
    columns, rows = linear_sum_assignment(table[:, filled].T, maximize=True)
    classes[filled[columns]] = rows
    return classes


@dataclass(frozen=True)
class ClusterOptions(Measure):
    """Pixels of each class and value of the predictions."""

    key: ClassVar[str] = "clusters"

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return ClusterPlan(self, classes, masks)


@dataclass(frozen=True)
class ClusterPlan(Plan):
    """Plan that counts clusters; it has no scores."""

    @property
    def layout(self) -> Layout:
        """Class, cluster and number of pixels."""
        return {"overlaps": Field((3,), rows=True, floats=True)}  # clusters may be negative

    def count(self, pair: MaskPair) -> Parts:
        """Count the valid pixels of one image."""
        truth, number = pair.codes[0], self.classes.num_classes
        valid = truth < number
        return Parts.of(self.layout, overlaps=_overlaps(truth[valid], pair.pred[valid]))

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """No scores."""
        return {}


def _overlaps(truth: NDArray[Any], clusters: NDArray[Any]) -> Ints:
    """Rows of class, cluster and pixels."""
    if not truth.size:
        return np.zeros((0, 3), np.int64)
    low, high = int(clusters.min()), int(clusters.max())
    if max(-low, high) > _LARGEST:
        msg = f"cluster number {low if -low > high else high} is not within ±2^53"
        raise ValueError(msg)
    width = high - low + 1
    if width * (int(truth.max()) + 1) <= _TABLE:
        values, places = np.arange(low, high + 1), clusters.astype(np.int64) - low
    else:
        values, places = np.unique(clusters, return_inverse=True)
        width = len(values)
    pixels = np.bincount(truth.astype(np.int64) * width + places)
    at = np.flatnonzero(pixels)
    return np.stack([at // width, values[at % width].astype(np.int64), pixels[at]], axis=-1)


@dataclass(frozen=True)
class Clusters:
    """The class of each cluster of a data set."""

    how: Match
    classes: ClassOptions
    values: Ints
    table: Ints
    images: int

    @classmethod
    def of(
        cls,
        how: Match,
        classes: ClassOptions,
        parts: Parts,
        images: int,
        nodata: int | None = None,
    ) -> Clusters:
        """Match counted overlaps; ValueError without valid pixels, or with many values."""
        rows = parts["overlaps"].astype(np.int64)
        rows = rows if nodata is None else rows[rows[:, 1] != nodata]
        values, places = np.unique(rows[:, 1], return_inverse=True)
        if not len(values) or len(values) > _MOST:
            msg = f"predictions have {count(len(values))} values on valid pixels; "
            msg += "expected 1 or more clusters" if not len(values) else "expected cluster numbers"
            msg = f"match={how!r} (--match {how}): {msg}"
            raise ValueError(msg)
        table = np.zeros((classes.num_classes, len(values)), np.int64)
        np.add.at(table, (rows[:, 0], places.reshape(-1)), rows[:, 2])
        return cls(how, classes, values, table, images)

    @cached_property
    def matched(self) -> NDArray[np.intp]:
        """The class of each value; -1 for none."""
        return match_clusters(self.table, self.how)

    @property
    def options(self) -> ClassOptions:
        """The classes, with the matched values as ``pred_labels``."""
        of_class = (
            LabelClass(name, tuple(self.values[self.matched == index].tolist()))
            for index, name in enumerate(self.classes.labels.class_names)
        )
        kept = tuple(entry for entry in of_class if entry.values)
        labels = LabelSet(f"clusters ({self.how})", kept)
        return replace(self.classes, pred_labels=labels, unassigned="count")

    def __str__(self) -> str:
        names = self.classes.labels.class_names
        assigned = [
            f"{called(name)} = {self._values(self.matched == i)}" for i, name in enumerate(names)
        ]
        over = f"matched by {self.how} over {plural(self.images, 'image')}"
        text = f"{over}: {listed(assigned, _NAMED, last=', ')}"
        if (rest := self.matched < 0).any():
            share = self.table[:, rest].sum() / self.table.sum()
            text += f"; unmatched: {self._values(rest)} ({percent(share)} of the predictions)"
        return f"{text}. Intervals and tests treat this match as fixed"

    def _values(self, which: NDArray[np.bool_]) -> str:
        return listed([*map(str, self.values[which].tolist())], _NAMED) or "none"


def counting_options(options: ClassOptions) -> ClassOptions:
    """Options under which clusters are counted: any value may be predicted."""
    plain = tuple(replace(label, colors=()) for label in options.labels.classes)
    return replace(options, pred_labels=LabelSet("clusters", plain), unassigned="count")


def check_clusters(how: str, *, pred_labels: object = None, scores: bool = False) -> None:
    """Raise ValueError for arguments that contradict predictions of cluster numbers."""
    contradicted = {
        "with labels of the predictions; omit pred_labels (--pred-labels)": pred_labels is not None,
        "with scores, which have one channel per class; pass label maps": scores,
    }
    for text, is_so in contradicted.items():
        if is_so:
            msg = f"match={how!r} (--match {how}) cannot be used {text}"
            raise ValueError(msg)
