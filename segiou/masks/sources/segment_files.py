"""Files with the masks of many images: COCO, detectron2, annotation tools, run lengths."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp, read_json
from segiou.labels.label_set import VOID_VALUES
from segiou.masks.colors import packed
from segiou.masks.formats.annotation_files import drawn_images
from segiou.masks.formats.cvat_xml import cvat_images
from segiou.masks.formats.drawing import Painting, check_size
from segiou.masks.formats.drawn_image import DrawnImage, image_size
from segiou.masks.formats.run_length_tables import Row, Runs, rows_of
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.read import open_mask
from segiou.masks.sources.folders import Source, stamp_of

_FORMS = (
    "a list of results with 'segmentation' and 'image_id' (COCO) or 'file_name' (detectron2), "
    "an object with 'images' and 'annotations' (COCO), 'shapes' (LabelMe) or 'objects' "
    "(Supervisely), a project of VIA, or Label Studio's list of tasks"
)
#: Categories are less.
_MOST_CATEGORY = (1 << 31) - 1
#: Types of image ids.
_ID = (int, str)
_LOADING = Lock()
_LAST_NUMBER = re.compile(r"(\d+)\D*$")


#: Most segments of an image, which are drawn one by one within seconds: of run lengths, and others.
_MOST_RUN_LENGTHS, _MOST_SHAPES = 100_000, 20_000


@dataclass(frozen=True)
class SegmentFile(Source):
    """A file of segments (JSON, CVAT's XML, a table) as a source with one mask per image.

    The values of a mask are the ``category_id`` of its segments. Pixels outside
    all segments are 0, or 255 if 0 is a category or the file has detectron2
    predictions, which cover images. If segments overlap, the one with the
    highest score is on top; without scores, the last one.
    """

    root: str
    file: str

    @property
    def draws(self) -> bool:
        """Whether its masks may be drawn from polygons."""
        return True

    def find(self) -> dict[str, str]:
        """Images by file name, or by id if they have none."""
        if self.root != self.file:
            kind = Path(self.file).suffix[1:].upper()
            msg = f"{self.root}: is inside a {kind} file; pass the file: {self.file}"
            raise ValueError(msg)
        images = self._contents().images
        if self.file.lower().endswith((".csv", ".tsv")) and any(
            isinstance(image, ImageSegments) and image.size is None for image in images.values()
        ):
            _loaded.cache_clear()  # images that are beside the table by now have the sizes
            images = self._contents().images
        if not images:
            msg = f"{self.file}: names no images"
            raise ValueError(msg)
        # Names of Windows have backslashes in place of slashes.
        has_slashes = any("/" in name for name in images)
        return {
            name if has_slashes else name.replace("\\", "/"): f"{self.file}/{name}"
            for name in images
        }

    @property
    def for_empty(self) -> str:
        """What stores an image without objects, which COCO results lack; empty if nothing must."""
        return "a result with the run lengths [HEIGHT × WIDTH]" * self._contents().only_ids

    def stamp(self, path: str) -> Stamp:
        """The stamp of the file, joined with that of the image's PNG."""
        image, stamp = self._image(path), stamp_of(self.file)
        if not isinstance(image, ImageSegments) or not image.png:
            return stamp
        return stamp.joined(stamp_of(png_path(image, Path(self.file))))

    def read(self, path: str) -> tuple[RawMask, Stamp]:
        """The mask of an image."""
        contents = self._contents()
        if (image := self._image(path)) is None:
            raise MaskError(path, "is no longer in its file")
        try:
            stamp = self.stamp(path)
            kind = Path(self.file).suffix[1:]  # such as csv or xml
            if isinstance(image, DrawnImage):
                return image.draw()._replace(mode=kind.lower(), kind=kind.upper()), stamp
            mask = (_png_ids if image.png else _drawn)(image, contents, Path(self.file))
        except MaskError:
            raise
        except ValueError as error:
            raise MaskError(path, str(error)) from error
        polygons = any(isinstance(segmentation, list) for _, segmentation in image.segments)
        drawn = "pycocotools" if polygons else ""
        raw = RawMask(mask, kind.lower(), kind.upper(), drawn=drawn)
        if image.png:
            return raw._replace(void=contents.free), stamp
        return raw._replace(background=None if contents.covered else contents.free), stamp

    def _image(self, path: str) -> ImageSegments | DrawnImage | None:
        return self._contents().images.get(path[len(self.file) + 1 :])

    def _contents(self) -> _Contents:
        """The current content of the file."""
        return load_segments(self.file, stamp_of(self.file))


@dataclass
class ImageSegments:
    """The segments of one image."""

    size: tuple[int, int] | Path | None = None
    #: Category and segmentation, bottom to top.
    segments: list[tuple[int, Any]] = field(default_factory=list)
    #: The PNG of ids of panoptic annotations; a segmentation is then an entry of segments_info.
    png: str = ""


@dataclass
class _Contents:
    """The content of a file."""

    images: Mapping[str, ImageSegments | DrawnImage]
    categories: Sequence[int] = ()
    #: Whether segments cover each image.
    covered: bool = False
    #: Image names by id; empty if the file has only one of the two.
    names: Mapping[str, str] = field(default_factory=dict)
    only_ids: bool = False

    def __post_init__(self) -> None:
        for name, image in self.images.items():
            _check_number(name, image)
        segments = [s for image in self.images.values() for s in getattr(image, "segments", ())]
        values = {value for value, _ in segments} | set(self.categories)
        #: Value of pixels outside all segments.
        self.free: int = next(v for v in VOID_VALUES[self.covered :] if v not in values)
        self.dtype: type[np.integer[Any]] = (
            np.uint8 if max(self.free, *values, 0) < 256 else np.int32
        )
        self.pngs: dict[str, ImageSegments] = {
            image.png: image for image in self.images.values() if isinstance(image, ImageSegments)
        }


def _check_number(name: str, image: ImageSegments | DrawnImage) -> None:
    """Refuse an image that would take too long to draw."""
    if isinstance(image, DrawnImage):
        shapes, others = len(image.shapes), 0
    else:
        others = sum(isinstance(segment, dict) for _, segment in image.segments)
        shapes = len(image.segments) - others
    if shapes > _MOST_SHAPES or others > _MOST_RUN_LENGTHS:
        msg = (
            f"image {name!r} has {shapes + others} annotations; at most {_MOST_SHAPES} polygons "
            f"or {_MOST_RUN_LENGTHS} run lengths are drawn within seconds. Save its mask as PNG "
            "or TIFF"
        )
        raise ValueError(msg)


def named_as_other(
    names: Mapping[str, str], source: object, other: object, others: Mapping[str, str]
) -> Mapping[str, str]:
    """Rename images that have ids only to the names in the other source.

    This is the file name of the same id in a JSON file, or the file whose name ends
    with the id, such as ``000000000139.png`` for 139.
    """
    if not (isinstance(source, SegmentFile) and source._contents().only_ids):
        return names
    if isinstance(other, SegmentFile):
        known = other._contents().names
    else:
        numbers = [(_LAST_NUMBER.search(PurePosixPath(name).stem), name) for name in others]
        known = {str(int(match[1])): name for match, name in numbers if match}
    return {known.get(name, name): path for name, path in names.items()}


def load_segments(path: str, stamp: Stamp) -> _Contents:
    """Read a file once; the stamp reveals its changes."""
    with _LOADING:  # threads that wait find it loaded
        return _loaded(path, stamp)


@lru_cache(maxsize=4)
def _loaded(path: str, _stamp: Stamp) -> _Contents:
    ending = Path(path).suffix.lower()
    try:
        if ending == ".xml":
            return _Contents(cvat_images(Path(path)))
        if ending in (".csv", ".tsv"):
            return _table_contents(Path(path))
        data = read_json(path)
        if isinstance(data, dict) and isinstance(data.get("annotations"), list):
            return _annotation_contents(data)
        if (drawn := drawn_images(data, Path(path))) is not None:
            return _Contents(drawn)
        if isinstance(data, list) and data:
            return _results_contents(data)
        if data == []:
            raise ValueError("is an empty list; expected at least one result or task")
    except ValueError as error:
        text = str(error).removeprefix(f"{path} ")
        msg = text if text.startswith(f"{path}: ") else f"{path}: {text}"
        raise ValueError(msg) from error
    msg = f"{path}: is not a supported annotation file; expected {_FORMS}"
    raise ValueError(msg)


def _table_contents(path: Path) -> _Contents:
    """A table of run lengths, whose classes are numbers, or names."""
    rows = [*rows_of(path)]
    labels, sizes = {row.label for row in rows} - {""}, _sizes_of(rows)
    if all(label.isascii() and label.isdigit() and len(label) < 10 for label in labels):
        images: dict[str, ImageSegments] = {}
        for row in rows:
            image = images.setdefault(row.image, ImageSegments(sizes[row.image]))
            if row.runs is not None:
                image.segments.append((int(row.label or 1), row.runs))
        return _Contents(images, [int(label) for label in labels])
    shapes: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        several = shapes.setdefault(row.image, [])
        if row.runs is not None:
            several.append({"label": row.label, "runs": row.runs})
    return _Contents(
        {
            name: DrawnImage(sizes[name] or path.parent / name, several, _named_runs)
            for name, several in shapes.items()
        }
    )


def _sizes_of(rows: Iterable[Row]) -> dict[str, tuple[int, int] | Path | None]:
    """The size of each image, in any of its rows; ValueError for two sizes of one image."""
    sizes: dict[str, tuple[int, int] | Path | None] = {}
    for row in rows:
        known = sizes.get(row.image)
        if isinstance(known, tuple) and isinstance(row.size, tuple) and known != row.size:
            shown = " and ".join(f"{height} × {width}" for height, width in (known, row.size))
            msg = f"image {row.image!r} has the sizes {shown} (height × width); correct one"
            raise ValueError(msg)
        sizes[row.image] = known if isinstance(known, tuple) else row.size or known
    return sizes


def _named_runs(shape: Any, size: tuple[int, int]) -> tuple[str, NDArray[np.bool_]]:
    return shape["label"], shape["runs"].area(size)


def _results_contents(data: Sequence[Any]) -> _Contents:
    """COCO results, which name images by id, or detectron2 results, by file name."""
    by_name = isinstance(data[0], dict) and "file_name" in data[0]
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
        return _Contents(_relative_names(images), covered=True)
    return _Contents(images, only_ids=True)


def _annotation_contents(data: Mapping[str, Any]) -> _Contents:
    """COCO annotations: segments of objects, or one PNG of ids per image."""
    entries = data["annotations"]
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
    return _Contents(by_name, ids, names=names)


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


def _drawn(image: ImageSegments, contents: _Contents, file: Path) -> NDArray[Any]:
    if image.size is None:
        msg = "has no size; add 'height' and 'width' in 'images', or use run lengths"
        if contents.only_ids:
            msg = "has no size, because results list none; save its segmentations as run lengths"
        if file.suffix.lower() != ".json":
            fix = f"put the images into {file.parent}"
            msg = f"has no size; {fix}, or add columns height and width"
        raise ValueError(msg)
    size = image_size(image.size) if isinstance(image.size, Path) else check_size(image.size)
    painting = Painting(size, contents.free, contents.dtype)
    for number, (category, segmentation) in enumerate(image.segments, 1):
        try:
            is_of_table = isinstance(segmentation, Runs)
            painting.add(segmentation.area(size) if is_of_table else segmentation, category)
        except ValueError as error:
            msg = f"segment {number} of {len(image.segments)} (category {category}): {error}"
            raise ValueError(msg) from error
    return painting.mask


def png_path(image: ImageSegments, file: Path) -> Path:
    """The PNG of an image of a panoptic file: in the folder of the same name, else next to it."""
    relative = PurePosixPath(image.png)
    if relative.is_absolute() or ".." in relative.parts:
        msg = f"file_name {image.png!r} is outside the mask folder"
        raise ValueError(msg)
    folders = (file.with_suffix(""), file.parent)
    return next((f / relative for f in folders if (f / relative).is_file()), folders[0] / relative)


def _png_ids(image: ImageSegments, contents: _Contents, file: Path) -> NDArray[Any]:
    """Categories of a PNG whose colours encode ids: red + 256 green + 65536 blue."""
    path = png_path(image, file)
    raw = open_mask(path)
    ids = packed(raw.values) if raw.is_color else raw.values
    categories = {part["id"]: category for category, part in image.segments} | {0: contents.free}
    present, inverse = np.unique(ids, return_inverse=True)
    if unknown := [id for id in present.tolist() if id not in categories]:
        msg = f"{path.name} has ids not listed in segments_info: {str(unknown[:6])[1:-1]}"
        raise ValueError(msg)
    values = np.array([categories[id] for id in present.tolist()], dtype=contents.dtype)
    mask: NDArray[Any] = values[inverse].reshape(ids.shape)
    return mask
