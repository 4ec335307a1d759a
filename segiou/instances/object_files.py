"""Objects of mask files: which formats hold them, and how they are told apart elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from segiou.instances.objects import (
    NO_OBJECT,
    id_areas,
    label_components,
    mapped,
    pack_ids,
    read_size,
)
from segiou.instances.panoptic import PROTOCOLS, Matches, PanopticCounts
from segiou.instances.weighted import cityscapes_things
from segiou.labels.class_options import ClassOptions, class_indices, class_word
from segiou.labels.label_set import LabelSet
from segiou.masks.read import MaskError, RawMask, open_mask
from segiou.masks.segment_files import ImageSegments, load_segments, png_path
from segiou.masks.sources import stamp_of
from segiou.masks.windows import resized
from segiou.measures.measure import Masks, Measure, Plan

__all__ = ["ObjectMask", "ObjectOptions"]

_SOURCES = ("components", "coco", "cityscapes", "kitti")


class ObjectMask(NamedTuple):
    """Class value and object id of each pixel, the ids that are crowds, and of what file."""

    classes: NDArray[Any]
    ids: NDArray[Any]
    crowd: tuple[int, ...] = ()
    path: str = ""

    def resized(self, shape: tuple[int, ...]) -> ObjectMask:
        """The same at another size; each pixel is that of the nearest centre."""
        return self._replace(classes=resized(self.classes, shape), ids=resized(self.ids, shape))


#: Of either side: the number, from 1, of the object of each pixel; and of each object whether it
#: was forgiven (0), found (1), or missed or invented (2), its class index and its pixels.
Drawn = tuple[tuple[NDArray[np.int64], list[list[int]]], ...]


@dataclass(frozen=True)
class ObjectOptions(Measure):
    """Where the objects of masks come from, and how they are scored.

    Attributes
    ----------
    source : {"components", "coco", "cityscapes", "kitti"}
        Connected components of each class; COCO's panoptic PNG files, whose
        annotations lie beside their folder as ``FOLDER.json`` (either of both
        is the place to score); Cityscapes'
        ``instanceIds``; or SemanticKITTI's ``.label`` files.
    things : tuple of str, optional
        Names of the classes that have objects; of the others all pixels of an
        image are one segment. By default those that Cityscapes has instances
        of, or that the label file of COCO names (``isthing``), else all classes.
    protocol : str
        As of :class:`PanopticCounts`; by default that of the source.
    connectivity, merge
        Of components, as of :func:`label_components`.
    min_size : float or str
        Components below it are void: in pixels or voxels, or such as
        ``"50mm3"`` (of images ``"50mm2"``).
    spacing : sequence of float, optional
        Size of a pixel along each axis, where ``min_size`` is in mm; by default
        that of the truth's file.

    Raises
    ------
    TypeError
        If a value is of the wrong kind.
    ValueError
        If there is no such source or protocol.
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
                "min_size, merge and connectivity have no effect on the objects of "
                f"{self.source!r}, which its files name; leave them out"
            )
            raise ValueError(msg)

    @classmethod
    def of(cls, choice: ObjectOptions | str | bool) -> ObjectOptions:
        """Read a caller's choice: options, the name of a source, or True for the usual ones.

        Parameters
        ----------
        choice : ObjectOptions or str or True
            What the caller asks for.
        """
        if isinstance(choice, ObjectOptions):
            return choice
        if choice is not True and not isinstance(choice, str):
            raise refuse_kind("objects", choice, "ObjectOptions, a source's name, True or False")
        return cls() if choice is True else cls(choice)

    def with_things_of(self, labels: Any) -> ObjectOptions:
        """The same; where no things are named, those that a file of COCO's categories names.

        Parameters
        ----------
        labels : array_like
            The label set.

        Returns
        -------
        ObjectOptions
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
        """What the command line asks for."""
        if given["objects"] is None:
            return None
        chosen = class_indices("things", classes.labels, given["things"])
        things = tuple(classes.labels.class_names[index] for index in chosen) or None
        return cls(given["objects"], things, min_size=given["min_size"] or 0)

    def words(self, labels: LabelSet) -> list[str]:
        """What asks for it on the command line."""
        least, text = self.min_size, [f"--objects={self.source}"]
        text += [f"--things={class_word(n, labels.index(n))}" for n in self.things or ()]
        size = least if isinstance(least, str) else digits(least)
        return [*text, *[f"--min-size={size}"] * bool(least)]

    def fitted(self, labels: Any, spacing: Any) -> ObjectOptions:
        """The same for a label set and a spacing that were given."""
        found = self.with_things_of(labels)
        in_mm = isinstance(found.min_size, str)
        return replace(found, spacing=spacing) if in_mm and spacing is not None else found

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """Objects of these classes."""
        from segiou.instances.object_plan import ObjectPlan

        return ObjectPlan(self, classes, masks)

    def empty(self, classes: ClassOptions) -> PanopticCounts:
        """Nothing counted, of these classes.

        Parameters
        ----------
        classes : ClassOptions
            The classes, and what is ignored.

        Returns
        -------
        PanopticCounts
        """
        things = self.things
        if things is None and self.source == "cityscapes":
            things = cityscapes_things(classes.labels)
        # Which values are allowed is checked where pixels are counted.
        lenient = replace(classes, unassigned="count")
        return PanopticCounts.from_options(lenient, things=things, protocol=self.protocol)

    def read(self, raw: RawMask, path: str) -> ObjectMask | None:
        """Split what a file holds into classes and ids; None where components are looked for.

        Parameters
        ----------
        raw : RawMask
            The file's pixels.
        path : str
            The file.

        Returns
        -------
        ObjectMask or None

        Raises
        ------
        MaskError
            If the file is none of this source, or its annotation does not fit it.
        """
        if self.source == "components":
            return None
        if self.source == "coco":
            return _of_coco(raw, path)
        if raw.is_color if self.source == "cityscapes" else raw.kind != "LABEL":
            raise _no_ids(path, self.source, raw)
        if self.source == "kitti":
            # As its own evaluation has it, the whole number names an object, class and all.
            return ObjectMask(raw.values & 0xFFFF, raw.values)
        # A file without objects may have 8 bits, and they do not hold 1000.
        ids = raw.values.astype(np.promote_types(raw.values.dtype, np.uint16), copy=False)
        # Of a class of objects, what has no number is a group of them.
        classes = np.where(ids >= 1000, ids // 1000, ids)
        return ObjectMask(classes, ids.clip(0), tuple(range(1, 1000)), path)

    def stamp(self, own: Stamp, path: str) -> Stamp:
        """The stamp of a file with that of COCO's annotations, if they lie beside its folder.

        Parameters
        ----------
        own : Stamp
            The stamp of the file.
        path : str
            The file.

        Returns
        -------
        Stamp
        """
        if self.source != "coco":
            return own
        file, name = _annotations(path)
        return own if name else own.joined(stamp_of(file))

    def count(
        self, counts: PanopticCounts, truth: Any, pred: Any, mask: Any = None, spacing: Any = None
    ) -> PanopticCounts:
        """Add one pair, of ids or of class maps; what ``mask`` leaves out is void.

        Parameters
        ----------
        counts : PanopticCounts
            What the pair is added to.
        truth : ObjectMask or array_like
            Objects or classes of the truth.
        pred : ObjectMask or array_like
            The same of the prediction.
        mask : array_like, optional
            True where a pixel counts; all by default.
        spacing : sequence of float, optional
            Size of a pixel, as the truth's file says.

        Returns
        -------
        PanopticCounts
        """
        return counts.add(self._matched(counts, truth, pred, spacing, mask)[1])

    def _matched(
        self, counts: PanopticCounts, truth: Any, pred: Any, spacing: Any, mask: Any = None
    ) -> tuple[tuple[ObjectMask, ObjectMask], Matches]:
        """The objects of both sides, of class maps their components, and what became of them."""
        first = self._objects(truth, _things(counts, counts.labels), spacing)
        second = self._objects(pred, _things(counts, counts.pred_labels), spacing)
        if self.source == "cityscapes":
            _check_numbered(counts, second)
        if mask is not None:
            first = first._replace(classes=np.where(mask, first.classes, NO_OBJECT))
        return (first, second), counts.matches(first[:2], second[:2], first.crowd)

    def _objects(self, side: Any, things: Mapping[str, Sequence[int]], spacing: Any) -> ObjectMask:
        """A side as it is, or the components of a class map; what is too small is void."""
        if isinstance(side, ObjectMask):
            return side
        how: Any = {"connectivity": self.connectivity, "merge": self.merge}
        if isinstance(self.min_size, str):
            how["spacing"] = self.spacing or spacing
        ids = label_components(side, things.values(), min_size=self.min_size, **how)
        if self.min_size:
            small = np.isin(side, [*chain(*things.values())]) & (ids == 0)
            side = np.where(small, NO_OBJECT, side.astype(np.int64))
        return ObjectMask(side, ids)


def _things(counts: PanopticCounts, labels: LabelSet) -> dict[str, Sequence[int]]:
    """Values of the classes that have objects."""
    names = {*compress(counts.labels.class_names, counts.things)}
    return {entry.name: entry.values for entry in labels.classes if entry.name in names}


def _check_numbered(counts: PanopticCounts, pred: ObjectMask) -> None:
    """Refuse predictions of Cityscapes that are class maps: all pixels of a class, no object."""
    present = id_areas(pred.ids)
    for name, values in _things(counts, counts.pred_labels).items():
        if max(present, default=0) < 1000 and (found := present.keys() & values):
            problem = (
                f"has classes and no objects: {name} is {min(found)}, an object of it would be "
                f"{1000 * min(found)} + its number; for connected components: --objects components"
            )
            raise MaskError(pred.path, problem)


def draw_objects(
    options: ObjectOptions, classes: ClassOptions, truth: Any, pred: Any, shape: Any, spacing: Any
) -> Drawn:
    """What became of each object of a pair, and where it lies in pictures of this shape."""
    counts = options.empty(classes)
    sides, matches = options._matched(counts, truth, pred, spacing)
    drawn = []
    for k, side in enumerate(sides):
        codes = counts._segments(k, pack_ids(*side.resized(shape)[:2], ("classes", "ids")))
        things = np.append(counts.things, False)[matches.rows[k][:, 1]]
        numbers = {code: n for n, code in enumerate(matches.segments[k][things].tolist(), 1)}
        drawn.append((mapped(codes, numbers), matches.rows[k][things].tolist()))
    return tuple(drawn)


def _no_ids(path: str, source: str, raw: RawMask) -> MaskError:
    wanted = {
        "coco": "a PNG whose colours are the ids",
        "cityscapes": "an image of one channel, such as …_instanceIds.png",
        "kitti": "a .label file",
    }
    found = f"a {raw.kind} with {'colours' if raw.is_color else 'one channel'}"
    return MaskError(path, f"is {found}; the ids of {source!r} are in {wanted[source]}")


def _annotations(path: str) -> tuple[Path, str]:
    """COCO's annotations of a mask, and its name if it is read from them: ``FILE.json/NAME``.

    Those of a PNG lie beside the nearest of its folders that has any.
    """
    start, is_in_file, name = path.partition(".json/")
    if is_in_file:
        return Path(f"{start}.json"), name
    folder = Path(path).parent.resolve()
    files = [place.with_name(f"{place.name}.json") for place in (folder, *folder.parents[:-1])]
    return next((file for file in files if file.is_file()), files[0]), ""


def _of_coco(raw: RawMask, path: str) -> ObjectMask:
    """Objects of a PNG whose colours are ids, by the annotations beside its folder."""
    file, name = _annotations(path)
    try:
        contents = load_segments(str(file), stamp_of(file))
    except ValueError as error:
        raise MaskError(path, f"needs COCO's annotations; {error}") from error
    image = contents.images.get(name) if name else contents.pngs.get(Path(path).name)
    if not isinstance(image, ImageSegments) or not image.png:
        every = contents.images.values()
        has_outlines = any(isinstance(i, ImageSegments) and i.segments and not i.png for i in every)
        kind = "panoptic annotation (segments_info)" if has_outlines else "annotation"
        raise MaskError(path, f"has no {kind} in {file}")
    if name:
        # What was read are the classes that the file draws; the ids are in its folder.
        raw = open_mask(png_path(image, file))
    if not raw.is_color:
        raise _no_ids(path, "coco", raw)
    wide = raw.values.astype(np.uint32)
    ids = wide[..., 0] | wide[..., 1] << 8 | wide[..., 2] << 16
    segments = _checked(path, image, {i: n for i, n in id_areas(ids).items() if i})
    values = {i: part["category_id"] for i, part in segments.items()}
    crowd = tuple(number for number, part in segments.items() if part.get("iscrowd"))
    return ObjectMask(mapped(ids, {0: contents.free, **values}), ids, crowd)


def _checked(
    path: str, image: ImageSegments, areas: Mapping[int, int]
) -> dict[int, Mapping[str, Any]]:
    """The segments of an annotation by their ids, which have these pixels in the file."""
    segments: dict[int, Mapping[str, Any]] = {}
    for category, part in image.segments:
        number = part["id"]
        if (known := segments.get(number, part)["category_id"]) != category:
            raise MaskError(path, f"segment {number} has two classes, {known} and {category}")
        segments[number] = part
    for different, problem in (
        (areas.keys() - segments, "has segments that its annotation lacks"),
        (segments.keys() - areas, "lacks segments that its annotation has"),
    ):
        if different:
            raise MaskError(path, f"{problem}: {listed([*map(str, sorted(different))], 8)}")
    for number, part in segments.items():
        if part.get("area") not in (None, areas[number]):
            problem = f"has {areas[number]} pixels, but its annotation says area {part['area']!r}"
            raise MaskError(path, f"segment {number} {problem}; make the annotation again")
    return segments
