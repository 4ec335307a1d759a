"""Objects of pairs: formats that store instance ids, and components of class maps."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_integer, read_several, read_spacing
from segiou._support.files import Stamp
from segiou._support.numbers import digits
from segiou._support.text import listed
from segiou.counting.arrays import as_label_array
from segiou.counting.id_pairs import count_ids, id_pairs, mapped
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelClass, LabelSet
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.measures.measure import Measure
from segiou.measures.object_mask import Drawn, ObjectMask, classified
from segiou.measures.objects.counts import NO_OBJECT, pack_ids, shared_ids, unpack_ids
from segiou.measures.objects.files import (
    annotations_of,
    cityscapes_objects,
    coco_objects,
    find_annotations,
    labelled_objects,
    no_ids,
)
from segiou.measures.objects.panoptic import PROTOCOLS, Matches, PanopticCounts, SharedPixels
from segiou.measures.objects.weighted import cityscapes_things
from segiou.regions.components import (
    Components,
    components,
    least_size,
    read_connectivity,
    read_size,
)

_SOURCES = ("components", "coco", "cityscapes", "kitti", "labels")
#: Classes of images of object labels, if no others are given.
OBJECT_CLASSES = ("background", "object")


@dataclass(frozen=True)
class ObjectSource(Measure):
    """Values of ``ObjectOptions``, which makes the plan, and the objects that they find."""

    source: str = "components"
    things: tuple[str, ...] | None = None
    protocol: str = ""
    connectivity: int | None = None
    min_size: float | str = 0
    merge: int = 0
    spacing: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_choice("source", self.source, _SOURCES)
        least, unit = read_size(self.min_size)
        things = self.things
        if things is not None:
            things = tuple(read_several("things", things, "names of classes, such as ('car',)"))
        for name, value in {
            "things": things,
            "protocol": ("semantickitti" if self.source == "kitti" else "coco")
            if self.protocol == ""
            else self.protocol,
            "connectivity": read_connectivity(self.connectivity),
            "merge": check_integer("merge", self.merge, 0),
            "min_size": f"{digits(least)}{unit}" if unit else least,
            "spacing": None if self.spacing is None else read_spacing(self.spacing),
        }.items():
            object.__setattr__(self, name, value)
        check_choice("protocol", self.protocol, tuple(PROTOCOLS))
        if self.source != "components" and (least or self.merge or self.connectivity):
            msg = (
                "min_size, merge and connectivity apply to components only; "
                f"files of source {self.source!r} store object ids. Omit these options"
            )
            raise ValueError(msg)

    def empty(self, classes: ClassOptions) -> PanopticCounts:
        """Empty counts for these classes.

        Parameters
        ----------
        classes : ClassOptions
            The classes and ignored values.
        """
        things = self.things
        if things is None and self.source == "cityscapes":
            things = cityscapes_things(classes.labels)
        if self.source == "labels":
            things = (self._object_classes(classes.labels)[1].name,)
        # Pixel counting checks which values are allowed.
        lenient = replace(classes, unassigned="count")
        return PanopticCounts.from_options(lenient, things=things, protocol=self.protocol)

    def read(
        self, raw: RawMask, path: str, labels: LabelSet, beside: dict[str, Any] | None = None
    ) -> ObjectMask | None:
        """Split the pixels of a file into classes and ids."""
        if self.source == "components":
            return None
        if self.source == "coco":
            return coco_objects(raw, path, labels, {} if beside is None else beside)
        if self.source == "labels":
            return labelled_objects(raw, path, *self._object_classes(labels))
        if raw.is_color if self.source == "cityscapes" else raw.kind != "LABEL":
            raise no_ids(path, self.source, raw)
        if self.source == "kitti":
            # As in SemanticKITTI's own evaluation, the whole number identifies an object.
            return ObjectMask(lambda ids: ids & 0xFFFF, raw.values)
        return cityscapes_objects(raw.values, path)

    def _object_classes(self, labels: LabelSet) -> tuple[LabelClass, LabelClass]:
        """The class of the pixels outside all objects, and that of the objects."""
        if labels.num_classes != 2 or (self.things is not None and len(self.things) != 1):
            names = listed(list(self.things or labels.class_names), 8)
            msg = (
                f"objects='labels' needs two classes, that of the objects and the background, got "
                f"{names}; pass labels={[*OBJECT_CLASSES]} (omit --labels)"
            )
            raise ValueError(msg)
        things = labels.index(self.things[0]) if self.things else 1
        return labels.classes[1 - things], labels.classes[things]

    def shared(
        self, truth: ObjectMask | None, pred: ObjectMask | None
    ) -> tuple[ObjectMask, ObjectMask] | None:
        """Both sides, unchecked, with one entry per pair of ids that share pixels, in any order."""
        if truth is None or pred is None:
            return None
        if not (callable(truth.classes) and callable(pred.classes)):
            return None
        if isinstance(truth.ids, Components) and isinstance(pred.ids, Components):
            in_truth, in_pred, pixels = truth.ids.overlaps(pred.ids)
        else:
            in_truth, in_pred, pixels = id_pairs(truth.id_map, pred.id_map)
        first = truth._replace(ids=in_truth, pixels=pixels)
        return first, pred._replace(ids=in_pred, pixels=pixels)

    def stamp(self, own: Stamp, path: str) -> Stamp:
        """Stamp of a file joined with that of COCO's annotations next to its folder."""
        if self.source != "coco":
            return own
        annotated, name = annotations_of(path)
        return own if name else own.joined(find_annotations(annotated)[1])

    def count(
        self, counts: PanopticCounts, truth: Any, pred: Any, mask: Any = None, spacing: Any = None
    ) -> PanopticCounts:
        """Add one pair of object masks or class maps.

        Parameters
        ----------
        counts : PanopticCounts
            Counts to which the pair is added.
        truth, pred : ObjectMask or array_like
            Objects or classes.
        mask : array_like of bool, optional
            Valid pixels; the others are void.
        spacing : sequence of float, optional
            Size of a pixel along each axis.
        """
        return counts.add(self.matches(counts, truth, pred, mask, spacing))

    def matches(
        self, counts: PanopticCounts, truth: Any, pred: Any, mask: Any = None, spacing: Any = None
    ) -> Matches:
        """Match the objects of a pair without counting them.

        Parameters
        ----------
        counts : PanopticCounts
            The classes and the protocol.
        truth, pred, mask, spacing
            As for :meth:`count`.
        """
        return self.matched(counts, [self.sides(counts, truth, pred, mask, spacing)])

    def sides(
        self, counts: PanopticCounts, truth: Any, pred: Any, mask: Any = None, spacing: Any = None
    ) -> tuple[ObjectMask, ObjectMask]:
        """The objects of both sides of a pair; those of class maps are components.

        Parameters
        ----------
        counts, truth, pred, mask, spacing
            As for :meth:`matches`.
        """
        first = self._objects(truth, counts, counts.labels, spacing)
        second = self._objects(pred, counts, counts.pred_labels, spacing)
        if self.source == "cityscapes":
            _check_numbered(counts, second)
        if mask is not None and callable(first.classes):
            first = first._replace(ids=np.where(mask, first.id_map, 0))
        elif mask is not None:
            classes = np.asarray(first.classes, np.int64)  # files have few bits
            first = first._replace(classes=np.where(mask, classes, NO_OBJECT))
        return first, second

    def matched(
        self, counts: PanopticCounts, pairs: Sequence[tuple[ObjectMask, ObjectMask]]
    ) -> Matches:
        """Match the objects of several pairs, which takes little longer than of one.

        Parameters
        ----------
        counts : PanopticCounts
            The classes and the protocol.
        pairs : sequence of tuple of ObjectMask
            Results of :meth:`sides`.
        """
        shared = [self.shared(*pair) or _shared_pixels(*pair) for pair in pairs]
        truth, pred = (classified([sides[k] for sides in shared]) for k in (0, 1))
        pixels: list[Any] = [side.pixels for side in truth]
        several = SharedPixels(
            self._codes("truth", truth, counts, counts.labels),
            self._codes("pred", pred, counts, counts.pred_labels),
            np.concatenate(pixels),
            [*map(len, pixels)],
            [side.crowd for side in truth],
        )
        # As in panopticapi, each segment that COCO's annotations list is matched, stuff included.
        return counts.shared_matches(several, split_stuff=self.source == "coco")

    def _codes(
        self, name: str, sides: Sequence[ObjectMask], counts: PanopticCounts, labels: LabelSet
    ) -> NDArray[np.int64]:
        """Packed class values and ids of one side of several pairs."""
        classes = np.concatenate([side.classes for side in sides], dtype=np.int64, casting="unsafe")
        ids = np.concatenate([side.id_map for side in sides], dtype=np.int64, casting="unsafe")
        if self.source == "coco":
            # Id 0 is void, even if its class value is an undeclared category.
            classes = np.where(ids == 0, NO_OBJECT, classes)
            _check_categories(sides, {*np.unique(classes).tolist()}, labels, counts)
        return pack_ids(classes, ids, (f"{name}_classes", f"{name}_ids"))

    def _objects(
        self, side: Any, counts: PanopticCounts, labels: LabelSet, spacing: Any
    ) -> ObjectMask:
        """An object mask, or the components of a class map; small ones, and id 0, are void."""
        if isinstance(side, ObjectMask):
            return side
        array = as_label_array(side, "labels")
        size = (self.spacing or spacing) if isinstance(self.min_size, str) else None
        voxel, least = least_size(array, self.min_size, size)
        things = [*_things(counts, labels).values()]
        of_things = [*chain(*things)]
        groups = things
        if self.merge:
            groups = things + [(value,) for value in count_ids(array) if value not in of_things]
        connected = components(array, groups, self.connectivity, self.merge)
        classes = np.full(len(connected.values) + 1, NO_OBJECT)
        classes[1:] = connected.values
        small = connected.sizes * voxel < least
        classes[1:][small & np.isin(classes[1:], of_things)] = NO_OBJECT
        return ObjectMask(classes.__getitem__, connected)


