"""Boundary counts of images as a few bytes: most entries of their rows are 0."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from segiou.boundary import BoundaryCounts, BoundaryOptions
from segiou.counts import Counts
from segiou.runs.sparse import decode_cells, encode_cells

__all__ = [
    "band_counts",
    "bands_of",
    "boundary_crc",
    "pack_boundary",
    "sum_boundaries",
    "unpack_boundaries",
]

#: Images unpacked at once: an entry of a histogram takes eight bytes then.
_BLOCK = 256


def pack_boundary(counts: BoundaryCounts) -> bytes:
    """Pack the counts of one image as :func:`segiou.runs.sparse.encode_cells` does."""
    cells = np.flatnonzero(counts.table)
    (packed,) = encode_cells(np.array([len(cells)]), cells, counts.table[cells])
    return packed


def unpack_boundaries(
    packed: Sequence[bytes], num_classes: int, options: BoundaryOptions
) -> BoundaryCounts:
    """Unpack the counts of images, as rows of one table (N, n).

    Raises
    ------
    ValueError
        If something is not what the counts of an image look like.
    """
    length = len(BoundaryCounts.zeros(num_classes, options).table)
    table = np.zeros((len(packed), length), dtype=np.int64)
    sizes, cells, values = decode_cells(list(packed), length)
    table[np.repeat(np.arange(len(packed)), sizes), cells] = values
    return BoundaryCounts(table, num_classes, options)


def sum_boundaries(
    packed: Sequence[bytes], num_classes: int, options: BoundaryOptions
) -> BoundaryCounts:
    """Sum the counts of images; memory does not grow with their number."""
    total = BoundaryCounts.zeros(num_classes, options)
    for start in range(0, len(packed), _BLOCK):
        part = unpack_boundaries(packed[start : start + _BLOCK], num_classes, options)
        total += part.summed()
    return total


def band_counts(packed: Sequence[bytes], num_classes: int, options: BoundaryOptions) -> Counts:
    """Counts of Boundary IoU at the first width of each image, (N, C).

    Raises
    ------
    ValueError
        If no width was measured.
    """
    if not options.widths:
        msg = "no width of Boundary IoU was measured; see BoundaryOptions"
        raise ValueError(msg)
    parts = []
    for start in range(0, max(1, len(packed)), _BLOCK):
        part = unpack_boundaries(packed[start : start + _BLOCK], num_classes, options)
        found = part.band_counts()
        parts.append([array[:, 0] for array in (found.tp, found.fp, found.fn, found.tn)])
    return Counts(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def bands_of(run: Any, name: str) -> Counts:
    """Counts of Boundary IoU of a run, (N, C).

    Raises
    ------
    ValueError
        If it has none.
    """
    found: Counts | None = getattr(run, "band_counts", None)
    if found is None:
        msg = f"{name} has no boundary counts; score it again with boundary=True (--boundary)"
        raise ValueError(msg)
    return found


def boundary_crc(id: str, packed: bytes) -> int:
    """Check sum of a row of the table ``boundary``."""
    return zlib.crc32(packed, zlib.crc32(f"{id}\0".encode("utf-8", "surrogateescape")))
