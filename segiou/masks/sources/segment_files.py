"""Files with the masks of many images: COCO, detectron2 and annotation tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Stamp, is_file, no_file_problem, read_json
from segiou._support.locks import Lockable
from segiou._support.optional import no_exit
from segiou.masks.colors import packed
from segiou.masks.formats.drawing import Painting, check_size
from segiou.masks.formats.drawn_image import DrawnImage, image_size
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.masks.read import open_mask
from segiou.masks.sources.annotations import Annotations, ImageSegments, formats_of, read_by_tools
from segiou.masks.sources.folders import Source, stamp_of
from segiou.masks.sources.shards import Shards

_LOADING = Lockable()
_LAST_NUMBER = re.compile(r"(\d+)\D*$")


def open_json(path: Path, file: Path) -> Source:
    """The source for a JSON file, or a pattern of such files."""
    return Shards.at(path, file) or SegmentFile(str(path), str(file))


def open_other(path: Path, file: Path) -> Source | None:
    """The source for a file of an annotation tool that is not JSON; None for other files."""
    is_annotated = (
        file.is_file()
        and formats_of(file.suffix.lower())
        and _load(str(file), stamp_of(file)) is not None
    )
    return SegmentFile(str(path), str(file)) if is_annotated else None


@dataclass(frozen=True)
class SegmentFile(Source):
    """A file of segments as a source with one mask per image.

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
        if not Path(self.file).is_file():  # opening a pipe would wait for a writer
            msg = f"{self.file}: {no_file_problem(self.file)}"
            raise ValueError(msg)
        images = self._contents().images
        if not self.file.lower().endswith(".json") and any(
            isinstance(image, ImageSegments) and image.size is None for image in images.values()
        ):
            _loaded.cache_clear()  # images that are beside the file by now have the sizes
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
                with no_exit(f"{path}: the plug-in that reads its shapes"):
                    drawn = image.draw()
                return drawn._replace(mode=kind.lower(), kind=kind.upper()), stamp
            mask = (
                _png_ids(image, contents, Path(self.file)) if image.png else _drawn(image, contents)
            )
        except MaskError:
            raise
        except ValueError as error:
            raise MaskError(path, str(error)) from error
        polygons = any(isinstance(segmentation, list) for _, segmentation in image.segments)
        tool = "pycocotools" if polygons else ""
        raw = RawMask(mask, kind.lower(), kind.upper(), drawn=tool)
        if image.png:
            return raw._replace(void=contents.free), stamp
        return raw._replace(background=None if contents.covered else contents.free), stamp

    def _image(self, path: str) -> ImageSegments | DrawnImage | None:
        return self._contents().images.get(path[len(self.file) + 1 :])

    def _contents(self) -> Annotations:
        """The current content of the file."""
        return load_segments(self.file, stamp_of(self.file))


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


def load_segments(path: str, stamp: Stamp) -> Annotations:
    """Read a file once; the stamp reveals its changes."""
    if (contents := _load(path, stamp)) is None:
        several = [one.form for one in formats_of(Path(path).suffix.lower()).values()]
        forms = f"{', '.join(several[:-1])} or {several[-1]}"
        msg = f"{path}: is not a supported annotation file; expected {forms}"
        raise ValueError(msg)
    return contents


def _load(path: str, stamp: Stamp) -> Annotations | None:
    with _LOADING.lock:  # threads that wait find it loaded
        return _loaded(path, stamp)


@lru_cache(maxsize=4)
def _loaded(path: str, _stamp: Stamp) -> Annotations | None:
    try:
        data = read_json(path) if path.lower().endswith(".json") else None
        if data == []:
            raise ValueError("is an empty list; expected at least one result or task")
        return read_by_tools(Path(path), data)
    except ValueError as error:
        text = str(error).removeprefix(f"{path} ")
        msg = text if text.startswith(f"{path}: ") else f"{path}: {text}"
        raise ValueError(msg) from error


def _drawn(image: ImageSegments, contents: Annotations) -> NDArray[Any]:
    if image.size is None:
        msg = f"has no size{contents.fix_of_size}"
        raise ValueError(msg)
    size = image_size(image.size) if isinstance(image.size, Path) else check_size(image.size)
    painting = Painting(size, contents.free, contents.dtype)
    for number, (category, segmentation) in enumerate(image.segments, 1):
        try:
            is_of_coco = isinstance(segmentation, (dict, list))
            painting.add(segmentation if is_of_coco else segmentation.area(size), category)
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
    return next((f / relative for f in folders if is_file(f / relative)), folders[0] / relative)


def _png_ids(image: ImageSegments, contents: Annotations, file: Path) -> NDArray[Any]:
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
