"""Cells of one image: overlaps of true and predicted objects, and the scores that follow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from segiou.counting.id_pairs import count_id_pairs, distinct, sums
from segiou.metrics.ratio import Floats, ratio

#: IoU thresholds of average precision, 0.5 to 0.95.
THRESHOLDS = tuple(percent / 100 for percent in range(50, 100, 5))
#: HoVer-Net's code adds this to unions and to the number of matches. It also breaks ties: of two
#: predictions with the same IoU, AJI takes that of the larger union.
_HOVERNET_EPSILON = 1e-6

Ints = NDArray[np.int64]


class CellScores(TypedDict):
    """Result of `cell_scores`."""

    stardist_ap50: float
    stardist_ap75: float
    stardist_ap: float
    stardist_f1: float
    cellpose_ap50: float
    cellpose_ap75: float
    cellpose_ap90: float
    cellpose_aji: float
    hovernet_aji: float
    hovernet_aji_plus: float
    hovernet_dq: float
    hovernet_sq: float
    hovernet_pq: float
    ctc_seg: float


@dataclass(frozen=True)
class Overlaps:
    """True and predicted objects of one image, and each two that share pixels.

    Attributes
    ----------
    truth, pred : ndarray of int64, shapes (T,) and (P,)
        Pixels of each object.
    t, p : ndarray of int, shape (M,)
        Indices of the two objects of each pair, sorted by t, then by p.
    shared : ndarray of int64, shape (M,)
        Pixels that they share.
    """

    truth: Ints
    pred: Ints
    t: NDArray[np.intp]
    p: NDArray[np.intp]
    shared: Ints

    @classmethod
    def of(cls, truth_ids: Any, pred_ids: Any) -> Overlaps:
        """Count the overlaps of two arrays of ids, in which 0 is outside all objects."""
        in_truth, in_pred, pixels = count_id_pairs(truth_ids, pred_ids)
        (truth, t), (pred, p) = (_objects(ids, pixels) for ids in (in_truth, in_pred))
        both = (t >= 0) & (p >= 0)
        return cls(truth, pred, t[both], p[both], pixels[both])

    @cached_property
    def union(self) -> Ints:
        """Pixels of either object of each pair, (M,)."""
        return self.truth[self.t] + self.pred[self.p] - self.shared

    @cached_property
    def iou(self) -> Floats:
        """IoU of each pair, (M,)."""
        return ratio(self.shared, self.union)

    def true_positives(self, threshold: float) -> int:
        """Size of a largest one-to-one matching of pairs with IoU of at least 0.5 or more.

        With an IoU above 0.5, an object has one partner. With exactly 0.5 it may have two, which
        are its halves and have no other partner, so one of the two pairs counts.
        """
        close = self.iou >= threshold
        t, p = self.t[close], self.p[close]
        return len(np.unique(t)) + len(np.unique(p)) - len(t)

    def aji(self, chosen: NDArray[np.intp]) -> float:
        """Shared pixels of the chosen pairs over their unions and all objects without a pair."""
        unpaired = sum(
            int(np.delete(sizes, places[chosen]).sum())
            for sizes, places in ((self.truth, self.t), (self.pred, self.p))
        )
        return float(ratio(self.shared[chosen].sum(), self.union[chosen].sum() + unpaired))

    def best(self, values: Floats) -> NDArray[np.intp]:
        """The pair with the largest value of each true object; a prediction may occur twice."""
        order = np.lexsort((self.p, -values, self.t))
        is_first = np.diff(self.t[order], prepend=-1) > 0
        return order[is_first]

    def assigned(self, values: Floats) -> NDArray[np.intp]:
        """The pairs of a one-to-one assignment with the largest sum of values."""
        chosen = [_assign(self.t[group], self.p[group], values[group]) for group in self._groups()]
        groups = zip(self._groups(), chosen, strict=True)
        return np.array([i for group, kept in groups for i in group[kept]], np.intp)

    def _groups(self) -> Iterator[NDArray[np.intp]]:
        """Indices of the pairs of each group of objects that are linked by overlaps."""
        from scipy.sparse import coo_array  # type: ignore[import-untyped, unused-ignore]
        from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped, unused-ignore]

        number = len(self.truth) + len(self.pred)
        ends = self.t, self.p + len(self.truth)
        links = coo_array((np.ones(len(self.t)), ends), shape=(number, number))
        of_pair = connected_components(links, directed=False)[1][self.t]
        order = np.argsort(of_pair, kind="stable")
        starts = np.flatnonzero(np.diff(of_pair[order])) + 1
        return iter(np.split(order, starts) if len(order) else [])


def _objects(ids: NDArray[Any], pixels: Ints) -> tuple[Ints, NDArray[np.intp]]:
    """Pixels of each object; and the index of the object of each pair of ids, -1 for id 0."""
    (present,), places = distinct(ids)
    sizes = sums(places, pixels, len(present))
    is_object = present != 0
    index = np.where(is_object, np.cumsum(is_object) - 1, -1)
    return sizes[is_object], index[places]


def _assign(t: NDArray[np.intp], p: NDArray[np.intp], values: Floats) -> NDArray[np.intp]:
    """Which pairs of one group are assigned."""
    if len(t) == 1:
        return np.zeros(1, np.intp)
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped, unused-ignore]

    (_,), rows = distinct(t)
    (_,), columns = distinct(p)
    index = np.full((rows.max() + 1, columns.max() + 1), -1)
    index[rows, columns] = np.arange(len(t))
    table = np.where(index >= 0, values[index], 0.0)
    kept: NDArray[np.intp] = index[linear_sum_assignment(table, maximize=True)]
    return kept[kept >= 0]


@dataclass(frozen=True)
class CellCounts:
    """Numbers of one image from which all scores of cells follow.

    Attributes
    ----------
    objects : ndarray of int64, shape (12,)
        True objects, predicted objects, and the true positives at each threshold.
    seg : ndarray of float64, shape (T,)
        SEG of each true object.
    of_image : ndarray of float64, shape (9,)
        AP50, AP75, AP90 and AJI of Cellpose; AJI, AJI+, DQ, SQ and PQ of HoVer-Net; NaN without
        true objects.
    """

    objects: Ints
    seg: Floats
    of_image: Floats

    @classmethod
    def of(cls, overlaps: Overlaps) -> CellCounts:
        """Match the objects of an image by the rules of each tool."""
        hits = [overlaps.true_positives(threshold) for threshold in THRESHOLDS]
        objects = np.array([len(overlaps.truth), len(overlaps.pred), *hits])
        of_image = [math.nan] * 9
        if len(overlaps.truth):
            precision = average_precision(objects)
            values = overlaps.shared / (overlaps.union + _HOVERNET_EPSILON)
            of_image = [
                *precision[[THRESHOLDS.index(threshold) for threshold in (0.5, 0.75, 0.9)]],
                _cellpose_aji(overlaps),
                overlaps.aji(overlaps.best(values)),
                overlaps.aji(overlaps.assigned(values)),
                *_panoptic(overlaps),
            ]
        return cls(objects, _seg(overlaps), np.array(of_image))


def _cellpose_aji(overlaps: Overlaps) -> float:
    """Shared pixels of the pairs of Cellpose over all pixels of objects.

    Its assignment has the most pairs with an IoU of at least 0.5, then the largest IoU.
    """
    fewer = max(1, min(len(overlaps.truth), len(overlaps.pred)))
    chosen = overlaps.assigned((overlaps.iou >= 0.5) + overlaps.iou / (2 * fewer))
    foreground = overlaps.truth.sum() + overlaps.pred.sum() - overlaps.shared.sum()
    return float(ratio(overlaps.shared[chosen].sum(), foreground))


def _panoptic(overlaps: Overlaps) -> tuple[float, float, float]:
    """DQ, SQ and PQ of HoVer-Net, of pairs with an IoU above 0.5."""
    matched = overlaps.iou[overlaps.iou > 0.5]
    dq = 2 * len(matched) / (len(overlaps.truth) + len(overlaps.pred))
    sq = float(matched.sum()) / (len(matched) + _HOVERNET_EPSILON)
    return dq, sq, dq * sq


def _seg(overlaps: Overlaps) -> Floats:
    """IoU of each true object with the prediction that has more than half of it, or 0."""
    values = np.zeros(len(overlaps.truth))
    covered = 2 * overlaps.shared > overlaps.truth[overlaps.t]
    values[overlaps.t[covered]] = overlaps.iou[covered]
    return values


def average_precision(objects: NDArray[Any]) -> Floats:
    """TP / (TP + FP + FN) at each threshold, (..., 10), from ``objects`` (..., 12)."""
    true, predicted, hits = objects[..., :1], objects[..., 1:2], objects[..., 2:]
    return ratio(hits, np.where(true > 0, true + predicted - hits, 0))


def cell_scores(truth_ids: Any, pred_ids: Any) -> CellScores:
    """Scores of the cells of one image, as defined by four tools.

    Parameters
    ----------
    truth_ids, pred_ids : array_like of int, equal shapes
        Id of the object of each pixel; 0 is outside all objects. Images or volumes.

    Returns
    -------
    dict
        ``stardist_ap50``, ``stardist_ap75``, ``stardist_ap``
            TP / (TP + FP + FN) of a one-to-one matching of objects with an IoU of at least
            0.5 or 0.75; and the mean over thresholds 0.5, 0.55, …, 0.95.
        ``stardist_f1``
            2 TP / (2 TP + FP + FN) at IoU 0.5.
        ``cellpose_ap50``, ``cellpose_ap75``, ``cellpose_ap90``
            The same precision; over several images, Cellpose averages those of the images
            and StarDist counts all objects together.
        ``cellpose_aji``
            Shared pixels of the objects that are assigned one to one over all pixels of objects.
        ``hovernet_aji``
            Aggregated Jaccard index: each true object is paired with the prediction of the
            largest IoU, which may be paired twice; Σ intersections / (Σ unions + pixels of
            all objects without a pair).
        ``hovernet_aji_plus``
            The same with a one-to-one assignment of the largest total IoU.
        ``hovernet_dq``, ``hovernet_sq``, ``hovernet_pq``
            Detection, segmentation and panoptic quality, of pairs with an IoU above 0.5.
        ``ctc_seg``
            Mean over the true objects of their IoU with the prediction that has more than half
            of their pixels, or 0.

        NaN without true objects.

    Raises
    ------
    TypeError
        If an array does not contain integers.
    ValueError
        If the shapes differ.

    References
    ----------
    M. Weigert et al., Star-convex polyhedra for 3D object detection and segmentation, WACV 2020;
    C. Stringer et al., Nature Methods 18 (2021), 100-106; N. Kumar et al., IEEE Transactions on
    Medical Imaging 36 (2017), 1550-1560; S. Graham et al., Medical Image Analysis 58 (2019),
    101563; V. Ulman et al., Nature Methods 14 (2017), 1141-1152.

    Examples
    --------
    >>> found = cell_scores([[1, 1, 1, 2, 2]], [[1, 1, 0, 0, 3]])  # IoU 2/3 and 1/2
    >>> found["stardist_ap50"], found["stardist_ap"], found["hovernet_aji"]
    (1.0, 0.2, 0.6)
    """
    counts = CellCounts.of(Overlaps.of(truth_ids, pred_ids))
    precision = average_precision(counts.objects)
    ap50, ap75, ap90, aji, *hovernet = counts.of_image.tolist()
    return {
        "stardist_ap50": ap50,
        "stardist_ap75": ap75,
        "stardist_ap": float(precision.mean()),
        "stardist_f1": float(f1(counts.objects)),
        "cellpose_ap50": ap50,
        "cellpose_ap75": ap75,
        "cellpose_ap90": ap90,
        "cellpose_aji": aji,
        "hovernet_aji": hovernet[0],
        "hovernet_aji_plus": hovernet[1],
        "hovernet_dq": hovernet[2],
        "hovernet_sq": hovernet[3],
        "hovernet_pq": hovernet[4],
        "ctc_seg": float(ratio(counts.seg.sum(), len(counts.seg))),
    }


def f1(objects: NDArray[Any]) -> Floats:
    """2 TP / (2 TP + FP + FN) at IoU 0.5, (...), from ``objects`` (..., 12)."""
    true, predicted, hits = objects[..., 0], objects[..., 1], objects[..., 2]
    return ratio(2 * hits, np.where(true > 0, true + predicted, 0))
