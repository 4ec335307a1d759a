"""TIFF masks through tifffile, the reader of scikit-image."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from segiou.readers.masks import MaskError, RawMask

__all__ = ["from_tiff"]

LOSSY_COMPRESSIONS = {6, 7, 33003, 33004, 33005, 34712, 34892, 50001}


def from_tiff(data: bytes, path: str | Path) -> RawMask:
    """Read a TIFF from its content.

    Palette images give indices. Compressions that tifffile has no decoder for
    are left to Pillow.

    Raises
    ------
    MaskError
        If it is damaged, has several pages, or holds floats.
    """
    import tifffile

    try:
        with tifffile.TiffFile(io.BytesIO(data)) as file:
            pages = len(file.pages)
            if pages != 1:
                raise MaskError(path, f"has {pages} pages; a mask has one: save each as a file")
            return _from_page(file.pages[0], data, path)
    except MaskError:
        raise
    except Exception as error:
        raise MaskError(path, f"is a damaged TIFF: {error}") from error


def _from_page(page: Any, data: bytes, path: str | Path) -> RawMask:
    lossy = int(page.compression) in LOSSY_COMPRESSIONS
    try:
        array = page.asarray()
    except ValueError as error:
        if "imagecodecs" not in str(error):
            raise
        from segiou.readers.images import from_image

        return from_image(data, path)
    if array.dtype.kind not in "biu":
        raise MaskError(path, f"holds {array.dtype}; labels must be integers: convert it first")
    array = np.squeeze(array)
    if array.ndim == 3 and array.shape[-1] == 3 and page.photometric.name == "RGB":
        return RawMask(array, "RGB", "TIFF", lossy)
    if array.ndim > 2:
        problem = (
            f"has {array.shape} samples of kind {page.photometric.name}; a mask has one channel"
        )
        raise MaskError(path, problem)
    return RawMask(array, "tiff", "TIFF", lossy)
