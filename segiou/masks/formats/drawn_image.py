"""An image with shapes of an annotation tool, drawn as a mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segiou._support.files import os_problem
from segiou.masks.formats.drawing import Painting, check_size
from segiou.masks.formats.image_files import open_image
from segiou.masks.raw_mask import RawMask

#: Polygons, or an area, for :class:`Painting`.
Area = list[Any] | NDArray[np.bool_]
#: Returns the name of a shape and its area in an image of the given size.
Reader = Callable[[Any, tuple[int, int]], tuple[str, Area]]
#: Errors of Pillow for invalid images.
NO_IMAGE = (OSError, SyntaxError, Image.DecompressionBombError)
#: EXIF's orientation, and its values for images that are stored on their side.
_ORIENTATION, _ON_SIDE = 274, (5, 6, 7, 8)


@dataclass(frozen=True)
class DrawnImage:
    """An image with the shapes of an annotation tool.

    Parameters
    ----------
    size : (int, int) or Path
        Height and width in pixels, or the image file to take them from.
    shapes : sequence of dict
        The shapes, from the lowest to the highest.
    read : callable
        Returns the class name of a shape and its area in an image of the given size: a boolean
        array (H, W), or a list of polygons ``[x0, y0, x1, y1, …]``, which are drawn by the rule
        of pycocotools. It raises a ValueError with the problem if the shape is invalid.
    polygons : str, optional
        The tool whose rule draws its polygons, if that is not pycocotools; empty without polygons.
    """

    size: tuple[int, int] | Path
    shapes: Sequence[Any]
    read: Reader
    polygons: str | None = None

    def draw(self) -> RawMask:
        """Draw the mask.

        Returns
        -------
        RawMask
            Indices of its ``names``, int32 (H, W), and 0 outside all shapes.
        """
        given = self.size
        size = _size_next_to(given) if isinstance(given, Path) else check_size(given)
        values = {"": 0}
        painting, drawn = Painting(size, 0, np.int32), self.polygons or ""
        for number, shape in enumerate(self.shapes, 1):
            try:
                name, area = self._area(shape, size)
                painting.add(area, values.setdefault(name, len(values)))
                drawn = "pycocotools" if isinstance(area, list) else drawn
            except Exception as error:
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
    except NO_IMAGE as error:
        msg = f"has no size, because {path} {os_problem(error)}"
        raise ValueError(msg) from error
    return check_size(size[::-1] if is_on_side else size)


def reason(error: Exception) -> str:
    """The message of an error in a shape."""
    if isinstance(error, ValueError):
        return str(error)
    return f"{error} is missing" if isinstance(error, KeyError) else "unexpected structure"
