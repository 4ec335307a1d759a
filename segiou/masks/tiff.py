"""TIFF masks through tifffile, the reader of scikit-image, whole or window by window."""

from __future__ import annotations

import io
import logging
import lzma
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.masks.geotiff import GdalFile, Raster, mask_page, raster_of
from segiou.masks.png import inflater as _inflater
from segiou.masks.read import MaskError, RawMask
from segiou.masks.windows import FileMask, RemoteFile

# Our error quotes what these log about a damaged file; without a handler, logging would
# print it as well.
for _reader in ("tifffile", "rasterio"):
    logging.getLogger(_reader).addHandler(logging.NullHandler())

#: Larger masks are not read whole, but counted window by window.
_MOST_PIXELS = 1 << 28
#: A tile or strip is unpacked whole, so that a larger one would need too much memory.
_MOST_SEGMENT_BYTES = 1 << 28
_PART_BYTES = 1 << 20
_HEADER_BYTES = 8
#: Without them tifffile falls back on defaults that make noise of packed pixels.
_REQUIRED = ("Compression", "PhotometricInterpretation")
_DEFLATE = (8, 32946)
_LZMA = 34925
#: Ways of packing that tifffile knows without imagecodecs: none, Deflate, LZMA, PackBits.
_UNPACKED = {1, *_DEFLATE, _LZMA, 32773}
#: Deflate makes a thousand times as much of so much at the most, and LZMA some thousand times.
_HARMLESS_BYTES = 1 << 14
_LOSSY_COMPRESSIONS = {6, 7, 33003, 33004, 33005, 34712, 34892, 50001}


def from_tiff(data: bytes, path: str | Path) -> RawMask:
    """Read a TIFF from its content; what tifffile cannot unpack is left to Pillow, or to GDAL."""
    import tifffile

    try:
        with tifffile.TiffFile(io.BytesIO(data)) as file:
            page = mask_page(file, path)
            if page.imagelength * page.imagewidth > _MOST_PIXELS:
                problem = (
                    f"has {page.imagewidth} × {page.imagelength} pixels; only a file of this "
                    "machine is counted window by window: copy or unpack it"
                )
                raise MaskError(path, problem)
            _check_page(page, len(data), path)
            for i, (at, count) in enumerate(
                zip(page.dataoffsets, page.databytecounts, strict=True)
            ):
                _check_unpacked(page, data[at : at + count], i, path)
            return _from_page(page, data, path)
    except MaskError:
        raise
    except Exception as error:
        raise MaskError(path, f"is a damaged TIFF: {error}") from error


def _from_page(page: Any, data: bytes, path: str | Path) -> RawMask:
    lossy = int(page.compression) in _LOSSY_COMPRESSIONS
    if not _is_unpacked(page):
        from segiou.masks.read import from_image

        try:
            return replace(from_image(data, path), lossy=lossy, raster=raster_of(page))
        except MaskError:
            with closing(GdalFile(path, page, data)) as file:
                array = file[:, :]
    else:
        array = page.asarray()
    mode = _mode(page, path)
    # tifffile drops axes of length 1.
    shape = (page.imagelength, page.imagewidth, *((3,) if mode == "RGB" else ()))
    return RawMask(array.reshape(shape), mode, "TIFF", lossy, raster=raster_of(page))


def _is_unpacked(page: Any) -> bool:
    """Whether tifffile can unpack a page: it has few decoders without imagecodecs."""
    return page.compression in _UNPACKED or find_spec("imagecodecs") is not None


def open_tiff(path: str | Path, least: int, remote: RemoteFile | None = None) -> TiffMask | None:
    """A view of a large TIFF, None of a small one."""
    import tifffile

    try:
        with tifffile.TiffFile(remote.file if remote else path) as file:
            page: Any = file.pages.first
            if page.imagelength * page.imagewidth < least:
                return None
            page = mask_page(file, path)
            _check_page(page, remote.size if remote else Path(path).stat().st_size, path)
            return TiffMask(path, page, remote)
    except (MaskError, OSError):
        raise
    except Exception as error:
        raise MaskError(path, f"is a damaged TIFF: {error}") from error


