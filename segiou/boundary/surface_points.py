"""The points of surfaces in 2-D and 3-D, and how far those of two surfaces lie apart."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Distances", "Kind", "reference_distances"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Kind = Literal["voxels", "elements"]


@dataclass(frozen=True, eq=False)
class Distances:
    """From the points of one surface to the nearest of the other, in ascending order.

    Attributes
    ----------
    values : ndarray of float64, shape (n,)
        Distances; none where the other surface has no points.
    points : ndarray of int64, shape (n,)
        How many points are so far away.
    weights : ndarray of float64, shape (n,)
        Their number, or their area.
    size : float
        Number, or area, of all points of the surface.
    each : bool
        Whether every point has an entry of its own.
    """

    values: Floats
    points: NDArray[np.int64]
    weights: Floats
    size: float
    each: bool


Both = tuple[Distances, Distances]


def reference_distances(
    truth: Bools, pred: Bools, ignored: Bools | None, spacing: tuple[float, ...], kind: Kind
) -> Both:
    """Both directions between two masks by SciPy's transforms: what the kernel must equal."""
    from scipy.ndimage import distance_transform_edt  # type: ignore[import-untyped]

    masks = [truth, pred] if ignored is None else [truth, pred, ignored]
    truth, pred, *rest = _cropped(masks)
    sides = [_surface(side, rest[0] if rest else None, spacing, kind) for side in (truth, pred)]
    found = []
    for (points, weights), (others, _) in zip(sides, sides[::-1], strict=True):
        if not (points.any() and others.any()):
            none = np.empty(0)
            found.append(Distances(none, none.astype(np.int64), none, float(weights.sum()), True))
            continue
        values = distance_transform_edt(~others, sampling=spacing)[points]
        order = np.lexsort((weights, values))
        values, weights = values[order], weights[order]
        ones = np.ones(len(order), np.int64)
        found.append(Distances(values, ones, weights, float(weights.sum()), True))
    return found[0], found[1]


def _cropped(masks: list[Bools]) -> list[Bools]:
    """In the box that holds the first two, with at least one voxel around it."""
    either = masks[0] | masks[1]
    box = []
    for axis in range(either.ndim):
        found = np.flatnonzero(either.any(tuple(a for a in range(either.ndim) if a != axis)))
        first, last = (found[0], found[-1]) if len(found) else (0, 0)
        box.append(slice(max(0, first - 1), last + 2))
    return [np.pad(mask[tuple(box)], 1) for mask in masks]


def _surface(
    mask: Bools, ignored: Bools | None, spacing: tuple[float, ...], kind: Kind
) -> tuple[Bools, Floats]:
    """Where a surface is, and the weight of each of its points."""
    if kind == "voxels":
        from scipy.ndimage import binary_erosion

        points = mask & ~binary_erosion(mask if ignored is None else mask | ignored)
        return points, np.ones(np.count_nonzero(points))
    codes = _corner_codes(mask)
    points = (codes != 0) & (codes != (1 << (1 << mask.ndim)) - 1)
    if ignored is not None:
        points &= _corner_codes(ignored) == 0
    return points, element_areas(spacing)[codes[points]]


def _corner_codes(mask: Bools) -> NDArray[np.uint8]:
    """Which voxels around each corner are in the mask."""
    codes = np.zeros(tuple(n - 1 for n in mask.shape), np.uint8)
    for place, bit in _corner_bits(mask.ndim).items():
        part = tuple(slice(i, n - 1 + i) for i, n in zip(place, mask.shape, strict=True))
        codes |= mask[part].astype(np.uint8) << bit
    return codes


def _corner_bits(ndim: int) -> dict[tuple[int, ...], int]:
    """Bit of each voxel around a corner; the first is the highest."""
    places = list(itertools.product((0, 1), repeat=ndim))
    return {place: len(places) - 1 - i for i, place in enumerate(places)}


#: Surface elements around a corner in eighths of a voxel's faces, by which of its voxels are in
#: the label: the triangles of marching cubes with edges cut in the middle (the table of
#: surface-distance, Nikolov et al. 2018). Turned, mirrored or inverted cases follow from these.
_ELEMENTS: Final = {
    0b1: [(1, 1, 1)],
    0b11: [(2, 2, 0)] * 2,
    0b110: [(1, 1, 1)] * 2,
    0b111: [(1, 1, 1), (2, 2, 2), (4, 0, 0)],
    0b1111: [(4, 0, 0)] * 2,
    0b10110: [(1, 1, 1)] * 3,
    0b10111: [(1, 1, 1)] * 2 + [(2, 2, 2)] * 2,
    0b11000: [(1, 1, 1)] * 2,
    0b11001: [(0, 2, 2)] * 2 + [(1, 1, 1)],
    0b11011: [(0, 2, 2), (1, 1, 1), (2, 0, 2), (3, 3, 3)],
    0b11110: [(1, 1, 1)] * 2 + [(2, 2, 2), (4, 0, 0)],
    0b111100: [(2, 2, 0)] * 4,
    0b1101001: [(1, 1, 1)] * 4,
}
#: Likewise lines around a corner of pixels, in halves of a pixel's sides.
_LINES: Final = {0b1: [(1, 1)], 0b11: [(2, 0)], 0b110: [(1, 1)] * 2}


@lru_cache(maxsize=8)
def element_areas(spacing: tuple[float, ...]) -> Floats:
    """Area (length in two dimensions) of the elements by the bits of the voxels around."""
    ndim = len(spacing)
    bits = _corner_bits(ndim)
    faces = [math.prod(spacing[:axis] + spacing[axis + 1 :]) for axis in range(ndim)]
    areas = np.zeros(1 << len(bits))
    for code, elements in (_ELEMENTS if ndim == 3 else _LINES).items():
        for axes in itertools.permutations(range(ndim)):
            turned = np.array(elements)[:, axes] * faces / (8 if ndim == 3 else 2)
            area = sum(math.sqrt(float(n @ n)) for n in turned)
            for flips in itertools.product((0, 1), repeat=ndim):
                moved = 0
                for place, bit in bits.items():
                    to = tuple(place[a] ^ flip for a, flip in zip(axes, flips, strict=True))
                    moved |= (code >> bit & 1) << bits[to]
                areas[moved] = areas[len(areas) - 1 - moved] = area
    return areas
