"""TIFF masks, read whole or window by window.

tifffile reads them; GDAL reads compressions that tifffile cannot decompress.
"""

from __future__ import annotations

import io
import logging
import math
from contextlib import suppress
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import plural
from segiou.masks.finding import is_raster
from segiou.masks.formats.decompression import inflater
from segiou.masks.formats.georeference import raster_of, stored_nodata
from segiou.masks.formats.numpy_files import Fits
from segiou.masks.formats.rasters import GdalMask, WholeNumbers, open_by_gdal, whole_numbers
from segiou.masks.formats.tiff_pages import (
    DEFLATE,
    ENGINES,
    REDUCED,
    check_decompressed_size,
    check_decompressed_sizes,
    check_page,
    mask_page,
    most_bytes,
    segment_size,
    whole_pages,
)
from segiou.masks.raw_mask import MaskError, RawMask, damage
from segiou.masks.windows import FileMask, RemoteFile, limits

# Our errors quote what these libraries log about corrupt files; without a handler, logging
# would print it as well.
for _reader in ("tifffile", "rasterio"):
    logging.getLogger(_reader).addHandler(logging.NullHandler())

#: Larger masks are counted window by window.
_MOST_PIXELS = 1 << 28
#: Tiles and strips are decompressed whole; larger ones would need too much memory.
_MOST_SEGMENT_BYTES = 1 << 28
_PART_BYTES = 1 << 20
#: PhotometricInterpretation of colour maps.
_INDEXED = 3
#: The fix if no installed package supports the compression.
_IMAGECODECS = "pip install imagecodecs"
_SAVE = "or save it with 8 bits and deflate, in tiles of 256 × 256 or so"
#: Compressions that tifffile supports without imagecodecs, including none and PackBits.
_SUPPORTED = {1, 32773, *ENGINES}
#: Bits per sample that tifffile decodes without imagecodecs.
_WHOLE_BITS = {1, 8, 16, 32, 64}
_LOSSY_COMPRESSIONS = {6, 7, 33003, 33004, 33005, 34712, 34892, 50001}

_SIXTEEN_BITS = "has 16 bits per channel; save colours with 8 bits"
#: SampleFormat of unsigned integers.
_UNSIGNED = 1
_GDAL = {"GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR", "GDAL_CACHEMAX": 64}
#: GDAL decompresses strips whole; larger ones would need too much memory.
_MOST_BLOCK_BYTES = 1 << 30


def read_tiff(data: bytes, path: str | Path, *, floats: bool = False) -> RawMask:
    """Read a TIFF from its content, by Pillow or GDAL if tifffile cannot decompress it.

    Floats must be whole numbers; with ``floats``, they are kept unchanged.
    """
    import tifffile

    with damage(path, "is a corrupt TIFF"), tifffile.TiffFile(io.BytesIO(data)) as file:
        if _is_stack(file, path):
            values = _stacked(file, data, path)
            return RawMask(values, "tiff", *_kind(file.pages.first))
        page = mask_page(file, len(data), path)
        height, width = page.imagelength, page.imagewidth
        if height * width > _MOST_PIXELS:
            problem = (
                f"has {width} × {height} pixels, which requires a local, uncompressed file; copy "
                "or extract it"
            )
            raise MaskError(path, problem)
        if not _is_deflated_labels(page):
            check_decompressed_sizes(page, data, path)
        (kind, lossy), raster = _kind(page), raster_of(page)
        if not _can_decode(page) and _pillow_keeps(page):
            from segiou.masks.formats.image_files import read_pixels

            with suppress(MaskError):
                return read_pixels(data, path)._replace(kind=kind, lossy=lossy, raster=raster)
        mode = _mode(page, path)
        values = _decoded(page, data, mode, path, floats=floats)
        return RawMask(values, mode, kind, lossy, raster=raster, palette=_palette(page))


def _palette(page: Any) -> bytes:
    """Red, green and blue of each index of a page with a colour map of at most 256 colours."""
    colors = page.colormap
    if colors is None or int(page.photometric) != _INDEXED or colors.shape[1] > 256:
        return b""
    # 16 bits per channel; some programs write 8.
    channels: NDArray[Any] = colors >> 8 if colors.max(initial=0) > 255 else colors
    return channels.T.astype(np.uint8).tobytes()


