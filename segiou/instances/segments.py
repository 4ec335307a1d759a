"""Segments of one image: which true and predicted objects are the same, counted in pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice
from segiou.instances.objects import VOID, Ints, Overlaps, class_codes, unpack_ids

__all__ = ["PROTOCOLS", "Matches", "PanopticProtocol", "match_segments"]

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PanopticProtocol:
    """What a panoptic score does with void, small segments and absent classes.

    A true and a predicted segment of one class match where their intersection
    over union is above one half, so that each matches at most once.

    Attributes
    ----------
    name : str
    description : str
    void : {"forgive", "drop"}
        Pixels whose truth is void: ``"forgive"`` takes them out of the union
        of a match, and drops unmatched predictions that lie on void (or on a
        crowd of their class) by more than half; ``"drop"`` takes them out of
        every area.
    predicted_void : bool
        Whether pixels predicted as void are forgiven likewise: out of the
        union, and unmatched true segments that lie on them by more than half
        are dropped.
    least_pixels : int
        Unmatched segments of fewer pixels do not count.
    every_stuff_overlap : bool
        Whether a stuff class takes the IoU of every overlap, over the number
        of its true segments, instead of matching.
    absent_is_zero : bool
        Whether a class that occurs nowhere counts 0 in a mean; else it is
        left out.
    """

    name: str
    description: str
    void: str = "forgive"
    predicted_void: bool = False
    least_pixels: int = 0
    every_stuff_overlap: bool = False
    absent_is_zero: bool = False


#: Panoptic protocols by name.
PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        PanopticProtocol("coco", "panopticapi, cityscapesScripts: void in the truth is forgiven"),
        PanopticProtocol(
            "torchmetrics",
            "torchmetrics PanopticQuality: void is forgiven in the truth and in the prediction",
            predicted_void=True,
        ),
        PanopticProtocol(
            "torchmetrics-modified",
            "torchmetrics ModifiedPanopticQuality: stuff takes the IoU of every overlap",
            predicted_void=True,
            every_stuff_overlap=True,
        ),
        PanopticProtocol(
            "semantickitti",
            "SemanticKITTI: void points are dropped, unmatched segments below 30 points too, "
            "absent classes count 0",
            void="drop",
            least_pixels=30,
            absent_is_zero=True,
        ),
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """What became of the segments of one image.

    Attributes
    ----------
    pairs : Overlaps
        Segments by class index and id, packed.
    counts : ndarray of int64, shape (C, 3)
        TP, FP and FN of each class.
    overlaps : ndarray of int64, shape (M, 3)
        Class, intersection and union of each match.
    found, left : pair of ndarray of bool, shapes (T,) and (P,)
        Segments of either side that match, and those that count as missed or
        invented; what is in neither is forgiven.
    """

    pairs: Overlaps
    counts: Ints
    overlaps: Ints
    found: tuple[Bools, Bools]
    left: tuple[Bools, Bools]

    def drawn(self, side: int, codes: Ints, things: Bools) -> tuple[Ints, list[list[int]]]:
        """Of each pixel the number, from 1, of its object, and what became of each object.

        ``codes`` are those of :func:`segment_codes`. An object is 0 (forgiven), 1 (found) or
        2 (missed or invented), its class index and its pixels.
        """
        classes = unpack_ids(self.pairs.ids[side])[0]
        chosen = np.append(things, False)[classes]
        rows = np.stack([self.found[side] + 2 * self.left[side], classes, self.pairs.sums(side)], 1)
        known = np.append(self.pairs.ids[side][chosen], np.iinfo(np.int64).max)
        at = np.searchsorted(known, codes)
        return np.where(known[at] == codes, at + 1, 0), rows[chosen].tolist()


def segment_codes(
    codes: NDArray[Any],
    indices: Mapping[int, int],
    things: Bools,
    side: str,
    unknown_is_void: bool = False,
) -> Ints:
    """Class index and id of each pixel's segment: those of a stuff class, or void, are one."""
    codes = class_codes(codes, indices, f"{side}_classes", unknown_is_void)
    classes, ids = unpack_ids(codes)
    return codes - np.where(np.append(things, False)[classes], 0, ids)


def match_segments(
    pairs: Overlaps, things: Bools, protocol: PanopticProtocol, crowd: Iterable[int]
) -> Matches:
    """Match the segments of one image, named by :func:`segment_codes`."""
    check_choice("void", protocol.void, ("forgive", "drop"))
    if protocol.void == "drop":
        pairs = pairs.without(0, unpack_ids(pairs.ids[0])[0] == VOID)
    (t, p), pixels = pairs.at, pairs.pixels
    (truth, truth_ids), (pred, _) = map(unpack_ids, pairs.ids)
    void, pred_void = truth == VOID, pred == VOID
    is_crowd = np.isin(truth_ids, [*crowd]) & ~void
    by_overlap = np.append(~things & protocol.every_stuff_overlap, False)
    areas = pairs.sums(0), pairs.sums(1)
    on_void = pairs.sums(1, void[t])
    under_void = pairs.sums(0, pred_void[p] & protocol.predicted_void)

    same = (truth[t] == pred[p]) & ~void[t]
    unions = areas[0][t] + areas[1][p] - pixels - on_void[p] - under_void[t]
    loose = by_overlap[truth[t]]
    matched = same & ~is_crowd[t] & (loose | (2 * pixels > unions))
    overlaps = np.stack([truth[t], pixels, unions], axis=1)[matched]

    # Of a class by overlap, every true segment is one that is found.
    found = by_overlap[truth] & ~void, np.zeros(len(pred), dtype=bool)
    found[0][t[matched & ~loose]] = found[1][p[matched & ~loose]] = True
    on_crowd = pairs.sums(1, same & is_crowd[t])
    forgiven = (
        void | is_crowd | (2 * under_void > areas[0]),
        pred_void | by_overlap[pred] | (2 * (on_void + on_crowd) > areas[1]),
    )
    left = tuple(
        ~(found[side] | forgiven[side]) & (areas[side] >= protocol.least_pixels) for side in (0, 1)
    )
    counts = np.zeros((len(things), 3), dtype=np.int64)
    for column, classes in enumerate((truth[found[0]], pred[left[1]], truth[left[0]])):
        np.add.at(counts[:, column], classes, 1)
    return Matches(pairs, counts, overlaps, found, (left[0], left[1]))
