"""One JSON file with the masks of many images: of COCO, detectron2, and annotation tools."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp, read_json
from segiou.masks.annotation_files import DrawnImage, Painting, check_size, drawn_images
from segiou.masks.read import MaskError, RawMask, open_mask
from segiou.masks.sources import stamp_of

_FORMS = (
    "a list of results with 'segmentation' and 'image_id' (COCO) or 'file_name' (detectron2), "
    "an object with 'images' and 'annotations' (COCO), 'shapes' (LabelMe) or 'objects' "
    "(Supervisely), a project of VIA, or Label Studio's list of tasks"
)
#: What pixels in no segment have, if no category has it; 0 only where a file may leave such.
FREE = (0, 255, 65535, (1 << 31) - 1)
#: An image, or a segment of a PNG, has an id of one of these kinds.
_ID = (int, str)
_LAST_NUMBER = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True)
class SegmentFile:
    """A JSON file of segments, as a place that holds a mask for each of its images.

    A mask has the ``category_id`` of its segments as values. Pixels in no
    segment are 0, or 255 where a category is 0; with detectron2's predictions,
    which cover images, they are 255. Of segments that overlap, the one with the
    highest score is on top; without scores, the last.

    Attributes
    ----------
    root : str
        The file's path.
    """

    root: str

    def find(self) -> dict[str, str]:
        """The images, by their file name or else their id.

        Raises
        ------
        ValueError
            If the file is not there, is no such JSON, or names no images.
        """
        images = self._contents().images
        if not images:
            msg = f"{self.root}: names no images"
            raise ValueError(msg)
        return {name: f"{self.root}/{name}" for name in images}

    def stamp(self, path: str) -> Stamp:
        """The stamp of the file, and of the PNG that it names for an image."""
        image, own = self._image(path), stamp_of(self.root)
        if not isinstance(image, ImageSegments) or not image.png:
            return own
        return own.joined(stamp_of(png_path(image, Path(self.root))))

    def read(self, path: str) -> tuple[RawMask, Stamp]:
        """The mask of an image.

        Raises
        ------
        MaskError
            If its segments cannot be drawn.
        """
        contents = self._contents()
        if (image := self._image(path)) is None:
            raise MaskError(path, "is not in its file any more")
        try:
            stamp = self.stamp(path)
            if isinstance(image, DrawnImage):
                return image.draw(), stamp
            mask = (_of_png if image.png else _drawn)(image, contents, Path(self.root))
        except MaskError:
            raise
        except ValueError as error:
            raise MaskError(path, str(error)) from error
        return RawMask(mask, "json", "JSON"), stamp

    def _image(self, path: str) -> ImageSegments | DrawnImage | None:
        return self._contents().images.get(path[len(self.root) + 1 :])

    def _contents(self) -> _Contents:
        """What the file holds now."""
        return load_segments(self.root, stamp_of(self.root))


@dataclass
class ImageSegments:
    """What a file says of one image."""

    size: tuple[int, int] | None = None
    #: Category and segmentation, from the lowest to the highest.
    segments: list[tuple[int, Any]] = field(default_factory=list)
    #: Of panoptic annotations: the PNG of ids; what stands in the file of a segment is then its
    #: segmentation.
    png: str = ""


@dataclass
class _Contents:
    """What a file holds.

    Attributes
    ----------
    images : mapping of str to ImageSegments or DrawnImage
        By name.
    categories : sequence of int
        Those that the file lists.
    covered : bool
        Whether segments cover each image.
    names : mapping of str to str
        Names of the images by their ids; empty if it has only one of both.
    only_ids : bool
        Whether images are known by their id only.
    free : int
        What pixels in no segment have.
    pngs : mapping of str to ImageSegments
        Those of panoptic annotations, by their PNG.
    """

    images: Mapping[str, ImageSegments | DrawnImage]
    categories: Sequence[int] = ()
    covered: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    only_ids: bool = False

    def __post_init__(self) -> None:
        segments = [s for image in self.images.values() for s in getattr(image, "segments", ())]
        values = {value for value, _ in segments} | set(self.categories)
        self.free = next(value for value in FREE[self.covered :] if value not in values)
        self.dtype = np.uint8 if max(self.free, *values, 0) < 256 else np.int32
        self.pngs = {
            image.png: image for image in self.images.values() if isinstance(image, ImageSegments)
        }


def named_as_other(
    names: Mapping[str, str], source: object, other: object, others: Mapping[str, str]
) -> Mapping[str, str]:
    """Images known by their id only, by the names that the other place gives them.

    That is the file name of the same id in a JSON file, or the file whose name
    ends in the id, as ``000000000139.png`` does for 139.
    """
    if not (isinstance(source, SegmentFile) and source._contents().only_ids):
        return names
    if isinstance(other, SegmentFile):
        known = other._contents().names
    else:
        numbers = [(_LAST_NUMBER.search(PurePosixPath(name).stem), name) for name in others]
        known = {str(int(match[1])): name for match, name in numbers if match}
    return {known.get(name, name): path for name, path in names.items()}


@lru_cache(maxsize=4)
def load_segments(path: str, stamp: Stamp) -> _Contents:
    """Read a file; another stamp is another content."""
    data = read_json(path)
    try:
        if isinstance(data, dict) and isinstance(data.get("annotations"), list):
            return _of_annotations(data)
        if (drawn := drawn_images(data, Path(path))) is not None:
            return _Contents(drawn)
        if isinstance(data, list) and data:
            return _of_results(data)
    except ValueError as error:
        msg = f"{path}: {error}"
        raise ValueError(msg) from error
    msg = f"{path}: is no file of segments; it should be {_FORMS}"
    raise ValueError(msg)


def _of_results(data: Sequence[Any]) -> _Contents:
    """COCO's results, which know images by their id, or detectron2's, by their file name."""
    by_name = isinstance(data[0], dict) and "file_name" in data[0]
    images: dict[str, ImageSegments] = {}
    order = list(range(len(data)))
    if not by_name:
        scores = [_of(entry, "score", (int, float), i, 1.0) for i, entry in enumerate(data)]
        order.sort(key=scores.__getitem__)
    for i in order:
        name = _of(data[i], "file_name", (str,), i) if by_name else _of(data[i], "image_id", _ID, i)
        segment = _category(data[i], i), _of(data[i], "segmentation", (dict, list), i)
        images.setdefault(str(name), ImageSegments()).segments.append(segment)
    for image in images.values():
        image.size = next((s.get("size") for _, s in image.segments if isinstance(s, dict)), None)
    if by_name:
        return _Contents(_without_common_folder(images), covered=True)
    return _Contents(images, only_ids=True)


def _of_annotations(data: Mapping[str, Any]) -> _Contents:
    """COCO's annotations: segments of objects, or a PNG of ids an image."""
    images: dict[int | str, ImageSegments] = {}
    by_name: dict[str, ImageSegments] = {}
    marked = [isinstance(entry, dict) and "segments_info" in entry for entry in data["annotations"]]
    # Panoptic predictions may name no images, but only their PNGs.
    none: list[Any] | None = [] if any(marked) else None
    for i, entry in enumerate(_of(data, "images", (list,), "the file", none)):
        id = _of(entry, "id", _ID, f"image {i}")
        name = _of(entry, "file_name", (str,), f"image {i}", str(id))
        if id in images or name in by_name:
            msg = f"image {i}: {name!r} or its id {id} stands twice in 'images'; keep one of them"
            raise ValueError(msg)
        size = entry.get("height"), entry.get("width")
        known = None if size == (None, None) else check_size(size)
        images[id] = by_name[name] = ImageSegments(known)
    names = dict(zip(map(str, images), by_name, strict=True))
    for i, (entry, is_panoptic) in enumerate(zip(data["annotations"], marked, strict=True)):
        id = _of(entry, "image_id", _ID, i)
        png = _of(entry, "file_name", (str,), i) if is_panoptic else ""
        if is_panoptic and "images" not in data:
            images[id] = by_name[png] = ImageSegments()
        if id not in images:
            msg = f"annotation {i}: there is no image with the id {id}"
            raise ValueError(msg)
        if not is_panoptic:
            category = _category(entry, i)
            images[id].segments.append((category, _of(entry, "segmentation", (dict, list), i)))
            continue
        images[id].png = png
        for part in _of(entry, "segments_info", (list,), i):
            _of(part, "id", (int,), i)
            images[id].segments.append((_category(part, i), part))
    categories = [_of(c, "id", (int,), "a category") for c in data.get("categories") or ()]
    if any(marked):
        # An image without an annotation has no mask; that of objects is one without objects.
        by_name = {name: image for name, image in by_name.items() if image.png}
    return _Contents(by_name, categories, names=names)