def _decoded(page: Any, data: bytes, mode: str, path: str | Path, *, floats: bool) -> NDArray[Any]:
    """The labels or colours of a page."""
    size, samples = (page.imagelength, page.imagewidth), page.samplesperpixel
    if _is_deflated_labels(page):
        return _all_inflated(page, data, path)
    if _can_decode(page):
        planes = page.asarray()
        # tifffile drops axes of length 1.
        is_planar = samples > 1 and page.planarconfig == 2
        shape = (samples, *size) if is_planar else (*size, samples)
        values = np.moveaxis(planes.reshape(shape), 0, -1) if is_planar else planes.reshape(shape)
    else:
        with _opened_by_gdal(path, page, io.BytesIO(data)) as mask:
            values = mask[:, :].reshape(*size, samples)
    if mode == "RGB":
        return _colors(values, path)
    if values.dtype.kind == "f" and not floats:
        return whole_numbers(values[..., 0], stored_nodata(page), path)
    return np.asarray(values[..., 0])


def _colors(values: NDArray[Any], path: str | Path) -> NDArray[np.uint8]:
    """Colours of 8 bits; MaskError for colours between them, and for transparent pixels."""
    most = np.iinfo(values.dtype).max
    if transparent := int((values[..., 3:] != most).sum()):
        problem = f"has {plural(transparent, 'transparent pixel')}; save the mask without alpha"
        raise MaskError(path, f"{problem} channel")
    values = values[..., :3]
    if most > 255:
        if (values % 257).any():
            raise MaskError(path, _SIXTEEN_BITS)
        values = values // 257
    return values.astype(np.uint8)


def scores_from_tiff(data: bytes, path: str | Path, fits: Fits) -> NDArray[Any]:
    """Read the scores of all pages; ``fits`` raises an error for a shape that is not wanted."""
    import tifffile

    corrupt = damage(path, "is a corrupt TIFF", MemoryError)
    with corrupt, tifffile.TiffFile(io.BytesIO(data)) as file:
        return _planes(file, data, path, fits)


def _planes(file: Any, data: bytes, path: str | Path, fits: Fits) -> NDArray[Any]:
    """The values of all pages of a file that has one image of several planes."""
    pages = whole_pages(file, path)
    whole = [series for series in file.series if not int(series.keyframe.subfiletype) & REDUCED]
    if len(whole) != 1:
        raise MaskError(path, f"contains {len(whole)} images; save each as a separate file")
    series: Any = whole[0]
    _check_planes(file, series, pages, len(data), path)
    fits(tuple(series.shape))
    for page in pages:
        check_page(page, len(data), path)
        if not _can_decode(page):
            problem = f"{_encoding(page)} of several planes, which needs {_IMAGECODECS}; {_SAVE}"
            raise MaskError(path, problem)
        check_decompressed_sizes(page, data, path)
    return np.asarray(series.asarray())


def _is_stack(file: Any, path: str | Path) -> bool:
    """Whether a file has several planes, of which all but the first may have no page."""
    if len(whole_pages(file, path)) > 1:
        return True
    return bool(file.is_imagej or file.is_shaped) and file.series[0].size != file.pages.first.size


def _stacked(file: Any, data: bytes, path: str | Path) -> NDArray[Any]:
    """The labels of a volume whose pages are its sections."""

    def check(shape: tuple[int, ...]) -> None:
        page = file.pages.first
        if len(shape) != 3 or page.samplesperpixel > 1 or page.dtype.kind not in "biu":
            problem = f"has planes of shape {shape} with {page.dtype} values; expected labels"
            raise MaskError(path, f"{problem} of one channel, a page per section")
        if math.prod(shape) > _MOST_PIXELS:
            raise MaskError(path, f"has {math.prod(shape)} voxels; save it as .npy or NIfTI")

    return _planes(file, data, path, check)


def _check_planes(file: Any, series: Any, pages: list[Any], size: int, path: str | Path) -> None:
    """Raise an error unless a file of ``size`` bytes has all planes of its series."""
    # In some files, only the first of several consecutive planes has a page.
    end = 0 if series.dataoffset is None else series.dataoffset + series.nbytes
    is_there = sum(page.size for page in pages) == series.size or 0 < end <= size
    declared = [
        math.prod(entry["shape"]) for entry in file.shaped_metadata or () if "shape" in entry
    ]
    if not is_there or any(number != series.size for number in declared):
        problem = f"is a corrupt TIFF: planes are missing, found shape {series.shape}"
        raise MaskError(path, problem)


def _kind(page: Any) -> tuple[str, bool]:
    """The name of the format, and whether its compression is lossy."""
    if int(page.compression) not in _LOSSY_COMPRESSIONS:
        return "TIFF", False
    return f"TIFF with {page.compression.name} compression", True


def _can_decode(page: Any) -> bool:
    """Whether tifffile can decode a page; without imagecodecs it has few decoders."""
    if find_spec("imagecodecs") is not None:
        return True
    is_simple = page.bitspersample in _WHOLE_BITS and page.predictor != 3
    return page.compression in _SUPPORTED and is_simple


