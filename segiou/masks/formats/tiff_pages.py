"""Pages of TIFF files, and checks that a file contains their pixels before any is decompressed."""

from __future__ import annotations

import lzma
from contextlib import suppress
from pathlib import Path
from typing import Any

from segiou._support.files import is_file
from segiou.masks.formats.decompression import inflater, size_within
from segiou.masks.raw_mask import MaskError, check_upright

#: Tiles may have more pixels than their image, but not many more.
_MOST_TILE_PIXELS = 1 << 24
_HEADER_BYTES = 8
#: Without these tags, tifffile's defaults turn compressed pixels into noise.
_REQUIRED = ("Compression", "PhotometricInterpretation")
DEFLATE = (8, 32946)
#: Decompressors of compressions with unbounded ratios: Deflate and LZMA.
ENGINES: dict[int, Any] = {
    **dict.fromkeys(DEFLATE, inflater.decompressobj),
    34925: lzma.LZMADecompressor,
}
#: Segments below this size cannot decompress to a harmful size.
_HARMLESS_BYTES = 1 << 14
#: Flag of pages that are overviews, as in a COG.
REDUCED = 1


def mask_page(file: Any, size: int, path: str | Path) -> Any:
    """The page of the mask in a TIFF of ``size`` bytes; overviews of a COG are skipped."""
    pages = whole_pages(file, path)
    if len(pages) != 1:
        raise MaskError(
            path, f"has {len(pages)} pages; expected one. Save each page as a separate file"
        )
    if pages[0].imagedepth != 1:
        problem = "stores a volume in one page; save each section as a page, or the volume as NIfTI"
        raise MaskError(path, problem)
    check_page(pages[0], size, path)
    return pages[0]


def whole_pages(file: Any, path: str | Path) -> list[Any]:
    """The pages of a TIFF that are not overviews."""
    pages = list(file.pages)
    kinds = [int(page.subfiletype) for page in pages]
    if 4 in kinds:
        problem = "contains a validity mask page; store nodata as a pixel value instead"
        raise MaskError(path, problem)
    if kinds and kinds[0] & REDUCED and not all(kind & REDUCED for kind in kinds):
        raise MaskError(path, "begins with a reduced image; save the mask as the first page")
    if is_file(f"{path}.msk"):
        problem = "has an external mask file (.msk); store nodata as a pixel value instead"
        raise MaskError(path, problem)
    return [p for i, p in enumerate(pages) if i == 0 or not kinds[i] & REDUCED]


def check_page(page: Any, size: int, path: str | Path) -> None:
    """Raise an error unless a file of ``size`` bytes contains all pixels of a page.

    tifffile would read missing tiles as zeros, which could be a class or a score.
    """
    if absent := [name for name in _REQUIRED if name not in page.tags]:
        raise MaskError(path, f"is a corrupt TIFF: no {', '.join(absent)} tag")
    if not hasattr(page.photometric, "name"):
        problem = f"is a corrupt TIFF: its PhotometricInterpretation is {page.photometric!r:.40}"
        raise MaskError(path, problem)
    check_upright(int(page.tags.valueof("Orientation", 1)), path)
    if page.predictor == 3 and page.dtype is not None and page.dtype.kind in "biu":
        raise MaskError(path, "uses predictor 3, which is for floats; save it with predictor 2")
    _check_segments(page, size, path)


def _check_segments(page: Any, size: int, path: str | Path) -> None:
    """Raise an error if tiles or strips are missing from a file of ``size`` bytes."""
    height, width = page.imagelength, page.imagewidth
    tall, wide = segment_size(page)
    if min(height, width, tall, wide) < 1:
        raise MaskError(
            path, f"is a corrupt TIFF: {width} × {height} pixels in pieces of {wide} × {tall}"
        )
    if tall * wide > max(_MOST_TILE_PIXELS, 4 * height * width):
        problem = f"has tiles of {wide} × {tall} pixels for an image of {width} × {height}"
        raise MaskError(path, f"{problem}; save it in tiles of 256 × 256 or so")
    planes = page.samplesperpixel if page.planarconfig == 2 else 1
    down = -(-height // tall)
    expected = down * -(-width // wide) * planes * -(-page.imagedepth // page.tiledepth)
    offsets, counts = page.dataoffsets, page.databytecounts
    # As listed in the file, before tifffile fills gaps.
    if _listed(page) != (width, height, tuple(offsets), tuple(counts)) or len(offsets) != expected:
        problem = f"is a corrupt TIFF: lists {len(offsets)} tiles or strips, expected {expected}"
        raise MaskError(path, problem)
    for i, (offset, count) in enumerate(zip(offsets, counts, strict=True)):
        if offset == count == 0:
            problem = f"does not contain tile or strip {i} (SPARSE_OK); save it with all of them"
            raise MaskError(path, problem)
        rows = tall if page.is_tiled else min(tall, height - tall * (i % down))
        if offset < _HEADER_BYTES or offset + count > size:
            problem = "is outside the file's data"
        else:
            problem = _size_problem(count, rows * _row_bytes(page, wide), page.compression != 1)
        if problem:
            raise MaskError(path, f"is a corrupt TIFF: tile or strip {i} {problem}")


def _size_problem(count: int, unpacked: int, is_packed: bool) -> str:
    """Why a tile or strip cannot have ``count`` bytes; empty if it can."""
    if count < (1 if is_packed else unpacked):
        return "has too few bytes"
    # Compressed data are never much larger than the pixels, except in a bomb.
    return "has too many bytes" if is_packed and count > 2 * unpacked + 4096 else ""


def segment_size(page: Any) -> tuple[int, int]:
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


def most_bytes(page: Any) -> int:
    """The size to which a sound tile or strip decompresses at most."""
    tall, wide = segment_size(page)
    return 2 * tall * _row_bytes(page, wide) + 4096


def check_decompressed_sizes(page: Any, data: bytes, path: str | Path) -> None:
    """Raise an error if a tile or strip of a page would decompress to far more than its pixels."""
    for i, (at, count) in enumerate(zip(page.dataoffsets, page.databytecounts, strict=True)):
        check_decompressed_size(page, data[at : at + count], i, path)


def check_decompressed_size(page: Any, packed: bytes, segment: int, path: str | Path) -> None:
    """Raise an error if a tile or strip would decompress to far more than its pixels."""
    if len(packed) < _HARMLESS_BYTES or page.compression not in ENGINES:
        return
    most = most_bytes(page)
    # tifffile reports other problems.
    with suppress(inflater.error, lzma.LZMAError):
        if size_within(ENGINES[page.compression](), packed, most + 1) > most:
            problem = f"is a corrupt TIFF: tile or strip {segment} is too large"
            raise MaskError(path, problem)
