"""Boundary points of each class and the exact distances between those of a pair.

Points are pixels, or surface elements between pixels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_number
from segiou.boundary.boundary_options import (
    BINS,
    BoundaryOptions,
    Contour,
    bin_indices,
    fixed_point,
)
from segiou.boundary.label_codes import Codes
from segiou.boundary.surface_points import (
    Grid,
    Kind,
    find_nearest,
    find_points,
    point_codes,
    point_places,
    point_shape,
    reached_by,
)
from segiou.metrics.ratio import Floats, ratio

__all__ = [
    "ContourDistances",
    "ContourPoints",
    "element_lengths",
    "find_contour",
    "percentile_place",
]


#: Kind of the surface element at a corner, indexed by the pixels around it that are in the class
#: (bits: upper left 1, upper right 2, lower left 4, lower right 8): 0 runs along a row, 1 along
#: a column, 2 is half a diagonal. Index 0 is a pixel.
_KINDS = np.array([0, 2, 2, 0, 2, 1, 2, 2, 2, 2, 1, 2, 0, 2, 2, 0], dtype=np.uint8)
#: Two pixels that touch only at the corner have half a diagonal each.
_MULTIPLES = np.array([1, 1, 1, 1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 0], dtype=np.uint8)
#: The first of the four pixels that is in the class.
_FIRST = np.array([0, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0], dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class ContourPoints:
    """The boundary points of every class of one label map.

    Attributes
    ----------
    points : ndarray of int32, shape (n, 2)
        Rows and columns of pixels, or of the corners between them, by class.
    starts : ndarray of int64, shape (C + 1,)
        Points of class c are ``starts[c]`` to ``starts[c + 1]``.
    kinds : ndarray of uint8, shape (n,)
        Index into :func:`element_lengths`.
    multiples : ndarray of uint8, shape (n,)
        Number of elements of that kind at the point.
    """

    points: NDArray[np.int32]
    starts: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    multiples: NDArray[np.uint8]

    @property
    def classes(self) -> NDArray[np.intp]:
        """Class of each point."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def element_lengths(contour: Contour, spacing: tuple[float, float]) -> NDArray[np.float64]:
    """Length of each kind of boundary element.

    A pixel has length 1. Surface elements run along a row, along a column or along
    half a diagonal, with the lengths of surface-distance's table for two dimensions
    (Nikolov et al. 2018).

    Parameters
    ----------
    contour : {"pixels", "elements"}
        Kind of contour.
    spacing : (float, float)
        Height and width of a pixel.

    Examples
    --------
    >>> element_lengths("elements", (3.0, 4.0))
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
        Codes from :class:`segiou.boundary.LabelCodes`.
    num_classes : int
        C.
    contour : {"pixels", "elements"}
        Pixels of a class that share a face with a valid pixel of a different
        code; or corners whose four pixels are valid and differ.
    border : bool
        Whether the outside of the image counts as a different code; otherwise
        it is treated as ignored.
    """
    # Shift the codes so that the last ones wrap to 0, the code of the outside: with a border 0 is
    # unassigned and 1 ignored; without a border 0 is ignored.
    first = 1 + border
    labels = codes + codes.dtype.type(first)
    kind: Kind = "voxels" if contour == "pixels" else "elements"
    found = find_points(labels, range(first, first + num_classes), kind, ignored=int(border)) or {}
    sizes = np.zeros(num_classes, np.int64)
    sizes[[label - first for label in found]] = [len(part) for part in found.values()]
    points = np.concatenate([np.empty(0, np.uint64), *found.values()])
    places, corners = point_places(points), point_codes(points) & 15
    # Within a class, order the corners by their first pixel in the class.
    order = np.lexsort((_FIRST[corners], np.repeat(np.arange(num_classes), sizes)))
    places, corners = places[order], corners[order]
    rows = places // point_shape(codes.shape)[-1]
    columns = places - rows * point_shape(codes.shape)[-1]
    return ContourPoints(
        np.stack([rows, columns], axis=-1).astype(np.int32),
        np.concatenate([[0], np.cumsum(sizes)]),
        _KINDS[corners],
        _MULTIPLES[corners],
    )


Method = Literal["inverted_cdf", "linear"]


