"""COCO: annotations, results and panoptic PNGs; and the results of detectron2."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from segiou.masks.formats.drawing import check_size
from segiou.masks.sources.annotations import AnnotationFormat, Annotations, ImageSegments

#: Categories are less.
_MOST_CATEGORY = (1 << 31) - 1
#: Keys of results, of which some may be missing by mistake.
_OF_RESULTS = {"image_id", "category_id", "segmentation"}
#: Types of image ids.
_ID = (int, str)


def _read_results(_path: Path, data: Any) -> Annotations | None:
    """COCO results, which name images by id, or detectron2 results, by file name."""
    first = data[0] if isinstance(data, list) else None
    if not isinstance(first, dict) or not first.keys() & _OF_RESULTS:
        return None
    by_name = "file_name" in first
    images: dict[str, ImageSegments] = {}
    order = list(range(len(data)))
    if not by_name:
        scores = [_value(entry, "score", (int, float), i, 1.0) for i, entry in enumerate(data)]
        order.sort(key=scores.__getitem__)
    for i in order:
        key, kinds = ("file_name", str) if by_name else ("image_id", _ID)
        image = images.setdefault(str(_value(data[i], key, kinds, i)), ImageSegments())
        image.segments.append(_segment(data[i], i))
    for image in images.values():
        image.size = next((s.get("size") for _, s in image.segments if isinstance(s, dict)), None)
    if by_name:
        return Annotations(_relative_names(images), covered=True)
    fix = ", because results list none; save its segmentations as run lengths"
    return Annotations(images, only_ids=True, fix_of_size=fix)


def _read_annotations(_path: Path, data: Any) -> Annotations | None:
    """COCO annotations: segments of objects, or one PNG of ids per image."""
    entries = data.get("annotations") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        return None
    panoptic = [isinstance(entry, dict) and "segments_info" in entry for entry in entries]
    # Panoptic predictions may have no 'images', only PNG names.
    images, by_name = _listed_images(
        _value(data, "images", list, "the file", [] if any(panoptic) else None)
    )
    names = dict(zip(map(str, images), by_name, strict=True))
    for i, (entry, is_panoptic) in enumerate(zip(entries, panoptic, strict=True)):
        id = _value(entry, "image_id", _ID, i)
        if is_panoptic and "images" not in data:
            images[id] = by_name[_value(entry, "file_name", str, i)] = ImageSegments()
        if id not in images:
            msg = f"annotation {i}: no image has the id {id!r}"
            raise ValueError(msg)
        if is_panoptic:
            _add_panoptic(images[id], entry, i)
        else:
            images[id].segments.append(_segment(entry, i))
    if any(panoptic):
        # Without an annotation, a panoptic image has no mask; other images have no objects.
        by_name = {name: image for name, image in by_name.items() if image.png}
    categories = _value(data, "categories", list, "the file", []) if data.get("categories") else []
    ids = [_value(category, "id", int, "a category") for category in categories]
    return Annotations(by_name, ids, names=names)


def _listed_images(
    entries: Sequence[Any],
) -> tuple[dict[int | str, ImageSegments], dict[str, ImageSegments]]:
    """The images of COCO annotations, by id and by name."""
    by_id: dict[int | str, ImageSegments] = {}
    by_name: dict[str, ImageSegments] = {}
    for i, entry in enumerate(entries):
        id = _value(entry, "id", _ID, f"image {i}")
        name = _value(entry, "file_name", str, f"image {i}", str(id))
        if id in by_id or name in by_name:
            msg = f"image {i}: {name!r} or its id {id} occurs twice in 'images'; keep one"
            raise ValueError(msg)
        size = entry.get("height"), entry.get("width")
        try:
            known = None if size == (None, None) else check_size(size)
        except ValueError as error:
            msg = f"image {i}: {name!r} {error}"
            raise ValueError(msg) from None
        by_id[id] = by_name[name] = ImageSegments(known)
    return by_id, by_name


def _segment(entry: Any, number: int) -> tuple[int, Any]:
    """Category and segmentation of an annotation or result."""
    return _category(entry, number), _value(entry, "segmentation", (dict, list), number)


def _add_panoptic(image: ImageSegments, entry: Any, number: int) -> None:
    """Add a panoptic annotation to its image."""
    if image.png:
        msg = f"entry {number}: {image.png!r} is another annotation of the same image; keep one"
        raise ValueError(msg)
    image.png = _value(entry, "file_name", str, number)
    where = f"a segment of {image.png}"
    for part in _value(entry, "segments_info", list, number):
        id = _value(part, "id", int, where)
        image.segments.append((_category(part, f"segment {id} of {image.png}"), part))


def _relative_names(images: dict[str, ImageSegments]) -> dict[str, ImageSegments]:
    """Images by their path relative to their common folder."""
    names = {name: posixpath.normpath(name.replace("\\", "/")) for name in images}
    folders = {posixpath.dirname(name) for name in names.values()}
    same_kind = len({folder.startswith("/") for folder in folders}) == 1
    common = posixpath.commonpath(folders) if same_kind else ""
    return {path[len(common) :].lstrip("/"): images[name] for name, path in names.items()}


def _value(
    entry: Any, key: str, kinds: type | tuple[type, ...], where: object, default: Any = None
) -> Any:
    """The value of a key, checked for its type."""
    value = entry.get(key, default) if isinstance(entry, dict) else None
    if type(value) is kinds and value != "":  # as nearly always, and found sooner
        return value
    is_kind = isinstance(value, kinds) and not isinstance(value, bool) and value == value
    if is_kind and not (value == "" and key in ("id", "image_id", "file_name")):
        return value
    subject = f"entry {where}" if isinstance(where, int) else where
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    wanted = " or ".join(kind.__name__ for kind in several)
    problem = "is missing" if value in (None, "") else f"must be {wanted}, got {value!r:.60}"
    msg = f"{subject}: {key!r} {problem}"
    raise ValueError(msg)


def _category(entry: Any, where: object) -> int:
    # Hugging Face's post_process_panoptic_segmentation names it label_id.
    has_label = isinstance(entry, dict) and "category_id" not in entry and "label_id" in entry
    category: int = _value(entry, "label_id" if has_label else "category_id", int, where)
    if not 0 <= category < _MOST_CATEGORY:
        subject = f"entry {where}" if isinstance(where, int) else where
        msg = f"{subject}: expected a category_id from 0 to {_MOST_CATEGORY - 1}, got {category}"
        raise ValueError(msg)
    return category


COCO = AnnotationFormat(_read_annotations, form="an object with 'images' and 'annotations' (COCO)")
RESULTS = AnnotationFormat(
    _read_results,
    form="a list of results with 'segmentation' and 'image_id' (COCO) or 'file_name' (detectron2)",
)
