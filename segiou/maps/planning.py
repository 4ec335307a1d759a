"""Number of sample units for a target standard error of overall accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segiou._support.arguments import check_choice, check_integer, check_number
from segiou.maps.samples import areas_by_name, checked_unit_area
from segiou.metrics.ratio import Floats

_ALLOCATIONS = ("equal", "proportional", "neyman")
#: The least standard error that a sample is planned for, and the most units of a class.
_LEAST_ERROR, _MOST_UNITS = 1e-6, 10**15


@dataclass(frozen=True, slots=True)
class SampleSize:
    """Number of sample units of a design.

    Attributes
    ----------
    total : int
        Units that the target standard error needs.
    strata : dict of str to int
        Units of each stratum, rounded, so their sum can differ from ``total``.
    """

    total: int
    strata: dict[str, int]


def sample_size(
    areas: Mapping[Any, float] | Sequence[float],
    users: Mapping[Any, float] | Sequence[float],
    *,
    standard_error: float = 0.01,
    allocation: str = "proportional",
    minimum: int = 0,
    unit_area: float | None = None,
) -> SampleSize:
    """Number of sample units for a target standard error of overall accuracy.

    Parameters
    ----------
    areas : mapping or sequence of float
        Mapped area of each class, in any unit.
    users : mapping or sequence of float
        Expected user's accuracy of each class.
    standard_error : float
        Target standard error of overall accuracy.
    allocation : {"equal", "proportional", "neyman"}
        How units are allocated to classes: the same number, by area, or by area
        times the standard deviation.
    minimum : int
        Least number of units per class. The other classes share the rest, as in
        Table 5 of [1]_ with 50, 75 or 100.
    unit_area : float, optional
        Area of a sample unit, for the finite population correction.

    References
    ----------
    .. [1] Olofsson et al. (2014), Remote Sensing of Environment 148, 42–57, eq. 13.

    Examples
    --------
    >>> areas = {"loss": 0.02, "gain": 0.015, "forest": 0.32, "other": 0.645}
    >>> sample_size(areas, [0.7, 0.6, 0.9, 0.95])
    SampleSize(total=641, strata={'loss': 13, 'gain': 10, 'forest': 205, 'other': 413})
    """
    check_choice("allocation", allocation, _ALLOCATIONS)
    minimum = check_integer("minimum", minimum, 0, _MOST_UNITS)
    standard_error = check_number("standard_error", standard_error)
    if not _LEAST_ERROR <= standard_error <= 1:
        msg = f"standard_error must be from {_LEAST_ERROR:g} to 1, got {standard_error:g}"
        raise ValueError(msg)
    unit_area = checked_unit_area(unit_area)
    names, sizes = areas_by_name(areas)
    _, accuracies = areas_by_name(users, names, "users")
    if (above := accuracies > 1).any():
        c = int(above.argmax())
        msg = f"users: {names[c]!r} has accuracy {accuracies[c]:g}; expected at most 1"
        raise ValueError(msg)
    weights, deviations = sizes / sizes.sum(), np.sqrt(accuracies * (1 - accuracies))
    variance = standard_error**2
    if unit_area is not None:
        variance += float(weights @ deviations**2) * unit_area / float(sizes.sum())
    total = math.ceil(round(float(weights @ deviations) ** 2 / variance, 9))
    by = {"equal": np.ones(len(names)), "proportional": weights, "neyman": weights * deviations}
    shares = np.where(sizes > 0, by[allocation], 0.0)
    return SampleSize(total, dict(zip(names, _allocated(total, shares, minimum), strict=True)))


def _allocated(total: int, shares: Floats, minimum: int) -> list[int]:
    """Units by shares; shares that give fewer than the minimum get the minimum."""
    fixed = np.zeros(len(shares), dtype=bool)
    while True:
        free = np.where(fixed, 0.0, shares)
        left = max(0, total - minimum * int(fixed.sum()))
        units = np.where(fixed, minimum, left * free / (free.sum() or 1.0))
        below = (units < minimum) & ~fixed
        if not below.any():
            return [int(number) for number in np.floor(units + 0.5)]
        fixed |= below
