"""Regions where truth and prediction have different classes, and the objects that contain them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import compiled_view
from segiou.regions import components

Ints = NDArray[np.int64]
#: First value of a side, and the class of each value from it on; last that of all others.
Codes = tuple[int, NDArray[np.uint16]]

#: Columns of a region, see `Differences`.
COLUMNS = 11


@dataclass(frozen=True, eq=False)
class Differences:
    """Connected pixels of one class of the truth and a different one of the prediction.

    Attributes
    ----------
    rows : ndarray of int64, shape (K, 11)
        Class of truth and prediction, pixels, pixels outside it of the objects of truth and
        prediction that contain it, begin and length along rows, columns and planes; by classes,
        the largest first.
    runs : ndarray of int, shape (R, 3)
        First pixel, length and region of each of their runs; none unless they were wanted.
    """

    rows: Ints
    runs: NDArray[Any]


def differences(
    truth: NDArray[Any],
    pred: NDArray[Any],
    codes: tuple[Codes, Codes],
    classes: int,
    *,
    least: int,
    most: int,
    with_runs: bool = False,
) -> Differences:
    """The largest regions of each pair of classes, ``most`` of at least ``least`` pixels.

    Both arrays have one type of integers; pixels without a class in the truth belong to no object
    of the prediction either.
    """
    compiled = components.compiled()
    if compiled is None or not 0 < truth.size <= components.MOST_PIXELS:
        found = _component_differences(truth, pred, codes, classes, least, most)
        return found if with_runs else replace(found, runs=found.runs[:0])
    sides = compiled_view(truth), compiled_view(pred)
    shape = (1,) * (3 - truth.ndim) + truth.shape
    size = truth.dtype.itemsize
    data = compiled.find_differences(*sides, size, shape, *codes, classes, least, most, with_runs)
    rows, runs = np.frombuffer(data[0], np.int64), np.frombuffer(data[1], np.uint32)
    return Differences(rows.reshape(-1, COLUMNS), runs.reshape(-1, 3))


def _component_differences(
    truth: NDArray[Any],
    pred: NDArray[Any],
    codes: tuple[Codes, Codes],
    classes: int,
    least: int,
    most: int,
) -> Differences:
    """The same from the components of both sides and of their differences."""
    sides = [_coded(side, code) for side, code in zip((truth, pred), codes, strict=True)]
    sides[1] = np.where(sides[0] < classes, sides[1], classes)
    code = sides[0] * classes + sides[1] + 1
    code[(sides[0] == sides[1]) | (sides[0] >= classes) | (sides[1] >= classes)] = 0
    parts = components.components(code, [], None, 0)
    kept = _largest(parts, least, most)
    rows = np.zeros((len(kept), COLUMNS), np.int64)
    rows[:, 0], rows[:, 1] = np.divmod(parts.values[kept] - 1, classes)
    rows[:, 2] = parts.sizes[kept]
    numbers = np.full(len(parts.values), -1)
    numbers[kept] = np.arange(len(kept))
    runs = _Runs.of(parts, numbers)
    rows[:, 5:] = np.roll(runs.boxes(), -2, 1)
    for column, side in ((3, sides[0]), (4, sides[1])):
        objects = components.components(side, [], None, 0)
        at = np.searchsorted(objects.starts, runs.first_pixels, "right") - 1
        rows[:, column] = objects.sizes[objects.ids[at].astype(np.int64) - 1] - rows[:, 2]
    return Differences(rows, np.stack([runs.starts, runs.lasts - runs.starts + 1, runs.owner], 1))


def _coded(values: NDArray[Any], codes: Codes) -> Ints:
    """The class of each pixel."""
    first, table = codes
    index = values.astype(np.int64).view(np.uint64) - np.uint64(first)
    indices: Ints = table[np.minimum(index, np.uint64(len(table) - 1))].astype(np.int64)
    return indices


def _largest(parts: components.Components, least: int, most: int) -> NDArray[np.intp]:
    """Positions of the largest components of each value but 0, ties by their first pixel."""
    sizes, values = parts.sizes, parts.values
    order = np.lexsort((np.arange(len(sizes)), -sizes, values))
    places = np.arange(len(order))
    is_first = np.append(True, np.diff(values[order]) != 0)[: len(order)]
    rank = places - np.maximum.accumulate(np.where(is_first, places, 0))
    return order[(rank < most) & (values[order] > 0) & (sizes[order] >= least)]


@dataclass(frozen=True, eq=False)
class _Runs:
    """The runs of some components: pixels in sequence, sorted by component."""

    shape: tuple[int, ...]
    #: First and last pixel of each run, and the number of its component.
    starts: Ints
    lasts: Ints
    owner: Ints

    @classmethod
    def of(cls, parts: components.Components, numbers: NDArray[np.intp]) -> _Runs:
        """The runs of the components that have a number ≥ 0."""
        owner = numbers[parts.ids.astype(np.int64) - 1]
        at = np.flatnonzero(owner >= 0)
        at = at[np.argsort(owner[at], kind="stable")]
        starts = parts.starts[at].astype(np.int64)
        return cls(parts.shape, starts, starts + parts.lengths[at] - 1, owner[at])

    @cached_property
    def _begins(self) -> NDArray[np.intp]:
        """The first run of each component."""
        return np.flatnonzero(np.append(True, np.diff(self.owner) != 0)[: len(self.owner)])

    @property
    def first_pixels(self) -> Ints:
        """The first pixel of each component in raster order."""
        return self.starts[self._begins]

    def boxes(self) -> Ints:
        """Begin and length of each component along three axes, (K, 6); images have one plane."""
        if not len(self.starts):
            return np.zeros((0, 6), np.int64)
        shape = (1,) * (3 - len(self.shape)) + self.shape
        sides: list[Ints] = []
        crosses = np.zeros(len(self.starts), bool)
        low, high = (np.unravel_index(ends, shape) for ends in (self.starts, self.lasts))
        for axis, length in enumerate(shape):
            # A run that continues in the next row, or plane, covers all columns, or rows.
            first = np.where(crosses, 0, low[axis])
            last = np.where(crosses, length - 1, high[axis])
            sides += [begin := np.minimum.reduceat(first, self._begins)]
            sides += [np.maximum.reduceat(last, self._begins) + 1 - begin]
            crosses |= low[axis] != high[axis]
        return np.stack(sides, 1)
