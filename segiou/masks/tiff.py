"""TIFF masks, read whole or window by window.

tifffile reads them; GDAL reads compressions that tifffile cannot decompress.
"""

from __future__ import annotations

import io
import logging
import lzma
import math
import warnings
from contextlib import closing, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou.masks.read import MaskError, RawMask, damage, inflater
from segiou.masks.windows import FileMask, RemoteFile

# Our errors quote what these libraries log about corrupt files; without a handler, logging
# would print it as well.
for _reader in ("tifffile", "rasterio"):
    logging.getLogger(_reader).addHandler(logging.NullHandler())

#: Larger masks are counted window by window.
_MOST_PIXELS = 1 << 28
#: Tiles and strips are decompressed whole; larger ones would need too much memory.
_MOST_SEGMENT_BYTES = 1 << 28
_PART_BYTES = 1 << 20
_HEADER_BYTES = 8
#: Without these tags, tifffile's defaults turn compressed pixels into noise.
_REQUIRED = ("Compression", "PhotometricInterpretation")
_DEFLATE = (8, 32946)
#: Decompressors of compressions with unbounded ratios: Deflate and LZMA.
_ENGINES = {**dict.fromkeys(_DEFLATE, inflater.decompressobj), 34925: lzma.LZMADecompressor}
#: Compressions that tifffile supports without imagecodecs, including none and PackBits.
_SUPPORTED = {1, 32773, *_ENGINES}
#: Segments below this size cannot decompress to a harmful size.
_HARMLESS_BYTES = 1 << 14
_LOSSY_COMPRESSIONS = {6, 7, 33003, 33004, 33005, 34712, 34892, 50001}

_NODATA, _SCALE, _TIE_POINTS, _TRANSFORM, _KEYS = 42113, 33550, 33922, 34264, 34735
_RASTER_TYPE, _GEOGRAPHIC, _PROJECTED = 1025, 2048, 3072
#: This code and larger ones are not EPSG codes.
_USER_DEFINED = 32767
#: Flag of pages that are overviews, as in a COG.
_REDUCED = 1
_GDAL = {"GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR", "GDAL_CACHEMAX": 64}
#: GDAL decompresses strips whole; larger ones would need too much memory.
_MOST_BLOCK_BYTES = 1 << 30
#: Tolerance of corners, in pixels.
_TOLERANCE = 0.01


def from_tiff(data: bytes, path: str | Path) -> RawMask:
    """Read a TIFF from its content, by Pillow or GDAL if tifffile cannot decompress it."""
    import tifffile

    with damage(path, "is a corrupt TIFF"), tifffile.TiffFile(io.BytesIO(data)) as file:
        page = _mask_page(file, len(data), path)
        height, width = page.imagelength, page.imagewidth
        if height * width > _MOST_PIXELS:
            problem = (
                f"has {width} × {height} pixels, which requires a local, uncompressed file; copy "
                "or extract it"
            )
            raise MaskError(path, problem)
        for i, (at, count) in enumerate(zip(page.dataoffsets, page.databytecounts, strict=True)):
            _check_decompressed_size(page, data[at : at + count], i, path)
        lossy, raster = int(page.compression) in _LOSSY_COMPRESSIONS, raster_of(page)
        if _can_decompress(page):
            array = page.asarray()
        else:
            from segiou.masks.image_files import from_image

            with suppress(MaskError):
                return from_image(data, path)._replace(lossy=lossy, raster=raster)
            with closing(GdalFile(path, page, data)) as unpacked:
                array = unpacked[:, :]
        mode = _mode(page, path)
        # tifffile drops axes of length 1.
        shape = (height, width, *((3,) if mode == "RGB" else ()))
        return RawMask(array.reshape(shape), mode, "TIFF", lossy, raster=raster)


def _can_decompress(page: Any) -> bool:
    """Whether tifffile can decompress a page; without imagecodecs it has few decoders."""
    return page.compression in _SUPPORTED or find_spec("imagecodecs") is not None


def open_tiff(path: str | Path, least: int, remote: RemoteFile | None = None) -> RawMask | None:
    """Open a large TIFF for windowed reading; None for a small one."""
    import tifffile

    file = remote.file if remote else path
    with damage(path, "is a corrupt TIFF", OSError), tifffile.TiffFile(file) as opened:
        page: Any = opened.pages.first
        if page.imagelength * page.imagewidth < least:
            return None
        page = _mask_page(opened, remote.size if remote else Path(path).stat().st_size, path)
        mode, lossy = _mode(page, path), int(page.compression) in _LOSSY_COMPRESSIONS
        values = TiffMask(path, page, mode, remote)
        return RawMask(values, mode, "TIFF", lossy, raster=raster_of(page))