def _things(counts: PanopticCounts, labels: LabelSet) -> dict[str, Sequence[int]]:
    """Values of each thing class, by name."""
    names = {*compress(counts.labels.class_names, counts.things)}
    return {entry.name: entry.values for entry in labels.classes if entry.name in names}


def _shared_pixels(truth: ObjectMask, pred: ObjectMask) -> tuple[ObjectMask, ObjectMask]:
    """Both sides with one entry per pair of objects that share pixels."""
    truth, pred = truth.whole(), pred.whole()
    if truth.pixels is not None:
        return truth, pred
    in_truth, in_pred, pixels = shared_ids(truth[:2], pred[:2])
    first, second = (
        side._replace(classes=classes, ids=ids, pixels=pixels)
        for side, (classes, ids) in ((truth, unpack_ids(in_truth)), (pred, unpack_ids(in_pred)))
    )
    return first, second


def _check_categories(
    sides: Sequence[ObjectMask], present: Set[int], labels: LabelSet, counts: PanopticCounts
) -> None:
    """Reject segments of categories that the label set does not declare."""
    known = {NO_OBJECT, *counts._classes.ignore}
    if present <= labels.declared_values | known:
        return
    for side in sides:
        of_segments = {*side.classes[side.id_map != 0].tolist()}
        if unknown := sorted(of_segments - labels.declared_values - known):
            shown = listed([*map(str, unknown)], 8)
            problem = (
                f"contains segments of undeclared categories: {shown}; add them to the label set"
            )
            raise MaskError(side.path, problem)


