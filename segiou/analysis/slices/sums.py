"""Sums of the images of a slice over units, with those of the rest by subtraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.inference.statistics import Statistic
from segiou.inference.units import ManyRows, group_sums, row_parts


@dataclass(frozen=True, eq=False)
class SliceSums:
    """Sums of some images over units, or over random groups of very many single images.

    Attributes
    ----------
    images : ndarray of int, shape (U,)
        Images in each unit.
    hits : ndarray of int or bool, shape (U, C)
        Those whose truth has each class.
    sums : list of ndarray, shape (U, F)
        One array per model; of medians, which do not follow from sums, any.
    """

    images: NDArray[np.int64]
    hits: NDArray[Any]
    sums: list[Any]

    @classmethod
    def of_images(
        cls, models: Sequence[Statistic], present: NDArray[np.bool_], inside: NDArray[np.bool_]
    ) -> SliceSums:
        """Each image as a unit."""
        sums = [model.sums if inside.all() else model.sums[inside] for model in models]
        return cls(np.ones(int(inside.sum()), np.int64), present[inside], sums)

    @classmethod
    def of(
        cls,
        models: Sequence[Statistic],
        present: NDArray[np.bool_],
        index: NDArray[Any],
        units: int,
    ) -> SliceSums:
        """Images over units, by the place of the unit of each; those with -1 are left out."""
        seen, places = present[index >= 0], index[index >= 0]
        hits = ManyRows(lambda: (part.astype(np.int64) for part in row_parts(seen)), len(seen))
        sums = [model.sums_of_groups(index, units) for model in models]
        return cls(np.bincount(places, minlength=units), group_sums(hits, places, units), sums)

    def __sub__(self, other: SliceSums) -> SliceSums:
        sums = [a - b for a, b in zip(self.sums, other.sums, strict=True)]
        return SliceSums(self.images - other.images, self.hits - other.hits, sums)

    def filled(self) -> SliceSums:
        """The same over the units with an image."""
        rows = np.flatnonzero(self.images)
        return SliceSums(self.images[rows], self.hits[rows], [table[rows] for table in self.sums])