class TiffMask(FileMask):
    """The pixels of a large TIFF."""

    def __init__(self, path: str | Path, page: Any, mode: str, remote: RemoteFile | None) -> None:
        self._page = page
        self._color = (3,) if mode == "RGB" else ()
        self._segment = height, width = _segment_size(page)
        self._across = -(-page.imagewidth // width)
        is_large = height * width * page.samplesperpixel * page.dtype.itemsize > _MOST_SEGMENT_BYTES
        # Rows of uncompressed strips can be read one by one, and deflated rows in order.
        has_rows = not page.is_tiled and page.bitspersample == 8 * page.dtype.itemsize
        in_turn = has_rows and page.compression in _DEFLATE and page.predictor in (1, 2)
        self._inflated = _InflatedRows(self) if is_large and in_turn else None
        is_open = has_rows and page.compression == 1 and page.predictor == 1
        self._by_row = is_open or self._inflated is not None
        by_gdal = not _can_decompress(page) or (is_large and page.compression != 1 and not in_turn)
        # First, because a failure would leave the file open.
        self._gdal = GdalFile(path, page, remote=remote) if by_gdal else None
        chunks = (1, page.imagewidth) if self._by_row else self._segment
        if self._gdal is not None:
            chunks = self._gdal.chunks
        shape, read = (page.imagelength, page.imagewidth), remote.read if remote else None
        super().__init__(path, shape, page.dtype, chunks, read)
        if self._gdal is not None:
            self._closing.callback(self._gdal.close)

    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        if self._gdal is not None:
            return self._gdal[index].astype(self.dtype, copy=False)
        (top, bottom), (left, right) = (
            part.indices(length)[:2] for part, length in zip(index, self.shape, strict=True)
        )
        out = np.empty((bottom - top, right - left, *self._color), dtype=self.dtype)
        if self._by_row:
            for row in range(top, bottom):
                out[row - top] = self._row(row)[left:right]
            return out
        height, width = self._segment
        down = range(top - top % height, bottom, height)
        across = range(left - left % width, right, width)
        for y, x in product(down, across):
            # The part of the tile inside the window.
            first, start = max(top - y, 0), max(left - x, 0)
            part = self._tile(y // height * self._across + x // width)
            part = part[first : bottom - y, start : right - x]
            row, column = y + first - top, x + start - left
            out[row : row + part.shape[0], column : column + part.shape[1]] = part
        return out

    def _row(self, row: int) -> NDArray[Any]:
        strip, within = divmod(row, self._segment[0])
        color = 3 if self._color else 1
        size = self.shape[1] * color * self.dtype.itemsize
        if self._inflated is not None:
            data = self._inflated.row(strip, within, size)
        else:
            data = self._bytes(self._page.dataoffsets[strip] + within * size, size)
        order = self._page.parent.byteorder
        values = np.frombuffer(data, dtype=self.dtype.newbyteorder(order)).reshape(-1, color)
        if self._page.predictor == 2:
            values = values.astype(self.dtype).cumsum(axis=0, dtype=self.dtype)
        return values if color == 3 else values[:, 0]

    def _tile(self, segment: int) -> NDArray[Any]:
        page = self._page
        data = self._bytes(page.dataoffsets[segment], page.databytecounts[segment])
        _check_decompressed_size(page, data, segment, self.path)
        with damage(self.path, "is corrupt, or uses a compression that needs imagecodecs"):
            decoded, _, shape = page.decode(data, segment, jpegtables=page.jpegtables)
        pixels: NDArray[Any] = decoded[0]
        height = self._segment[0]
        rows = min(height, self.shape[0] - segment // self._across * height)
        if pixels.shape[0] < rows or shape[1] < rows:
            raise MaskError(self.path, f"is corrupt: tile or strip {segment} is too short")
        return pixels if self._color else pixels[..., 0]


class _InflatedRows:
    """Rows of deflated strips in order; a strip need not fit into memory."""

    def __init__(self, mask: TiffMask) -> None:
        self._mask = mask
        self._strip, self._next = -1, 0

    def row(self, strip: int, within: int, size: int) -> bytes:
        """The bytes of a row of a strip; an earlier row than the last restarts the strip."""
        rows = self._mask._segment[0]
        if strip != self._strip or within < self._next - 1:
            self._engine: Any = inflater.decompressobj()
            self._strip, self._next, self._at, self._packed, self._last = strip, 0, 0, b"", b""
        while self._next <= within:
            self._last = self._take(size)
            self._next += 1
            is_end = self._next == min(rows, self._mask.shape[0] - strip * rows)
            # Reads past the last row, to verify the checksum.
            more = self._take(1) if is_end else b""
            if len(self._last) < size or more or (is_end and not self._engine.eof):
                what = "decompresses to more than its pixels" if more else "is too short"
                problem = f"is a corrupt TIFF: tile or strip {strip} {what}"
                raise MaskError(self._mask.path, problem)
        return self._last

    def _take(self, size: int) -> bytes:
        """The next ``size`` bytes of a strip, or fewer at its end."""
        out = bytearray()
        while len(out) < size and not self._engine.eof:
            if not (packed := self._packed or self._read()):
                break
            with damage(self._mask.path, "is a corrupt TIFF", MemoryError):
                out += self._engine.decompress(packed, size - len(out))
            self._packed = self._engine.unconsumed_tail
        return bytes(out)

    def _read(self) -> bytes:
        """The next compressed bytes, empty at the end."""
        page = self._mask._page
        left = page.databytecounts[self._strip] - self._at
        part = self._mask._bytes(page.dataoffsets[self._strip] + self._at, min(left, _PART_BYTES))
        self._at += len(part)
        return part


def _mode(page: Any, path: str | Path) -> str:
    """``"RGB"`` or ``"tiff"``; an error if the page has neither colours nor labels."""
    if page.dtype is None or page.dtype.kind not in "biu":
        raise MaskError(path, f"contains {page.dtype} values; expected integer labels")
    samples, kind = page.samplesperpixel, page.photometric.name
    if page.imagedepth == 1 and samples == 1:
        return "tiff"
    if page.imagedepth == 1 and samples == 3 and kind == "RGB" and page.planarconfig == 1:
        return "RGB"
    raise MaskError(path, f"has {samples} channels ({kind}); expected one")


def _mask_page(file: Any, size: int, path: str | Path) -> Any:
    """The page of the mask in a TIFF of ``size`` bytes, which must contain all its pixels.

    Overviews of a COG are skipped. tifffile would read missing tiles as zeros, which could be
    a class.
    """
    pages = list(file.pages)
    kinds = [int(page.subfiletype) for page in pages]
    others = sum(not kind & _REDUCED for kind in kinds[1:])
    if 4 in kinds:
        problem = "contains a validity mask page; store nodata as a pixel value instead"
        raise MaskError(path, problem)
    if others or not pages:
        raise MaskError(
            path, f"has {others + 1} pages; expected one. Save each page as a separate file"
        )
    page = pages[0]
    if absent := [name for name in _REQUIRED if name not in page.tags]:
        raise MaskError(path, f"is a corrupt TIFF: no {', '.join(absent)} tag")
    if not hasattr(page.photometric, "name"):
        problem = f"is a corrupt TIFF: its PhotometricInterpretation is {page.photometric!r}"
        raise MaskError(path, problem)
    turned = page.tags.valueof("Orientation", 1)
    if turned not in (0, 1):
        problem = (
            f"has the Orientation tag {getattr(turned, 'value', turned)}, which programs interpret "
            "differently; save the pixels in display order, without the tag"
        )
        raise MaskError(path, problem)
    _check_segments(page, size, path)
    return page


def _check_segments(page: Any, size: int, path: str | Path) -> None:
    """Raise an error if tiles or strips are missing from a file of ``size`` bytes."""
    height, width = page.imagelength, page.imagewidth
    tall, wide = _segment_size(page)
    if min(height, width, tall, wide) < 1:
        raise MaskError(
            path, f"is a corrupt TIFF: {width} × {height} pixels in pieces of {wide} × {tall}"
        )
    planes = page.samplesperpixel if page.planarconfig == 2 else 1
    down = -(-height // tall)
    expected = down * -(-width // wide) * planes * page.imagedepth
    offsets, counts = page.dataoffsets, page.databytecounts
    # As listed in the file, before tifffile fills gaps.
    if _listed(page) != (width, height, tuple(offsets), tuple(counts)) or len(offsets) != expected:
        problem = f"is a corrupt TIFF: lists {len(offsets)} tiles or strips, expected {expected}"
        raise MaskError(path, problem)
    for i, (offset, count) in enumerate(zip(offsets, counts, strict=True)):
        rows = tall if page.is_tiled else min(tall, height - tall * (i % down))
        unpacked = rows * _row_bytes(page, wide)
        if offset < _HEADER_BYTES or offset + count > size:
            problem = "is outside the file's data"
        elif count < (unpacked if page.compression == 1 else 1):
            problem = "has too few bytes"
        # Compressed data are never much larger than the pixels, except in a bomb.
        elif page.compression != 1 and count > 2 * unpacked + 4096:
            problem = "has too many bytes"
        else:
            continue
        raise MaskError(path, f"is a corrupt TIFF: tile or strip {i} {problem}")


def _segment_size(page: Any) -> tuple[int, int]:
    """Height and width of a page's tiles or strips."""
    if page.is_tiled:
        return page.tilelength, page.tilewidth
    return min(page.rowsperstrip, page.imagelength), page.imagewidth


def _listed(page: Any) -> tuple[Any, ...]:
    """Size, offsets and lengths as stored, before tifffile interprets them."""
    values = []
    for code in (256, 257, *((324, 325) if page.is_tiled else (273, 279))):
        tags = page.tags.getall(code) or []
        values.append(tags[0].value if len(tags) == 1 else None)
    return tuple(tuple(v) if isinstance(v, (list, tuple)) else v for v in values)


def _row_bytes(page: Any, width: int) -> int:
    samples = page.samplesperpixel if page.planarconfig == 1 else 1
    return -(-width * samples * int(page.bitspersample) // 8)


def _check_decompressed_size(page: Any, packed: bytes, segment: int, path: str | Path) -> None:
    """Raise an error if a tile or strip would decompress to far more than its pixels."""
    if len(packed) < _HARMLESS_BYTES or page.compression not in _ENGINES:
        return
    tall, wide = _segment_size(page)
    most = 2 * tall * _row_bytes(page, wide) + 4096
    # tifffile reports other problems.
    with suppress(inflater.error, lzma.LZMAError):
        if len(_ENGINES[page.compression]().decompress(packed, most + 1)) > most:
            problem = f"is a corrupt TIFF: tile or strip {segment} is too large"
            raise MaskError(path, problem)


def nodata_of(file: Any) -> int | None:
    """The nodata value of a TIFF, given by path or content; None if it has none."""
    import tifffile

    try:
        with tifffile.TiffFile(file) as opened:
            page: Any = opened.pages.first
            return raster_of(page).nodata if page.samplesperpixel == 1 else None
    except Exception:  # noqa: BLE001 - reading the file reports the problem
        return None


class GdalFile:
    """A TIFF opened by rasterio: a local file, its content, or a remote file.

    GDAL supports all compressions, and reads large strips in parts.
    """

    def __init__(
        self,
        path: str | Path,
        page: Any,
        content: bytes = b"",
        remote: RemoteFile | None = None,
    ) -> None:
        self._path, self._bands = path, [1, 2, 3] if page.samplesperpixel == 3 else 1
        try:
            rasterio: Any = import_module("rasterio")
        except ImportError as error:
            packed = getattr(page.compression, "name", page.compression)
            problem = (
                f"uses {packed} compression, which needs pip install 'segiou[geo]'; or save it "
                "with deflate, in tiles of 256 × 256 or so"
            )
            raise MaskError(path, problem) from error
        # Opens only this file, with a small cache.
        self._settings = partial(rasterio.Env, **_GDAL)
        place = io.BytesIO(content) if content else remote.name if remote else str(path)
        with damage(path, "is a corrupt TIFF"), warnings.catch_warnings(), self._settings():
            # A geotransform is optional.
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            opener = remote.files if remote else None
            self._dataset = rasterio.open(place, driver="GTiff", opener=opener)
        self.chunks: tuple[int, int] = self._dataset.block_shapes[0]
        if (size := math.prod(self.chunks) * page.dtype.itemsize) > _MOST_BLOCK_BYTES:
            self.close()
            problem = f"has tiles or strips of {size} bytes; save it in tiles of 256 × 256 or so"
            raise MaskError(path, problem)

    def __getitem__(self, index: tuple[slice, ...]) -> NDArray[Any]:
        shape = self._dataset.shape
        window = tuple(part.indices(size)[:2] for part, size in zip(index, shape, strict=True))
        with damage(self._path, "is a corrupt TIFF"), self._settings():
            pixels = self._dataset.read(self._bands, window=window)
        return np.moveaxis(pixels, 0, -1) if pixels.ndim == 3 else np.asarray(pixels)

    def close(self) -> None:
        """Close the file."""
        self._dataset.close()


class Raster(NamedTuple):
    """The georeference of a raster, as far as its file contains one.

    Attributes
    ----------
    nodata : int, optional
        The value of pixels without data.
    affine : tuple of float, optional
        ``a, b, c, d, e, f``: the corner of a pixel is at x = a column + b row + c
        and y = d column + e row + f.
    crs : str
        Coordinate reference system, such as ``"EPSG:32632"``; empty if unknown.
    """

    nodata: int | None = None
    affine: tuple[float, ...] | None = None
    crs: str = ""

    def difference(
        self, pred: Raster, shape: tuple[int, ...], pred_shape: tuple[int, ...]
    ) -> str | None:
        """Describe how a prediction's georeference differs from this truth; None if it does not."""
        if self.crs and pred.crs and self.crs != pred.crs:
            return f"the coordinate system {pred.crs}, but its truth has {self.crs}"
        if self.affine is None or pred.affine is None:
            return None
        a, b, _, d, e, _ = self.affine
        most = _TOLERANCE * max(math.hypot(a, d), math.hypot(b, e))
        corners = zip(_corners(self.affine, shape), _corners(pred.affine, pred_shape), strict=True)
        if all(math.dist(one, other) <= most for one, other in corners):
            return None
        return f"{_placed(pred.affine)}, but its truth has {_placed(self.affine)}"


def raster_of(page: Any) -> Raster:
    """The georeference in the tags of a page."""
    try:
        words = page.tags.valueof(_KEYS) or ()
        # Four words per key, after a header of four; the second word of a number is 0.
        entries = (words[at : at + 4] for at in range(4, len(words) - 3, 4))
        keys = {key: value for key, place, _, value in entries if place == 0}
        known = next((keys[k] for k in (_PROJECTED, _GEOGRAPHIC) if k in keys), _USER_DEFINED)
        crs = f"EPSG:{known}" if 0 < known < _USER_DEFINED else ""
        text = page.tags.valueof(_NODATA)
        value = float(text) if isinstance(text, str) else math.nan
        # The nodata value of floats, -3.4e38, cannot be a label.
        nodata = int(value) if value.is_integer() and abs(value) < 1 << 63 else None
        return Raster(nodata, _affine(page, keys), crs)
    except (TypeError, ValueError, IndexError, OverflowError):
        return Raster()


def _affine(page: Any, keys: dict[int, int]) -> tuple[float, ...] | None:
    matrix = page.tags.valueof(_TRANSFORM)
    scale, ties = page.tags.valueof(_SCALE), page.tags.valueof(_TIE_POINTS)
    if matrix:
        a, b, _, c, d, e, _, f = matrix[:8]
    elif scale and ties and len(ties) == 6:
        (a, e), (column, row, _, x, y, _) = (scale[0], -scale[1]), ties
        b = d = 0.0
        c, f = x - a * column, y - e * row
    else:
        return None
    if keys.get(_RASTER_TYPE) == 2:  # the points are the centres of pixels
        c, f = c - (a + b) / 2, f - (d + e) / 2
    found = tuple(map(float, (a, b, c, d, e, f)))
    return found if all(map(math.isfinite, found)) and (a or d) and (b or e) else None


def _corners(affine: tuple[float, ...], shape: tuple[int, ...]) -> list[tuple[float, float]]:
    a, b, c, d, e, f = affine
    height, width = shape[:2]
    ends = ((0, 0), (width, 0), (0, height), (width, height))
    return [(a * x + b * y + c, d * x + e * y + f) for x, y in ends]


def _placed(affine: tuple[float, ...]) -> str:
    a, b, c, d, e, f = affine
    size = f"{math.hypot(a, d):.10g} × {math.hypot(b, e):.10g}"
    return f"pixels of {size} from ({c:.10g}, {f:.10g})"
