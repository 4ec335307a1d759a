"""Boundary counts of a stream of label maps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou.boundary.boundary_options import BoundaryOptions
from segiou.boundary.boundary_sums import BoundaryCounts
from segiou.boundary.codes import LabelCodes
from segiou.boundary.image import ImageBoundaries, measure_checked
from segiou.counting.encoding import Encoding

__all__ = ["BoundaryAccumulator"]


class BoundaryAccumulator:
    """Accumulate boundary counts over pairs of label maps.

    Parameters
    ----------
    num_classes : int or Encoding
        C, for labels 0 … C − 1; or what each label value means, and then
        ``ignore`` and ``unassigned`` are the encoding's.
    ignore : int or iterable of int
        Truth values whose pixels make no boundary and count nowhere.
    unassigned : {"error", "count"}
        What a prediction that is no class is on a valid pixel.
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

    def __init__(
        self,
        num_classes: int | Encoding,
        *,
        ignore: int | Iterable[int] = (),
        unassigned: Literal["error", "count"] = "error",
        options: BoundaryOptions | None = None,
    ) -> None:
        if not isinstance(num_classes, Encoding):
            if num_classes < 1:
                msg = f"num_classes must be at least 1, got {num_classes}"
                raise ValueError(msg)
            values = (ignore,) if isinstance(ignore, (int, np.integer)) else ignore
            num_classes = Encoding.of(
                [(c,) for c in range(num_classes)],
                ignore=[int(v) for v in values],
                unassigned=unassigned,
            )
        self.num_classes = num_classes.num_classes
        self.options = BoundaryOptions() if options is None else options
        self._codes = LabelCodes(num_classes)
        self.reset()

    def __repr__(self) -> str:
        return f"BoundaryAccumulator({self.num_classes} classes, {int(self.counts.images)} images)"

    @property
    def counts(self) -> BoundaryCounts:
        """Everything counted so far."""
        return self._counts

    def reset(self) -> None:
        """Forget everything counted."""
        self._counts = BoundaryCounts.zeros(self.num_classes, self.options)

    def update(self, truth: Any, pred: Any, *, mask: Any = None) -> list[ImageBoundaries]:
        """Count one or more pairs of label maps; nothing is counted if any is refused.

        Parameters
        ----------
        truth, pred : array_like of int or bool, equal shapes (..., H, W)
        mask : array_like of bool, optional
            True where a pixel is valid.

        Returns
        -------
        list of ImageBoundaries
            One for each image, with its own counts and exact distances.

        Raises
        ------
        TypeError, ValueError, UndeclaredValuesError
            As :func:`segiou.boundary.measure_boundaries` does.
        """
        truth, pred = self._codes.encode(truth, pred, mask)
        shape = truth.shape[-2:]
        images = zip(truth.reshape(-1, *shape), pred.reshape(-1, *shape), strict=True)
        measured = [measure_checked(t, p, self.num_classes, self.options) for t, p in images]
        self._counts = sum((m.counts for m in measured), start=self._counts)
        return measured

    def merge(self, other: BoundaryAccumulator) -> BoundaryAccumulator:
        """Add what another accumulator has counted.

        Raises
        ------
        ValueError
            If classes or options differ.
        """
        self._counts = self._counts + other._counts
        return self

    def __add__(self, other: object) -> BoundaryAccumulator:
        """Give a new accumulator with what both have counted."""
        if isinstance(other, int) and other == 0:
            return self  # so that sum() works
        if not isinstance(other, BoundaryAccumulator):
            return NotImplemented
        both = BoundaryAccumulator(self._codes.encoding, options=self.options)
        return both.merge(self).merge(other)

    __radd__ = __add__

    def state_dict(self) -> dict[str, Any]:
        """Everything counted, as plain values and one array."""
        return {
            "num_classes": self.num_classes,
            "options": self.options.to_dict(),
            "table": self._counts.table.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what :meth:`state_dict` gave, in place of what was counted.

        Raises
        ------
        ValueError
            If its classes or options are not this accumulator's.
        """
        table: NDArray[np.int64] = np.array(state["table"], dtype=np.int64)
        loaded = BoundaryCounts(
            table, int(state["num_classes"]), BoundaryOptions.from_dict(state["options"])
        )
        self._counts = BoundaryCounts.zeros(self.num_classes, self.options) + loaded