def _pillow_keeps(page: Any) -> bool:
    """Whether Pillow returns the stored values; it scales or inverts others, and drops signs."""
    bits, kind = int(page.bitspersample), int(page.photometric)
    is_plain = (kind == 1 and bits in (1, 8, 16)) or (kind == 2 and bits == 8) or kind == 3
    is_lossy = int(page.compression) in _LOSSY_COMPRESSIONS
    return int(page.sampleformat) == _UNSIGNED and (is_plain or is_lossy)


def open_tiff(path: str | Path, least: int, remote: RemoteFile | None = None) -> RawMask | None:
    """Open a large TIFF for windowed reading; None for a small one."""
    import tifffile

    file = remote.file if remote else path
    with damage(path, "is a corrupt TIFF", OSError), tifffile.TiffFile(file) as opened:
        page: Any = opened.pages.first
        if page.imagelength * page.imagewidth < least:
            return None
        page = mask_page(opened, remote.size if remote else Path(path).stat().st_size, path)
        mode = _mode(page, path)
        if mode == "RGB" and (page.samplesperpixel, page.planarconfig, page.dtype) != (3, 1, "u1"):
            problem = "is large and has an alpha channel, planes or 16 bits; save it as plain RGB"
            raise MaskError(path, f"{problem} of 8 bits")
        values: FileMask
        is_packed = page.compression != 1
        if not _can_decode(page) or (_is_large(page) and is_packed and not _has_rows(page)):
            files = {"opener": remote.files} if remote else {}
            file = remote.name if remote else str(path)
            values = _opened_by_gdal(path, page, file, page.dtype, **files)
        else:
            values = TiffMask(path, page, mode, remote)
        if values.dtype.kind == "f":
            values = WholeNumbers(values, stored_nodata(page))
        return RawMask(values, mode, *_kind(page), raster=raster_of(page), palette=_palette(page))


