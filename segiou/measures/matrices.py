"""Measures that are functions of the confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.measures.mask_pair import MaskPair
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Plan


@dataclass(frozen=True)
class MatrixPlan(Plan):
    """Plan of a measure that keeps the confusion matrix of each image."""

    @property
    def layout(self) -> Layout:
        """Pixels by true and predicted class; the last column is those of no class."""
        number = self.classes.num_classes
        return {"table": Field((number, number + 1), sparse=True)}

    def count(self, pair: MaskPair) -> Parts:
        """Keep the confusion matrix of one image."""
        if pair.tally is not None:
            return Parts.of(self.layout, table=pair.tally.table)
        width = self.classes.num_classes + 1
        truth, pred = (side.astype(np.intp).ravel() for side in pair.codes)
        table = np.bincount(truth * width + pred, minlength=width * width)
        return Parts.of(self.layout, table=table.reshape(width, width)[:-1])

    def tables(self, sums: NDArray[Any]) -> NDArray[Any]:
        """Matrices (..., C, C + 1) of flat sums."""
        number = self.classes.num_classes
        return sums.reshape(*sums.shape[:-1], number, number + 1)


def table_sums(parts: Parts) -> NDArray[Any]:
    """The matrices of N images as sums, (N, C · (C + 1))."""
    return parts["table"]
