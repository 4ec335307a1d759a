"""Pictures as data URIs: masks exactly, photographs small, all within a budget."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segiou.html.report.colors import Color
from segiou.html.report.masks import (
    LARGEST,
    Masks,
    PictureError,
    read_photograph,
    reduced_size,
    resized,
)

__all__ = ["Pictures", "fitted", "grey_png", "mask_png"]

#: Widths tried from the first on, until the pictures of an example fit its part of the page.
_WIDTHS = (LARGEST, 400, 320, 256, 208, 160, 128, 96)
_QUALITY = 80


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of one example as data URIs, all of one size.

    Attributes
    ----------
    width, height : int
        Pixels as embedded.
    full_width, full_height : int
        Pixels of the masks.
    masks : tuple of str
        Truth, then predictions.
    photograph : str or None
    """

    width: int
    height: int
    full_width: int
    full_height: int
    masks: tuple[str, ...]
    photograph: str | None

    @property
    def size(self) -> int:
        """Characters they take in the page."""
        return sum(map(len, self.masks)) + len(self.photograph or "")


def fitted(
    masks: Masks, colors: Sequence[Color], photograph: Path | None, budget: int
) -> tuple[Pictures, str]:
    """Encode the pictures of an example as large as the budget allows.

    Parameters
    ----------
    masks : Masks
    colors : sequence of colour
    photograph : path, optional
    budget : int
        Characters that they may take; at the smallest size they are taken as
        they come.

    Returns
    -------
    pictures : Pictures
    problem : str
        Why there is no photograph where one was asked for.
    """
    for size in dict.fromkeys(reduced_size(masks.full_size, width) for width in _WIDTHS):
        pictures, problem = _encoded(masks, colors, photograph, size)
        if pictures.size <= budget:
            break
    return pictures, problem


def _encoded(
    masks: Masks, colors: Sequence[Color], photograph: Path | None, size: tuple[int, int]
) -> tuple[Pictures, str]:
    shown = tuple(mask_png(resized(mask, size), colors) for mask in masks.arrays)
    photo, problem = None, ""
    if photograph is not None:
        try:
            photo = _jpeg(read_photograph(photograph, size))
        except PictureError as error:
            problem = str(error)
    return Pictures(*size, *masks.full_size, shown, photo), problem


def mask_png(indices: NDArray[np.uint16], colors: Sequence[Color]) -> str:
    """Encode indices as a PNG data URI in their colours, exactly."""
    if len(colors) <= 256:
        image = Image.fromarray(indices.astype(np.uint8))
        image.putpalette([channel for color in colors for channel in color])
    else:
        table = np.array(colors, dtype=np.uint8)
        image = Image.fromarray(table[indices])
    return _png(image)


def grey_png(values: NDArray[np.uint8]) -> str:
    """Encode a grey picture as a PNG data URI."""
    return _png(Image.fromarray(values))


def _png(image: Image.Image) -> str:
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"


def _jpeg(image: Image.Image) -> str:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=_QUALITY, optimize=True, progressive=True)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}"
