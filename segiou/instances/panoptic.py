"""Panoptic quality: objects found, missed and invented, and how well the found ones overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice
from segiou.accumulators.base import Accumulator
from segiou.counting.counts import Counts, counts_array
from segiou.instances.segments import PROTOCOLS, VOID, match_segments
from segiou.labels.class_options import ClassOptions, Labels, Unassigned
from segiou.labels.label_set import LabelSet
from segiou.metrics.ratio import Floats, ratio

__all__ = ["IOU_UNIT", "OBJECT_METRICS", "PanopticCounts"]

Part = Literal["all", "things", "stuff"]


class PanopticCounts(Accumulator):
    """Counts of matched segments, from which panoptic quality is made.

    Only integers are kept: per class TP, FP and FN, and the intersection and
    union of every match. They add up exactly, in whatever order: see
    :class:`segiou.accumulators.base.Accumulator`.

    Parameters
    ----------
    labels : int, sequence of str, LabelSet, str or path
        The classes, as of :class:`segiou.ConfusionMatrix`.
    ignore : int, str or iterable of them
        Values or names of classes that are void: in the truth, what was
        predicted there is forgiven; predicted, they are no segment.
    things : iterable of int or str, optional
        Classes, by name or index, whose ids tell objects apart; of the other
        classes, the stuff, all pixels of an image are one segment. All classes
        by default.
    exclude : int, str or iterable of them
        Classes that means leave out.
    unassigned : {"error", "count"}
        Whether a predicted value that is no class is an error or void.
    protocol : str
        A name in ``segiou.instances.PROTOCOLS``: ``"coco"``,
        ``"torchmetrics"``, ``"torchmetrics-modified"`` or ``"semantickitti"``.

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

    def __init__(
        self,
        labels: Labels,
        *,
        ignore: int | str | Iterable[int | str] = (),
        things: Iterable[int | str] | None = None,
        exclude: int | str | Iterable[int | str] = (),
        unassigned: Unassigned = "error",
        protocol: str = "coco",
    ) -> None:
        classes = ClassOptions.of(labels, ignore=ignore, exclude=exclude, unassigned=unassigned)
        self._choose(classes, things, protocol)

    def _choose(
        self, classes: ClassOptions, things: Iterable[int | str] | None, protocol: str
    ) -> None:
        check_choice("protocol", protocol, tuple(PROTOCOLS))
        self._protocol = PROTOCOLS[protocol]
        self._things = np.ones(classes.num_classes, dtype=bool)
        if things is not None:
            self._things = ~ClassOptions.of(classes.labels, exclude=[*things]).include
        self._start(classes)

    @classmethod
    def from_options(
        cls,
        options: ClassOptions,
        *,
        things: Iterable[int | str] | None = None,
        protocol: str = "coco",
    ) -> Self:
        """An empty one of the given classes; does not warn again."""
        new = cls.__new__(cls)
        new._choose(options, things, protocol)
        return new

    def _forget(self) -> None:
        super()._forget()
        self._found: list[NDArray[np.int64]] = []

    def _empty(self) -> NDArray[np.int64]:
        return np.zeros((self.num_classes, 3), dtype=np.int64)

    def _named(self) -> dict[str, NDArray[np.int64]]:
        return {"counts": self._cells, "overlaps": self.overlaps}

    def _read(self, named: Mapping[str, Any]) -> NDArray[np.int64]:
        cells = counts_array(named["counts"], "counts")
        overlaps = counts_array(np.reshape(np.array(named["overlaps"], int), (-1, 4)), "overlaps")
        if cells.shape != (self.num_classes, 3):
            msg = f"counts must have shape ({self.num_classes}, 3), got {cells.shape}"
            raise ValueError(msg)
        wrong = (overlaps[:, 0] >= self.num_classes) | (overlaps[:, 1] > overlaps[:, 2])
        if wrong.any() or (overlaps[:, 1:] < 1).any():
            msg = "overlaps must be rows of class, intersection, union and how often"
            raise ValueError(msg)
        self._found = [np.repeat(overlaps[:, :3], overlaps[:, 3], axis=0)]
        return cells

    def _difference(self, other: Self) -> str:
        if self._protocol != other._protocol:
            return f"protocol {self._protocol.name!r} and {other._protocol.name!r}"
        if (different := self._things != other._things).any():
            name = self.class_names[int(different.argmax())]
            return f"class {name!r} is a thing on one side only"
        return super()._difference(other)

    def merge(self, *others: Self) -> Self:
        """Add others to this one; they stay as they are. Raises as its base says."""
        found = [part for other in others for part in getattr(other, "_found", ())]
        super().merge(*others)
        self._found += found
        return self

    def state_dict(self) -> dict[str, Any]:
        """The counts and options as plain lists, strings and integers."""
        own = {"protocol": self._protocol.name, "things": np.flatnonzero(self._things).tolist()}
        return {**super().state_dict(), **own}

    @classmethod
    def _of_state(cls, state: Mapping[str, Any]) -> Self:
        classes = ClassOptions.from_dict(state["options"])
        things = [int(c) for c in state.get("things", ())]
        return cls.from_options(classes, things=things, protocol=state.get("protocol", ""))

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
            Class value and object id of each pixel, or point. An object is
            named by its class and id together; ids lie between 0 and 2^32 − 1.
        crowd : iterable of int
            Truth ids that are crowds: they match nothing, and forgive
            predictions of their class that lie on them.

        Raises
        ------
        TypeError
            If an array does not hold integers.
        ValueError
            If shapes differ, a value is no class, or an id is out of range.
        """
        lenient = self._classes.unassigned == "count"
        return self.match((truth_classes, truth_ids), (pred_classes, pred_ids), crowd, lenient)

    def match(
        self,
        truth: tuple[Any, Any],
        pred: tuple[Any, Any],
        crowd: Iterable[int],
        unknown_is_void: bool,
    ) -> Self:
        """Count one image: classes and ids of either side."""
        found = match_segments(
            truth,
            pred,
            self._indices,
            self.num_classes,
            self._things,
            self._protocol,
            crowd,
            unknown_is_void=unknown_is_void,
        )
        own = self._own()
        own.cells += found.counts
        own.pairs += 1
        self._found.append(found.overlaps)
        return self

    @property
    def _indices(self) -> tuple[dict[int, int], dict[int, int]]:
        """Class index of each value, on either side; void is −1."""
        sides = self._classes.labels, self._classes.pred_labels
        truth, pred = (
            {value: index for index, entry in enumerate(side.classes) for value in entry.values}
            for side in sides
        )
        void = dict.fromkeys(self._classes.ignore, VOID)
        return truth | void, void | pred if self._classes.ignore else pred

    @property
    def pred_labels(self) -> LabelSet:
        """The classes as the predictions encode them."""
        return self._classes.pred_labels

    @property
    def things(self) -> NDArray[np.bool_]:
        """True for the classes that have objects, (C,)."""
        return self._things.copy()

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
        """Matches: class, intersection, union and how often, sorted, (M, 4)."""
        rows = np.concatenate([np.empty((0, 3), np.int64), *self._found])
        found, often = np.unique(rows, axis=0, return_counts=True)
        return np.concatenate([found, often[:, None]], axis=1)

    def _sums(self) -> tuple[Floats, Floats]:
        """Sum of the IoU of the matches, and TP + FP / 2 + FN / 2, per class."""
        overlaps = self.overlaps
        ious = overlaps[:, 1] / overlaps[:, 2] * overlaps[:, 3]
        sums = np.zeros(self.num_classes)
        np.add.at(sums, overlaps[:, 0], ious)
        return sums, np.asarray(self._cells @ np.array([1.0, 0.5, 0.5]))

    def pq(self) -> Floats:
        """Panoptic quality per class, Σ IoU / (TP + FP / 2 + FN / 2), (C,); NaN where absent."""
        return self.sq() * self.rq()

    def sq(self) -> Floats:
        """Segmentation quality per class, the mean IoU of the matches, (C,); NaN where absent.

        A class that occurs without a match has 0, so that it counts in a mean.
        """
        sums, occurring = self._sums()
        return np.where(occurring > 0, np.nan_to_num(ratio(sums, self._cells[:, 0])), np.nan)

    def rq(self) -> Floats:
        """Recognition quality per class, the F1 of the segments, (C,); NaN where absent."""
        return ratio(self._cells[:, 0], self._sums()[1])

    def panoptic_quality(self, part: Part = "all") -> dict[str, float]:
        """Means over the classes that occur.

        Parameters
        ----------
        part : {"all", "things", "stuff"}

        Returns
        -------
        dict
            ``pq``, ``sq``, ``rq``, and over how many ``classes``; NaN over none.
        """
        check_choice("part", part, get_args(Part))
        chosen = {"all": self.include, "things": self._things, "stuff": ~self._things}[part]
        taken = self.include & chosen
        if not self._protocol.absent_is_zero:
            taken &= self._sums()[1] > 0
        classes = int(taken.sum())
        means = {
            name: float(np.nan_to_num(values[taken]).mean()) if classes else float("nan")
            for name, values in (("pq", self.pq()), ("sq", self.sq()), ("rq", self.rq()))
        }
        return {**means, "classes": classes}

    def summary(self) -> dict[str, Any]:
        """All of it as plain data: a dict a class, and the means over all, things and stuff."""
        columns: dict[str, NDArray[Any]] = {"pq": self.pq(), "sq": self.sq(), "rq": self.rq()}
        columns |= {"found": self.tp, "invented": self.fp, "missed": self.fn}
        classes = [
            {"name": name, "thing": bool(thing)}
            | {column: values[c].item() for column, values in columns.items()}
            for c, (name, thing) in enumerate(zip(self.class_names, self._things, strict=True))
        ]
        means = {part: self.panoptic_quality(part) for part in get_args(Part)}
        return {"protocol": self._protocol.name, "classes": classes, **means}


#: The sum of the IoU of matches in the counts of ``Run.object_counts`` is in units of one part in
#: so many, for resamples are sums of integers.
IOU_UNIT = 1 << 32


def pq(counts: Counts) -> Floats:
    """Panoptic quality of the counts of ``Run.object_counts``, (..., C)."""
    return ratio(counts.tn / IOU_UNIT, counts.tp + (counts.fp + counts.fn) / 2)


def sq(counts: Counts) -> Floats:
    """Segmentation quality likewise; NaN without a match."""
    return ratio(counts.tn / IOU_UNIT, counts.tp)


def rq(counts: Counts) -> Floats:
    """Recognition quality likewise."""
    return ratio(counts.tp, counts.tp + (counts.fp + counts.fn) / 2)


#: Scores of objects, of images or of a data set.
OBJECT_METRICS = {"pq": pq, "sq": sq, "rq": rq}
