"""Class codes → the points of each class's boundary, and how far those of a pair lie apart.

Points are pixels, or surface elements between them. Distances are exact, and counts that add up.
"""

from __future__ import annotations

from collections.abc import Callable
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
from segiou.boundary.codes import Codes, ignored_code, unassigned_code
from segiou.boundary.kernels import nearest
from segiou.metrics.ratio import Floats, ratio

__all__ = [
    "ContourDistances",
    "ContourPoints",
    "find_contour",
    "kind_lengths",
    "percentile_place",
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
        sides = (truth.points, truth.starts), (pred.points, pred.starts)
        there, back = (
            np.sqrt(nearest(*query, *target, spacing)) for query, target in (sides, sides[::-1])
        )
        return cls(truth, pred, there, back, contour, spacing)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.truth.starts) - 1

    def _directions(self) -> tuple[tuple[ContourPoints, Floats], ...]:
        return (self.truth, self.truth_to_pred), (self.pred, self.pred_to_truth)

    def _lengths(self, points: ContourPoints) -> Floats:
        return kind_lengths(self.contour, self.spacing)[points.kinds] * points.multiples

    def average(self) -> Floats:
        """Average distance of either direction, weighted by length, per class.

        Returns
        -------
        ndarray of float64, shape (2, C)
            Truth → prediction and prediction → truth; NaN where both sides
            have no boundary of the class, infinite where one has none.
        """
        out = np.full((2, self.num_classes), np.nan)
        for d, (points, distances) in enumerate(self._directions()):
            lengths = self._lengths(points)
            sizes = np.bincount(points.classes, lengths, self.num_classes)
            sums = np.bincount(points.classes, lengths * distances, self.num_classes)
            out[d] = ratio(sums, sizes)
        return _infinite_where_lone(out)

    def symmetric_average(self) -> Floats:
        """Average over both boundaries together, weighted by length, per class, shape (C,)."""
        sizes, sums = np.zeros(self.num_classes), np.zeros(self.num_classes)
        for points, distances in self._directions():
            lengths = self._lengths(points)
            sizes += np.bincount(points.classes, lengths, self.num_classes)
            sums += np.bincount(points.classes, lengths * distances, self.num_classes)
        return ratio(sums, sizes)

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
        for d, (points, distances) in enumerate(self._directions()):
            for c in np.flatnonzero(np.diff(points.starts)).tolist():
                part = slice(*points.starts[c : c + 2])
                if np.isinf(distances[part]).all():
                    out[d, c] = np.inf  # between infinities nothing can be interpolated
                elif method == "linear":
                    out[d, c] = np.percentile(distances[part], percentile)
                else:
                    out[d, c] = self._percentile(points, part, distances[part], percentile)
        there, back = _infinite_where_lone(out)
        return np.asarray(np.fmax(there, back))

    def _percentile(
        self, points: ContourPoints, part: slice, distances: Floats, percentile: float
    ) -> float:
        order = np.argsort(distances)
        kinds, multiples = points.kinds[part][order], points.multiples[part][order]
        lengths = kind_lengths(self.contour, self.spacing)

        def elements(stop: int) -> NDArray[np.int64]:
            return np.bincount(kinds[:stop], multiples[:stop], len(lengths)).astype(np.int64)

        sizes = lengths[kinds] * multiples
        return float(distances[order[percentile_place(sizes, elements, self.spacing, percentile)]])

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
        sides = [self._side_counts(p, d, options, tolerances) for p, d in self._directions()]
        names = ("total", "matched", "distance", "histogram")
        axis = {"matched": 1}
        return {
            f"{self.contour}.{name}": np.stack([s[name] for s in sides], axis.get(name, 0))
            for name in names
        }

    def _side_counts(
        self,
        points: ContourPoints,
        distances: Floats,
        options: BoundaryOptions,
        tolerances: list[float],
    ) -> dict[str, NDArray[np.int64]]:
        kinds = len(kind_lengths(self.contour, self.spacing))
        shape = (self.num_classes, kinds)
        cell = points.classes * kinds + points.kinds
        size, many = shape[0] * shape[1], points.multiples

        def summed(
            where: NDArray[np.intp], weights: NDArray[Any], n: int = size
        ) -> NDArray[np.int64]:
            # Sums of whole numbers below 2^53 are exact in float64.
            return np.bincount(where, weights, n).astype(np.int64)

        within = [distances <= t for t in tolerances]
        bins = cell * BINS + bin_distances(distances, options.resolution)
        steps = fixed_point(distances, options.resolution)
        return {
            "total": summed(cell, many).reshape(shape),
            "matched": np.array(
                [summed(cell[w], many[w]).reshape(shape) for w in within], dtype=np.int64
            ).reshape(-1, *shape),
            "distance": summed(cell, steps * many).reshape(shape),
            "histogram": summed(bins, many, size * BINS).reshape(*shape, BINS),
        }


def _infinite_where_lone(directions: Floats) -> Floats:
    there, back = directions
    lone = np.isnan(there) != np.isnan(back)
    return np.where(lone, np.inf, directions)


def percentile_place(
    lengths: Floats,
    elements: Callable[[int], NDArray[np.int64]],
    spacing: tuple[float, float],
    percentile: float,
) -> int:
    """The first place up to which at least that percentage of a boundary's length lies.

    Parameters
    ----------
    lengths : ndarray of float64, shape (n,)
        Lengths at n places, ordered by distance; not all of them 0.
    elements : callable
        How many elements of each kind lie before a place, as whole numbers.
    spacing : (float, float)
    percentile : float in [0, 100]

    Examples
    --------
    >>> kinds = np.array([[1, 0, 0], [0, 0, 2], [1, 0, 2]])
    >>> lengths = kinds @ kind_lengths("elements", (1.0, 1.0))
    >>> percentile_place(lengths, lambda stop: kinds[:stop].sum(0), (1.0, 1.0), 50.0)
    1
    """
    reached = np.cumsum(lengths)
    needed = reached[-1] * (percentile / 100)
    place = int(np.searchsorted(reached, max(needed * (1 - 1e-9), np.finfo(np.float64).tiny)))
    # Sums of lengths are rounded: where that could decide, whole numbers do.
    while reached[place] <= needed * (1 + 1e-9):
        if _reaches(elements(place + 1), elements(len(lengths)), spacing, percentile):
            break
        place += 1
    return place


def _reaches(
    part: NDArray[np.int64],
    whole: NDArray[np.int64],
    spacing: tuple[float, float],
    percentile: float,
) -> bool:
    """Whether the part is at least that percentage of the whole, decided in whole numbers."""
    share = Fraction(str(percentile)) / 100
    extra = [p - share * w for p, w in zip(part.tolist(), whole.tolist(), strict=True)]
    if len(extra) == 1:
        return bool(extra[0] >= 0)
    height, width = (Fraction(str(length)) for length in spacing)
    straight = extra[0] * width + extra[1] * height
    diagonal = extra[2] / 2  # of √(height² + width²), which need be no ratio
    # straight + diagonal · √(…) ≥ 0, where squares with their signs are in the same order.
    squared = diagonal * abs(diagonal) * (height**2 + width**2)
    return bool(straight * abs(straight) + squared >= 0)
