"""Accumulator of boundary counts that is updated per pair of label maps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property, reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import plural
from segiou.accumulators.base import TableAccumulator
from segiou.boundary.boundary_image import ImageBoundaries, measure_checked
from segiou.boundary.boundary_options import BoundaryOptions
from segiou.boundary.boundary_sums import BoundaryCounts
from segiou.boundary.label_codes import LabelCodes
from segiou.counting.arrays import not_compiled
from segiou.counting.counts import counts_array
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions, Labels, Unassigned

__all__ = ["BoundaryAccumulator"]


class BoundaryAccumulator(TableAccumulator):
    """Accumulate boundary counts over pairs of label maps.

    Accumulators add up and can be updated by several threads at once; see
    :class:`segiou.accumulators.base.Accumulator`. Memory does not grow with the
    number of updates.

    Parameters
    ----------
    labels, pred_labels, ignore, exclude, unassigned
        As for :class:`segiou.ConfusionMatrix`. Pixels whose truth is ignored
        form no boundary and are not counted.
    options : BoundaryOptions, optional
        Widths, tolerances and contours to measure.

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
        classes = ClassOptions.of(
            labels, pred_labels=pred_labels, ignore=ignore, exclude=exclude, unassigned=unassigned
        )
        self._start(classes, options)

    def _start(self, classes: ClassOptions, boundary: BoundaryOptions | None = None) -> None:
        self.options: BoundaryOptions = BoundaryOptions() if boundary is None else boundary
        super()._start(classes)

    @classmethod
    def _of_state(cls, state: Mapping[str, Any]) -> Self:
        boundary = BoundaryOptions.from_dict(state["boundary_options"])
        return cls.from_options(ClassOptions.from_dict(state["options"]), boundary)

    @cached_property
    def _codes(self) -> LabelCodes:
        return LabelCodes(Encoding.of_classes(self._classes))

    def _empty(self) -> NDArray[np.int64]:
        return BoundaryCounts.zeros(self.num_classes, self.options).table

    def _named(self, cells: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        return {"table": cells}

    def _read(self, named: Mapping[str, Any]) -> NDArray[np.int64]:
        table = counts_array(named["table"], "table")
        return BoundaryCounts(table, self.num_classes, self.options).table

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "boundary_options": self.options.to_dict()}

    def _difference(self, other: Self) -> str:
        parts = super()._difference(other), self.options.difference(other.options)
        return "; ".join(part for part in parts if part)

    @property
    def counts(self) -> BoundaryCounts:
        """A copy of everything counted so far."""
        return BoundaryCounts.trusted(self._cells.copy(), self.num_classes, self.options)

    @not_compiled
    def update(
        self, truth: Any, pred: Any, *, mask: Any = None, batch: bool = False
    ) -> list[ImageBoundaries]:
        """Count a pair of label maps or a batch of them; an error leaves the state unchanged.

        Parameters
        ----------
        truth, pred : array_like of int or bool, equal shapes (H, W)
            True and predicted label map.
        mask : array_like of bool, optional
            True where a pixel is valid.
        batch : bool
            Whether the shapes are (..., H, W), with one label map per index of
            the leading axes. A volume is not a batch, because its boundaries
            cross slices.

        Returns
        -------
        list of ImageBoundaries
            One for each image, with its own counts and exact distances.

        Raises
        ------
        TypeError, ValueError, UndeclaredValuesError
            As for :func:`segiou.boundary.measure_boundaries`.
        OverflowError
            If a count would exceed int64.
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
