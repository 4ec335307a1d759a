"""The measure of objects: options, and the objects of pairs, read from files or components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import (
    check_choice,
    check_integer,
    check_kind,
    read_several,
    read_spacing,
    refuse_kind,
)
from segiou._support.files import Stamp, read_json
from segiou._support.numbers import digits
from segiou._support.text import listed
from segiou.counting.arrays import as_label_array
from segiou.counting.id_pairs import count_ids, id_pairs
from segiou.labels.class_options import ClassOptions, class_indices
from segiou.labels.label_set import LabelClass, LabelSet
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.measures.mask_pair import Masks
from segiou.measures.measure import Measure
from segiou.measures.object_mask import ObjectMask, classified
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
from segiou.measures.objects.plan import ObjectPlan
from segiou.measures.objects.weighted import cityscapes_things
from segiou.measures.plan import Plan
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
class ObjectOptions(Measure):
    """Panoptic quality of objects: components, or the instance ids of files.

    Attributes
    ----------
    source : {"components", "coco", "cityscapes", "kitti", "labels"}
        Connected components of each class; COCO's panoptic PNG files with
        annotations next to their folder as ``FOLDER.json`` (score either path);
        Cityscapes' ``instanceIds``; SemanticKITTI's ``.label`` files; or images
        with one id per object and 0 outside (StarDist, Cellpose), of one class.
    things : tuple of str, optional
        Names of the classes that have objects; all pixels of any other class in
        an image are one segment. Defaults to the instance classes of Cityscapes,
        to ``isthing`` in COCO's category file, otherwise to all classes.
    protocol : str
        As for :class:`PanopticCounts`; by default that of the source.
    connectivity, merge
        As for :func:`label_components`.
    min_size : float or str
        Smaller components are void: in pixels or voxels, or with a unit as in
        ``"50mm3"`` (``"50mm2"`` for images).
    spacing : sequence of float, optional
        Size of a pixel along each axis if ``min_size`` is in mm; by default
        that of the truth file.

    Raises
    ------
    TypeError
        If a value has the wrong type.
    ValueError
        If the source or protocol is unknown, or an option does not suit the source.
    """

    key: ClassVar[str] = "objects"
    score_names: ClassVar[tuple[str, ...]] = ("pq", "sq", "rq")
    reads_ids: ClassVar[bool] = True

    source: str = "components"
    things: tuple[str, ...] | None = None
    protocol: str = ""
    connectivity: int | None = None
    min_size: float | str = 0
    merge: int = 0
    spacing: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_choice("source", self.source, _SOURCES)
        check_kind("protocol", self.protocol, str, "text")
        least, unit = read_size(self.min_size)
        things = self.things
        if things is not None:
            things = tuple(read_several("things", things, "names of classes, such as ('car',)"))
        for name, value in {
            "things": things,
            "protocol": self.protocol or ("semantickitti" if self.source == "kitti" else "coco"),
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

    @classmethod
    def of(cls, choice: ObjectOptions | str | bool) -> ObjectOptions:
        """Build from options, the name of a source, or True for the defaults."""
        if isinstance(choice, ObjectOptions):
            return choice
        if choice is not True and not isinstance(choice, str):
            raise refuse_kind("objects", choice, "ObjectOptions, a source's name, True or False")
        return cls() if choice is True else cls(choice)

    def with_things_of(self, labels: Any) -> ObjectOptions:
        """Options whose things, if unset, come from a COCO category file.

        Parameters
        ----------
        labels : str, path or LabelSet
            The label set as it was passed.
        """
        file = str(labels)
        if self.source != "coco" or self.things is not None or not file.endswith(".json"):
            return self
        content = read_json(file)
        categories = content.get("categories") if isinstance(content, dict) else content
        if categories is None:
            return self
        things = tuple(entry["name"] for entry in categories if entry.get("isthing", 1))
        return replace(self, things=things)

    def __str__(self) -> str:
        usual = ObjectOptions(self.source).to_dict()
        options = {name: value for name, value in self.to_dict().items() if value != usual[name]}
        return ", ".join([self.source, *(f"{name}={value}" for name, value in options.items())])

    @classmethod
    def from_options(cls, given: Mapping[str, Any], classes: ClassOptions) -> ObjectOptions | None:
        """Options from the command line."""
        if given["objects"] is None:
            return None
        chosen = class_indices("things", classes.labels, given["things"])
        things = tuple(classes.labels.class_names[index] for index in chosen) or None
        return cls(given["objects"], things, min_size=given["min_size"] or 0)

    @classmethod
    def class_names(cls, given: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The classes of images of object labels."""
        chosen = given.get("objects")
        return OBJECT_CLASSES if "labels" in (chosen, getattr(chosen, "source", "")) else None

    def check_arrays(self) -> None:
        """Only components are found in arrays."""
        if self.source != "components":
            msg = (
                f"arrays have no {self.source!r} object ids; score components (objects=True), "
                "files (score_folder), or ids (segiou.measures.objects.PanopticCounts)"
            )
            raise ValueError(msg)

    def with_defaults(self, labels: Any, spacing: Any) -> ObjectOptions:
        """Options completed with the given label set and spacing."""
        options = self.with_things_of(labels)
        in_mm = isinstance(options.min_size, str)
        return replace(options, spacing=spacing) if in_mm and spacing is not None else options

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        if self.source == "labels":
            self._object_classes(classes.labels)
            self._object_classes(classes.pred_labels)
        return ObjectPlan(self, classes, masks)

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