class TiffMask(FileMask):
    """The pixels of a large TIFF."""

    def __init__(self, path: str | Path, page: Any, mode: str, remote: RemoteFile | None) -> None:
        self._page = page
        self._color = (3,) if mode == "RGB" else ()
        self._segment = segment_size(page)
        self._across = -(-page.imagewidth // self._segment[1])
        in_turn = _is_large(page) and page.compression != 1
        self._inflated = _InflatedRows(self) if in_turn else None
        self._by_row = in_turn or (page.compression == 1 and _has_rows(page))
        chunks = (1, page.imagewidth) if self._by_row else self._segment
        shape, read = (page.imagelength, page.imagewidth), remote.read if remote else None
        super().__init__(path, shape, page.dtype, chunks, read)

    def __getitem__(self, index: tuple[slice, ...], /) -> NDArray[Any]:
        with damage(self.path, "is a corrupt TIFF", OSError, MemoryError):
            return self._window(index)

    def _window(self, index: tuple[slice, ...]) -> NDArray[Any]:
        (top, bottom), (left, right) = limits(index, self.shape)
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
        if _is_deflated_labels(page):
            with damage(self.path, "is a corrupt TIFF"):
                return _inflated(page, data, segment, self.path)
        check_decompressed_size(page, data, segment, self.path)
        with damage(self.path, "is a corrupt TIFF"):
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
    if (
        page.dtype is None
        or page.dtype.kind not in "biuf"
        or (page.dtype.kind == "f" and page.samplesperpixel > 1)
    ):
        raise MaskError(path, f"contains {page.dtype} values; expected integer labels")
    samples, kind = page.samplesperpixel, page.photometric.name
    if samples == 1:
        return "tiff"
    if samples in (3, 4) and kind == "RGB" and page.dtype.kind == "u":
        if page.dtype.itemsize > 2:
            raise MaskError(path, _SIXTEEN_BITS.replace("16", "more than 16"))
        return "RGB"
    raise MaskError(path, f"has {samples} channels ({kind}); expected one")


def _is_large(page: Any) -> bool:
    """Whether tiles or strips are too large to be read whole."""
    pixels = math.prod(segment_size(page)) * page.samplesperpixel
    return bool(pixels * page.dtype.itemsize > _MOST_SEGMENT_BYTES)


def _has_rows(page: Any) -> bool:
    """Whether rows can be read: one by one if uncompressed, in order if deflated."""
    is_plain = not page.is_tiled and page.bitspersample == 8 * page.dtype.itemsize
    if page.compression == 1:
        return bool(is_plain and page.predictor == 1)
    return is_plain and page.compression in DEFLATE and page.predictor in (1, 2)


def _is_deflated_labels(page: Any) -> bool:
    """Whether tiles and strips are whole numbers of NumPy that only zlib and predictor 2 changed.

    Without imagecodecs, tifffile decompresses them by the slower zlib, after their sizes are known.
    """
    return bool(
        page.compression in DEFLATE
        and page.predictor in (1, 2)
        and page.dtype is not None
        and page.dtype.kind in "iu"
        and page.bitspersample == 8 * page.dtype.itemsize
        and page.samplesperpixel == page.fillorder == 1
    )


def _all_inflated(page: Any, data: bytes, path: str | Path) -> NDArray[Any]:
    """The labels of a page of deflated tiles or strips."""
    (tall, wide), across = segment_size(page), -(-page.imagewidth // segment_size(page)[1])
    values = np.empty((page.imagelength, page.imagewidth), page.dtype)
    for segment, (at, count) in enumerate(zip(page.dataoffsets, page.databytecounts, strict=True)):
        top, left = segment // across * tall, segment % across * wide
        part = values[top : top + tall, left : left + wide]
        pixels = _inflated(page, data[at : at + count], segment, path)
        part[:] = pixels[: part.shape[0], : part.shape[1]]
    return values


def _inflated(page: Any, packed: bytes, segment: int, path: str | Path) -> NDArray[Any]:
    """The pixels of a deflated tile or strip."""
    tall, wide = segment_size(page)
    rows = tall if page.is_tiled else min(tall, page.imagelength - segment * tall)
    engine, dtype = inflater.decompressobj(), page.dtype.newbyteorder(page.parent.byteorder)
    most = most_bytes(page)
    unpacked = engine.decompress(packed, most + 1)
    is_short = len(unpacked) < rows * wide * dtype.itemsize or not engine.eof
    if is_short or len(unpacked) > most:
        what = "large" if len(unpacked) > most else "short"
        raise MaskError(path, f"is a corrupt TIFF: tile or strip {segment} is too {what}")
    pixels = np.frombuffer(unpacked, dtype, rows * wide).reshape(rows, wide)
    return _row_sums(pixels.astype(page.dtype)) if page.predictor == 2 else pixels


def _row_sums(steps: NDArray[Any]) -> NDArray[Any]:
    """The sum of each pixel and all to its left in the row, modulo the range of the type."""
    rows, width = steps.shape
    is_step = steps != 0  # labels have few, and sums of one or two bytes per pixel take long
    is_step[:, 0] = True
    if steps.itemsize > 2 or 16 * np.count_nonzero(is_step) > steps.size:
        return steps.cumsum(axis=1, dtype=steps.dtype)
    at = np.flatnonzero(is_step)
    sums = steps.ravel()[at].cumsum(dtype=steps.dtype)
    first = np.searchsorted(at, width * np.arange(rows))
    before = sums[first] - steps[:, 0]
    sums -= np.repeat(before, np.diff(first, append=len(at)))
    return np.repeat(sums, np.diff(at, append=steps.size)).reshape(steps.shape)


def _encoding(page: Any) -> str:
    """The values and compression of a page that tifffile cannot decode by itself."""
    packed = getattr(page.compression, "name", page.compression)
    bits = "" if page.bitspersample in _WHOLE_BITS else f"{page.bitspersample}-bit values and "
    return f"uses {bits}{packed} compression"


def _opened_by_gdal(
    path: str | Path, page: Any, file: Any, dtype: np.dtype[Any] | None = None, **options: Any
) -> GdalMask:
    """A page opened by GDAL, which supports all compressions and reads large strips in parts."""
    need = f"{_encoding(page)}, which needs pip install 'segiou[geo]' or imagecodecs; {_SAVE}"
    options |= {"driver": "GTiff"}
    try:
        dataset = open_by_gdal(path, file, need, "is a corrupt TIFF", _GDAL, **options)
    except MaskError as error:
        if "missing codec" not in error.problem:
            raise
        raise MaskError(path, f"{_encoding(page)}, which needs {_IMAGECODECS}; {_SAVE}") from error
    if (size := math.prod(dataset.block_shapes[0]) * page.dtype.itemsize) > _MOST_BLOCK_BYTES:
        dataset.close()
        problem = f"has tiles or strips of {size} bytes; save it in tiles of 256 × 256 or so"
        raise MaskError(path, problem)
    bands = [*range(1, page.samplesperpixel + 1)] if page.samplesperpixel > 1 else 1
    return GdalMask(path, dataset, "is a corrupt TIFF", _GDAL, bands, dtype)


def nodata_of(file: Any) -> int | None:
    """The nodata value of a raster, or of the content of a TIFF; None if it has none."""
    import tifffile

    try:
        if isinstance(file, str) and is_raster(file):
            from segiou.masks.formats.rasters import open_raster

            raw = open_raster(file)
            raw.values.__exit__()
            return raw.raster.nodata if raw.raster else None
        with tifffile.TiffFile(file) as opened:
            page: Any = opened.pages.first
            return raster_of(page).nodata if page.samplesperpixel == 1 else None
    except Exception:  # noqa: BLE001 - reading the file reports the problem
        return None
