"""The steps to which distances are rounded in histograms."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["BINS", "FIXED_POINT", "bin_distances", "bin_values", "fixed_point"]

#: Sums of distances are kept in units of the resolution divided by this.
FIXED_POINT = 1 << 16
_FINE = 64
_PER_OCTAVE = 32
_OCTAVES = 11
#: Number of bins; the last is for infinite distances.
BINS = _FINE + _PER_OCTAVE * _OCTAVES + 1


def bin_values(resolution: float) -> NDArray[np.float64]:
    """Distance that each bin stands for.

    Steps of the resolution below 64 of them (16 pixels, by default), from
    there steps that double with every doubling of the distance: a distance is
    off by at most half the resolution there, and by at most 1/64 of itself
    beyond. The last bin is infinite.

    Examples
    --------
    >>> values = bin_values(0.25)
    >>> values[[0, 1, 4, 63, 64, 65]].tolist(), float(values[-2]), float(values[-1])
    ([0.0, 0.25, 1.0, 15.75, 16.0, 16.5], 32256.0, inf)
    """
    return _unit_values() * resolution


@lru_cache(maxsize=1)
def _unit_values() -> NDArray[np.float64]:
    octaves = [
        _FINE * 2.0**k + np.arange(_PER_OCTAVE) * (_FINE * 2.0**k / _PER_OCTAVE)
        for k in range(_OCTAVES)
    ]
    return np.concatenate([np.arange(float(_FINE)), *octaves, [np.inf]])


@lru_cache(maxsize=1)
def _unit_middles() -> NDArray[np.float64]:
    values = _unit_values()[:-1]
    # The last finite bin takes everything that is not infinite.
    return np.append((values[1:] + values[:-1]) / 2, np.finfo(np.float64).max)


def bin_distances(distances: NDArray[np.float64], resolution: float) -> NDArray[np.intp]:
    """Bin of each distance.

    Raises
    ------
    ValueError
        If a finite distance lies beyond the histogram, 131072 resolutions.
    """
    units = distances / resolution
    beyond = np.isfinite(units) & (units > _FINE * 2.0**_OCTAVES)
    if beyond.any():
        msg = (
            f"distances up to {distances[beyond].max():g} are too large for histograms with a "
            f"resolution of {resolution:g}; choose a coarser resolution"
        )
        raise ValueError(msg)
    return np.searchsorted(_unit_middles(), units, side="left")


def fixed_point(distances: NDArray[np.float64], resolution: float) -> NDArray[np.float64]:
    """Whole numbers of the unit of sums; 0 for infinite distances, which the last bin counts."""
    finite = np.where(np.isfinite(distances), distances, 0.0)
    return np.rint(finite * (FIXED_POINT / resolution))
