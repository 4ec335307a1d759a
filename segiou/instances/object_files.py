"""Objects of mask files: formats that store instance ids, and components of class maps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, compress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import (
    check_choice,
    check_integer,
    read_several,
    read_spacing,
    refuse_kind,
)
from segiou._support.files import Stamp, read_json
from segiou._support.text import digits, listed
from segiou.counting.arrays import as_label_array
from segiou.counting.id_pairs import count_id_pairs, count_ids
from segiou.instances.components import Components, components, least_size, read_size
from segiou.instances.objects import NO_OBJECT, id_areas, mapped, pack_ids, unpack_ids
from segiou.instances.panoptic import PROTOCOLS, Matches, PanopticCounts, SharedPixels
from segiou.instances.weighted import cityscapes_things
from segiou.labels.class_options import ClassOptions, class_indices
from segiou.labels.label_set import LabelClass, LabelSet
from segiou.masks.colors import packed
from segiou.masks.read import MaskError, RawMask, open_mask, void_value
from segiou.masks.segment_files import ImageSegments, load_segments, png_path
from segiou.masks.sources import stamp_of
from segiou.masks.windows import resized
from segiou.measures.measure import Masks, Measure, Plan

__all__ = ["ObjectMask", "ObjectOptions"]

_SOURCES = ("components", "coco", "cityscapes", "kitti", "labels")
#: Classes of images of object labels, if no others are given.
OBJECT_CLASSES = ("background", "object")


class ObjectMask(NamedTuple):
    """Class value and object id of each pixel, the ids of crowds, and the file.

    The classes may follow from the ids instead: a function of an array of ids. If
    pixels are given, each entry of the arrays stands for that many. Ids of connected
    components are stored as runs. Segments are the entries of COCO's annotations by id,
    until they are checked against the pixels; the stamp is that of the annotations, if
    they are next to the folder of the file.
    """

    classes: Any
    ids: NDArray[Any] | Components
    crowd: Sequence[int] = ()
    path: str = ""
    pixels: NDArray[np.int64] | None = None
    segments: Mapping[int, Mapping[str, Any]] | None = None
    stamp: Stamp | None = None

    @property
    def id_map(self) -> NDArray[Any]:
        """The ids as an array."""
        return self.ids.id_map if isinstance(self.ids, Components) else self.ids

    def resized(self, shape: tuple[int, ...]) -> ObjectMask:
        """The same at a different size, by nearest-neighbour sampling."""
        found = self.checked()
        classes = found.classes if callable(found.classes) else resized(found.classes, shape)
        return found._replace(classes=classes, ids=resized(found.id_map, shape))

    def whole(self) -> ObjectMask:
        """The same with the class value of each pixel."""
        if not callable(self.classes):
            return self
        return self.checked()._replace(classes=self.classes(self.id_map), ids=self.id_map)

    def checked(self) -> ObjectMask:
        """The same; MaskError if its segments are not those of the annotation."""
        if self.segments is None:
            return self
        areas = {i: n for i, n in id_areas(self.id_map, self.pixels).items() if i}
        _check_segments(self.path, self.segments, areas)
        return self._replace(segments=None)


#: Per side: the number (from 1) of the object at each pixel; and for each object its outcome
#: (0 dropped, 1 found, 2 missed or false positive), class index and pixels.
Drawn = tuple[tuple[NDArray[np.int64], list[list[int]]], ...]


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
            "protocol": self.protocol or ("semantickitti" if self.source == "kitti" else "coco"),
            "min_size": f"{digits(least)}{unit}" if unit else least,
            "spacing": None if self.spacing is None else read_spacing(self.spacing),
        }.items():
            object.__setattr__(self, name, value)
        check_choice("protocol", self.protocol, tuple(PROTOCOLS))
        check_integer("merge", self.merge, 0)
        if self.source != "components" and (least or self.merge or self.connectivity):
            msg = (
                "min_size, merge and connectivity apply to components only; "
                f"files of source {self.source!r} store object ids. Leave these options out"
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
        found = read_json(file)
        categories = found.get("categories") if isinstance(found, dict) else found
        if categories is None:
            return self
        things = tuple(entry["name"] for entry in categories if entry.get("isthing", 1))
        return replace(self, things=things)

    def __str__(self) -> str:
        usual = ObjectOptions(self.source).to_dict()
        own = {name: value for name, value in self.to_dict().items() if value != usual[name]}
        return ", ".join([self.source, *(f"{name}={value}" for name, value in own.items())])

    @classmethod
    def asked(cls, given: Mapping[str, Any], classes: ClassOptions) -> ObjectOptions | None:
        """Options from the command line."""
        if given["objects"] is None:
            return None
        chosen = class_indices("things", classes.labels, given["things"])
        things = tuple(classes.labels.class_names[index] for index in chosen) or None
        return cls(given["objects"], things, min_size=given["min_size"] or 0)

    def fitted(self, labels: Any, spacing: Any) -> ObjectOptions:
        """Options completed with the given label set and spacing."""
        found = self.with_things_of(labels)
        in_mm = isinstance(found.min_size, str)
        return replace(found, spacing=spacing) if in_mm and spacing is not None else found

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        from segiou.instances.object_plan import ObjectPlan

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
        """Split the pixels of a file into classes and ids.

        Parameters
        ----------
        raw : RawMask
            The pixels of the file.
        path : str
            The file.
        labels : LabelSet
            The classes of the file.
        beside : dict, optional
            Annotations that were read for the files of a batch so far, which are not read again.

        Returns
        -------
        ObjectMask or None
            None for components of class maps.

        Raises
        ------
        MaskError
            If the file does not fit the source or its annotation.
        """
        if self.source == "components":
            return None
        if self.source == "coco":
            return _of_coco(raw, path, labels, {} if beside is None else beside)
        if self.source == "labels":
            return _of_labels(raw, path, *self._object_classes(labels))
        if raw.is_color if self.source == "cityscapes" else raw.kind != "LABEL":
            raise _no_ids(path, self.source, raw)
        if self.source == "kitti":
            # As in SemanticKITTI's own evaluation, the whole number identifies an object.
            return ObjectMask(lambda ids: ids & 0xFFFF, raw.values)
        return _of_cityscapes(raw.values, path)

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
        """Both sides, unchecked, with one entry per pair of ids that share pixels.

        Parameters
        ----------
        truth, pred : ObjectMask, optional
            Objects of both sides.

        Returns
        -------
        tuple of ObjectMask or None
            None unless classes follow from ids.
        """
        if truth is None or pred is None:
            return None
        if not (callable(truth.classes) and callable(pred.classes)):
            return None
        if isinstance(truth.ids, Components) and isinstance(pred.ids, Components):
            in_truth, in_pred, pixels = truth.ids.overlaps(pred.ids)
        else:
            in_truth, in_pred, pixels = count_id_pairs(truth.id_map, pred.id_map)
        first, second = (
            side._replace(classes=side.classes(ids), ids=ids, pixels=pixels)
            for side, ids in ((truth, in_truth), (pred, in_pred))
        )
        return first, second

    def stamp(self, own: Stamp, path: str) -> Stamp:
        """Stamp of a file joined with that of COCO's annotations next to its folder.

        Parameters
        ----------
        own : Stamp
            Stamp of the file.
        path : str
            The file.
        """
        if self.source != "coco":
            return own
        place, name = _annotations(path)
        return own if name else own.joined(_find_annotations(place)[1])

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
        shared = (self.shared(*pair) or _shared_pixels(*pair) for pair in pairs)
        truth, pred = zip(*((t.checked(), p.checked()) for t, p in shared), strict=True)
        found = SharedPixels(
            self._codes("truth", truth, counts, counts.labels),
            self._codes("pred", pred, counts, counts.pred_labels),
            np.concatenate([side.pixels for side in truth]),
            [len(side.pixels) for side in truth],
            [side.crowd for side in truth],
        )
        # As in panopticapi, each segment that COCO's annotations list is matched, stuff included.
        return counts.shared_matches(found, split_stuff=self.source == "coco")

    def _codes(
        self, name: str, sides: Sequence[ObjectMask], counts: PanopticCounts, labels: LabelSet
    ) -> NDArray[np.int64]:
        """Packed class values and ids of one side of several pairs."""
        classes = np.concatenate([side.classes for side in sides], dtype=np.int64, casting="unsafe")
        ids = np.concatenate([side.id_map for side in sides], dtype=np.int64, casting="unsafe")
        if self.source == "coco":
            # Id 0 is void, even if its class value is an undeclared category.
            classes = np.where(ids == 0, NO_OBJECT, classes)
            _check_categories(sides, {*classes.tolist()}, labels, counts)
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
        found = components(array, groups, self.connectivity, self.merge)
        classes = np.full(len(found.values) + 1, NO_OBJECT)
        classes[1:] = found.values
        small = found.sizes * voxel < least
        classes[1:][small & np.isin(classes[1:], of_things)] = NO_OBJECT
        return ObjectMask(classes.__getitem__, found)


def _things(counts: PanopticCounts, labels: LabelSet) -> dict[str, Sequence[int]]:
    """Values of each thing class, by name."""
    names = {*compress(counts.labels.class_names, counts.things)}
    return {entry.name: entry.values for entry in labels.classes if entry.name in names}


def _shared_pixels(truth: ObjectMask, pred: ObjectMask) -> tuple[ObjectMask, ObjectMask]:
    """Both sides with one entry per pair of objects that share pixels."""
    truth, pred = truth.whole(), pred.whole()
    if truth.pixels is not None:
        return truth, pred
    in_truth, in_pred, pixels = count_id_pairs(
        pack_ids(*truth[:2], ("truth_classes", "truth_ids")),
        pack_ids(*pred[:2], ("pred_classes", "pred_ids")),
    )
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
        if found := present.intersection(values):
            problem = (
                f"contains class ids only: {name} is {min(found)}, but instances would be "
                f"{1000 * min(found)} + number; for connected components, use --objects components"
            )
            raise MaskError(pred.path, problem)


def draw_objects(
    options: ObjectOptions, classes: ClassOptions, truth: Any, pred: Any, shape: Any, spacing: Any
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


def _no_ids(path: str, source: str, raw: RawMask) -> MaskError:
    wanted = {
        "coco": "a PNG whose colours encode the ids",
        "cityscapes": "a single-channel image, such as …_instanceIds.png",
        "kitti": "a .label file",
        "labels": "a single-channel image of integer ids",
    }
    found = f"a {raw.kind} with {'colours' if raw.is_color else 'one channel'}"
    return MaskError(path, f"is {found}; --objects {source} expects {wanted[source]}")


def _annotations(path: str) -> tuple[str, str]:
    """The folder of a mask of COCO, or the annotation file and the name in ``FILE.json/NAME``."""
    start, is_in_file, name = path.partition(".json/")
    # Called for each image: paths take five times as long as strings.
    return (f"{start}.json", name) if is_in_file else (os.path.dirname(path), "")  # noqa: PTH120


def _find_annotations(place: str) -> tuple[str, Stamp]:
    """COCO's annotation file, itself or next to a folder."""
    if place.endswith(".json") and not Path(place).is_dir():
        return place, stamp_of(place)
    folder = Path(place).absolute()
    real = folder.resolve()
    folders = folder, real, *real.parents[:-1]
    files = [place.with_name(f"{place.name}.json") for place in folders]
    file = next((file for file in files if file.is_file()), files[1])
    return str(file), stamp_of(file)


