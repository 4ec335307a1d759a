"""Class codes → the points of each class's boundary, and how far those of a pair lie apart.

Points are pixels, or surface elements between them. Distances are exact, and counts that add up.
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
    bin_distances,
    fixed_point,
)
from segiou.boundary.codes import Codes
from segiou.boundary.surface_points import (
    Grid,
    Kind,
    find_nearest,
    find_points,
    point_codes,
    point_places,
    point_shape,
)
from segiou.metrics.ratio import Floats, ratio

__all__ = [
    "ContourDistances",
    "ContourPoints",
    "find_contour",
    "kind_lengths",
    "percentile_place",
]


#: Kind of the surface element at a corner by which of its four pixels are in the class (bits:
#: upper left 1, upper right 2, lower left 4, lower right 8; none of a pixel's own point):
#: 0 lies along a row, 1 along a column, 2 is half a diagonal.
_KINDS = np.array([0, 2, 2, 0, 2, 1, 2, 2, 2, 2, 1, 2, 0, 2, 2, 0], dtype=np.uint8)
#: Two pixels that touch at the corner only are cut off by half a diagonal each.
_MULTIPLES = np.array([1, 1, 1, 1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 0], dtype=np.uint8)
#: The first of the pixels that is in the class.
_FIRST = np.array([0, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0], dtype=np.uint8)


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

    Parameters
    ----------
    contour : Contour
        Kind of contour.
    spacing : tuple of float
        Size of a pixel or voxel along each axis.

    Returns
    -------
    ndarray of float64

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

    Returns
    -------
    ContourPoints
    """
    # Codes move up, and the last go on from 0, which is outside, too: with a border that is what
    # is no class, and 1 is ignored; without one it is ignored.
    first = 1 + border
    labels = codes + codes.dtype.type(first)
    kind: Kind = "voxels" if contour == "pixels" else "elements"
    found = find_points(labels, range(first, first + num_classes), kind, ignored=int(border)) or {}
    sizes = np.zeros(num_classes, np.int64)
    sizes[[label - first for label in found]] = [len(part) for part in found.values()]
    points = np.concatenate([np.empty(0, np.uint64), *found.values()])
    places, corners = point_places(points), point_codes(points) & 15
    # Of a class, corners whose first pixel is in it stand before the others.
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
    """Distances from each boundary point of each class to the other side's boundary.

    Exact, and of one image only: :class:`segiou.boundary.BoundaryCounts` are
    what adds up over images.

    Attributes
    ----------
    truth, pred : ContourPoints
        The boundaries.
    truth_to_pred, pred_to_truth : ndarray of float64
        A distance for each point, in units of the spacing; infinite where the
        other side has no boundary of that class.
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
        """Measure both directions.

        Parameters
        ----------
        truth : ContourPoints
            Points of the truth's contours.
        pred : ContourPoints
            Points of the predicted contours.
        contour : Contour
            Kind of contour.
        spacing : tuple of float
            Size of a pixel or voxel along each axis.
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
        """Length of each class, and the sum of its distances, by direction: (2, 2, C)."""
        found = []
        for points, distances in self._directions():
            lengths = kind_lengths(self.contour, self.spacing)[points.kinds] * points.multiples
            found.append(
                [
                    np.bincount(points.classes, weights, self.num_classes)
                    for weights in (lengths, lengths * distances)
                ]
            )
        return np.swapaxes(found, 0, 1)

    def average(self) -> Floats:
        """Average distance of either direction, weighted by length, per class.

        Returns
        -------
        ndarray of float64, shape (2, C)
            Truth → prediction and prediction → truth; NaN where both sides
            have no boundary of the class, infinite where one has none.
        """
        lengths, sums = self._lengths_and_sums()
        return _infinite_where_lone(ratio(sums, lengths))

    def symmetric_average(self) -> Floats:
        """Average over both boundaries together, weighted by length, per class, shape (C,)."""
        lengths, sums = self._lengths_and_sums()
        return ratio(sums.sum(0), lengths.sum(0))

    def hausdorff(self, percentile: float = 100.0, method: Method = "inverted_cdf") -> Floats:
        """Hausdorff distance per class: the larger of both directions' percentiles.

        Parameters
        ----------
        percentile : float in [0, 100]
            100 is the Hausdorff distance itself, 95 the usual robust one.
        method : {"inverted_cdf", "linear"}
            The smallest distance within which at least that share of the
            boundary's length lies (as surface-distance has it), or linear
            interpolation between points (as MONAI has it; every point weighs
            the same).

        Returns
        -------
        ndarray of float64, shape (C,)
            NaN where both sides have no boundary of the class, infinite where
            one has none.

        Raises
        ------
        ValueError
            If the percentile lies outside [0, 100] or the method is neither.
        """
        check_choice("method", method, ("inverted_cdf", "linear"))
        check_number("percentile", percentile, 0, 100)
        out = np.full((2, self.num_classes), np.nan)
        kinds = kind_lengths(self.contour, self.spacing)
        for d, (points, distances) in enumerate(self._directions()):
            for c in np.flatnonzero(np.diff(points.starts)).tolist():
                part = slice(*points.starts[c : c + 2])
                if np.isinf(distances[part]).all():
                    out[d, c] = np.inf  # between infinities nothing can be interpolated
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
        """The counts of this contour's parts of the layout.

        Parameters
        ----------
        options : BoundaryOptions
            The options.
        tolerances : list of float
            Tolerances, in the unit of the spacing.

        Returns
        -------
        dict
        """
        shape = 2, self.num_classes, len(kind_lengths(self.contour, self.spacing))
        sides = self.truth, self.pred
        classes = np.concatenate([side.classes + d * shape[1] for d, side in enumerate(sides)])
        cell = classes * shape[2] + np.concatenate([side.kinds for side in sides])
        many = np.concatenate([side.multiples for side in sides])
        distances = np.concatenate([self.truth_to_pred, self.pred_to_truth])

        def summed(where: Any, weights: Any, *bins: int) -> NDArray[np.int64]:
            # Sums of whole numbers below 2^53 are exact in float64.
            sums = np.bincount(where, weights, math.prod(shape + bins))
            return sums.astype(np.int64).reshape(shape + bins)

        within = [distances <= limit for limit in tolerances]
        bins = bin_distances(distances, options.resolution)
        parts = {
            "total": summed(cell, many),
            "matched": np.array([summed(cell[w], many[w]) for w in within]).reshape(-1, *shape),
            "distance": summed(cell, fixed_point(distances, options.resolution) * many),
            "histogram": summed(cell * BINS + bins, many, BINS),
        }
        return {f"{self.contour}.{name}": part for name, part in parts.items()}


