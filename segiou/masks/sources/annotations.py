"""The images of an annotation file, and the contract of its formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind
from segiou._support.optional import find_plugin, no_exit, plugin_names
from segiou.labels.label_set import VOID_VALUES
from segiou.masks.formats.drawn_image import DrawnImage

#: Most segments of an image, which are drawn one by one within seconds: of run lengths, and others.
_MOST_RUN_LENGTHS, _MOST_SHAPES = 100_000, 20_000


class Segment(Protocol):
    """A segmentation that is neither polygons nor run lengths of COCO."""

    def area(self, size: tuple[int, int]) -> NDArray[np.bool_]:
        """The pixels in an image of this height and width; ValueError if they do not fit."""


@dataclass
class ImageSegments:
    """The segments of one image, with numbers of classes."""

    size: tuple[int, int] | Path | None = None
    #: Category and segmentation, bottom to top: of COCO (a list or dict), or a :class:`Segment`.
    segments: list[tuple[int, Any]] = field(default_factory=list)
    #: The PNG of ids of panoptic annotations; a segmentation is then an entry of segments_info.
    png: str = ""


@dataclass
class Annotations:
    """The images of an annotation file.

    Parameters
    ----------
    images : mapping of str to DrawnImage or ImageSegments
        Images by file name, which pairs them with other masks.
    categories : sequence of int
        Numbers of classes, also of those without segments.
    covered : bool
        Whether segments cover each image.
    names : mapping of str to str
        Image names by id; empty if the file has only one of the two.
    only_ids : bool
        Whether images have ids instead of names.
    fix_of_size : str
        The cause or fix after "has no size", of an image without one.
    """

    images: Mapping[str, ImageSegments | DrawnImage]
    categories: Sequence[int] = ()
    covered: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    only_ids: bool = False
    fix_of_size: str = "; add 'height' and 'width' in 'images', or use run lengths"

    def __post_init__(self) -> None:
        for name, image in self.images.items():
            check_kind("the name of an image", name, str, "text")
            check_kind(f"image {name!r}", image, (DrawnImage, ImageSegments), "a DrawnImage")
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


@dataclass(frozen=True)
class AnnotationFormat:
    """Files of an annotation tool, found by an entry point of ``segiou.annotations``.

    Parameters
    ----------
    read : callable
        Returns the :class:`Annotations` of a file by its path and, if it is JSON, its data;
        None for files of another format. A ValueError states what is wrong with a file.
    endings : tuple of str
        Extensions of its files, in lower case.
    form : str
        What the JSON of this format is, in errors about other files.
    """

    read: Callable[[Path, Any], Annotations | None]
    endings: tuple[str, ...] = (".json",)
    form: str = ""


def formats_of(ending: str) -> dict[str, AnnotationFormat]:
    """The installed formats with this extension by name, segiou's own first."""
    kind = "annotations"
    several = {name: find_plugin(kind, name, AnnotationFormat) for name in plugin_names(kind)}
    return {name: one for name, one in several.items() if ending in one.endings}


def read_by_tools(path: Path, data: Any) -> Annotations | None:
    """The annotations that the first of the installed formats finds in a file."""
    for name, one in formats_of(path.suffix.lower()).items():
        whose = f"the plug-in {name!r} of segiou.annotations"
        with no_exit(f"{path}: {whose}"):
            try:
                contents = one.read(path, data)
                check_kind("the result", contents, (Annotations, NoneType), "Annotations or None")
            except ValueError:
                raise
            except Exception as error:
                msg = f"cannot be read by {whose}: {str(error) or type(error).__name__}"
                raise ValueError(msg) from error
        if contents is not None:
            return contents
    return None