def _check_numbered(counts: PanopticCounts, pred: ObjectMask) -> None:
    """Reject Cityscapes predictions that are class maps without instances."""
    if (ids := pred.id_map).max(initial=0) >= 1000:
        return
    present = {*np.unique(ids).tolist()}
    for name, values in _things(counts, counts.pred_labels).items():
        if ids_only := present.intersection(values):
            value = min(ids_only)
            problem = (
                f"contains class ids only: {name} is {value}, but instances would be "
                f"{1000 * value} + number; for connected components, use --objects components"
            )
            raise MaskError(pred.path, problem)


def draw_objects(
    options: ObjectSource, classes: ClassOptions, truth: Any, pred: Any, shape: Any, spacing: Any
) -> Drawn:
    """Outcome of each object of a pair, and its pixels in pictures of this shape."""
    counts = options.empty(classes)
    sides = options.sides(counts, truth, pred, spacing=spacing)
    matches = options.matched(counts, [sides])
    drawn = []
    for k, side in enumerate(sides):
        codes = counts._segments(k, pack_ids(*side.resized(shape).whole()[:2], ("classes", "ids")))
        things = np.append(counts.things, False)[matches.rows[k][:, 1]]
        numbers = {code: n for n, code in enumerate(matches.segments[k][things].tolist(), 1)}
        drawn.append((mapped(codes, numbers), matches.rows[k][things].tolist()))
    return tuple(drawn)
