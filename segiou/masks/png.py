"""PNG masks: the compiled reader, and everything that is checked before it."""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.compiled import load_part, warn_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

__all__ = ["EXTENSION_BUILT", "PngHeader", "PngMask", "Scratch", "read_png", "read_png_header"]


#: Masks that are larger are few, and their memory is better given back.
_MOST_BYTES = 1 << 24


class Scratch:
    """Memory for the labels of a mask, taken again and again by one thread.

    Fresh memory costs a page fault for every 4096 pixels, which takes longer
    than the reading itself and is done by one thread of a process at a time.

    Examples
    --------
    >>> scratch = Scratch()
    >>> first = scratch.take((2, 3))
    >>> second = scratch.take((1, 4))
    >>> bool(np.shares_memory(first, second))
    True
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def take(self, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        """An array of any content; those taken before must not be used any longer."""
        size = math.prod(shape)
        if size > _MOST_BYTES:
            return np.empty(shape, np.uint8)
        if size > self._memory.size:
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size].reshape(shape)


# zlib-ng is several times faster and the same on every stream: it keeps zlib's checks,
# where faster libraries let codes pass that RFC 1951 forbids.
_inflater: Any
try:
    from zlib_ng import zlib_ng as _inflater
except ImportError:
    _inflater = zlib

_crc32: Callable[[memoryview], int] = _inflater.crc32

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
MAX_PIXELS: Final = 1024 * 1024 * 1024 // 4 // 3
"""Above this many pixels Pillow warns of a decompression bomb: its warning must be seen."""
MAX_RATIO: Final = 1032
"""No deflate stream grows by more: 258 bytes from two bits."""

_DEPTHS: Final = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_FIXED_LENGTHS: Final = {b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"pHYs": 9}
_ANIMATION: Final = frozenset((b"acTL", b"fcTL", b"fdAT"))
_STEP_SIZE: Final = 1 << 21
"""Each step lets another thread run, for which smaller ones are too many."""
_MAX_TEXT: Final = 1 << 16
_MAX_TEXTS: Final = 256
_MAX_KEYWORD: Final = 79


@dataclass(frozen=True, slots=True)
class PngHeader:
    """What the first chunk of a PNG file says.

    Attributes
    ----------
    width, height : int
        Size in pixels, both at least 1.
    bit_depth : int
        Bits per sample: 1, 2, 4, 8 or 16.
    color_type : int
        0 grey, 2 RGB, 3 palette, 4 grey with alpha, 6 RGBA.
    interlaced : bool
        Whether the rows are stored in seven passes (Adam7).
    """

    width: int
    height: int
    bit_depth: int
    color_type: int
    interlaced: bool


class PngChunks(NamedTuple):
    """The parts of a PNG file that make its pixels, all of their CRCs found right."""

    header: PngHeader
    palette: bytes | None
    transparency: bytes | None
    stream: bytes


def as_bytes_view(data: bytes | memoryview) -> memoryview | None:
    """View of the file byte by byte, or None where it does not lie in one piece."""
    view = memoryview(data)
    if view.format == "B" and view.ndim == 1 and view.contiguous:
        return view
    return view.cast("B") if view.c_contiguous else None


def parse_header(view: memoryview) -> PngHeader | None:
    """Header of a PNG file, or None where it is missing, damaged or not allowed."""
    if len(view) < 33 or bytes(view[:16]) != SIGNATURE + b"\0\0\0\rIHDR":
        return None
    fields: tuple[int, ...] = struct.unpack_from(">IIBBBBBI", view, 16)
    width, height, depth, color_type, compression, filtering, interlace, crc = fields
    if (
        not (0 < width < 1 << 31 and 0 < height < 1 << 31)
        or depth not in _DEPTHS.get(color_type, ())
        or compression
        or filtering
        or interlace > 1
        or crc != _crc32(view[12:29])
    ):
        return None
    return PngHeader(width, height, depth, color_type, interlace == 1)


def split(view: memoryview) -> list[tuple[bytes, memoryview]] | None:
    """Name and body of every chunk after the header, up to an IEND that ends the file."""
    chunks = []
    position, size = 33, len(view)
    name = b""
    while name != b"IEND":
        if position + 12 > size:
            return None
        length, name = struct.unpack_from(">I4s", view, position)
        stop = position + 8 + length
        if stop + 4 > size or not name.isalpha() or name[2] & 0x20:
            return None
        if _crc32(view[position + 4 : stop]) != int.from_bytes(view[stop : stop + 4], "big"):
            return None
        chunks.append((name, view[position + 8 : stop]))
        position = stop + 4
    return chunks if position == size and length == 0 else None


def collect(header: PngHeader, chunks: list[tuple[bytes, memoryview]]) -> PngChunks | None:
    """Palette, transparency and pixel stream, or None where their order or size is off."""
    names = [name for name, _ in chunks]
    count = names.count(b"IDAT")
    palettes = int(header.color_type == 3)
    extras = [chunk for chunk in chunks if chunk[0][0] & 0x20]
    # IEND comes once, at the end; there is no room for any other critical chunk.
    if count == 0 or len(names) != count + palettes + len(extras) + 1:
        return None
    first = names.index(b"IDAT")
    if names[first : first + count] != [b"IDAT"] * count:
        return None
    colors = {name: bytes(body) for name, body in chunks[:first] if name in (b"PLTE", b"tRNS")}
    palette, transparency = colors.get(b"PLTE"), colors.get(b"tRNS")
    if len(colors) != palettes + names.count(b"tRNS") or not _colors_fit(colors):
        return None
    if extras and not _are_harmless(extras):
        return None
    stream = b"".join([body for _, body in chunks[first : first + count]])
    return PngChunks(header, palette, transparency, stream)


def inflate(stream: bytes | memoryview, limit: int) -> bytes | None:
    """Inflate a zlib stream; None where it is damaged, gives more than limit, or goes on."""
    engine = _inflater.decompressobj()
    try:
        content: bytes = engine.decompress(stream, limit + 1)
    except _inflater.error:
        return None
    complete = engine.eof and not engine.unused_data and len(content) <= limit
    return content if complete else None


def inflate_rows(stream: bytes, row_size: int, count: int) -> Iterator[bytes]:
    """Inflate a stream some whole rows at a time, so that a huge mask is not held twice.

    Fewer rows than the count come where the stream is damaged, too short or too long:
    the last of them are given only once the stream has ended, its checksum right.
    """
    engine = _inflater.decompressobj()
    # What is left of the input is copied at every step: not more in all than the output.
    step = max(1, max(_STEP_SIZE, len(stream)) // row_size)
    for first in range(0, count, step):
        rows = min(step, count - first)
        ends = first + rows == count
        try:
            content: bytes = engine.decompress(stream, rows * row_size + ends)
        except _inflater.error:
            return
        if len(content) != rows * row_size or (
            ends and not (engine.eof and not engine.unused_data)
        ):
            return
        yield content
        stream = engine.unconsumed_tail


def _colors_fit(colors: dict[bytes, bytes]) -> bool:
    """Whether palette and transparency have lawful lengths and come in this order."""
    transparency = colors.get(b"tRNS")
    if b"PLTE" not in colors:
        return transparency is None or len(transparency) == 2
    size, rest = divmod(len(colors[b"PLTE"]), 3)
    if rest or not 1 <= size <= 256 or next(iter(colors)) != b"PLTE":
        return False
    return transparency is None or 1 <= len(transparency) <= size


def _are_harmless(extras: list[tuple[bytes, memoryview]]) -> bool:
    """Whether the ancillary chunks can neither change the pixels nor upset Pillow."""
    texts = sum(name in _TEXT_CHECKS for name, _ in extras)
    return texts <= _MAX_TEXTS and all(_is_harmless(name, body) for name, body in extras)


def _is_harmless(name: bytes, body: memoryview) -> bool:
    if name in _FIXED_LENGTHS:
        return len(body) == _FIXED_LENGTHS[name]
    if name in _TEXT_CHECKS:
        keyword, separator, rest = bytes(body).partition(b"\0")
        return bool(separator) and _is_keyword(keyword) and _TEXT_CHECKS[name](rest)
    return name not in _ANIMATION


def _is_keyword(keyword: bytes) -> bool:
    """Whether a keyword cannot be taken for one of Pillow's own ``info`` entries.

    Pillow keeps texts and facts in one dictionary, and a text called ``interlace``
    really changes how it reads the pixels.
    """
    text = keyword.decode("latin-1")
    return 1 <= len(text) <= _MAX_KEYWORD and not (text.islower() and text.isidentifier())


def _is_short(text: bytes) -> bool:
    return len(text) <= _MAX_TEXT


def _is_short_deflated(text: bytes) -> bool:
    return text[:1] == b"\0" and inflate(text[1:], _MAX_TEXT) is not None


def _is_short_international(text: bytes) -> bool:
    deflated, method, rest = text[:1], text[1:2], text[2:]
    parts = rest.split(b"\0", 2)
    if len(parts) != 3 or method != b"\0":
        return False
    if deflated == b"\0":
        return _is_short(parts[2])
    return deflated == b"\1" and inflate(parts[2], _MAX_TEXT) is not None


_TEXT_CHECKS: Final[dict[bytes, Callable[[bytes], bool]]] = {
    b"tEXt": _is_short,
    b"zTXt": _is_short_deflated,
    b"iCCP": _is_short_deflated,
    b"iTXt": _is_short_international,
}


_png = load_part("segiou.masks._png")

EXTENSION_BUILT: Final = _png is not None
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
    if not EXTENSION_BUILT and bytes(data[: len(SIGNATURE)]) == SIGNATURE:
        warn_missing("segiou.masks._png")
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
    if size > MAX_RATIO * len(parts.stream) or _png is None:
        return None
    shape = (header.height, header.width)
    values = np.empty(shape, np.uint8) if scratch is None else scratch.take(shape)
    above = bytearray(row_bytes)
    scale = 1 if parts.palette is not None else _GREY_SCALE[header.bit_depth]
    y = 0
    for rows in inflate_rows(parts.stream, row_bytes + 1, header.height):
        stop = y + len(rows) // (row_bytes + 1)
        if not _png.unfilter(rows, values[y:stop], above, header.width, header.bit_depth, scale):
            return None
        y = stop
    return values if y == header.height else None
