"""The pictures of an image: its masks and its photo as data URIs."""

from __future__ import annotations

import base64
import io
import math
import zlib
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from segiou.masks.formats.image_files import open_image
from segiou.masks.raw_mask import VOLUME_SUFFIXES
from segiou.masks.windows import resized
from segiou.report.pages.page import Color
from segiou.report.pages.picture_masks import (
    Masks,
    PictureError,
    Shape,
    in_grey,
    reduced,
    scan_plane,
)

#: Widths in decreasing order, tried until the pictures of an image fit its part of the page.
_WIDTHS = (400, 320, 256, 208, 160, 128, 96, 64)
_QUALITY = 80
#: Widths tried for the scores of classes, and their characters in a separate file.
_SCORES_WIDTHS = (480, 320, 208, 160)
_SCORES_BESIDE = 100_000
#: EXIF's tag of the orientation, and its largest value without a quarter turn.
_ORIENTATION, _UPRIGHT = 0x0112, 4


def encoded_within(
    masks: Masks, colors: Sequence[Color], image: Path | None, room: int | None
) -> dict[str, Any]:
    """Encode the pictures of an image in ``room`` characters, or the smallest, as data URIs."""
    largest = max(masks.arrays[0].shape)
    shapes = [reduced(masks.arrays[0].shape, width) for width in (largest, *_WIDTHS)]
    for shape in dict.fromkeys(shapes):
        encoded = _encoded(masks, colors, image, shape)
        pictures = (*encoded["masks"], *encoded["objects"], encoded["image"] or "")
        if room is None or sum(map(len, pictures)) <= room:
            break
    return encoded


def score_maps(masks: Masks, pictures: Mapping[str, Any], room: int | None) -> dict[str, Any]:
    """Scores in hundredths for the script, in ``room`` characters, beside the pictures.

    Images are shrunk up to a limit, then only the classes that fit are drawn.
    """
    if not masks.scored:
        return {}
    shape = (pictures["depth"], pictures["height"], pictures["width"])[-len(masks.full) :]
    most = _SCORES_BESIDE if room is None else room
    sizes = [shape] if len(shape) == 3 else [reduced(shape, width) for width in _SCORES_WIDTHS]
    for size in dict.fromkeys(sizes):
        maps = [
            # Run lengths alone take a quarter of the time, and no more bytes.
            [
                grey_png(_sheet(resized(plane, size)), optimize=False, compress_type=zlib.Z_RLE)
                for plane in planes
            ]
            for planes in masks.scores
        ]
        ends = np.cumsum([sum(map(len, several)) for several in zip_longest(*maps, fillvalue="")])
        fit = int((ends <= most).sum())
        if fit == len(ends):
            break
    return {"scored": masks.scored[:fit], "maps": [of_pred[:fit] for of_pred in maps]}


def _encoded(
    masks: Masks, colors: Sequence[Color], image: Path | None, shape: Shape
) -> dict[str, Any]:
    """Pictures of one size for the script; planes of a volume are side by side."""
    sheets = [_sheet(resized(mask, shape)) for mask in (*masks.arrays, *masks.objects)]
    sides = len(masks.arrays)
    encoded = {
        "width": shape[-1],
        "height": shape[-2],
        "full": masks.full,
        "masks": [mask_png(sheet, colors) for sheet in sheets[:sides]],
        "image": None,
        "depth": 1,
        "columns": 1,
        "spacing": (1.0, 1.0, 1.0),
        "objects": [mask_png(sheet, _number_colors(int(sheet.max()))) for sheet in sheets[sides:]],
        "outcomes": masks.outcomes,
        "problem": "",
    }
    if len(shape) == 3:
        # As a volume shrinks, its voxels grow.
        spacing = [s * n / m for s, n, m in zip(masks.spacing, masks.full, shape, strict=True)]
        return encoded | {
            "depth": shape[0],
            "columns": _columns(shape[0]),
            "spacing": spacing[::-1],
        }
    return encoded if image is None else encoded | _photo(image, shape)


def _photo(image: Path, shape: Shape) -> dict[str, str]:
    """The photo under the masks, or the reason why there is none."""
    try:
        photo = read_image(image, (shape[-1], shape[-2]))
    except PictureError as error:
        return {"problem": str(error)}
    return {"image": data_uri(photo, "jpeg", quality=_QUALITY, progressive=True)}


def _number_colors(most: int) -> list[Color]:
    """Numbers up to the largest as colours."""
    return [(0, number >> 8, number & 255) for number in range(most + 1)]


def _columns(depth: int) -> int:
    return math.ceil(math.sqrt(depth))


def _sheet(array: NDArray[Any]) -> NDArray[Any]:
    """The planes of a volume in a grid; an image unchanged."""
    if array.ndim == 2:
        return array
    depth, height, width = array.shape
    columns = _columns(depth)
    rows = -(-depth // columns)
    sheet = np.zeros((rows * columns, height, width), array.dtype)
    sheet[:depth] = array
    planes = sheet.reshape(rows, columns, height, width).swapaxes(1, 2)
    return planes.reshape(rows * height, columns * width)


def mask_png(indices: NDArray[np.uint16], colors: Sequence[Color]) -> str:
    """Encode indices as a PNG data URI in their colours, exactly."""
    if len(colors) <= 256:
        image = Image.fromarray(indices.astype(np.uint8))
        image.putpalette([channel for color in colors for channel in color])
    else:
        table = np.array(colors, dtype=np.uint8)
        image = Image.fromarray(table[indices])
    return data_uri(image, "png")


def grey_png(values: NDArray[np.uint8], **options: Any) -> str:
    """Encode a grey picture as a PNG data URI."""
    return data_uri(Image.fromarray(values), "png", **options)


def data_uri(image: Image.Image, kind: str, **options: Any) -> str:
    """A picture as a data URI."""
    out = io.BytesIO()
    image.save(out, kind, **{"optimize": True, **options})
    return f"data:image/{kind};base64,{base64.b64encode(out.getvalue()).decode()}"


def photo_of(path: Path, masks: Masks) -> Image.Image:
    """The photo of an image at the size of its masks; of a volume the plane of its scan."""
    if path.name.lower().endswith(VOLUME_SUFFIXES):
        return Image.fromarray(scan_plane(path, masks)).convert("RGB")
    return read_image(path, masks.arrays[0].shape[::-1])


def read_image(path: Path, size: tuple[int, int]) -> Image.Image:
    """Read an image at a size (width, height)."""
    try:
        with open_image(path) as image:
            # JPEG decodes at an eighth, a quarter or a half for almost nothing.
            image.draft("RGB", size)
            return _colored(image, size)
    except (Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        msg = f"{path} cannot be shown: {error}"
        raise PictureError(msg) from error


def _colored(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """An open image in colours of 8 bits, at a size (width, height)."""
    # Masks are drawn on the turned photo or on its stored pixels; their shape shows which.
    is_turned = (image.width < image.height) != (size[0] < size[1])
    if is_turned and image.getexif().get(_ORIENTATION, 1) > _UPRIGHT:
        image = ImageOps.exif_transpose(image)
    if not image.mode.startswith(("I", "F")):
        return image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    # Pillow would clip 16 bits and floats to 8 bits.
    values = Image.fromarray(np.asarray(image, np.float32))
    resized = np.asarray(values.resize(size, Image.Resampling.LANCZOS))
    return Image.fromarray(in_grey(resized, resized)).convert("RGB")
