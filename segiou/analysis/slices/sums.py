"""Sums over units of the slices of very many images, with those of the rest by subtraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.inference.statistics import Statistic, seen_units, sums_of_groups
from segiou.inference.units import MOST_RESAMPLED, ManyRows, Units, random_groups, row_parts


@dataclass(frozen=True, eq=False)
class SliceSums:
    """Sums of some images over all units, or over random groups of very many single images.

    Attributes
    ----------
    is_grouped : bool
        Whether these are random groups.
    images : ndarray of int, shape (U,)
        Images in each unit.
    hits : ndarray of int, shape (U, C)
        Those whose truth has each class.
    sums : list of ndarray, shape (U, F)
        One array per model.
    """

    is_grouped: bool
    images: NDArray[np.int64]
    hits: NDArray[np.int64]
    sums: list[Any]

    @classmethod
    def of(
        cls,
        models: Sequence[Statistic],
        present: NDArray[np.bool_],
        units: Units,
        inside: NDArray[np.bool_],
    ) -> SliceSums | None:
        """The sums of some images; None for few images, for batches and for medians."""
        number = len(inside)
        if number <= MOST_RESAMPLED or units.kind == "batch" or models[0].median_of is not None:
            return None
        is_grouped = units.kind == "image"
        index = random_groups(number) if is_grouped else units.index
        groups = MOST_RESAMPLED if is_grouped else len(units)
        seen = present[inside]
        hits = ManyRows(lambda: (part.astype(np.int64) for part in row_parts(seen)), len(seen))
        return cls(
            is_grouped,
            np.bincount(index[inside], minlength=groups),
            hits.summed(index[inside], groups),
            [sums_of_groups(model, inside, index, groups) for model in models],
        )

    def __sub__(self, other: SliceSums) -> SliceSums:
        sums = [a - b for a, b in zip(self.sums, other.sums, strict=True)]
        return replace(
            self, images=self.images - other.images, hits=self.hits - other.hits, sums=sums
        )

    @property
    def units(self) -> NDArray[np.intp]:
        """The units with an image."""
        return np.flatnonzero(self.images)

    def part(self, place: int, model: Statistic, inside: NDArray[np.bool_]) -> Statistic:
        """The score of a model, by its place, on these images."""
        rows = self.units
        units, sums = Units("group", ("",) * len(rows), rows), self.sums[place][rows]
        number = int(self.images.sum()) if self.is_grouped else len(rows)
        hits = (self.hits if self.is_grouped else self.hits > 0).sum(0)
        seen = seen_units(model.score, number, hits, sums, each=self.is_grouped)
        images = None if model.images is None else model.images.where(inside)
        return replace(model, units=units, sums=sums, seen=seen, images=images)
