"""A grey map and its truth as counts: pixels of each value inside and outside the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.encoding import count_coded
from segiou.metrics.ratio import Floats

Ints = NDArray[np.int64]
#: Values of bytes.
_LEVELS = np.arange(256) / 255
#: Rows and columns of the table of pixels: truth 0 and 1, and 2 if they are not valid; bytes.
_ROWS, _COLUMNS = np.arange(3, dtype=np.uint16), np.arange(256, dtype=np.uint16)


@dataclass(frozen=True)
class Levels:
    """Pixels of each value of a map by truth, in each quadrant around the centre of the truth.

    Attributes
    ----------
    values : ndarray of float64, shape (L,)
        Values in [0, 1]: first those of the first quadrant, then those of the next ones.
    pixels : ndarray of int64, shape (2, L)
        Pixels of each value outside and inside the truth.
    stops : tuple of int
        Where each quadrant stops.
    """

    values: Floats
    pixels: Ints
    stops: tuple[int, ...]

    @classmethod
    def of(cls, truth: NDArray[np.bool_], grey: GreyMap, valid: Any = None) -> Levels:
        """Count a map; pixels that are not valid are not counted."""
        row, column = _centre(truth)
        quadrants = [
            (rows, columns)
            for rows in (slice(row), slice(row, None))
            for columns in (slice(column), slice(column, None))
        ]
        counted = [
            grey.counted(truth[part], part, None if valid is None else valid[part])
            for part in quadrants
        ]
        values = np.concatenate([values for values, _ in counted])
        pixels = np.concatenate([pixels for _, pixels in counted], axis=1)
        stops = np.cumsum([len(values) for values, _ in counted])
        return cls(values, pixels, tuple(stops.tolist()))

    def quadrants(self) -> Iterator[tuple[Floats, Ints]]:
        """Values and pixels of each quadrant."""
        for start, stop in pairwise((0, *self.stops)):
            yield self.values[start:stop], self.pixels[:, start:stop]

    @cached_property
    def binned(self) -> Ints:
        """Pixels in 256 bins of ⌊255 · value⌋, (2, 256)."""
        bins = (self.values * 255).astype(np.uint8)
        return np.array([np.bincount(bins, pixels, 256) for pixels in self.pixels], np.int64)

    @cached_property
    def mean(self) -> float:
        """Mean of the map."""
        return float(self.pixels.sum(0) @ self.values / self.pixels.sum())


@dataclass(frozen=True)
class GreyMap:
    """A map that is stretched to [0, 1] by its smallest and largest value, unless it is constant.

    Attributes
    ----------
    scores : ndarray, shape (H, W)
        Bytes, or float64 that is stretched already.
    levels : ndarray of float64, shape (256,), optional
        Stretched values of the bytes.
    """

    scores: NDArray[Any]
    levels: Floats | None = None

    @classmethod
    def of(cls, scores: NDArray[Any], valid: Any = None) -> GreyMap:
        """Stretch a map of floats in [0, 1] or unsigned integers, by its valid pixels."""
        inside = scores if valid is None else scores[valid]
        if scores.dtype == np.uint8:
            least, most = _LEVELS[[inside.min(), inside.max()]]
            return cls(scores, _stretched(_LEVELS, least, most))
        scale = np.iinfo(scores.dtype).max if scores.dtype.kind == "u" else 1
        values, ends = scores / np.float64(scale), (inside.min(), inside.max())
        low, high = (np.float64(end) / scale for end in ends)
        return cls(_stretched(values, low, high))

    @property
    def values(self) -> Floats:
        """The value of each pixel, (H, W)."""
        return self.scores if self.levels is None else self.levels[self.scores]

    def counted(
        self, truth: NDArray[np.bool_], part: tuple[slice, slice], valid: Any
    ) -> tuple[Floats, Ints]:
        """Values of a part of the map, and the number of pixels of each outside and inside."""
        scores = self.scores[part]
        if self.levels is None:
            sides = np.stack([~truth.ravel(), truth.ravel()])
            if valid is not None:
                sides &= valid.ravel()
            return scores.ravel(), sides.astype(np.int64)
        rows = truth.view(np.uint8) if valid is None else np.where(valid, truth, np.uint8(2))
        table = np.zeros((3, 257), np.int64)  # invalid pixels are in the last row
        count_coded(rows, scores, 0, _ROWS, 0, _COLUMNS, table)
        return self.levels, table[:2, :256]


def _stretched(values: Floats, low: Any, high: Any) -> Floats:
    if low == high:
        return values
    stretched: Floats = (values - low) / (high - low)
    return np.minimum(np.maximum(stretched, 0.0), 1.0)


def _centre(truth: NDArray[np.bool_]) -> tuple[int, int]:
    """Rows above and columns left of the rounded centre of the truth, which is among them."""
    lines = [truth.view(np.uint8).sum(axis, dtype=np.uint32) for axis in (1, 0)]
    total = int(lines[0].sum())
    if not total:
        return 0, 0
    first, second = (1 + int(np.round(line @ np.arange(len(line)) / total)) for line in lines)
    return first, second
