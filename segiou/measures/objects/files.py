"""Files of objects: formats that store instance ids."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp
from segiou.counting.id_pairs import mapped
from segiou.labels.label_set import LabelClass, LabelSet
from segiou.masks.colors import packed
from segiou.masks.raw_mask import MaskError, RawMask, void_value
from segiou.masks.read import open_mask
from segiou.masks.sources.annotations import ImageSegments
from segiou.masks.sources.folders import stamp_of
from segiou.masks.sources.segment_files import load_segments, png_path
from segiou.measures.object_mask import ObjectMask, Segments


def no_ids(path: str, source: str, raw: RawMask) -> MaskError:
    """The error for a file that a source does not read."""
    wanted = {
        "coco": "a PNG whose colours encode the ids",
        "cityscapes": "a single-channel image, such as …_instanceIds.png",
        "kitti": "a .label file",
        "labels": "a single-channel image of integer ids",
    }
    kind = f"a {raw.kind} with {'colours' if raw.is_color else 'one channel'}"
    return MaskError(path, f"is {kind}; --objects {source} expects {wanted[source]}")


def annotations_of(path: str) -> tuple[str, str]:
    """The folder of a mask of COCO, or the annotation file and the name in ``FILE.json/NAME``."""
    start, is_in_file, name = path.partition(".json/")
    # Called for each image: paths take five times as long as strings.
    return (f"{start}.json", name) if is_in_file else (os.path.dirname(path), "")  # noqa: PTH120


def find_annotations(path: str) -> tuple[str, Stamp]:
    """COCO's annotation file, itself or next to a folder."""
    if path.endswith(".json") and not Path(path).is_dir():
        return path, stamp_of(path)
    folder = Path(path).absolute()
    real = folder.resolve()
    folders = folder, real, *real.parents[:-1]
    files = [folder.with_name(f"{folder.name}.json") for folder in folders]
    file = next((file for file in files if file.is_file()), files[1])
    return str(file), stamp_of(file)


def cityscapes_objects(values: NDArray[Any], path: str) -> ObjectMask:
    """Objects of ``instanceIds``: 1000 · class + number, or the class alone for a group."""
    # A file without objects may have 8 bits, which cannot store 1000.
    ids = values.astype(np.promote_types(values.dtype, np.uint16), copy=False)
    groups = range(1, 1000)
    if ids.dtype.kind == "i" and ids.min(initial=0) < 0:  # classes may be negative, ids may not
        return ObjectMask(_cityscapes_classes(ids), ids.clip(0), groups, path)
    return ObjectMask(_cityscapes_classes, ids, groups, path)


def _cityscapes_classes(ids: NDArray[Any]) -> NDArray[Any]:
    return np.where(ids >= 1000, ids // 1000, ids)


def labelled_objects(
    raw: RawMask, path: str, background: LabelClass, objects: LabelClass
) -> ObjectMask:
    """Objects of an image or volume with one id per object, and 0 outside."""
    ids = np.asarray(raw.values)
    if raw.is_color or raw.names or ids.dtype.kind not in "biu":
        raise no_ids(path, "labels", raw)
    if ids.min(initial=0) < 0:
        raise MaskError(path, "contains negative ids; number the objects from 1 and set 0 outside")
    values = background.values[0], objects.values[0]
    return ObjectMask(partial(_values_of_ids, values=values), ids, path=path)


def _values_of_ids(ids: NDArray[Any], values: tuple[int, int]) -> NDArray[np.int64]:
    return np.where(ids > 0, np.int64(values[1]), np.int64(values[0]))


def coco_objects(
    raw: RawMask, path: str, labels: LabelSet, annotations: dict[str, Any]
) -> ObjectMask:
    """Objects of a PNG whose colours encode ids, from the annotations next to its folder."""
    annotated, name = annotations_of(path)
    if annotated not in annotations:
        file, stamp = find_annotations(annotated)
        try:
            annotations[annotated] = file, stamp, load_segments(file, stamp)
        except ValueError as error:
            raise MaskError(path, f"requires COCO annotations; {error}") from error
    file, stamp, contents = annotations[annotated]
    image = _annotated_image(contents, path, name, file)
    if name:
        # So far only classes were read; the PNG in the folder stores the ids.
        raw = open_mask(png_path(image, Path(file)))
    if not raw.is_color:
        raise no_ids(path, "coco", raw)
    segments = _segments(image, path, void_value(contents.free, labels))
    last = {part["id"]: part.get("iscrowd") for _, part in image.segments}
    return ObjectMask(
        partial(mapped, meaning=segments.classes),
        packed(raw.values),
        tuple(number for number, is_crowd in last.items() if is_crowd),
        path,
        segments=segments,
        stamp=None if name else stamp,
    )


def _segments(image: ImageSegments, path: str, void: int) -> Segments:
    """The segments of an annotation; pixels outside all of them have the value ``void``."""
    areas = {part["id"]: part.get("area") for _, part in image.segments}
    classes = {part["id"]: category for category, part in image.segments}
    if len(classes) < len(image.segments):
        for category, part in image.segments:
            if category != (other := classes[part["id"]]):
                problem = f"segment {part['id']} has two classes, {category} and {other}"
                raise MaskError(path, problem)
    return Segments({**classes, 0: void}, areas)


def _annotated_image(contents: Any, path: str, name: str, file: str) -> ImageSegments:
    """The segments of a mask, by its name in the annotation file or by that of its PNG."""
    png = os.path.basename(path)  # noqa: PTH119 - called for each image
    image = contents.images.get(name) if name else contents.pngs.get(png)
    if isinstance(image, ImageSegments) and image.png:
        return image
    every = contents.images.values()
    has_outlines = any(isinstance(i, ImageSegments) and i.segments and not i.png for i in every)
    kind = "panoptic annotation (segments_info)" if has_outlines else "annotation"
    raise MaskError(path, f"has no {kind} in {file}")