@dataclass(frozen=True, eq=False)
class ContourDistances:
    """Distances from each boundary point of each class to the boundary of the other side.

    Distances are exact and belong to one image; use
    :class:`segiou.boundary.BoundaryCounts` to aggregate over images.

    Attributes
    ----------
    truth, pred : ContourPoints
        The boundaries.
    truth_to_pred, pred_to_truth : ndarray of float64
        Distance of each point in units of the spacing; infinite if the other
        side has no boundary of that class.
    contour : {"pixels", "elements"}
    spacing : (float, float)
    """

    truth: ContourPoints
    pred: ContourPoints
    truth_to_pred: Floats
    pred_to_truth: Floats
    contour: Contour
    spacing: tuple[float, float]

    @classmethod
    def of(
        cls,
        truth: ContourPoints,
        pred: ContourPoints,
        contour: Contour,
        spacing: tuple[float, float],
    ) -> ContourDistances:
        """Measure the distances in both directions.

        Parameters
        ----------
        truth, pred : ContourPoints
            Points of the true and the predicted contours.
        contour : Contour
            Kind of contour.
        spacing : tuple of float
            Size of a pixel along each axis.
        """
        there, back = (_apart(*pair, spacing) for pair in ((truth, pred), (pred, truth)))
        return cls(truth, pred, there, back, contour, spacing)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.truth.starts) - 1

    def _directions(self) -> tuple[tuple[ContourPoints, Floats], ...]:
        return (self.truth, self.truth_to_pred), (self.pred, self.pred_to_truth)

    def _lengths_and_sums(self) -> Floats:
        """Boundary length and sum of distances per direction and class: (2, 2, C)."""
        found = []
        for points, distances in self._directions():
            lengths = element_lengths(self.contour, self.spacing)[points.kinds] * points.multiples
            found.append(
                [
                    np.bincount(points.classes, weights, self.num_classes)
                    for weights in (lengths, lengths * distances)
                ]
            )
        return np.swapaxes(found, 0, 1)

    def average(self) -> Floats:
        """Average distance per direction and class, weighted by length.

        Returns
        -------
        ndarray of float64, shape (2, C)
            Truth → prediction and prediction → truth; NaN if neither side has a
            boundary of the class, infinite if only one has.
        """
        lengths, sums = self._lengths_and_sums()
        return _infinite_where_lone(ratio(sums, lengths))

    def symmetric_average(self) -> Floats:
        """Average distance per class over both boundaries, weighted by length, shape (C,)."""
        lengths, sums = self._lengths_and_sums()
        return ratio(sums.sum(0), lengths.sum(0))

    def hausdorff(self, percentile: float = 100.0, method: Method = "inverted_cdf") -> Floats:
        """Hausdorff distance per class: the larger of both directions' percentiles.

        Parameters
        ----------
        percentile : float in [0, 100]
            100 is the Hausdorff distance itself, 95 its common robust variant.
        method : {"inverted_cdf", "linear"}
            The smallest distance within which at least that share of the
            boundary length lies (as in surface-distance), or linear
            interpolation between equally weighted points (as in MONAI).

        Returns
        -------
        ndarray of float64, shape (C,)
            NaN if neither side has a boundary of the class, infinite if only one
            has.

        Raises
        ------
        ValueError
            If the percentile is outside [0, 100] or the method is unknown.
        """
        check_choice("method", method, ("inverted_cdf", "linear"))
        check_number("percentile", percentile, 0, 100)
        out = np.full((2, self.num_classes), np.nan)
        kinds = element_lengths(self.contour, self.spacing)
        for d, (points, distances) in enumerate(self._directions()):
            for c in np.flatnonzero(np.diff(points.starts)).tolist():
                part = slice(*points.starts[c : c + 2])
                if np.isinf(distances[part]).all():
                    out[d, c] = np.inf  # interpolation between infinities gives NaN
                elif method == "linear":
                    out[d, c] = np.percentile(distances[part], percentile)
                else:
                    order = np.argsort(distances[part])
                    ranked = np.arange(len(order)), points.kinds[part][order]
                    elements = np.zeros((len(order), len(kinds)), np.int64)
                    elements[ranked] = points.multiples[part][order]
                    place = percentile_place(elements, self.contour, self.spacing, percentile)
                    out[d, c] = distances[part][order[place]]
        there, back = _infinite_where_lone(out)
        return np.asarray(np.fmax(there, back))

    def counts(
        self, options: BoundaryOptions, tolerances: list[float]
    ) -> dict[str, NDArray[np.int64]]:
        """Counts of this contour by part of the layout.

        Parameters
        ----------
        options : BoundaryOptions
            The options.
        tolerances : list of float
            Tolerances in units of the spacing.

        Returns
        -------
        dict of str to ndarray
        """
        shape = 2, self.num_classes, len(element_lengths(self.contour, self.spacing))
        sides = self.truth, self.pred
        classes = np.concatenate([side.classes + d * shape[1] for d, side in enumerate(sides)])
        cell = classes * shape[2] + np.concatenate([side.kinds for side in sides])
        many = np.concatenate([side.multiples for side in sides])
        distances = np.concatenate([self.truth_to_pred, self.pred_to_truth])

        def summed(where: Any, weights: Any, *bins: int) -> NDArray[np.int64]:
            # Sums of whole numbers below 2^53 are exact in float64.
            sums = np.bincount(where, weights, math.prod(shape + bins))
            return sums.astype(np.int64).reshape(shape + bins)

        within = [distances <= reached_by(limit) for limit in tolerances]
        bins = bin_indices(distances, options.resolution)
        parts = {
            "total": summed(cell, many),
            "matched": np.array([summed(cell[w], many[w]) for w in within]).reshape(-1, *shape),
            "distance": summed(cell, fixed_point(distances, options.resolution) * many),
            "histogram": summed(cell * BINS + bins, many, BINS),
        }
        return {f"{self.contour}.{name}": part for name, part in parts.items()}