def _without_common_folder(images: dict[str, ImageSegments]) -> dict[str, ImageSegments]:
    """Images by their path below the folder that holds them all."""
    names = {name: posixpath.normpath(name.replace("\\", "/")) for name in images}
    folders = {posixpath.dirname(name) for name in names.values()}
    same_kind = len({folder.startswith("/") for folder in folders}) == 1
    common = posixpath.commonpath(folders) if same_kind else ""
    return {path[len(common) :].lstrip("/"): images[name] for name, path in names.items()}


def _of(entry: Any, key: str, kinds: tuple[type, ...], where: object, default: Any = None) -> Any:
    """What an entry has under a key; an error that names the entry if it is of another kind."""
    value = entry.get(key, default) if isinstance(entry, dict) else None
    if isinstance(value, kinds) and not isinstance(value, bool) and value == value:
        return value
    place = f"entry {where}" if isinstance(where, int) else where
    wanted = " or ".join(kind.__name__ for kind in kinds)
    msg = f"{place}: its {key!r} must be {wanted}, not {value!r:.60}"
    raise ValueError(msg)


def _category(entry: Any, i: int) -> int:
    category: int = _of(entry, "category_id", (int,), i)
    if not 0 <= category < FREE[-1]:
        msg = f"entry {i}: its category_id is {category}; it must be from 0 to {FREE[-1] - 1}"
        raise ValueError(msg)
    return category


