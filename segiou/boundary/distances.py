"""Distances between the boundaries of one pair of label maps: exact, and as counts that add up."""

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
from segiou.boundary.contours import ContourPoints, distances_between, kind_lengths
from segiou.metrics.ratio import Floats, ratio

__all__ = [
    "ContourDistances",
    "percentile_place",
]


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
        """Measure both directions."""
        there = distances_between(truth, pred, spacing)
        back = distances_between(pred, truth, spacing)
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
        """The counts of this contour's parts of the layout."""
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
