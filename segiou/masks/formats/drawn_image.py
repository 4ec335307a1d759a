"""An image with shapes of an annotation tool, drawn as a mask."""

from __future__ import annotations

import base64
import binascii
import io
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segiou._support.files import os_problem
from segiou.masks.formats.drawing import Painting, check_size
from segiou.masks.formats.image_files import SIGNATURE, open_image
from segiou.masks.raw_mask import RawMask

#: Polygons, or an area, for :class:`Painting`.
Area = list[Any] | NDArray[np.bool_]
#: Returns the name of a shape and its area in an image of the given size.
Reader = Callable[[Any, tuple[int, int]], tuple[str, Area]]
#: Most bytes of a PNG in addition to its pixels.
_MOST_HEADER = 1 << 16
#: Errors of Pillow for invalid images.
_NO_IMAGE = (OSError, SyntaxError, Image.DecompressionBombError)
#: EXIF's orientation, and its values for images that are stored on their side.
_ORIENTATION, _ON_SIDE = 274, (5, 6, 7, 8)


@dataclass(frozen=True)
class DrawnImage:
    """An image with its shapes, in drawing order."""

    #: Height and width, or the image file to take them from.
    size: tuple[int, int] | Path
    shapes: Sequence[Any]
    #: Returns the name of a shape and its area in an image of the given size.
    read: Reader
    #: The tool whose rule draws its polygons, if that is not pycocotools; empty without polygons.
    polygons: str | None = None

    def draw(self) -> RawMask:
        """Draw the mask: indices of ``names``, 0 outside all shapes."""
        size = _size_next_to(self.size) if isinstance(self.size, Path) else self.size
        values = {"": 0}
        painting, drawn = Painting(size, 0, np.int32), self.polygons or ""
        for number, shape in enumerate(self.shapes, 1):
            try:
                name, area = self._area(shape, size)
                painting.add(area, values.setdefault(name, len(values)))
                drawn = "pycocotools" if isinstance(area, list) else drawn
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
                msg = f"shape {number} of {len(self.shapes)}: {reason(error)}"
                raise ValueError(msg) from error
        return RawMask(painting.mask, "json", "JSON", names=tuple(values), drawn=drawn)

    def _area(self, shape: Any, size: tuple[int, int]) -> tuple[str, Area]:
        """The name of a shape and its area."""
        if not isinstance(shape, dict):
            msg = f"expected an object, got {shape!r:.40}"
            raise ValueError(msg)
        name, area = self.read(shape, size)
        if not isinstance(name, str) or not name:
            msg = f"expected a label, got {name!r:.40}"
            raise ValueError(msg)
        return name, area


def _size_next_to(image: Path) -> tuple[int, int]:
    try:
        return image_size(image)
    except ValueError as error:
        msg = f"{error}; put the image next to the file, or export as COCO"
        raise ValueError(msg) from error


def image_size(path: Path) -> tuple[int, int]:
    """Height and width of an image as browsers and training tools show it, turned by its EXIF."""
    try:
        with open_image(path) as image:
            size = image.height, image.width
            is_on_side = image.getexif().get(_ORIENTATION) in _ON_SIDE
    except _NO_IMAGE as error:
        msg = f"has no size, because {path} {os_problem(error)}"
        raise ValueError(msg) from error
    return check_size(size[::-1] if is_on_side else size)


def reason(error: Exception) -> str:
    """The message of an error in a shape."""
    if isinstance(error, ValueError):
        return str(error)
    return f"{error} is missing" if isinstance(error, KeyError) else "unexpected structure"


def png_area(
    text: Any, corner: Sequence[Any], size: tuple[int, int]
) -> tuple[NDArray[np.bool_], tuple[int, int]]:
    """The area of a base64 PNG placed at a corner, and the PNG's size.

    The area is where the PNG is not transparent, or not black if it has no transparency.
    """
    left, top = int(corner[0]), int(corner[1])
    try:
        data = base64.b64decode(text)
        if not data.startswith(SIGNATURE):  # Supervisely compresses it again
            data = zlib.decompressobj().decompress(data, 4 * size[0] * size[1] + _MOST_HEADER)
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            if min(left, top) < 0 or image.height > size[0] or image.width > size[1]:
                msg = f"its mask, {image.width} × {image.height} from ({left}, {top}), is outside"
                raise ValueError(msg)
            has_alpha = "transparency" in image.info or image.mode.endswith("A")
            grey = image.convert("RGBA").getchannel("A") if has_alpha else image.convert("L")
            part = np.asarray(grey) > 0
    except (*_NO_IMAGE, TypeError, binascii.Error, zlib.error) as error:
        # Pillow's text may end with an object of Python.
        msg = f"its mask is not a base64 PNG: {error}".partition(" <_io.")[0]
        raise ValueError(msg) from error
    area = np.zeros(size, dtype=bool)
    window = area[top : top + part.shape[0], left : left + part.shape[1]]
    window |= part[: window.shape[0], : window.shape[1]]
    return area, (part.shape[0], part.shape[1])
