"""Class codes → the points of each class's boundary: pixels, or surface elements between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.boundary.boundary_options import Contour
from segiou.boundary.codes import Codes, ignored_code, unassigned_code
from segiou.boundary.kernels import nearest

__all__ = [
    "ContourPoints",
    "distances_between",
    "find_contour",
    "kind_lengths",
]


#: Kind of the surface element at a corner by which of its four pixels are in the
#: class (bits: upper left 8, upper right 4, lower left 2, lower right 1):
#: 0 lies along a row, 1 along a column, 2 is half a diagonal.
_KINDS = np.array([0, 2, 2, 0, 2, 1, 2, 2, 2, 2, 1, 2, 0, 2, 2, 0], dtype=np.uint8)
#: Two pixels that touch at the corner only are cut off by half a diagonal each.
_MULTIPLES = np.array([0, 1, 1, 1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 0], dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class ContourPoints:
    """The boundary points of every class of one label map.

    Attributes
    ----------
    points : ndarray of int32, shape (n, 2)
        Rows and columns, class by class; of pixels, or of the corners between them.
    starts : ndarray of int64, shape (C + 1,)
        Points of class c are ``starts[c]`` to ``starts[c + 1]``.
    kinds : ndarray of uint8, shape (n,)
        Index into :func:`kind_lengths`.
    multiples : ndarray of uint8, shape (n,)
        How many elements of that kind lie at the point.
    """

    points: NDArray[np.int32]
    starts: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    multiples: NDArray[np.uint8]

    @property
    def classes(self) -> NDArray[np.intp]:
        """Class of each point."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def kind_lengths(contour: Contour, spacing: tuple[float, float]) -> NDArray[np.float64]:
    """Length of an element of each kind: 1 for a pixel, or row, column and half-diagonal pieces.

    The lengths are those of surface-distance's table for two dimensions
    (Nikolov et al. 2018).

    Examples
    --------
    >>> kind_lengths("elements", (3.0, 4.0))
    array([4. , 3. , 2.5])
    """
    if contour == "pixels":
        return np.ones(1)
    return np.array([spacing[1], spacing[0], np.hypot(*spacing) / 2])


def find_contour(codes: Codes, num_classes: int, contour: Contour, border: bool) -> ContourPoints:
    """Find the boundary points of every class of one label map.

    Parameters
    ----------
    codes : ndarray of uint8 or uint16, shape (H, W)
        As :class:`segiou.boundary.codes.LabelCodes` gives them.
    num_classes : int
        C.
    contour : {"pixels", "elements"}
        Pixels of a class with a valid pixel of another code beside, above or
        below; or corners of pixels whose four pixels are valid and differ.
    border : bool
        Whether outside the image is another code; else it is as if ignored.
    """
    outside = unassigned_code(codes.dtype) if border else ignored_code(codes.dtype)
    padded: Codes = np.pad(codes, 1, constant_values=outside)  # type: ignore[assignment]
    find = _find_pixels if contour == "pixels" else _find_elements
    return find(padded, num_classes)


def _find_pixels(padded: Codes, num_classes: int) -> ContourPoints:
    ignored = ignored_code(padded.dtype)
    valid = padded != ignored
    on_edge = np.zeros(padded.shape, dtype=np.bool_)
    for axis in (0, 1):
        before, after = _slices(axis, slice(None, -1)), _slices(axis, slice(1, None))
        edge = padded[before] != padded[after]
        edge &= valid[before]
        edge &= valid[after]
        on_edge[before] |= edge
        on_edge[after] |= edge
    places = np.flatnonzero(on_edge[1:-1, 1:-1])
    labels = padded[1:-1, 1:-1].reshape(-1)[places]
    ones = np.ones(len(places), dtype=np.uint8)
    return _sorted_points(places, labels, ones - ones, ones, padded.shape[1] - 2, num_classes)


def _slices(axis: int, cut: slice) -> tuple[slice, slice]:
    return (cut, slice(None)) if axis == 0 else (slice(None), cut)


def _find_elements(padded: Codes, num_classes: int) -> ContourPoints:
    ignored = ignored_code(padded.dtype)
    quarters = (padded[:-1, :-1], padded[:-1, 1:], padded[1:, :-1], padded[1:, 1:])
    differ = np.zeros(quarters[0].shape, dtype=np.bool_)
    for quarter in quarters[1:]:
        differ |= quarter != quarters[0]
    places = np.flatnonzero(differ)
    around = np.stack([q.reshape(-1)[places] for q in quarters])
    kept = (around != ignored).all(0)
    places, around = places[kept], around[:, kept]
    return _sorted_elements(places, around, padded.shape[1] - 1, num_classes)


def _sorted_elements(
    places: NDArray[np.intp], around: Any, row_length: int, num_classes: int
) -> ContourPoints:
    found, labels, shapes = [], [], []
    for k in range(4):
        first = ~(around[:k] == around[k]).any(0)
        bits = sum((around[j] == around[k]).astype(np.uint8) << (3 - j) for j in range(4))
        found.append(places[first])
        labels.append(around[k][first])
        shapes.append(np.asarray(bits)[first])
    shape = np.concatenate(shapes)
    return _sorted_points(
        np.concatenate(found),
        np.concatenate(labels),
        _KINDS[shape],
        _MULTIPLES[shape],
        row_length,
        num_classes,
    )


def _sorted_points(
    places: NDArray[np.intp],
    labels: Codes,
    kinds: NDArray[np.uint8],
    multiples: NDArray[np.uint8],
    row_length: int,
    num_classes: int,
) -> ContourPoints:
    # A stable sort of 8 or 16 bits is a radix sort.
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, minlength=num_classes)[:num_classes]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    order = order[: starts[-1]]
    points = np.stack(np.divmod(places[order], row_length), axis=-1).astype(np.int32)
    return ContourPoints(points, starts, kinds[order], multiples[order])


def distances_between(
    query: ContourPoints, target: ContourPoints, spacing: tuple[float, float]
) -> NDArray[np.float64]:
    """Distance from each point to the nearest of its class in the other label map.

    Infinite where the other has no boundary of the class.
    """
    return np.sqrt(nearest(query.points, query.starts, target.points, target.starts, spacing))
