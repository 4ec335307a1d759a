"""Boundary counts of a stream of label maps, updated, merged and read at any time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property, reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import Json, plural
from segiou.accumulators.base import Accumulator
from segiou.boundary.boundary_options import BoundaryOptions
from segiou.boundary.boundary_sums import BoundaryCounts
from segiou.boundary.codes import LabelCodes
from segiou.boundary.image import ImageBoundaries, measure_checked
from segiou.counting.arrays import not_compiled
from segiou.counting.counts import counts_array
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions, Labels, Unassigned

__all__ = ["BoundaryAccumulator"]


class BoundaryAccumulator(Accumulator):
    """Accumulate boundary counts over pairs of label maps.

    Accumulators add up and can be updated by several threads at once: see
    :class:`segiou.accumulators.base.Accumulator`.

    Parameters
    ----------
    labels, pred_labels, ignore, exclude, unassigned
        As of :class:`segiou.ConfusionMatrix`. Pixels whose truth is ignored
        make no boundary and count nowhere.
    options : BoundaryOptions, optional
        What to measure.

    Examples
    --------
    >>> from segiou.boundary import boundary_iou
    >>> square = np.pad(np.ones((4, 4), dtype=np.uint8), 2)
    >>> boundaries = BoundaryAccumulator(2, options=BoundaryOptions(widths=1))
    >>> _ = boundaries.update(square, np.roll(square, 1, axis=0))
    >>> boundary_iou(boundaries.counts).round(3).tolist()
    [[0.731, 0.333]]
    """

    _noun = "boundary counts"

    def __init__(
        self,
        labels: Labels,
        *,
        pred_labels: Labels | None = None,
        ignore: int | str | Iterable[int | str] = (),
        exclude: int | str | Iterable[int | str] = (),
        unassigned: Unassigned = "error",
        options: BoundaryOptions | None = None,
    ) -> None:
        self.options: BoundaryOptions = BoundaryOptions() if options is None else options
        self._start(
            ClassOptions.of(
                labels,
                pred_labels=pred_labels,
                ignore=ignore,
                exclude=exclude,
                unassigned=unassigned,
            )
        )

    @classmethod
    def from_options(cls, options: ClassOptions, boundary: BoundaryOptions | None = None) -> Self:
        """An empty accumulator of the given classes that measures what is said.

        Parameters
        ----------
        options : ClassOptions
            The classes, and what is ignored.
        boundary : BoundaryOptions, optional
            What is measured at boundaries; None measures nothing.
        """
        new = cls.__new__(cls)
        new.options = BoundaryOptions() if boundary is None else boundary
        new._start(options)
        return new

    @classmethod
    def _of_state(cls, state: Mapping[str, Any]) -> Self:
        boundary = BoundaryOptions.from_dict(state["boundary_options"])
        return cls.from_options(ClassOptions.from_dict(state["options"]), boundary)

    @cached_property
    def _codes(self) -> LabelCodes:
        return LabelCodes(Encoding.of_classes(self._classes))

    def _empty(self) -> NDArray[np.int64]:
        return BoundaryCounts.zeros(self.num_classes, self.options).table

    def _named(self) -> dict[str, NDArray[np.int64]]:
        return {"table": self._cells}

    def _read(self, named: Mapping[str, Any]) -> NDArray[np.int64]:
        table = counts_array(named["table"], "table")
        return BoundaryCounts(table, self.num_classes, self.options).table

    def _difference(self, other: Self) -> str:
        parts = super()._difference(other), self.options.difference(other.options)
        return "; ".join(part for part in parts if part)

    @property
    def counts(self) -> BoundaryCounts:
        """Everything counted so far; a copy."""
        return BoundaryCounts.trusted(self._cells.copy(), self.num_classes, self.options)

    def state_dict(self) -> dict[str, Json]:
        """The counts and options as plain lists, strings and numbers."""
        return {**super().state_dict(), "boundary_options": self.options.to_dict()}

    @not_compiled
    def update(
        self, truth: Any, pred: Any, *, mask: Any = None, batch: bool = False
    ) -> list[ImageBoundaries]:
        """Count a pair of label maps, or a batch of them; all of it or, if refused, nothing.

        Parameters
        ----------
        truth, pred : array_like of int or bool, equal shapes (H, W)
            Label map of the truth, (H, W); predicted label map, (H, W).
        mask : array_like of bool, optional
            True where a pixel is valid.
        batch : bool
            The shapes are (..., H, W), a label map at each place of the
            leading axes. A volume is no batch: its boundaries go through its
            slices, too.

        Returns
        -------
        list of ImageBoundaries
            One for each image, with its own counts and exact distances.

        Raises
        ------
        TypeError, ValueError, UndeclaredValuesError
            As :func:`segiou.boundary.measure_boundaries` does.
        OverflowError
            If a count would leave int64; the state is unchanged then.
        """
        truth, pred = self._codes.encode(truth, pred, mask, batch=batch)
        shape = math.prod(truth.shape[:-2]), *truth.shape[-2:]
        images = zip(truth.reshape(shape), pred.reshape(shape), strict=True)
        measured = [measure_checked(t, p, self.num_classes, self.options) for t, p in images]
        if measured:
            self._add(reduce(add, (image.counts for image in measured)).table, 1)
        return measured

    def __repr__(self) -> str:
        return (
            f"<BoundaryAccumulator: {plural(self.num_classes, 'class', 'classes')}, "
            f"{plural(int(self.counts.images), 'image')}>"
        )
