"""Integer counts from which boundary measures are computed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.counts import LARGEST, Counts, add_exactly, counts_array, sum_exactly

if TYPE_CHECKING:
    from segiou.measures.boundary.measure import BoundaryOptions

__all__ = ["BoundaryCounts", "layout"]


@lru_cache(maxsize=64)
def layout(
    num_classes: int, options: BoundaryOptions
) -> tuple[int, dict[str, tuple[slice, tuple[int, ...]]]]:
    """Length of a row of counts, and the slice and shape of each part in it."""
    c, k = num_classes, len(options.widths)
    parts: dict[str, tuple[int, ...]] = {"images": (), "pixels": (), "band": (k, c, 3)}
    if options.trimaps:
        parts |= {"trimap": (k, c, 3), "outer": (k, c, 2)}
    placed, start = {}, 0
    for name, shape in parts.items():
        stop = start + math.prod(shape)
        placed[name] = (slice(start, stop), shape)
        start = stop
    return start, placed


def empty_parts(
    num_classes: int, options: BoundaryOptions
) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """A row of zeros, and its parts as writable views."""
    length, placed = layout(num_classes, options)
    table = np.zeros(length, dtype=np.int64)
    return table, {name: table[where].reshape(shape) for name, (where, shape) in placed.items()}


@dataclass(frozen=True, eq=False)
class BoundaryCounts:
    """Boundary counts of an image, a data set or resamples; they add up.

    Attributes
    ----------
    table : ndarray of int64, shape (..., n)
        All counts in one row, ordered by the options; leading axes are images,
        resamples or similar.
    num_classes : int
        C.
    options : BoundaryOptions
        Options of the measurement.

    Raises
    ------
    TypeError
        If the table does not contain integers.
    ValueError
        If the length of its last axis does not match the options, or a count is
        negative.
    """

    table: NDArray[np.int64]
    num_classes: int
    options: BoundaryOptions

    def __post_init__(self) -> None:
        table = counts_array(self.table, "counts")
        length, _ = layout(self.num_classes, self.options)
        if table.ndim < 1 or table.shape[-1] != length:
            msg = (
                f"counts for {self.num_classes} classes with these options have {length} "
                f"entries, got an array of shape {table.shape}"
            )
            raise ValueError(msg)
        object.__setattr__(self, "table", table)

    @classmethod
    def zeros(cls, num_classes: int, options: BoundaryOptions) -> BoundaryCounts:
        """Counts without images.

        Parameters
        ----------
        num_classes, options
            As of the counts.
        """
        return cls.trusted(empty_parts(num_classes, options)[0], num_classes, options)

    @classmethod
    def stack(cls, counts: Iterable[BoundaryCounts]) -> BoundaryCounts:
        """Stack the counts of several images along a new first axis.

        Parameters
        ----------
        counts : iterable of BoundaryCounts
            Counts of the images.

        Raises
        ------
        ValueError
            If there are none, or their classes or options differ.
        """
        items = list(counts)
        if not items:
            msg = "cannot stack an empty sequence of counts; use BoundaryCounts.zeros"
            raise ValueError(msg)
        for other in items[1:]:
            items[0]._check_alike(other)
        return items[0]._replaced(np.stack([item.table for item in items]))

    @classmethod
    def trusted(
        cls, table: NDArray[np.int64], num_classes: int, options: BoundaryOptions
    ) -> BoundaryCounts:
        """Counts from a valid table, without checks.

        Parameters
        ----------
        table : ndarray of int64
            The counts in the order of the layout of the options.
        num_classes, options
            As of the counts.
        """
        # The checks would cost as much as counting a small image.
        counts = object.__new__(cls)
        counts.__dict__.update(table=table, num_classes=num_classes, options=options)
        return counts

    def _replaced(self, table: NDArray[np.int64]) -> BoundaryCounts:
        return self.trusted(table, self.num_classes, self.options)

    def _check_alike(self, other: BoundaryCounts) -> None:
        if self.num_classes != other.num_classes:
            msg = f"cannot add counts of {self.num_classes} and {other.num_classes} classes"
            raise ValueError(msg)
        if self.options != other.options:
            difference = self.options.difference(other.options)
            msg = f"cannot add boundary counts: {difference}; measure again with the same options"
            raise ValueError(msg)

    def __repr__(self) -> str:
        lead = self.table.shape[:-1]
        return f"BoundaryCounts(num_classes={self.num_classes}, leading={lead}, {self.options})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundaryCounts):
            return NotImplemented
        return (
            self.num_classes == other.num_classes
            and self.options == other.options
            and np.array_equal(self.table, other.table)
        )

    def __add__(self, other: object) -> BoundaryCounts:
        """Add counts of the same classes and options."""
        if isinstance(other, int) and other == 0:
            return self  # so that sum() works
        if not isinstance(other, BoundaryCounts):
            return NotImplemented
        self._check_alike(other)
        return self._replaced(add_exactly(self.table, other.table, "boundary counts"))

    __radd__ = __add__

    def __getitem__(self, index: Any) -> BoundaryCounts:
        """Select images or resamples."""
        if self.table.ndim == 1:
            msg = "these counts have no leading axis to index"
            raise IndexError(msg)
        chosen = (*index, slice(None)) if isinstance(index, tuple) else (index,)
        return self._replaced(self.table[chosen])

    def __len__(self) -> int:
        if self.table.ndim == 1:
            msg = "these counts have no leading axis"
            raise TypeError(msg)
        return len(self.table)

    def summed(self) -> BoundaryCounts:
        """Sum over all leading axes: a data set from its images."""
        rows = self.table.reshape(-1, self.table.shape[-1])
        return self._replaced(sum_exactly(rows, 0, "boundary counts"))

    def weighted(self, weights: Any) -> BoundaryCounts:
        """Sum the images with integer weights, such as bootstrap resamples.

        Parameters
        ----------
        weights : array_like of int, shape (..., N)
            Weight of each of the N images along the first axis.
        """
        drawn = np.asarray(weights)
        if drawn.dtype.kind not in "iu":
            msg = f"weights must be integers, got {drawn.dtype}"
            raise TypeError(msg)
        drawn = drawn.astype(np.int64)
        most = int(np.abs(drawn).sum(-1).max(initial=0)) * int(self.table.max(initial=0))
        if most > LARGEST:
            # Floats do not wrap, and their relative error is below 2^-40.
            approximate = np.tensordot(drawn.astype(float), self.table.astype(float), axes=(-1, 0))
            if np.abs(approximate).max() > LARGEST * (1 - 2.0**-40):
                msg = f"weighted boundary counts exceed {LARGEST}, the largest 64-bit integer"
                raise OverflowError(msg)
        return self._replaced(np.tensordot(drawn, self.table, axes=(-1, 0)))

    def part(self, name: str) -> NDArray[np.int64]:
        """One part of the counts, with its shape after the leading axes.

        Parameters
        ----------
        name : str
            Name of the part.

        Raises
        ------
        ValueError
            If the options exclude the part.
        """
        _, placed = layout(self.num_classes, self.options)
        if name not in placed:
            msg = f"{name!r} was not measured, only {', '.join(placed)}; set it in BoundaryOptions"
            raise ValueError(msg)
        where, shape = placed[name]
        return self.table[..., where].reshape(self.table.shape[:-1] + shape)

    @property
    def images(self) -> NDArray[np.int64]:
        """Images counted."""
        return self.part("images")

    @property
    def pixels(self) -> NDArray[np.int64]:
        """Valid pixels."""
        return self.part("pixels")

    def band_counts(self) -> Counts:
        """Counts of Boundary IoU, shape (..., K, C).

        True positives are pixels in the inner bands of both truth and prediction;
        true negatives are valid pixels in neither.
        """
        return _overlap_counts(self.part("band"), self.pixels[..., None, None])

    def trimap_counts(self) -> Counts:
        """Counts near any boundary of the truth, shape (..., K, C).

        All classes share the same pixels, so any metric over all classes applies.
        """
        band = self.part("trimap")
        return _overlap_counts(band, band[..., 0].sum(-1, keepdims=True))

    def class_trimap_counts(self) -> Counts:
        """Counts near the truth boundary of each class, shape (..., K, C)."""
        band, outer = self.part("trimap"), self.part("outer")
        tp = band[..., 2]
        return Counts(tp, outer[..., 0], band[..., 0] - tp, outer[..., 1] - outer[..., 0])


def _overlap_counts(band: NDArray[np.int64], total: NDArray[np.int64]) -> Counts:
    tp = band[..., 2]
    fn, fp = band[..., 0] - tp, band[..., 1] - tp
    return Counts(tp, fp, fn, total - tp - fp - fn)