def _apart(query: ContourPoints, target: ContourPoints, spacing: tuple[float, float]) -> Floats:
    """From each point to the nearest of its class on the other side."""
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
    """The first place up to which at least that percentage of a boundary's length lies.

    ``elements`` has how many there are of each kind at each place, (n, W), some at least.

    Examples
    --------
    >>> elements = np.array([[1, 0, 0], [0, 0, 2], [1, 0, 2]])
    >>> percentile_place(elements, "elements", (1.0, 1.0), 50.0)
    1
    """
    reached = np.cumsum(elements @ kind_lengths(contour, spacing))
    needed = reached[-1] * (percentile / 100)
    place = int(np.searchsorted(reached, max(needed * (1 - 1e-9), np.finfo(np.float64).tiny)))
    # Sums of lengths are rounded: where that could decide, whole numbers do.
    share, whole = Fraction(str(percentile)) / 100, elements.sum(0).tolist()
    while reached[place] <= needed * (1 + 1e-9):
        part = elements[: place + 1].sum(0).tolist()
        if _is_positive([p - share * w for p, w in zip(part, whole, strict=True)], spacing):
            break
        place += 1
    return place


def _is_positive(elements: list[Fraction], spacing: tuple[float, float]) -> bool:
    """Whether so many elements of each kind have no length below 0, decided in whole numbers."""
    if len(elements) == 1:
        return elements[0] >= 0
    height, width = (Fraction(str(length)) for length in spacing)
    straight = elements[0] * width + elements[1] * height
    diagonal = elements[2] / 2  # of √(height² + width²), which need be no ratio
    # straight + diagonal · √(…) ≥ 0, where squares with their signs are in the same order.
    squared = diagonal * abs(diagonal) * (height**2 + width**2)
    return straight * abs(straight) + squared >= 0
