"""PNG masks, decoded by compiled code; what is not quite plain is left to Pillow.

What is read here is what Pillow reads, and what is damaged never gives values.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.optional import load_part, warn_missing

_COMPILED: Final = "segiou.masks._png"
_png = load_part(_COMPILED)
#: Whether the compiled code is there; without it :func:`read_png` always gives None.
EXTENSION_BUILT: Final = _png is not None

# zlib-ng is several times faster and the same on every stream: it keeps zlib's checks,
# where faster libraries let codes pass that RFC 1951 forbids.
inflater: Any
try:
    from zlib_ng import zlib_ng as inflater
except ImportError:
    inflater = zlib

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
#: Above this many pixels Pillow warns of a decompression bomb: its warning must be seen.
MAX_PIXELS: Final = 1024 * 1024 * 1024 // 4 // 3
#: No deflate stream grows by more: 258 bytes from two bits.
MAX_RATIO: Final = 1032

#: Masks that need more are few, and their memory is better given back.
_MOST_SCRATCH = 1 << 24
#: What the compiled code needs beside the rows, and behind all.
_GAP: Final = 16


class Scratch:
    """Memory for the labels of a mask, taken again and again by one thread.

    Fresh memory costs a page fault for every 4096 pixels, which takes longer
    than the reading itself and is done by one thread of a process at a time.

    Examples
    --------
    >>> scratch = Scratch()
    >>> first = scratch.take(6)
    >>> second = scratch.take(4)
    >>> bool(np.shares_memory(first, second))
    True
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def take(self, size: int) -> NDArray[np.uint8]:
        """So many bytes of any content; those taken before must not be used any longer."""
        if size > _MOST_SCRATCH:
            return np.empty(size, np.uint8)
        if size > self._memory.size:
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size]


class PngMask(NamedTuple):
    """A mask as its PNG file has it.

    Attributes
    ----------
    values : ndarray of uint8, shape (H, W)
        Grey values or palette indices, C-contiguous, equal to what ``np.asarray`` gives
        for Pillow's image (with 0 and 1 for False and True).
    mode : str
        Pillow's mode of the same file: ``"L"``, ``"P"`` or ``"1"``.
    """

    values: NDArray[np.uint8]
    mode: str


def read_png(data: bytes, *, scratch: Scratch | None = None) -> PngMask | None:
    """Read a grey or palette PNG of at most eight bits.

    Parameters
    ----------
    data : bytes
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
    if not EXTENSION_BUILT:
        if bytes(data[: len(SIGNATURE)]) == SIGNATURE:
            warn_missing(_COMPILED)
        return None
    if len(data) < 26:
        return None
    width, height, depth = struct.unpack_from(">IIB", data, 16)
    rows = height * (-(-width * depth // 8) + 1)
    # What is forged gets no memory.
    if rows > MAX_RATIO * len(data) or width * height > MAX_PIXELS:
        return None
    memory = (scratch or Scratch()).take(max(width * height, rows + _GAP) + _GAP)
    if (found := _png.read_png(data, memory)) is None:
        return None
    height, width, mode = found
    return PngMask(memory[: height * width].reshape(height, width), mode)