def _apart(query: ContourPoints, target: ContourPoints, spacing: tuple[float, float]) -> Floats:
    """Distance from each point to the nearest point of its class on the other side."""
    longest = max(int(side.points.max(initial=0)) for side in (query, target)) + 1
    grid = Grid((longest, longest), spacing)
    asked, known = (
        np.asarray(side.points @ [point_shape(grid.shape)[-1], 1]).astype(np.uint64)
        for side in (query, target)
    )
    distances = np.full(len(asked), np.inf)
    for c in np.flatnonzero((np.diff(query.starts) > 0) & (np.diff(target.starts) > 0)).tolist():
        here, there = (slice(*side.starts[c : c + 2]) for side in (query, target))
        distances[here] = find_nearest(asked[here], np.sort(known[there]), grid).each
    return distances


def _infinite_where_lone(directions: Floats) -> Floats:
    there, back = directions
    lone = np.isnan(there) != np.isnan(back)
    return np.where(lone, np.inf, directions)


def percentile_place(
    elements: NDArray[np.int64], contour: Contour, spacing: tuple[float, float], percentile: float
) -> int:
    """The first place that at least that percentage of a boundary's length does not exceed.

    ``elements``, shape (n, W), is the number of elements of each kind at each place.

    >>> elements = np.array([[1, 0, 0], [0, 0, 2], [1, 0, 2]])
    >>> percentile_place(elements, "elements", (1.0, 1.0), 50.0)
    1
    """
    reached = np.cumsum(elements @ element_lengths(contour, spacing))
    needed = reached[-1] * (percentile / 100)
    place = int(np.searchsorted(reached, max(needed * (1 - 1e-9), np.finfo(np.float64).tiny)))
    # Sums of lengths are rounded; compare exactly if rounding could decide.
    share, whole = Fraction(str(percentile)) / 100, elements.sum(0).tolist()
    while reached[place] <= needed * (1 + 1e-9):
        part = elements[: place + 1].sum(0).tolist()
        if _is_positive([p - share * w for p, w in zip(part, whole, strict=True)], spacing):
            break
        place += 1
    return place


def _is_positive(elements: list[Fraction], spacing: tuple[float, float]) -> bool:
    """Whether the total length of these elements is at least 0, in exact arithmetic."""
    if len(elements) == 1:
        return elements[0] >= 0
    height, width = (Fraction(str(length)) for length in spacing)
    straight = elements[0] * width + elements[1] * height
    diagonal = elements[2] / 2  # in units of √(height² + width²), which may be irrational
    # straight + diagonal · √(…) ≥ 0 is decided by signed squares.
    squared = diagonal * abs(diagonal) * (height**2 + width**2)
    return straight * abs(straight) + squared >= 0
