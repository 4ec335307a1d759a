"""Files of annotation tools → images with shapes; each tool has a separate module."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from segiou.masks.formats.drawing import check_size
from segiou.masks.formats.drawn_image import DrawnImage
from segiou.masks.formats.label_studio import as_task, image_of_task
from segiou.masks.formats.labelme import labelme_area
from segiou.masks.formats.supervisely import supervisely_area
from segiou.masks.formats.via import via_image


def drawn_images(data: Any, path: Path) -> dict[str, DrawnImage] | None:
    """The images of a file of an annotation tool; None for other JSON."""
    images: dict[str, DrawnImage] = {}
    for name, image in _images(data, path):
        if name in images:
            msg = f"contains the image {name!r} twice; keep one"
            raise ValueError(msg)
        images[name] = image
    return images or None


def _images(data: Any, path: Path) -> Iterable[tuple[str, DrawnImage]]:
    if isinstance(data, list):
        first = data[0] if data and isinstance(data[0], dict) else {}
        if "annotations" in first:
            return (image_of_task(number, task, path) for number, task in enumerate(data, 1))
        if first.keys() & {"annotation_id", "annotator"}:
            return (image_of_task(i, as_task(entry), path) for i, entry in enumerate(data, 1))
        return ()
    if not isinstance(data, dict):
        return ()
    if isinstance(data.get("shapes"), list):
        size = data.get("imageHeight"), data.get("imageWidth")
        drawn = _polygon_tool("Pillow", data["shapes"], "shape_type")
        return [(path.stem, DrawnImage(check_size(size), data["shapes"], labelme_area, drawn))]
    if isinstance(data.get("objects"), list):
        known = data["size"] if isinstance(data.get("size"), dict) else {}
        size = known.get("height"), known.get("width")
        drawn = _polygon_tool("OpenCV", data["objects"], "geometryType")
        return [(path.stem, DrawnImage(check_size(size), data["objects"], supervisely_area, drawn))]
    entries = data.get("_via_img_metadata", data)
    kept = entries.values() if isinstance(entries, dict) else ()
    is_via = all(isinstance(entry, dict) and "regions" in entry for entry in kept)
    return (via_image(entry, path) for entry in kept) if is_via else ()


def _polygon_tool(tool: str, shapes: Iterable[Any], key: str) -> str:
    """The tool if any of the shapes is a polygon; else empty."""
    kinds = [shape.get(key) or "polygon" for shape in shapes if isinstance(shape, dict)]
    return tool if "polygon" in kinds else ""