def _of_cityscapes(values: NDArray[Any], path: str) -> ObjectMask:
    """Objects of ``instanceIds``: 1000 · class + number, or the class alone for a group."""
    # A file without objects may have 8 bits, which cannot store 1000.
    ids = values.astype(np.promote_types(values.dtype, np.uint16), copy=False)
    groups = range(1, 1000)
    if ids.dtype.kind == "i" and ids.min(initial=0) < 0:  # classes may be negative, ids may not
        return ObjectMask(_cityscapes_classes(ids), ids.clip(0), groups, path)
    return ObjectMask(_cityscapes_classes, ids, groups, path)


def _cityscapes_classes(ids: NDArray[Any]) -> NDArray[Any]:
    return np.where(ids >= 1000, ids // 1000, ids)


def _of_labels(raw: RawMask, path: str, background: LabelClass, objects: LabelClass) -> ObjectMask:
    """Objects of an image with one id per object, and 0 outside."""
    if raw.volume is not None:
        problem = (
            "is a volume; --objects labels reads images and arrays, whose geometry is not checked. "
            "Save the ids as .npy"
        )
        raise MaskError(path, problem)
    ids = np.asarray(raw.values)
    if raw.is_color or raw.names or ids.dtype.kind not in "biu":
        raise _no_ids(path, "labels", raw)
    if ids.min(initial=0) < 0:
        raise MaskError(path, "contains negative ids; number the objects from 1 and set 0 outside")
    values = background.values[0], objects.values[0]
    return ObjectMask(partial(_values_of_ids, values=values), ids, path=path)


def _values_of_ids(ids: NDArray[Any], values: tuple[int, int]) -> NDArray[np.int64]:
    return np.where(ids > 0, np.int64(values[1]), np.int64(values[0]))


def _of_coco(raw: RawMask, path: str, labels: LabelSet, beside: dict[str, Any]) -> ObjectMask:
    """Objects of a PNG whose colours encode ids, from the annotations next to its folder."""
    place, name = _annotations(path)
    if place not in beside:
        file, stamp = _find_annotations(place)
        try:
            beside[place] = file, stamp, load_segments(file, stamp)
        except ValueError as error:
            raise MaskError(path, f"requires COCO annotations; {error}") from error
    file, stamp, contents = beside[place]
    png = os.path.basename(path)  # noqa: PTH119 - called for each image
    image = contents.images.get(name) if name else contents.pngs.get(png)
    if not isinstance(image, ImageSegments) or not image.png:
        every = contents.images.values()
        has_outlines = any(isinstance(i, ImageSegments) and i.segments and not i.png for i in every)
        kind = "panoptic annotation (segments_info)" if has_outlines else "annotation"
        raise MaskError(path, f"has no {kind} in {file}")
    if name:
        # So far only classes were read; the PNG in the folder stores the ids.
        raw = open_mask(png_path(image, Path(file)))
    if not raw.is_color:
        raise _no_ids(path, "coco", raw)
    segments: dict[int, Mapping[str, Any]] = {}
    values = {0: void_value(contents.free, labels)}
    for category, part in image.segments:
        number = part["id"]
        if number in segments and values[number] != category:
            problem = f"segment {number} has two classes, {values[number]} and {category}"
            raise MaskError(path, problem)
        segments[number], values[number] = part, category
    values[0] = void_value(contents.free, labels)
    crowd = tuple(number for number, part in segments.items() if part.get("iscrowd"))
    classes = partial(mapped, meaning=values)
    return ObjectMask(
        classes, packed(raw.values), crowd, path, segments=segments, stamp=None if name else stamp
    )


def _check_segments(
    path: str, segments: Mapping[int, Mapping[str, Any]], areas: Mapping[int, int]
) -> None:
    """Reject segments of an annotation that are not those of its file."""
    for different, problem in (
        (areas.keys() - segments, "contains segment ids missing from its annotation"),
        (segments.keys() - areas, "does not contain segment ids of its annotation"),
    ):
        if different:
            raise MaskError(path, f"{problem}: {listed([*map(str, sorted(different))], 8)}")
    for number, part in segments.items():
        if part.get("area") not in (None, areas[number]):
            problem = f"has {areas[number]} pixels, but its annotation has area {part['area']!r}"
            raise MaskError(path, f"segment {number} {problem}; regenerate the annotation")
