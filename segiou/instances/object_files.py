"""Objects of mask files: which formats hold them, and how they are told apart elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_integer, check_number, refuse_kind
from segiou._support.files import read_json
from segiou._support.text import Json, listed
from segiou.counting.id_pairs import count_id_pairs
from segiou.instances.components import label_components
from segiou.instances.objects import NO_OBJECT, Ints, pack_ids
from segiou.instances.panoptic import PanopticCounts
from segiou.instances.segments import PROTOCOLS, segment_codes
from segiou.instances.weighted import CITYSCAPES_INSTANCE_SIZES
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.masks.read import MaskError, RawMask, open_mask
from segiou.masks.segment_files import ImageSegments, load_segments
from segiou.masks.sources import stamp_of
from segiou.masks.windows import ResizedMask

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
        whole = tuple(slice(0, length) for length in shape)
        classes, ids = (ResizedMask(side, shape)[whole] for side in self[:2])
        return self._replace(classes=classes, ids=ids)


#: Of either side: the number, from 1, of the object of each pixel; and of each object whether it
#: was forgiven (0), found (1), or missed or invented (2), its class index and its pixels.
Drawn = tuple[tuple[Ints, list[list[int]]], ...]


@dataclass(frozen=True, slots=True)
class ObjectOptions:
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
    connectivity, min_size, merge
        Of components, as of :func:`label_components`.

    Raises
    ------
    TypeError
        If a value is of the wrong kind.
    ValueError
        If there is no such source or protocol.
    """

    source: str = "components"
    things: tuple[str, ...] | None = None
    protocol: str = ""
    connectivity: int | None = None
    min_size: float = 0
    merge: int = 0

    def __post_init__(self) -> None:
        check_choice("source", self.source, _SOURCES)
        if not self.protocol:
            object.__setattr__(
                self, "protocol", "semantickitti" if self.source == "kitti" else "coco"
            )
        check_choice("protocol", self.protocol, tuple(PROTOCOLS))
        check_number("min_size", self.min_size, 0)
        check_integer("merge", self.merge, 0)

    @classmethod
    def of(cls, choice: ObjectOptions | str | bool | None) -> ObjectOptions | None:
        """Read a caller's choice: options, the name of a source, or whether to score objects.

        Parameters
        ----------
        choice : ObjectOptions or str or bool or None
            What the caller asks for.
        """
        if choice is None or choice is False:
            return None
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
        categories = found.get("categories", ()) if isinstance(found, dict) else found
        things = tuple(entry["name"] for entry in categories if entry.get("isthing", 1))
        return replace(self, things=things)

    def __str__(self) -> str:
        usual = ObjectOptions(self.source).to_dict()
        own = {name: value for name, value in self.to_dict().items() if value != usual[name]}
        return ", ".join([self.source, *(f"{name}={value}" for name, value in own.items())])

    def to_dict(self) -> dict[str, Json]:
        """The options as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ObjectOptions:
        """Read what :meth:`to_dict` gave.

        Parameters
        ----------
        data : mapping
            What :meth:`to_dict` gave.
        """
        things = data["things"]
        return cls(**{**data, "things": None if things is None else tuple(things)})

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
            things = tuple(
                entry.name
                for entry in classes.labels.classes
                if CITYSCAPES_INSTANCE_SIZES.keys() & entry.values
            )
        return PanopticCounts.from_options(classes, things=things, protocol=self.protocol)

    def read(self, raw: RawMask, path: str, folder: str) -> ObjectMask | None:
        """Split what a file holds into classes and ids; None where components are looked for.

        Parameters
        ----------
        raw : RawMask
            The file's pixels.
        path : str
            The file.
        folder : str
            The folder that the file is in.

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
        segments: Segments = {}
        free = 0
        if self.source == "coco":
            file, image, free = _annotation_of(path, folder)
            segments = _checked(path, image.parts)
            if folder.endswith(".json"):
                # What was read are the classes that the file draws; the ids are in its folder.
                raw = open_mask(file.with_suffix("") / image.png)
        kinds = {"coco": raw.is_color, "kitti": raw.kind == "LABEL", "cityscapes": not raw.is_color}
        if not kinds[self.source]:
            raise MaskError(path, f"is no file of ids as {self.source!r} has them: a {raw.kind}")
        if self.source == "coco":
            return _of_coco(raw.values, path, segments, free)
        if self.source == "kitti":
            # As its own evaluation has it, the whole number names an object, class and all.
            return ObjectMask(raw.values & 0xFFFF, raw.values)
        # A file without objects may have 8 bits, and they do not hold 1000.
        ids = raw.values.astype(np.promote_types(raw.values.dtype, np.uint16), copy=False)
        classes = np.where(ids >= 1000, ids // 1000, ids)
        # Of a class of objects, what has no number is a group of them.
        return ObjectMask(classes, ids, tuple(range(1, 1000)), path)

    def count(
        self, counts: PanopticCounts, truth: Any, pred: Any, mask: Any = None
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

        Returns
        -------
        PanopticCounts
        """
        first, second = self._sides(counts, truth, pred)
        if mask is not None:
            first = first._replace(classes=np.where(mask, first.classes, NO_OBJECT))
        # Which values are allowed is checked where pixels are counted.
        found = counts.matches(first[:2], second[:2], first.crowd, unknown_is_void=True)
        return counts.add(found)

    def _sides(
        self, counts: PanopticCounts, truth: Any, pred: Any
    ) -> tuple[ObjectMask, ObjectMask]:
        """Of class maps the components; which values are allowed is checked with the pixels."""
        first, second = (
            side if isinstance(side, ObjectMask) else self._components(counts, side, labels)
            for side, labels in ((truth, counts.labels), (pred, counts.pred_labels))
        )
        if self.source == "cityscapes":
            _check_numbered(counts, second)
        return first, second

    def _components(self, counts: PanopticCounts, values: Any, labels: LabelSet) -> ObjectMask:
        names = [
            name
            for name, is_thing in zip(counts.class_names, counts.things, strict=True)
            if is_thing
        ]
        things = [labels.classes[labels.index(name)].values for name in names]
        ids = label_components(
            values,
            things,
            connectivity=self.connectivity,
            min_size=self.min_size,
            merge=self.merge,
        )
        if self.min_size:
            # What is too small is no object, and void.
            small = np.isin(values, [*chain(*things)]) & (ids == 0)
            values = np.where(small, NO_OBJECT, values.astype(np.int64))
        return ObjectMask(values, ids)


def _check_numbered(counts: PanopticCounts, pred: ObjectMask) -> None:
    """Refuse predictions of Cityscapes that are class maps: all pixels of a class, no object."""
    present = count_id_pairs(pred.ids, np.zeros(pred.ids.shape, np.uint8))[0].tolist()
    if present and present[-1] >= 1000:
        return
    for entry, is_thing in zip(counts.pred_labels.classes, counts.things, strict=True):
        if is_thing and (found := {*present} & {*entry.values}):
            value = min(found)
            problem = (
                f"has classes and no objects: {entry.name} is {value}, an object of it would be "
                f"{1000 * value} + its number; for connected components: --objects components"
            )
            raise MaskError(pred.path, problem)


def draw_objects(
    options: ObjectOptions, classes: ClassOptions, truth: Any, pred: Any, shape: tuple[int, ...]
) -> Drawn:
    """What became of each object of a pair, and where it lies in pictures of this shape."""
    counts = options.empty(classes)
    sides = options._sides(counts, truth, pred)
    found = counts.matches(sides[0][:2], sides[1][:2], sides[0].crowd, unknown_is_void=True)
    drawn = []
    for k, side in enumerate(sides):
        small = pack_ids(*side.resized(shape)[:2], ("classes", "ids"))
        codes = segment_codes(small, counts._indices[k], counts.things, "", unknown_is_void=True)
        drawn.append(found.drawn(k, codes, counts.things))
    return tuple(drawn)


Segments = Mapping[int, tuple[int, int | None, bool]]


def _of_coco(rgb: NDArray[Any], path: str, segments: Segments, free: int) -> ObjectMask:
    wide = rgb.astype(np.uint32)
    ids = wide[..., 0] | wide[..., 1] << 8 | wide[..., 2] << 16
    present, _, pixels = count_id_pairs(ids, np.zeros(ids.shape, np.uint8))
    areas = dict(zip(present.tolist(), pixels.tolist(), strict=True))
    areas.pop(0, None)
    if unknown := areas.keys() - segments:
        raise MaskError(
            path,
            f"has segments that its annotation lacks: {listed([*map(str, sorted(unknown))], 8)}",
        )
    if absent := segments.keys() - areas:
        raise MaskError(
            path,
            f"lacks segments that its annotation has: {listed([*map(str, sorted(absent))], 8)}",
        )
    for number, (_, area, _) in segments.items():
        if area not in (None, areas[number]):
            problem = f"segment {number} has {areas[number]} pixels, {area} in its annotation"
            raise MaskError(path, problem)
    values = np.array([segments[i][0] if i else free for i in present.tolist()], np.int64)
    crowd = tuple(number for number, (_, _, is_crowd) in segments.items() if is_crowd)
    return ObjectMask(values[np.searchsorted(present, ids)], ids, crowd)


def _annotation_of(path: str, folder: str) -> tuple[Path, ImageSegments, int]:
    """The file of annotations, what it says of a mask or an image, and what no segment has."""
    file = Path(folder).resolve()
    name = Path(path).name
    if folder.endswith(".json"):
        name = path[len(folder) + 1 :]
    else:
        file = file.with_name(f"{file.name}.json")
    try:
        contents = load_segments(str(file), stamp_of(file))
    except ValueError as error:
        raise MaskError(path, f"needs COCO's annotations, but {error}") from error
    found = contents.pngs.get(name) or contents.images.get(name)
    if not isinstance(found, ImageSegments) or not found.png:
        raise MaskError(path, f"has no annotation in {file}")
    return file, found, contents.free


def _checked(path: str, entries: Sequence[Mapping[str, Any]]) -> Segments:
    segments: dict[int, tuple[int, int | None, bool]] = {}
    for entry in entries:
        number, category = entry["id"], entry["category_id"]
        if segments.get(number, (category,))[0] != category:
            problem = f"segment {number} has two classes, {segments[number][0]} and {category}"
            raise MaskError(path, problem)
        segments[number] = category, entry.get("area"), bool(entry.get("iscrowd"))
    return segments
