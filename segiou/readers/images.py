"""Image files through our own PNG reader where it will, and through Pillow elsewhere."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from segiou.readers._png_chunks import SIGNATURE
from segiou.readers.masks import MaskError, RawMask
from segiou.readers.png import read_png
from segiou.readers.scratch import Scratch

__all__ = ["from_image", "from_pillow"]

_LOSSY = {"JPEG", "JPEG2000", "MPO", "WEBP", "AVIF", "HEIF"}
_LABEL_MODES = {"1", "L", "P", "I", "I;16", "I;16B", "I;16L"}


def from_image(data: bytes, path: str | Path, scratch: Scratch | None = None) -> RawMask:
    """Read an image from its content; see :func:`segiou.readers.masks.from_bytes`.

    Raises
    ------
    MaskError
        If it is no image, damaged, of several frames, translucent or of a mode
        that holds no labels.
    """
    if (plain := read_png(data, scratch=scratch)) is not None:
        return RawMask(plain.values, plain.mode, "PNG")
    if data.startswith(SIGNATURE):
        _check_png(data, path)
    try:
        with Image.open(io.BytesIO(data)) as image:
            return from_pillow(image, path)
    except UnidentifiedImageError as error:
        raise MaskError(path, f"is no image: it begins with {data[:12]!r}") from error
    except Image.DecompressionBombError as error:
        problem = f"declares a size that no mask has: {error}; use TIFF or .npy for huge masks"
        raise MaskError(path, problem) from error
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError) as error:
        if isinstance(error, MaskError):
            raise
        raise MaskError(path, f"is damaged: {error}") from error


def _check_png(data: bytes, path: str | Path) -> None:
    """Check every checksum, as Pillow does not: it would give damaged pixels."""
    at = len(SIGNATURE)
    kind = b""
    while kind != b"IEND":
        head = data[at : at + 8]
        stop = at + 12 + int.from_bytes(head[:4], "big")
        if len(head) < 8 or stop > len(data):
            raise MaskError(path, "is damaged: it is truncated")
        kind = head[4:]
        if zlib.crc32(data[at + 4 : stop - 4]) != int.from_bytes(data[stop - 4 : stop], "big"):
            name = kind.decode("latin-1")
            raise MaskError(path, f"is damaged: its part {name!r} does not match its checksum")
        at = stop


def from_pillow(image: Image.Image, path: str | Path) -> RawMask:
    """Take labels or colours from an open Pillow image."""
    kind = image.format or "image"
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        raise MaskError(path, f"has {frames} frames; a mask has one: save each frame as a file")
    image.load()
    lossy = kind in _LOSSY
    mode = image.mode
    if mode in _LABEL_MODES:
        return RawMask(np.asarray(image), mode, kind, lossy)
    if mode in ("LA", "PA"):
        return RawMask(_opaque(np.asarray(image), path)[..., 0], mode, kind, lossy)
    if mode == "RGBA":
        return RawMask(_opaque(np.asarray(image), path)[..., :3], mode, kind, lossy)
    if mode == "RGB":
        return RawMask(np.asarray(image), mode, kind, lossy)
    problem = f"has mode {mode!r}; a mask has one channel of integers, or colours: save it as PNG"
    raise MaskError(path, problem)


def _opaque(pixels: NDArray[Any], path: str | Path) -> NDArray[Any]:
    translucent = int((pixels[..., -1] != 255).sum())
    if translucent:
        problem = (
            f"has {translucent} pixels that are not opaque; what lies under them is not defined: "
            "save the mask without an alpha channel"
        )
        raise MaskError(path, problem)
    return pixels
