"""Shapes of annotation tools: base64 masks, polygons, and files of several images."""

from __future__ import annotations

import base64
import binascii
import io
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segiou.masks.formats.drawn_image import NO_IMAGE, DrawnImage
from segiou.masks.formats.image_files import SIGNATURE
from segiou.masks.sources.annotations import Annotations

#: Most bytes of a PNG in addition to its pixels.
_MOST_HEADER = 1 << 16


def annotations_of(images: Iterable[tuple[str, DrawnImage]]) -> Annotations | None:
    """The images of a file by name; None without any."""
    by_name: dict[str, DrawnImage] = {}
    for name, image in images:
        if name in by_name:
            msg = f"contains the image {name!r} twice; keep one"
            raise ValueError(msg)
        by_name[name] = image
    return Annotations(by_name) if by_name else None


def polygon_tool(tool: str, shapes: Iterable[Any], key: str) -> str:
    """The tool if any of the shapes is a polygon; else empty."""
    kinds = [shape.get(key) or "polygon" for shape in shapes if isinstance(shape, dict)]
    return tool if "polygon" in kinds else ""


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
    except (*NO_IMAGE, TypeError, binascii.Error, zlib.error) as error:
        # Pillow's text may end with an object of Python.
        msg = f"its mask is not a base64 PNG: {error}".partition(" <_io.")[0]
        raise ValueError(msg) from error
    area = np.zeros(size, dtype=bool)
    window = area[top : top + part.shape[0], left : left + part.shape[1]]
    window |= part[: window.shape[0], : window.shape[1]]
    return area, (part.shape[0], part.shape[1])
