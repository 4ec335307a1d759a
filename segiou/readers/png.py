"""PNG masks, read several times faster than by an image library.

Nearly every mask is a grey or palette PNG of at most eight bits that is not interlaced.
These are read here: the chunks and their checksums are verified, the pixels inflated
within the size that the header promises, and the row filters undone in C, whole runs
at a time. Everything else, and every file that leaves the slightest doubt, is answered
with ``None``: it belongs to Pillow, whose verdict and error text then stand. The
answer is always ``None`` too where the C extension was not built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from segiou._compiled import allow_missing
from segiou.readers._png_chunks import (
    MAX_PIXELS,
    MAX_RATIO,
    PngChunks,
    PngHeader,
    as_bytes_view,
    collect,
    inflate_rows,
    parse_header,
    split,
)
from segiou.readers.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_unfilter: Callable[..., bool] | None
try:
    from segiou.readers._png import unfilter as _unfilter
except ImportError as error:
    allow_missing("reading of PNG masks", error)
    _unfilter = None

__all__ = ["EXTENSION_BUILT", "PngHeader", "PngMask", "read_png", "read_png_header"]

EXTENSION_BUILT: Final = _unfilter is not None
"""Whether the C extension is there; without it :func:`read_png` always gives ``None``."""

_GREY_SCALE: Final = {1: 1, 2: 85, 4: 17, 8: 1}
"""Packed grey samples are spread over 0..255, as Pillow does; one bit stays 0 and 1."""


@dataclass(frozen=True, slots=True, eq=False)
class PngMask:
    """A mask as its PNG file has it.

    Attributes
    ----------
    values : ndarray of uint8, shape (H, W)
        Grey values or palette indices, C-contiguous, equal to what ``np.asarray`` gives
        for Pillow's image (with 0 and 1 for False and True).
    mode : str
        Pillow's mode of the same file: ``"L"``, ``"P"`` or ``"1"``.
    palette : ndarray of uint8, shape (n, 3), or None
        Colours of the indices in mode ``"P"``; read-only. An index may lie beyond it.
    transparent : bool
        Whether the file declares values or indices as transparent (a ``tRNS`` chunk).
    """

    values: NDArray[np.uint8]
    mode: str
    palette: NDArray[np.uint8] | None
    transparent: bool


def read_png_header(data: bytes | memoryview) -> PngHeader | None:
    """Read size and kind of a PNG file from its first 33 bytes.

    Parameters
    ----------
    data : bytes or memoryview
        The file, or at least its first 33 bytes.

    Returns
    -------
    PngHeader or None
        None where the bytes are not the beginning of a lawful PNG file.

    Examples
    --------
    >>> read_png_header(b"GIF89a") is None
    True
    """
    view = as_bytes_view(data)
    return None if view is None else parse_header(view)


def read_png(data: bytes | memoryview, *, scratch: Scratch | None = None) -> PngMask | None:
    """Read a grey or palette PNG of at most eight bits.

    Parameters
    ----------
    data : bytes or memoryview
        The whole file. It is not changed and not kept.
    scratch : Scratch, optional
        Memory to write the values to; they are then good until it is used again.

    Returns
    -------
    PngMask or None
        None where the file is for Pillow to judge: 16 bits, colour, alpha, interlaced,
        animated, more than 89 million pixels, damaged or irregular in any way, or not
        a PNG at all; and always where the C extension was not built.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("L", (3, 2), 7).save(file, "PNG")
    >>> mask = read_png(file.getvalue())
    >>> mask.mode, mask.values.tolist()
    ('L', [[7, 7, 7], [7, 7, 7]])
    """
    view = as_bytes_view(data) if EXTENSION_BUILT else None
    header = None if view is None else parse_header(view)
    if view is None or header is None or not _is_plain(header):
        return None
    chunks = split(view)
    parts = None if chunks is None else collect(header, chunks)
    values = None if parts is None else _decode(parts, scratch)
    if parts is None or values is None:
        return None
    palette = parts.palette
    return PngMask(
        values=values,
        mode="P" if palette is not None else "1" if header.bit_depth == 1 else "L",
        palette=None if palette is None else np.frombuffer(palette, np.uint8).reshape(-1, 3),
        transparent=parts.transparency is not None,
    )


def _is_plain(header: PngHeader) -> bool:
    """Whether it is grey or palette, of up to eight bits, not interlaced, not too large."""
    return (
        header.color_type in (0, 3)
        and header.bit_depth <= 8
        and not header.interlaced
        and header.width * header.height <= MAX_PIXELS
    )


def _decode(parts: PngChunks, scratch: Scratch | None) -> NDArray[np.uint8] | None:
    """Pixels of the file, or None where its stream is not exactly what the header promises."""
    header = parts.header
    row_bytes = (header.width * header.bit_depth + 7) // 8
    size = header.height * (row_bytes + 1)
    if size > MAX_RATIO * len(parts.stream) or _unfilter is None:
        return None
    shape = (header.height, header.width)
    values = np.empty(shape, np.uint8) if scratch is None else scratch.take(shape)
    above = bytearray(row_bytes)
    scale = 1 if parts.palette is not None else _GREY_SCALE[header.bit_depth]
    y = 0
    for rows in inflate_rows(parts.stream, row_bytes + 1, header.height):
        stop = y + len(rows) // (row_bytes + 1)
        if not _unfilter(rows, values[y:stop], above, header.width, header.bit_depth, scale):
            return None
        y = stop
    return values if y == header.height else None