def _drawn(image: ImageSegments, contents: _Contents, _file: Path) -> NDArray[Any]:
    if image.size is None:
        msg = "its size is not known; give it 'height' and 'width' in 'images', or run lengths"
        raise ValueError(msg)
    painting = Painting(check_size(image.size), contents.free, contents.dtype)
    for number, (category, segmentation) in enumerate(image.segments, 1):
        try:
            painting.add(segmentation, category)
        except ValueError as error:
            msg = f"segment {number} of {len(image.segments)} (category {category}): {error}"
            raise ValueError(msg) from error
    return painting.mask


def png_path(image: ImageSegments, file: Path) -> Path:
    """The PNG of an image in a panoptic file: in the folder of its name, else beside it."""
    relative = PurePosixPath(image.png)
    if relative.is_absolute() or ".." in relative.parts:
        msg = f"its file_name {image.png!r} leads out of the folder of masks"
        raise ValueError(msg)
    folders = (file.with_suffix(""), file.parent)
    return next((f / relative for f in folders if (f / relative).is_file()), folders[0] / relative)


def _of_png(image: ImageSegments, contents: _Contents, file: Path) -> NDArray[Any]:
    """Categories of a PNG whose colours are ids: red + 256 green + 65536 blue."""
    path = png_path(image, file)
    raw = open_mask(path)
    ids = raw.values.astype(np.int64)
    if raw.is_color:
        ids = ids @ np.array([1, 256, 65536])
    categories = {part["id"]: category for category, part in image.segments} | {0: contents.free}
    found, inverse = np.unique(ids, return_inverse=True)
    if unknown := [id for id in found.tolist() if id not in categories]:
        msg = f"{path.name} has ids that its segments_info does not list: {str(unknown[:6])[1:-1]}"
        raise ValueError(msg)
    values = np.array([categories[id] for id in found.tolist()], dtype=contents.dtype)
    mask: NDArray[Any] = values[inverse].reshape(ids.shape)
    return mask
