"""Image masks: PNG, decoded by compiled code or Pillow, and the other formats of Pillow.

Compiled code decodes plain PNG files, with the same result as Pillow, which reads all others.
Corrupt files never give values.
"""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from segiou._support.optional import load_part, warn_missing
from segiou._support.text import plural
from segiou.masks.read import MAX_RATIO, MaskError, RawMask, damage

_COMPILED = "segiou.masks._png"
_png = load_part(_COMPILED)
#: Whether the compiled decoder is available; if not, :func:`read_png` returns None.
EXTENSION_BUILT = _png is not None

SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Pillow's limit before it warns of a decompression bomb.
MAX_PIXELS = 1024 * 1024 * 1024 // 4 // 3
#: Larger buffers are not kept.
_MOST_SCRATCH = 1 << 24
#: Spare bytes that the compiled decoder needs.
_GAP = 16
_LOSSY = {"JPEG", "JPEG2000", "MPO", "WEBP", "AVIF", "HEIF"}
_LABEL_MODES = {"1", "L", "P", "I", "I;16", "I;16B", "I;16L"}


class Scratch:
    """Reusable memory for the labels of a mask, for one thread.

    Fresh memory costs a page fault per 4096 pixels, which takes longer than
    decoding and is serialised within a process.

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
        """``size`` uninitialised bytes; arrays taken before must not be used any more."""
        if size > _MOST_SCRATCH:
            return np.empty(size, np.uint8)
        if size > self._memory.size:
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size]


def read_png(data: bytes, *, scratch: Scratch | None = None) -> RawMask | None:
    """Read a grey or palette PNG of at most eight bits.

    Parameters
    ----------
    data : bytes
        The whole file.
    scratch : Scratch, optional
        Memory for the values, which are valid until its next use.

    Returns
    -------
    RawMask or None
        None if the file is left to Pillow: 16 bits, colour, alpha, interlaced,
        animated, more than 89 million pixels, corrupt or irregular in any way, or not
        a PNG; and always if the C extension was not built.

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
    # Forged sizes must not allocate memory.
    if rows > MAX_RATIO * len(data) or width * height > MAX_PIXELS:
        return None
    memory = (scratch or Scratch()).take(max(width * height, rows + _GAP) + _GAP)
    if (found := _png.read_png(data, memory)) is None:
        return None
    height, width, mode = found
    return RawMask(memory[: height * width].reshape(height, width), mode, "PNG")


def from_image(data: bytes, path: str | Path, scratch: Scratch | None = None) -> RawMask:
    """Read an image from its content: a PNG, or another format of Pillow."""
    if (plain := read_png(data, scratch=scratch)) is not None:
        return plain
    if data.startswith(SIGNATURE):
        _check_png(data, path)
    with damage(path, "is corrupt"):
        try:
            with Image.open(io.BytesIO(data)) as image:
                return _from_pillow(image, path)
        except UnidentifiedImageError as error:
            raise MaskError(path, f"is not an image (starts with {data[:12]!r})") from error
        except Image.DecompressionBombError as error:
            problem = f"declares an invalid size: {error}; save huge masks as TIFF or .npy"
            raise MaskError(path, problem) from error


def _check_png(data: bytes, path: str | Path) -> None:
    """Check every checksum; Pillow does not, and would return corrupt pixels."""
    at = len(SIGNATURE)
    kind = b""
    while kind != b"IEND":
        head = data[at : at + 8]
        stop = at + 12 + int.from_bytes(head[:4], "big")
        if len(head) < 8 or stop > len(data):
            raise MaskError(path, "is truncated")
        kind = head[4:]
        if zlib.crc32(data[at + 4 : stop - 4]) != int.from_bytes(data[stop - 4 : stop], "big"):
            name = kind.decode("latin-1")
            raise MaskError(path, f"is corrupt: chunk {name!r} fails its checksum")
        at = stop


def _from_pillow(image: Image.Image, path: str | Path) -> RawMask:
    kind = image.format or "image"
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        raise MaskError(
            path, f"has {frames} frames; expected one. Save each frame as a separate file"
        )
    image.load()
    mode, pixels = image.mode, np.asarray(image)
    if mode in ("LA", "PA", "RGBA"):
        if translucent := int((pixels[..., -1] != 255).sum()):
            found = plural(translucent, "transparent pixel")
            problem = f"has {found}; save the mask without an alpha channel"
            raise MaskError(path, problem)
        pixels = pixels[..., :3] if mode == "RGBA" else pixels[..., 0]
    elif mode not in _LABEL_MODES and mode != "RGB":
        problem = (
            f"has mode {mode!r}; expected one channel of integers, or RGB colours. Save it as PNG"
        )
        raise MaskError(path, problem)
    return RawMask(pixels, mode, kind, kind in _LOSSY)
