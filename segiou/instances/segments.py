"""Segments of one image: which true and predicted objects are the same, counted in pixels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice
from segiou.counting.arrays import as_label_array
from segiou.counting.id_pairs import count_id_pairs

__all__ = ["PROTOCOLS", "Matches", "PanopticProtocol", "match_segments", "pack_ids", "unpack_ids"]

Ints = NDArray[np.int64]

#: What has no class, as a class index.
VOID = -1
#: As a class value: no object on either side, and void.
NO_OBJECT = -(2**31)
_ID_BITS = 32


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


class Matches(NamedTuple):
    """What the segments of one image add to a panoptic score.

    Attributes
    ----------
    counts : ndarray of int64, shape (C, 3)
        TP, FP and FN of each class.
    overlaps : ndarray of int64, shape (M, 3)
        Class, intersection and union of each match.
    """

    counts: Ints
    overlaps: Ints


@dataclass(frozen=True, slots=True)
class _Side:
    """The segments of one side, each once, and the segment of each pair."""

    classes: Ints
    ids: Ints
    of_pair: NDArray[np.intp]

    @property
    def is_void(self) -> NDArray[np.bool_]:
        return np.equal(self.classes, VOID)


def match_segments(
    truth: tuple[Any, Any],
    pred: tuple[Any, Any],
    class_indices: tuple[dict[int, int], dict[int, int]],
    num_classes: int,
    things: NDArray[np.bool_],
    protocol: PanopticProtocol,
    crowd: Iterable[int] = (),
    *,
    unknown_is_void: bool = False,
) -> Matches:
    """Match the segments of one image; see ``PanopticCounts.update``.

    ``class_indices`` gives, for each side, the class index of every value that
    may occur; −1 is void.
    """
    check_choice("void", protocol.void, ("forgive", "drop"))
    codes = [
        pack_ids(*side, (f"{name}_classes", f"{name}_ids"))
        for side, name in ((truth, "truth"), (pred, "pred"))
    ]
    if codes[0].shape != codes[1].shape:
        msg = f"truth has shape {codes[0].shape} but pred has {codes[1].shape}; they must be equal"
        raise ValueError(msg)
    in_truth, in_pred, pixels = count_id_pairs(*codes)
    sides = (
        _segments(in_truth, class_indices[0], things, "truth"),
        _segments(in_pred, class_indices[1], things, "pred", unknown_is_void),
    )
    if protocol.void == "drop":
        pixels = np.where(sides[0].is_void[sides[0].of_pair], 0, pixels)
    return _matched(*sides, pixels, num_classes, things, protocol, np.array([*crowd], np.int64))


def pack_ids(classes: Any, ids: Any, names: tuple[str, str]) -> Ints:
    """Class value and id of each pixel as one number; raises by the names of the arguments."""
    values, objects = (
        as_label_array(x, name) for x, name in zip((classes, ids), names, strict=True)
    )
    if values.shape != objects.shape:
        msg = f"{names[0]} has shape {values.shape} but {names[1]} has {objects.shape}"
        raise ValueError(msg)
    for what, array, low, high in (
        (names[0], values, -(2**31), 2**31 - 1),
        (names[1], objects, 0, 2**_ID_BITS - 1),
    ):
        if (array.size and array.dtype.itemsize > 2) or array.dtype.kind == "i":
            least, most = (int(array.min()), int(array.max())) if array.size else (0, 0)
            if least < low or most > high:
                far = least if least < low else most
                msg = f"{what} holds {far}; it must lie between {low} and {high}"
                raise ValueError(msg)
    return values.astype(np.int64) << _ID_BITS | objects.astype(np.int64)


def unpack_ids(codes: NDArray[Any]) -> tuple[Ints, Ints]:
    """Class values and ids of what :func:`pack_ids` made."""
    return codes >> _ID_BITS, codes & (2**_ID_BITS - 1)


def _segments(
    codes: NDArray[Any],
    indices: dict[int, int],
    things: NDArray[np.bool_],
    side: str,
    unknown_is_void: bool = False,
) -> _Side:
    """Segments of one side; all pixels of a stuff class, or of void, are one segment."""
    values, ids = unpack_ids(codes)
    indices = {**indices, NO_OBJECT: VOID}
    unknown = sorted({*values.tolist()} - indices.keys())
    if unknown and not unknown_is_void:
        shown = ", ".join(map(str, unknown[:6]))
        msg = f"{side}_classes has values that are no class: {shown}; declare them, or " + (
            "ignore them: ignore=…" if side == "truth" else "count them as void: unassigned='count'"
        )
        raise ValueError(msg)
    classes = np.array([indices.get(value, VOID) for value in values.tolist()], dtype=np.int64)
    is_thing = np.append(things, False)[classes]
    keys = np.stack([classes, np.where(is_thing, ids, 0)], axis=1)
    found, of_pair = np.unique(keys, axis=0, return_inverse=True)
    return _Side(found[:, 0], found[:, 1], of_pair.reshape(-1))


def _matched(
    truth: _Side,
    pred: _Side,
    pixels: Ints,
    num_classes: int,
    things: NDArray[np.bool_],
    protocol: PanopticProtocol,
    crowd: Ints,
) -> Matches:
    # Ids of stuff do not tell segments apart, so that several pairs may be of the same two.
    pairs, of_pair = np.unique(
        truth.of_pair * len(pred.classes) + pred.of_pair, return_inverse=True
    )
    summed = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(summed, of_pair, pixels)
    pixels = summed
    t, p = np.divmod(pairs, max(1, len(pred.classes)))
    is_crowd = np.isin(truth.ids, crowd) & ~truth.is_void
    on_void = _sums(p, np.where(truth.is_void[t], pixels, 0), pred)
    forgiven_here = pred.is_void[p] & protocol.predicted_void
    under_void = _sums(t, np.where(forgiven_here, pixels, 0), truth)
    areas = _sums(t, pixels, truth), _sums(p, pixels, pred)
    same = (truth.classes[t] == pred.classes[p]) & ~truth.is_void[t] & ~is_crowd[t] & (pixels > 0)
    unions = areas[0][t] + areas[1][p] - pixels - on_void[p] - under_void[t]
    by_overlap = np.zeros(num_classes + 1, dtype=bool)
    if protocol.every_stuff_overlap:
        by_overlap[:num_classes] = ~things
    loose = by_overlap[truth.classes[t]]
    matched = same & (loose | (2 * pixels > unions))
    strict = matched & ~loose
    overlaps = np.stack([truth.classes[t], pixels, unions], axis=1)[matched]

    in_crowd = is_crowd[t] & (truth.classes[t] == pred.classes[p])
    on_crowd = _sums(p, np.where(in_crowd, pixels, 0), pred)
    forgiven = 2 * (on_void + on_crowd) > areas[1]
    lost = _unmatched(truth, t[strict], areas[0], protocol) & ~is_crowd
    lost &= 2 * under_void <= areas[0]
    invented = _unmatched(pred, p[strict], areas[1], protocol) & ~forgiven
    counts = np.zeros((num_classes, 3), dtype=np.int64)
    for column, found in (
        (0, truth.classes[t[strict]]),
        (1, pred.classes[invented & ~by_overlap[pred.classes]]),
        (2, truth.classes[lost & ~by_overlap[truth.classes]]),
        # Of classes by overlap, every true segment is one to be found.
        (0, truth.classes[by_overlap[truth.classes] & ~truth.is_void & (areas[0] > 0)]),
    ):
        np.add.at(counts[:, column], found, 1)
    return Matches(counts, overlaps)


def _sums(of_pair: NDArray[np.intp], pixels: Ints, side: _Side) -> Ints:
    """Pixels of each segment of a side."""
    sums = np.zeros(len(side.classes), dtype=np.int64)
    np.add.at(sums, of_pair, pixels)
    return sums


def _unmatched(
    side: _Side, matched: NDArray[np.intp], areas: Ints, protocol: PanopticProtocol
) -> NDArray[np.bool_]:
    """Segments that are no void, have pixels enough and found no partner."""
    left = ~side.is_void & (areas > 0) & (areas >= protocol.least_pixels)
    left[matched] = False
    return left