class TiffMask(FileMask):
    """A large TIFF."""

    kind = "TIFF"

    def __init__(self, path: str | Path, page: Any, remote: RemoteFile | None) -> None:
        self.mode: str = _mode(page, path)
        self.lossy: bool = int(page.compression) in _LOSSY_COMPRESSIONS
        self._page = page
        self._segment = _segment_size(page)
        height, width = self._segment
        self._across = -(-page.imagewidth // width)
        self.raster: Raster | None = raster_of(page)
        is_large = height * width * page.samplesperpixel * page.dtype.itemsize > _MOST_SEGMENT_BYTES
        # Rows of strips that are not packed can be read one by one; deflated ones in turn.
        has_rows = not page.is_tiled and page.bitspersample == 8 * page.dtype.itemsize
        self._open_rows = has_rows and page.compression == 1 and page.predictor == 1
        in_turn = has_rows and page.compression in _DEFLATE and page.predictor in (1, 2)
        self._inflated = _InflatedRows(self) if is_large and in_turn else None
        by_gdal = not _is_unpacked(page) or (is_large and page.compression != 1 and not in_turn)
        # Before the file is opened here, which would stay open if this failed.
        self._gdal = GdalFile(path, page, remote=remote) if by_gdal else None
        read = remote.read if remote else None
        super().__init__(path, (page.imagelength, page.imagewidth), page.dtype, read)
        by_row = self._open_rows or self._inflated is not None
        self.chunks: tuple[int, ...] | None = (1, self.shape[1]) if by_row else self._segment
        if self._gdal is not None:
            self.chunks = self._gdal.chunks

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._gdal is not None:
            self._gdal.close()

    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        if self._gdal is not None:
            return self._gdal[index].astype(self.dtype, copy=False)
        (top, bottom), (left, right) = (
            part.indices(length)[:2] for part, length in zip(index, self.shape, strict=True)
        )
        color = (3,) if self.mode == "RGB" else ()
        out = np.empty((bottom - top, right - left, *color), dtype=self.dtype)
        if self._open_rows or self._inflated is not None:
            for row in range(top, bottom):
                out[row - top] = self._row(row)[left:right]
            return out
        height, width = self._segment
        across, down = (
            range(left // width, -(-right // width)),
            range(top // height, -(-bottom // height)),
        )
        for j, i in product(down, across):
            tile = self._tile(j * self._across + i)
            rows = slice(max(top, j * height), min(bottom, (j + 1) * height))
            cols = slice(max(left, i * width), min(right, (i + 1) * width))
            out[rows.start - top : rows.stop - top, cols.start - left : cols.stop - left] = tile[
                rows.start - j * height : rows.stop - j * height,
                cols.start - i * width : cols.stop - i * width,
            ]
        return out

    def _row(self, row: int) -> NDArray[Any]:
        strip, within = divmod(row, self._segment[0])
        color = 3 if self.mode == "RGB" else 1
        size = self.shape[1] * color * self.dtype.itemsize
        if self._inflated is None:
            self._check_listed(strip, (within + 1) * size)
            data = self._bytes(self._page.dataoffsets[strip] + within * size, size)
        else:
            self._check_listed(strip, 1)
            data = self._inflated.row(strip, within, size)
        order = self._page.parent.byteorder
        values = np.frombuffer(data, dtype=self.dtype.newbyteorder(order)).reshape(-1, color)
        if self._page.predictor == 2:
            values = values.astype(self.dtype).cumsum(axis=0, dtype=self.dtype)
        return values if color == 3 else values[:, 0]

    def _check_listed(self, segment: int, least: int) -> None:
        page = self._page
        if page.dataoffsets[segment] == 0 or page.databytecounts[segment] < least:
            raise MaskError(self.path, f"has no data for its tile or strip {segment}")

    def _tile(self, segment: int) -> NDArray[Any]:
        self._check_listed(segment, 1)
        page = self._page
        data = self._bytes(page.dataoffsets[segment], page.databytecounts[segment])
        _check_unpacked(page, data, segment, self.path)
        try:
            decoded, _, shape = page.decode(data, segment, jpegtables=page.jpegtables)
        except Exception as error:
            problem = f"is damaged, or packed in a way that needs imagecodecs: {error}"
            raise MaskError(self.path, problem) from error
        if decoded is None:
            raise MaskError(self.path, f"has no data for its tile or strip {segment}")
        pixels: NDArray[Any] = decoded[0]
        rows = min(self._segment[0], self.shape[0] - segment // self._across * self._segment[0])
        if pixels.shape[0] < rows or shape[1] < rows:
            raise MaskError(self.path, f"is damaged: tile or strip {segment} is too short")
        return pixels if self.mode == "RGB" else pixels[..., 0]


class _InflatedRows:
    """Rows of deflated strips one after the other: a strip need not fit into memory."""

    def __init__(self, mask: TiffMask) -> None:
        self._mask = mask
        self._strip, self._next = -1, 0

    def row(self, strip: int, within: int, size: int) -> bytes:
        """The bytes of a row of a strip; of an earlier row than the last, from the beginning."""
        rows = self._mask._segment[0]
        if strip != self._strip or within < self._next - 1:
            self._engine: Any = _inflater.decompressobj()
            self._strip, self._next, self._at, self._packed, self._last = strip, 0, 0, b"", b""
        while self._next <= within:
            self._last = self._take(size)
            self._next += 1
            is_end = self._next == min(rows, self._mask.shape[0] - strip * rows)
            # What follows the last row is read as well, for its checksum.
            more = self._take(1) if is_end else b""
            if len(self._last) < size or more or (is_end and not self._engine.eof):
                what = "unpacks to more than its pixels" if more else "is too short"
                problem = f"is a damaged TIFF: tile or strip {strip} {what}"
                raise MaskError(self._mask.path, problem)
        return self._last

    def _take(self, size: int) -> bytes:
        """So many of the next bytes of a strip, or fewer where it ends."""
        out = bytearray()
        while len(out) < size and not self._engine.eof:
            if not (packed := self._packed or self._read()):
                break
            try:
                out += self._engine.decompress(packed, size - len(out))
            except _inflater.error as error:
                raise MaskError(self._mask.path, f"is a damaged TIFF: {error}") from error
            self._packed = self._engine.unconsumed_tail
        return bytes(out)

    def _read(self) -> bytes:
        """Some more of what is packed, or nothing."""
        page = self._mask._page
        left = page.databytecounts[self._strip] - self._at
        part = self._mask._bytes(page.dataoffsets[self._strip] + self._at, min(left, _PART_BYTES))
        self._at += len(part)
        return part


def _mode(page: Any, path: str | Path) -> str:
    """``"RGB"`` or ``"tiff"``; an error for what is neither colours nor labels."""
    if page.dtype is None or page.dtype.kind not in "biu":
        raise MaskError(path, f"holds {page.dtype}; labels must be integers: convert it first")
    samples, kind = page.samplesperpixel, page.photometric.name
    if page.imagedepth == 1 and samples == 1:
        return "tiff"
    if page.imagedepth == 1 and samples == 3 and kind == "RGB" and page.planarconfig == 1:
        return "RGB"
    raise MaskError(path, f"has {samples} samples of kind {kind}; a mask has one channel")


def _check_page(page: Any, size: int, path: str | Path) -> None:
    """Refuse a page some of whose pixels are not in a file of that many bytes.

    tifffile gives zeros for a tile or strip that is missing, and zeros would be a class.
    """
    if absent := [name for name in _REQUIRED if name not in page.tags]:
        raise MaskError(path, f"is a damaged TIFF: it has no {', '.join(absent)}")
    if not hasattr(page.photometric, "name"):
        problem = f"is a damaged TIFF: its PhotometricInterpretation is {page.photometric!r}"
        raise MaskError(path, problem)
    turned = page.tags.valueof("Orientation", 1)
    if turned not in (0, 1):
        problem = (
            f"has the Orientation {getattr(turned, 'value', turned)}, which some programs follow "
            "and some do not; save it with its pixels in the order in which they are seen"
        )
        raise MaskError(path, problem)
    height, width = page.imagelength, page.imagewidth
    tall, wide = _segment_size(page)
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


def _segment_size(page: Any) -> tuple[int, int]:
    """Height and width of the page's tiles or strips."""
    if page.is_tiled:
        return page.tilelength, page.tilewidth
    return min(page.rowsperstrip, page.imagelength), page.imagewidth


def _check_unpacked(page: Any, packed: bytes, segment: int, path: str | Path) -> None:
    """Refuse a tile or strip that would unpack to far more than its pixels."""
    engine: Any
    if len(packed) < _HARMLESS_BYTES:
        return
    if page.compression in _DEFLATE:
        engine = _inflater.decompressobj()
    elif page.compression == _LZMA:
        engine = lzma.LZMADecompressor()
    else:
        return
    tall, wide = _segment_size(page)
    most = 2 * tall * _row_bytes(page, wide) + 4096
    try:
        unpacked = len(engine.decompress(packed, most + 1))
    except (_inflater.error, lzma.LZMAError):
        return  # tifffile says what is wrong with it
    if unpacked > most:
        problem = f"is a damaged TIFF: tile or strip {segment} unpacks to more than its pixels"
        raise MaskError(path, problem)


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
