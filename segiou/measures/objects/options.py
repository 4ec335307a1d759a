"""The measure of objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from segiou._support.arguments import refuse_kind
from segiou._support.files import read_json
from segiou.labels.class_options import ClassOptions, class_indices
from segiou.measures.mask_pair import Masks
from segiou.measures.objects.plan import ObjectPlan
from segiou.measures.objects.sources import OBJECT_CLASSES, ObjectSource
from segiou.measures.plan import Plan


@dataclass(frozen=True)
class ObjectOptions(ObjectSource):
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
