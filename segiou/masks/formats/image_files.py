"""Image masks: PNG, decoded by compiled code or Pillow, PGM and PPM, and other formats of Pillow.

Compiled code decodes plain PNG files, with the same result as Pillow, which reads all others.
Corrupt files never give values.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from segiou._support.optional import load_part, warn_missing
from segiou._support.text import plural
from segiou.masks.formats.decompression import MAX_RATIO, inflater, size_within
from segiou.masks.raw_mask import MaskError, RawMask, check_upright, damage

_COMPILED = "segiou.masks.formats._png"
_png = load_part(_COMPILED)
#: Whether the compiled decoder is available; if not, :func:`read_png` returns None.
EXTENSION_BUILT = _png is not None

SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Pillow's limit before it warns of a decompression bomb.
MAX_PIXELS = 1024 * 1024 * 1024 // 4 // 3
#: Larger buffers are not kept.
_MOST_SCRATCH = 1 << 24
#: Bytes for the pixels of a small file; one with more pixels is decoded afterwards.
_SMALL_PIXELS = 1 << 22
#: Bytes behind the pixels that the compiled decoder needs.
_GAP = 64
#: Channels by PNG's colour type.
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
#: First column and row, and steps, of the passes of an interlaced PNG.
_ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2)]
_ADAM7 += [(0, 1, 1, 2)]
_GAP_OR_COMMENT = rb"(?:\s|#[^\r\n]*[\r\n])+"
#: Kind, width, height and maximum of a PGM or PPM.
_NETPBM = re.compile(_GAP_OR_COMMENT.join([rb"P([2356])", *[rb"(\d{1,9})"] * 3]) + rb"\s")
_LOSSY = {"JPEG", "JPEG2000", "MPO", "WEBP", "AVIF", "HEIF"}
#: Formats for which Pillow starts another program, Ghostscript, with the file.
_VECTORS = {"EPS", "WMF"}
#: Errors of Pillow about what is not installed, in files that may be intact.
_MISSING = re.compile(r"cannot find loader.*|\w* ?(?:decoder|support) \S* ?not \w+.*")
#: Types of pixels by Pillow's mode; others have bytes.
_DTYPES = {"RGB": np.uint32, "I;16": np.uint16}
#: Tag of the orientation in EXIF.
_ORIENTATION = 274
_LABEL_MODES = {"1", "L", "P", "I", "I;16", "I;16B", "I;16L"}


class Scratch:
    """Reusable memory for the labels of a mask, for one thread.

    Fresh memory costs a page fault per 4096 pixels, which takes longer than
    decoding and is serialised within a process.

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
    """Read a grey PNG, or a palette or colour PNG of eight bits.

    Colours are packed as ``red + 256 green + 65536 blue``.

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
    width, height, depth, color = struct.unpack_from(">IIBB", data, 16)
    rows = height * (-(-width * depth * _CHANNELS.get(color, 1) // 8) + 1)
    # Forged sizes must not allocate memory.
    if rows > MAX_RATIO * len(data) or width * height > MAX_PIXELS:
        return None
    pixel_bytes = 4 if color == 2 else 2 if depth == 16 else 1
    memory = (scratch or Scratch()).take(height * width * pixel_bytes + _GAP)
    decoded = _png.read_png(data, memory)
    return decoded and _plain_png(memory, *decoded)


def read_small(
    path: str, tick: int, scratch: Scratch
) -> tuple[bytes | RawMask, tuple[int, int]] | None:
    """Content, size and time of a small regular file that was not changed within a tick (ns).

    A plain PNG file is decoded into ``scratch``. The interpreter lock is released throughout,
    because waiting for it after each system call takes longer than reading. None for other files,
    and on Windows.
    """
    if not hasattr(_png, "read_small"):
        return None
    memory = scratch.take(_SMALL_PIXELS)
    small = _png.read_small(path, tick, memory)
    if small is None:
        return None
    content, size, modified = small
    mask = content if isinstance(content, bytes) else _plain_png(memory, *content)
    return mask, (size, modified)


def _plain_png(
    memory: NDArray[np.uint8], height: int, width: int, mode: str, palette: bytes
) -> RawMask:
    """The mask that compiled code decoded into memory."""
    values = np.ndarray((height, width), _DTYPES.get(mode, np.uint8), memory)
    return RawMask(values, mode, "PNG", palette=palette)


def open_image(file: Path | bytes) -> Image.Image:
    """An image of any format of Pillow, closed like a file."""

    def opened() -> Image.Image:
        return Image.open(io.BytesIO(file) if isinstance(file, bytes) else file)

    try:
        return opened()
    except UnidentifiedImageError:
        # Pillow overlooks formats that another thread adds while this one searches.
        return opened()


def read_pixels(data: bytes, path: str | Path, scratch: Scratch | None = None) -> RawMask:
    """Read an image from its content: PNG, PGM, PPM, or another format of Pillow."""
    if (plain := read_png(data, scratch=scratch)) is not None:
        return plain
    if data[:2] in (b"P2", b"P3", b"P5", b"P6"):
        return _read_netpbm(data, path)
    has_16_bits = data.startswith(SIGNATURE) and _check_png(data, path)
    with damage(path, "is corrupt"):
        try:
            with open_image(data) as image:
                indices = _bmp_indices(image, data)
                if indices is not None:
                    return RawMask(indices, "P", "BMP")
                mask = _read_pillow(image, path, _is_lossless_webp(data))
            if has_16_bits and mask.is_color:
                _check_low_bytes(data, mask, path)
            return mask
        except UnidentifiedImageError as error:
            raise MaskError(path, f"is not an image (starts with {data[:12]!r})") from error
        except OSError as error:
            if (part := _MISSING.search(str(error))) is None:
                raise
            problem = f"cannot be read by Pillow ({part[0]}); save it as PNG"
            raise MaskError(path, problem) from error
        except Image.DecompressionBombError as error:
            problem = f"declares an invalid size: {error}; save huge masks as TIFF or .npy"
            raise MaskError(path, problem) from error


def _is_lossless_webp(data: bytes) -> bool:
    """Whether the pixels of a WebP are in a lossless chunk (VP8L), the first or a later one."""
    at = 12
    while data[8:12] == b"WEBP" and at + 8 <= len(data):
        if (kind := data[at : at + 4]) in (b"VP8L", b"VP8 "):
            return kind == b"VP8L"
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    return False


def _check_png(data: bytes, path: str | Path) -> bool:
    """Check checksums and size of a PNG, which Pillow does not; return whether it has 16 bits.

    Pillow fills missing rows with zeros, and allocates forged sizes.
    """
    packed = [content for kind, content in _chunks(data, path) if kind == b"IDAT"]
    header = data[16:29]
    if len(header) < 13 or header[9] not in _CHANNELS:
        return False  # Pillow reports it
    if header[8:10] == b"\x10\4":
        raise MaskError(path, "has 16 bits and an alpha channel; save it without alpha channel")
    _check_pixels(b"".join(packed), _png_bytes(*struct.unpack(">IIBBxxB", header)), path)
    return header[8] == 16


def _chunks(data: bytes, path: str | Path) -> Iterator[tuple[bytes, bytes]]:
    """The types and contents of the chunks of a PNG, with their checksums checked."""
    at, kind = len(SIGNATURE), b""
    while kind != b"IEND":
        head = data[at : at + 8]
        stop = at + 12 + int.from_bytes(head[:4], "big")
        if len(head) < 8 or stop > len(data):
            raise MaskError(path, "is truncated")
        kind = head[4:]
        if zlib.crc32(data[at + 4 : stop - 4]) != int.from_bytes(data[stop - 4 : stop], "big"):
            name = kind.decode("latin-1")
            raise MaskError(path, f"is corrupt: chunk {name!r} fails its checksum")
        yield kind, data[at + 8 : stop - 4]
        at = stop


def _check_pixels(packed: bytes, size: int, path: str | Path) -> None:
    """Raise an error if compressed rows have fewer than ``size`` bytes."""
    if size > MAX_RATIO * len(packed):
        raise MaskError(path, "is corrupt: declares a size that its data cannot fill")
    with damage(path, "is corrupt"):
        missing = size - size_within(inflater.decompressobj(), packed, size)
    if missing:
        raise MaskError(path, f"is truncated: {missing} of {size} bytes of pixels are missing")


def _png_bytes(width: int, height: int, depth: int, color: int, interlaced: int) -> int:
    """Bytes of the decompressed rows of a PNG, with one filter byte each."""
    size = 0
    for x, y, across, down in _ADAM7 if interlaced else [(0, 0, 1, 1)]:
        columns, rows = -(-(width - x) // across), -(-(height - y) // down)
        if columns > 0 and rows > 0:
            size += rows * (-(-columns * depth * _CHANNELS[color] // 8) + 1)
    return size


def _check_low_bytes(data: bytes, mask: RawMask, path: str | Path) -> None:
    """Raise an error unless 16-bit colours are 8-bit colours with both bytes equal.

    Pillow returns the high bytes.
    """
    with Image.open(io.BytesIO(data)) as image:
        # In the other byte order, the low bytes become the high ones.
        (kind, box, offset, mode), *_ = image.tile
        image.tile = [type(image.tile[0])(kind, box, offset, str(mode).replace("16B", "16L"))]
        low = np.asarray(image)[..., :3]
    if not np.array_equal(low, mask.values):
        raise MaskError(path, "has 16 bits per channel; save colours with 8 bits")


def _read_netpbm(data: bytes, path: str | Path) -> RawMask:
    """Read the samples of a PGM or PPM; Pillow would rescale them by the maximum value."""
    if (header := _NETPBM.match(data)) is None:
        raise MaskError(path, "is corrupt: invalid PGM or PPM header")
    kind, width, height, most = map(int, header.groups())
    is_color = kind in (3, 6)
    if not (width > 0 and height > 0 and width * height <= MAX_PIXELS and 0 < most < 1 << 16):
        raise MaskError(path, f"declares an invalid size {width} × {height} or maximum {most}")
    body = data[header.end() :]
    count = width * height * (3 if is_color else 1)
    samples = _numbers(body, path) if kind in (2, 3) else _samples(body, count, most, path)
    if samples.size != count:
        raise MaskError(path, f"is corrupt: has {samples.size} samples, expected {count}")
    if (largest := int(samples.max())) > most or int(samples.min()) < 0:
        raise MaskError(path, f"is corrupt: has a sample {largest} above its maximum {most}")
    if is_color and most > 255:
        if (samples % 257).any():
            raise MaskError(path, "has 16 bits per channel; save colours with 8 bits")
        samples, most = samples // 257, 255
    pixels = samples.astype(np.uint8 if most < 256 else np.uint16)
    if is_color:
        return RawMask(pixels.reshape(height, width, 3), "RGB", "PPM")
    mode = "L" if most < 256 else "I;16"
    return RawMask(pixels.reshape(height, width), mode, "PPM", maximum=most)


def _numbers(body: bytes, path: str | Path) -> NDArray[np.int64]:
    """The samples of a PGM or PPM as text."""
    body = re.sub(rb"#[^\r\n]*", b"", body)
    if re.search(rb"[^0-9\s]", body):
        raise MaskError(path, "is corrupt: its samples are not numbers")
    return np.fromstring(body.decode("ascii"), np.int64, sep=" ")


def _samples(body: bytes, count: int, most: int, path: str | Path) -> NDArray[Any]:
    """The samples of a PGM or PPM as bytes, of which some may be missing."""
    dtype = np.dtype(np.uint8 if most < 256 else ">u2")
    if body[count * dtype.itemsize :].strip():
        raise MaskError(path, "contains data after its pixels; save each image separately")
    return np.frombuffer(body, dtype, min(count, len(body) // dtype.itemsize))


def _bmp_indices(image: Any, data: bytes) -> NDArray[np.uint8] | None:
    """The indices of a BMP of 4 or 8 bits whose palette is grey, if Pillow would misread them.

    Pillow reads two colours as 1 bit, and any number as 8 bits.
    """
    if image.format != "BMP" or image.mode not in ("1", "L"):
        return None
    (kind, _, offset, options), *_ = image.tile
    bits = data[24 if data[14] == 12 else 28]
    if kind != "raw" or bits not in (4, 8):
        return None
    (width, height), row_bytes = image.size, options[1]
    if height > (len(data) - offset) // row_bytes:
        raise ValueError("rows are missing")
    rows = np.frombuffer(data, np.uint8, height * row_bytes, offset).reshape(height, row_bytes)
    if bits == 4:
        rows = np.stack([rows >> 4, rows & 15], axis=-1).reshape(height, -1)
    return rows[:: options[2], :width]


def _orientation(image: Image.Image) -> int:
    """The orientation in the EXIF or XMP of a loaded image; 1 if it has none that can be read."""
    with suppress(SyntaxError, OSError, ValueError, TypeError, KeyError, struct.error):
        return int(image.getexif().get(_ORIENTATION, 1))
    return 1


def _read_pillow(image: Image.Image, path: str | Path, is_lossless: bool) -> RawMask:
    kind = image.format or "image"
    if kind in _VECTORS:
        raise MaskError(path, f"is a vector image ({kind}); save it as PNG")
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        raise MaskError(
            path, f"has {frames} frames; expected one. Save each frame as a separate file"
        )
    image.load()
    check_upright(_orientation(image), path)
    mode, pixels = image.mode, np.asarray(image)
    palette = bytes(image.getpalette("RGB") or ()) if mode in ("P", "PA") else b""
    if mode in ("LA", "PA", "RGBA"):
        if translucent := int((pixels[..., -1] != 255).sum()):
            pixels_text = plural(translucent, "transparent pixel")
            problem = f"has {pixels_text}; save the mask without an alpha channel"
            raise MaskError(path, problem)
        pixels = pixels[..., :3] if mode == "RGBA" else pixels[..., 0]
    elif mode not in _LABEL_MODES and mode != "RGB":
        problem = (
            f"has mode {mode!r}; expected one channel of integers, or RGB colours. Save it as PNG"
        )
        raise MaskError(path, problem)
    elif mode == "1":
        pixels = pixels.view(np.uint8) != 0  # Pillow's True is the byte 255
    is_lossy = kind in _LOSSY and not is_lossless
    return RawMask(pixels, mode, kind, is_lossy, palette=palette)
