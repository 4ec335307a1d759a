"""Panoptic quality: matched, missed and false-positive segments, and the IoU of the matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_flag, check_integer, read_several
from segiou._support.text import Json
from segiou.counting.arrays import with_dimensions_of
from segiou.counting.id_pairs import add_up, sums
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.measures.objects.counts import (
    ID_BITS,
    LOCK,
    VOID,
    Ints,
    ObjectCounts,
    shared_ids,
    unpack_ids,
)
from segiou.measures.score import mean_first
from segiou.metrics.ratio import Floats, exact_parts, joined_parts, ratio

__all__ = ["PROTOCOLS", "PanopticCounts", "PanopticProtocol"]

#: Classes and ids of one side.
Layers = tuple[Any, Any]
#: Image and packed class index and id of each entry.
Keys = tuple[Ints, Ints]

Part = Literal["all", "things", "stuff"]


@dataclass(frozen=True, slots=True)
class PanopticProtocol:
    """Rules of a panoptic score for void, small segments and absent classes.

    A true and a predicted segment of one class match if their IoU is above 0.5,
    so each segment matches at most once.

    Attributes
    ----------
    name : str
    description : str
    void : {"forgive", "drop"}
        Pixels whose truth is void: ``"forgive"`` removes them from the union
        of a match, and drops unmatched predictions of which more than half
        overlaps void (or a crowd of their class); ``"drop"`` removes them from
        every area.
    predicted_void : bool
        Whether pixels predicted as void are not penalised either: they are removed
        from the union, and unmatched true segments of which more than half
        overlaps them are dropped.
    least_pixels : int
        Unmatched segments with fewer pixels are not counted.
    every_stuff_overlap : bool
        Whether a stuff class sums the IoU of every overlap and divides by the
        number of its true segments instead of matching segments.
    absent_is_zero : bool
        Whether an absent class counts as 0 in a mean; otherwise it is excluded.
    """

    name: str
    description: str
    void: str = "forgive"
    predicted_void: bool = False
    least_pixels: int = 0
    every_stuff_overlap: bool = False
    absent_is_zero: bool = False

    def __post_init__(self) -> None:
        check_choice("void", self.void, ("forgive", "drop"))
        check_integer("least_pixels", self.least_pixels, 0)
        for name in ("predicted_void", "every_stuff_overlap", "absent_is_zero"):
            check_flag(name, getattr(self, name))


#: Panoptic protocols by name.
PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        PanopticProtocol(
            "coco", "panopticapi, cityscapesScripts; void in the truth is not penalised"
        ),
        PanopticProtocol(
            "torchmetrics",
            "torchmetrics PanopticQuality; void in truth or prediction is not penalised",
            predicted_void=True,
        ),
        PanopticProtocol(
            "torchmetrics-modified",
            "torchmetrics ModifiedPanopticQuality; for stuff, the IoU of every overlap counts",
            predicted_void=True,
            every_stuff_overlap=True,
        ),
        PanopticProtocol(
            "semantickitti",
            "SemanticKITTI; void points and unmatched segments below 30 points are dropped, "
            "absent classes count as 0",
            void="drop",
            least_pixels=30,
            absent_is_zero=True,
        ),
    )
}


class SharedPixels(NamedTuple):
    """Class values and object ids of one or more images; each entry represents several pixels."""

    #: Packed class value and id, (P,).
    truth: NDArray[Any]
    pred: NDArray[Any]
    #: Number of pixels of each entry.
    pixels: Ints
    #: Per image: the entries of the image, and the truth ids that are crowds.
    sizes: Sequence[int]
    crowds: Sequence[Sequence[int]]


class Matches(NamedTuple):
    """Outcome of matching the segments of one or more images."""

    #: Packed class index and id of the segments on each side, sorted within their image.
    segments: tuple[Ints, Ints]
    #: Per segment: 0 (dropped), 1 (found) or 2 (missed or false positive), class index, pixels.
    rows: tuple[Ints, Ints]
    #: Class, intersection and union of each match.
    overlaps: Ints
    #: Index of the image of each segment on either side, and of each match.
    images: tuple[Ints, Ints, Ints]
    #: Number of images.
    number: int


class PanopticCounts(ObjectCounts):
    """Counts of matched segments, from which panoptic quality is computed.

    Only integers are kept: TP, FP and FN per class, and the intersection and
    union of every match. They add up exactly in any order; see
    :class:`segiou.accumulators.base.Accumulator`. Each update keeps its matches,
    24 bytes per match plus about 230 bytes per update.

    Parameters
    ----------
    labels, pred_labels, exclude
        As for :class:`segiou.ConfusionMatrix`.
    ignore : int, str or iterable of them
        Values or names of classes that are void on both sides: predictions on
        void truth are not penalised, and pixels predicted as void belong to no
        segment.
    things : iterable of int or str, optional
        Classes, by name or index, whose ids separate objects. All pixels of any
        other class (stuff) in an image are one segment. All classes by default.
    unassigned : {"error", "count"}
        Whether an undeclared predicted value is an error or void.
    **options
        ``protocol``, a name in ``segiou.measures.objects.PROTOCOLS``: ``"coco"``, the
        default, ``"torchmetrics"``, ``"torchmetrics-modified"`` or
        ``"semantickitti"``.

    References
    ----------
    A. Kirillov et al., Panoptic Segmentation, CVPR 2019 (arXiv 1801.00868).

    Examples
    --------
    >>> counts = PanopticCounts(["grass", "dog"], things=["dog"])
    >>> truth = [[0, 0, 1, 1, 1, 1]], [[0, 0, 1, 1, 1, 2]]
    >>> pred = [[0, 0, 0, 1, 1, 1]], [[0, 0, 0, 5, 5, 7]]
    >>> _ = counts.update(*truth, *pred)
    >>> counts.tp, counts.fp, counts.fn
    (array([1, 2]), array([0, 0]), array([0, 0]))
    >>> counts.pq().round(4)
    array([0.6667, 0.8333])
    >>> counts.panoptic_quality("things")
    {'pq': 0.8333333333333333, 'sq': 0.8333333333333333, 'rq': 1.0, 'classes': 1}
    """

    _noun = "panoptic counts"
    _columns = ("tp", "fp", "fn")
    _rows_are = "overlaps"
    _row = ("class", "intersection", "union")
    _options = ("protocol",)

    def _start(self, classes: ClassOptions, things: Any = None, protocol: str = "coco") -> None:
        check_choice("protocol", protocol, tuple(PROTOCOLS))
        self._protocol = PROTOCOLS[protocol]
        super()._start(classes, things)

    def _are_rows(self, rows: Ints, counts: Ints) -> bool:
        return self.are_matches(counts[None], rows[:, :3], np.zeros(len(rows), int), rows[:, 3])

    def are_matches(self, outcomes: Ints, rows: Ints, images: Ints, often: Any = 1) -> bool:
        """Whether matches are possible, and as many as each image has found segments.

        Parameters
        ----------
        outcomes : ndarray of int64, shape (N, C, 3)
            TP, FP and FN of each class in each image.
        rows : ndarray of int64, shape (M, 3)
            Class, intersection and union of each match.
        images : ndarray of int64, shape (M,)
            Index of the image of each match.
        often : ndarray of int64, shape (M,), or int
            Number of matches that each row represents.
        """
        index, shared, union = rows.T
        in_order = (index < self.num_classes) & (shared <= union)
        if not (in_order & (rows >= [0, 1, 1]).all(1)).all():
            return False
        by_match = ~self._sums_overlaps
        matches = np.zeros_like(outcomes[..., 0])
        np.add.at(matches, (images, index), often)
        above_half = (2 * shared > union)[by_match[index]]
        return bool((matches == outcomes[..., 0])[:, by_match].all() and above_half.all())

    @property
    def _sums_overlaps(self) -> NDArray[np.bool_]:
        """Classes that sum the IoU of every overlap."""
        return ~self._things & self._protocol.every_stuff_overlap

    def _difference(self, other: Self) -> str:
        if self._protocol != other._protocol:
            return f"protocol {self._protocol.name!r} and {other._protocol.name!r}"
        return super()._difference(other)

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "protocol": self._protocol.name}

    def update(
        self,
        truth_classes: Any,
        truth_ids: Any,
        pred_classes: Any,
        pred_ids: Any,
        *,
        crowd: Iterable[int] = (),
    ) -> Self:
        """Count one image; returns itself.

        Parameters
        ----------
        truth_classes, truth_ids, pred_classes, pred_ids : array_like of int, equal shapes
            Class value and object id of each pixel or point. Class and id
            together identify an object; ids range from 0 to 2^32 − 1.
        crowd : iterable of int
            Truth ids that are crowds: they match nothing, and predictions of
            their class that mostly overlap them are dropped.

        Raises
        ------
        TypeError
            If an array does not contain integers.
        ValueError
            If shapes differ, a value is undeclared, or an id is out of range.
        """
        several = read_several("crowd", crowd, "a sequence of ids")
        crowds = [check_integer("crowd", i) for i in several]
        return self.add(self.matches((truth_classes, truth_ids), (pred_classes, pred_ids), crowds))

    def matches(self, truth: Layers, pred: Layers, crowd: Sequence[int]) -> Matches:
        """Match the segments of one image without counting them.

        Parameters
        ----------
        truth, pred : tuple of array_like
            Classes and ids, each (H, W).
        crowd : sequence of int
            Truth ids that are crowds.
        """
        pred = with_dimensions_of(truth[0], pred[0]), pred[1]
        in_truth, in_pred, pixels = shared_ids(truth, pred)
        shared = SharedPixels(in_truth, in_pred, pixels, [len(pixels)], [tuple(crowd)])
        return self.shared_matches(shared)

    def shared_matches(self, shared: SharedPixels, *, split_stuff: bool = False) -> Matches:
        """Match the segments of several images, given the pixels that they share.

        Parameters
        ----------
        shared : SharedPixels
            Classes, ids and pixels.
        split_stuff : bool
            Whether the segments of a stuff class are matched one by one.
        """
        image = np.repeat(np.arange(len(shared.sizes)), shared.sizes)
        truth = self._segments(0, shared.truth, split_stuff)
        pred = self._segments(1, shared.pred, split_stuff)
        pixels = shared.pixels
        if self._protocol.void == "drop":
            kept = truth >= 0  # codes of void are negative
            image, truth, pred, pixels = (each[kept] for each in (image, truth, pred, pixels))
        return self._match((image, truth), (image, pred), pixels, shared.crowds)

    def _segments(self, side: int, codes: NDArray[Any], split_stuff: bool = False) -> Ints:
        """Packed class index and id of each segment; void, and a stuff class, is one segment."""
        values, ids = unpack_ids(codes)
        classes = self._class_indices(values, ("truth_classes", "pred_classes")[side])
        if side:  # a class that is ignored in the truth is void in the prediction
            classes = np.where(self._is_ignored[classes], VOID, classes)
        has_ids = np.append(self._things | split_stuff, False)
        return classes << ID_BITS | np.where(has_ids[classes], ids, 0)

    @cached_property
    def _is_ignored(self) -> NDArray[np.bool_]:
        """Whether all values of a class are ignored, and True for pixels without a class."""
        ignore = {*self._classes.ignore}
        return np.array([*(ignore.issuperset(v) for v in self._classes.labels.class_values), True])

    def _match(
        self, in_truth: Keys, in_pred: Keys, pixels: Ints, crowds: Sequence[Sequence[int]]
    ) -> Matches:
        """Match segments, given the images and segments that share pixels."""
        protocol = self._protocol
        (truth_keys, t), (pred_keys, p), shared = add_up(in_truth, in_pred, pixels)
        truth, pred = truth_keys[1] >> ID_BITS, pred_keys[1] >> ID_BITS
        void, pred_void = truth == VOID, pred == VOID
        is_crowd = _are_crowds(truth_keys[0], truth_keys[1], crowds) & ~void
        by_overlap = np.append(self._sums_overlaps, False)
        areas = sums(t, shared, len(truth)), sums(p, shared, len(pred))
        on_void = sums(p, shared * void[t], len(pred))
        under_void = sums(t, shared * (pred_void[p] & protocol.predicted_void), len(truth))

        same = (truth[t] == pred[p]) & ~void[t]
        unions = areas[0][t] + areas[1][p] - shared - on_void[p] - under_void[t]
        loose = by_overlap[truth[t]]
        matched = same & ~is_crowd[t] & (loose | (2 * shared > unions))
        overlaps = np.stack([truth[t], shared, unions], axis=1)[matched]

        # If a class counts every overlap, all its true segments are found.
        is_found = by_overlap[truth] & ~void, np.zeros(len(pred), dtype=bool)
        is_found[0][t[matched & ~loose]] = is_found[1][p[matched & ~loose]] = True
        on_crowd = sums(p, shared * (same & is_crowd[t]), len(pred))
        forgiven = (
            void | is_crowd | (2 * under_void > areas[0]),
            pred_void | by_overlap[pred] | (2 * (on_void + on_crowd) > areas[1]),
        )

        def rows(side: int, classes: Ints) -> Ints:
            dropped = forgiven[side] | (areas[side] < protocol.least_pixels)
            outcomes = np.where(is_found[side], 1, np.where(dropped, 0, 2))
            return np.stack([outcomes, classes, areas[side]], axis=1)

        images = truth_keys[0], pred_keys[0], truth_keys[0][t[matched]]
        segments = truth_keys[1], pred_keys[1]
        return Matches(segments, (rows(0, truth), rows(1, pred)), overlaps, images, len(crowds))

    def add(self, matches: Matches) -> Self:
        """Count an image whose segments :meth:`matches` has matched.

        Parameters
        ----------
        matches : Matches
            Result of :meth:`matches`.
        """
        return self.add_counts(self.outcomes(matches)[0], matches.overlaps)

    def outcomes(self, matches: Matches) -> Ints:
        """TP, FP and FN of each class in each image.

        Parameters
        ----------
        matches : Matches
            Result of :meth:`matches`.

        Returns
        -------
        ndarray of int64, shape (N, C, 3)
        """
        outcomes = np.zeros((matches.number, self.num_classes, 3), np.int64)
        for column, side, outcome in ((0, 0, 1), (1, 1, 2), (2, 0, 2)):
            rows = matches.rows[side]
            chosen = rows[:, 0] == outcome
            np.add.at(outcomes, (matches.images[side][chosen], rows[chosen, 1], column), 1)
        return outcomes

    @property
    def pred_labels(self) -> LabelSet:
        """The classes as the predictions encode them."""
        return self._classes.pred_labels

    @property
    def detections(self) -> NDArray[np.int64]:
        """TP, FP and FN of each class, (C, 3)."""
        return self._cells.copy()

    @property
    def tp(self) -> NDArray[np.int64]:
        """Matched segments of each class, (C,)."""
        return self._cells[:, 0].copy()

    @property
    def fp(self) -> NDArray[np.int64]:
        """Predicted segments of each class without a match, (C,)."""
        return self._cells[:, 1].copy()

    @property
    def fn(self) -> NDArray[np.int64]:
        """True segments of each class without a match, (C,)."""
        return self._cells[:, 2].copy()

    @property
    def overlaps(self) -> NDArray[np.int64]:
        """Distinct matches: class, intersection, union and how many, sorted, (M, 4)."""
        return self._rows

    def _qualities(self) -> dict[str, Floats]:
        """PQ, SQ and RQ of each class."""
        with LOCK.lock:
            outcomes, overlaps = self.detections[None], self.overlaps
        rows, often = overlaps[:, :3], overlaps[:, 3:]
        return qualities(joined_ious(outcomes, rows, np.zeros(len(rows), int), often)[0])

    def pq(self) -> Floats:
        """Panoptic quality per class, Σ IoU / (TP + FP / 2 + FN / 2), (C,); NaN if absent."""
        return self._qualities()["pq"]

    def sq(self) -> Floats:
        """Segmentation quality per class, the mean IoU of the matches, (C,); NaN if absent.

        A class that occurs but has no match gets 0, so that it counts in a mean.
        """
        return self._qualities()["sq"]

    def rq(self) -> Floats:
        """Recognition quality per class, the F1 of the segments, (C,); NaN if absent."""
        return self._qualities()["rq"]

    def panoptic_quality(self, part: Part = "all") -> dict[str, float]:
        """Means over the classes that occur.

        Parameters
        ----------
        part : {"all", "things", "stuff"}

        Returns
        -------
        dict
            ``pq``, ``sq``, ``rq``, and ``classes``, the number of classes averaged;
            NaN if there are none.
        """
        check_choice("part", part, get_args(Part))
        chosen = {"all": self.include, "things": self._things, "stuff": ~self._things}[part]
        selected, absent_is_zero = self.include & chosen, self._protocol.absent_is_zero
        per_class = self._qualities()
        means = {
            name: float(mean_first(values, selected, absent_is_zero)[0])
            for name, values in per_class.items()
        }
        averaged = selected if absent_is_zero else selected & ~np.isnan(per_class["rq"])
        return {**means, "classes": int(averaged.sum())}

    def summary(self) -> dict[str, Json]:
        """Plain data: one dict per class, and the means over all classes, things and stuff."""
        with LOCK.lock:
            return self._summary()

    def _summary(self) -> dict[str, Json]:
        columns: dict[str, NDArray[Any]] = {"name": np.array(self.class_names, object)}
        columns |= {"thing": self._things, **self._qualities()}
        columns |= {"found": self.tp, "false_positive": self.fp, "missed": self.fn}
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        classes: list[dict[str, Any]] = [dict(zip(columns, row, strict=True)) for row in rows]
        means = {part: self.panoptic_quality(part) for part in get_args(Part)}
        return {"protocol": self._protocol.name, "classes": classes, **means}


def _are_crowds(image: Ints, codes: Ints, crowds: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    """Whether each segment is a crowd of its image."""
    are_crowds, ids = np.zeros(len(codes), bool), unpack_ids(codes)[1]
    for crowd in {crowd for crowd in crowds if crowd}:
        has_crowd = np.array([other == crowd for other in crowds])
        are_crowds |= has_crowd[image] & np.isin(ids, [*crowd])
    return are_crowds


def joined_ious(outcomes: Ints, rows: Ints, images: Ints, often: Any = 1) -> Ints:
    """Outcomes (N, C, 3), and the sum of IoU of the matches in two parts, (N, C, 5)."""
    ious = np.zeros((*outcomes.shape[:2], 2), np.int64)
    np.add.at(ious, (images, rows[:, 0]), exact_parts(rows[:, 1] / rows[:, 2]) * often)
    return np.concatenate([outcomes, ious], axis=-1)


def qualities(numbers: NDArray[Any]) -> dict[str, Floats]:
    """PQ, SQ and RQ of each class, from the numbers of :func:`joined_ious`, (..., C, 5)."""
    tp, fp, fn = np.moveaxis(numbers[..., :3], -1, 0)
    ious, segments = joined_parts(numbers[..., 3:]), tp + (fp + fn) / 2
    # A class without a match has SQ 0, so that it counts in a mean.
    sq, rq = ratio(ious, np.maximum(tp, segments > 0)), ratio(tp, segments)
    return {"pq": sq * rq, "sq": sq, "rq": rq}
