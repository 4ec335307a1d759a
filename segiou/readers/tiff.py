"""TIFF masks through tifffile, the reader of scikit-image."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

import numpy as np

from segiou.readers.masks import MaskError, RawMask

__all__ = ["LOSSY_COMPRESSIONS", "check_segments", "from_tiff"]

# What tifffile has to say about a damaged file is in our error; without a handler
# of the program's own, logging would print it too.
logging.getLogger("tifffile").addHandler(logging.NullHandler())

#: What is read whole; larger ones are counted window by window.
_MOST_PIXELS = 1 << 28
_HEADER_BYTES = 8
#: Without them tifffile falls back on defaults that make noise of packed pixels.
_REQUIRED = ("Compression", "PhotometricInterpretation")
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
            page: Any = file.pages[0]
            if page.imagelength * page.imagewidth > _MOST_PIXELS:
                problem = (
                    f"has {page.imagewidth} × {page.imagelength} pixels; only a file of this "
                    "machine is counted window by window: copy or unpack it"
                )
                raise MaskError(path, problem)
            check_segments(page, len(data), path)
            return _from_page(page, data, path)
    except MaskError:
        raise
    except Exception as error:
        raise MaskError(path, f"is a damaged TIFF: {error}") from error


def check_segments(page: Any, size: int, path: str | Path) -> None:
    """Refuse a page some of whose pixels are not in the file.

    tifffile gives zeros for a tile or strip that is missing or not listed, and
    zeros would be a class.

    Parameters
    ----------
    page : tifffile.TiffPage
    size : int
        Bytes of the file.
    path : str or path
        Its name, for messages only.

    Raises
    ------
    MaskError
        If a tile or strip is not listed, has no data, or lies beyond the end.
    """
    if absent := [name for name in _REQUIRED if name not in page.tags]:
        raise MaskError(path, f"is a damaged TIFF: it has no {', '.join(absent)}")
    height, width = page.imagelength, page.imagewidth
    if page.is_tiled:
        tall, wide = page.tilelength, page.tilewidth
    else:
        tall, wide = min(page.rowsperstrip, height), width
    if min(height, width, tall, wide) < 1:
        raise MaskError(path, f"is a damaged TIFF: {width} × {height} in pieces {wide} × {tall}")
    planes = page.samplesperpixel if page.planarconfig == 2 else 1
    expected = -(-height // tall) * -(-width // wide) * planes * page.imagedepth
    offsets, counts = page.dataoffsets, page.databytecounts
    # As the file lists them, before tifffile fills gaps; of tiles, or of strips.
    if _listed(page, page.is_tiled) != (width, height, tuple(offsets), tuple(counts)) or (
        len(offsets) != expected
    ):
        problem = f"is a damaged TIFF: it has {expected} tiles or strips and lists {len(offsets)}"
        raise MaskError(path, problem)
    for i, (offset, count) in enumerate(zip(offsets, counts, strict=True)):
        rows = min(tall, height - tall * (i % -(-height // tall))) if not page.is_tiled else tall
        problem = _segment_problem(page, rows * _row_bytes(page, wide), count)
        if offset < _HEADER_BYTES or offset + count > size:
            problem = "lies beyond the end of the file, or in its header"
        if problem:
            raise MaskError(path, f"is a damaged TIFF: tile or strip {i} {problem}")


def _listed(page: Any, tiled: bool) -> tuple[Any, ...]:
    """Size, offsets and lengths as the file says, before tifffile makes sense of them."""
    values = []
    for code in (256, 257, *((324, 325) if tiled else (273, 279))):
        tags = page.tags.getall(code) or []
        values.append(tags[0].value if len(tags) == 1 else None)
    return tuple(tuple(v) if isinstance(v, (list, tuple)) else v for v in values)


def _row_bytes(page: Any, width: int) -> int:
    samples = page.samplesperpixel if page.planarconfig == 1 else 1
    return -(-width * samples * int(page.bitspersample) // 8)


def _segment_problem(page: Any, unpacked: int, count: int) -> str:
    if count < (unpacked if page.compression == 1 else 1):
        return "holds less than its pixels"
    # Nothing packs to much more than it was; a bomb does, to hide what it grows to.
    if page.compression != 1 and count > 2 * unpacked + 4096:
        return "holds more than its pixels"
    return ""


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
