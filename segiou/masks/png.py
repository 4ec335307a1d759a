"""PNG masks, decoded by compiled code; what is not quite plain is left to Pillow.

Everything is checked before a pixel is decoded, so that what is read here is
what Pillow reads, and what is damaged never gives values.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, NoReturn

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

_crc32: Callable[[memoryview], int] = inflater.crc32

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
#: Above this many pixels Pillow warns of a decompression bomb: its warning must be seen.
MAX_PIXELS: Final = 1024 * 1024 * 1024 // 4 // 3
#: No deflate stream grows by more: 258 bytes from two bits.
MAX_RATIO: Final = 1032

#: Masks that need more are few, and their memory is better given back.
_MOST_SCRATCH = 1 << 24
#: Each step lets another thread run, for which smaller ones are too many.
_STEP_SIZE: Final = 1 << 21
_MAX_TEXT: Final = 1 << 16
_MAX_TEXTS: Final = 256
_MAX_KEYWORD: Final = 79
_FIXED_LENGTHS: Final = {b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"pHYs": 9}
_ANIMATION: Final = frozenset((b"acTL", b"fcTL", b"fdAT"))
#: Packed grey samples are spread over 0..255, as Pillow does; one bit stays 0 and 1.
_GREY_SCALE: Final = {1: 1, 2: 85, 4: 17, 8: 1}


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
        if size > _MOST_SCRATCH:
            return np.empty(shape, np.uint8)
        if size > self._memory.size:
            self._memory = np.empty(size, np.uint8)
        return self._memory[:size].reshape(shape)


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


class _Header(NamedTuple):
    width: int
    height: int
    depth: int
    is_palette: bool


class _LeftToPillow(Exception):
    """The file is damaged, irregular, or of a kind that is not read here."""


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
    view = memoryview(data)
    try:
        header = _header(view)
        stream = _pixel_stream(header, _chunks(view))
        values = _decoded(header, stream, scratch)
    except _LeftToPillow:
        return None
    return PngMask(values, "P" if header.is_palette else "1" if header.depth == 1 else "L")


def _leave() -> NoReturn:
    raise _LeftToPillow


def _header(view: memoryview) -> _Header:
    """Size and kind, which must be grey or palette of up to eight bits."""
    if len(view) < 33 or bytes(view[:16]) != SIGNATURE + b"\0\0\0\rIHDR":
        _leave()
    fields: tuple[int, ...] = struct.unpack_from(">IIBBBBBI", view, 16)
    width, height, depth, color, compression, filtering, interlace, crc = fields
    if (
        not 0 < width * height <= MAX_PIXELS
        or depth not in (1, 2, 4, 8)
        or color not in (0, 3)
        or compression
        or filtering
        or interlace
        or crc != _crc32(view[12:29])
    ):
        _leave()
    return _Header(width, height, depth, color == 3)


def _chunks(view: memoryview) -> list[tuple[bytes, memoryview]]:
    """Name and body of every chunk after the header, up to an IEND that ends the file."""
    chunks = []
    position, size = 33, len(view)
    name = b""
    while name != b"IEND":
        if position + 12 > size:
            _leave()
        length, name = struct.unpack_from(">I4s", view, position)
        stop = position + 8 + length
        if stop + 4 > size or not name.isalpha() or name[2] & 0x20:
            _leave()
        if _crc32(view[position + 4 : stop]) != int.from_bytes(view[stop : stop + 4], "big"):
            _leave()
        chunks.append((name, view[position + 8 : stop]))
        position = stop + 4
    return chunks if position == size and length == 0 else _leave()


def _pixel_stream(header: _Header, chunks: list[tuple[bytes, memoryview]]) -> bytes:
    """The deflated pixels of a file whose chunks have lawful numbers, order and sizes."""
    names = [name for name, _ in chunks]
    count, palettes = names.count(b"IDAT"), int(header.is_palette)
    extras = [chunk for chunk in chunks if chunk[0][0] & 0x20]
    # IEND comes once, at the end; no other critical chunk is allowed.
    if count == 0 or len(names) != count + palettes + len(extras) + 1:
        _leave()
    first = names.index(b"IDAT")
    if names[first : first + count] != [b"IDAT"] * count:
        _leave()
    colors = {name: bytes(body) for name, body in chunks[:first] if name in (b"PLTE", b"tRNS")}
    if len(colors) != palettes + names.count(b"tRNS") or not _colors_fit(colors):
        _leave()
    if extras and not _are_harmless(extras):
        _leave()
    return b"".join([body for _, body in chunks[first : first + count]])


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
    engine = inflater.decompressobj()
    try:
        content: bytes = engine.decompress(text[1:], _MAX_TEXT + 1)
    except inflater.error:
        return False
    complete = engine.eof and not engine.unused_data and _is_short(content)
    return text[:1] == b"\0" and bool(complete)


def _is_short_international(text: bytes) -> bool:
    deflated, method = text[:1], text[1:2]
    parts = text[2:].split(b"\0", 2)
    if len(parts) != 3 or method != b"\0":
        return False
    if deflated == b"\0":
        return _is_short(parts[2])
    return deflated == b"\1" and _is_short_deflated(method + parts[2])


_TEXT_CHECKS: Final[dict[bytes, Callable[[bytes], bool]]] = {
    b"tEXt": _is_short,
    b"zTXt": _is_short_deflated,
    b"iCCP": _is_short_deflated,
    b"iTXt": _is_short_international,
}


def _decoded(header: _Header, stream: bytes, scratch: Scratch | None) -> NDArray[np.uint8]:
    """Pixels of a stream that must be exactly what the header promises."""
    width, height, depth, is_palette = header
    row_bytes = (width * depth + 7) // 8
    if height * (row_bytes + 1) > MAX_RATIO * len(stream):
        _leave()
    shape = (height, width)
    values = np.empty(shape, np.uint8) if scratch is None else scratch.take(shape)
    above = bytearray(row_bytes)
    scale = 1 if is_palette else _GREY_SCALE[depth]
    y = 0
    for rows in _inflated_rows(stream, row_bytes + 1, height):
        stop = y + len(rows) // (row_bytes + 1)
        if not _png.unfilter(rows, values[y:stop], above, width, depth, scale):
            _leave()
        y = stop
    return values


def _inflated_rows(stream: bytes, row_size: int, count: int) -> Iterator[bytes]:
    """Inflate a stream some whole rows at a time, so that a huge mask is not held twice.

    The last rows are given only once the stream has ended, its checksum right.
    """
    engine = inflater.decompressobj()
    # What is left of the input is copied at every step: not more in all than the output.
    step = max(1, max(_STEP_SIZE, len(stream)) // row_size)
    for first in range(0, count, step):
        rows = min(step, count - first)
        is_last = first + rows == count
        try:
            content: bytes = engine.decompress(stream, rows * row_size + is_last)
        except inflater.error:
            _leave()
        if len(content) != rows * row_size:
            _leave()
        if is_last and (engine.unused_data or not engine.eof):
            _leave()
        yield content
        stream = engine.unconsumed_tail
