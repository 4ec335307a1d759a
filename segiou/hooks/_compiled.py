"""Counts inside compiled code, each in two 32-bit integers because compilers may lack 64 bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.histograms.compiled_counts import MOST_PIXELS, CompiledScores
from segiou.accumulators.histograms.score_counts import ScoreHistogram
from segiou.counting.device_counts import CodeTables, DeviceCount, Operations, read_counts
from segiou.counting.encoding import Encoding

#: A count is ``high · BASE + low``. Each batch adds less than 2^30, so the low part never
#: overflows, and the low parts of up to 1024 devices can be summed before they are carried.
BASE = 1 << 20


def carry(low: Any, high: Any) -> tuple[Any, Any]:
    """The same counts with the low parts below 2^20."""
    return low % BASE, high + low // BASE


class CompiledCounts:
    """Counts batches like an accumulator, a confusion matrix or score histograms."""

    def __init__(self, operations: Operations, like: Any) -> None:
        self.like = like
        self.ops = operations
        self.tables: Any = (
            CompiledScores(operations, like)
            if isinstance(like, ScoreHistogram)
            else CodeTables(operations, Encoding.of_classes(like.options))
        )
        #: Number of counts.
        self.cells: int = self.tables.cells

    def check_pixels(self, shape: tuple[int | None, ...]) -> None:
        """Raise a ValueError for a batch whose counts could overflow."""
        limit = MOST_PIXELS if isinstance(self.tables, CompiledScores) else 1 << 30
        sizes = tuple(size or 1 for size in shape)  # None is unknown
        if (pixels := math.prod(sizes)) >= limit:
            power = limit.bit_length() - 1
            msg = f"a batch must have fewer than 2^{power} pixels, got {pixels} in shape {sizes}"
            raise ValueError(msg)

    def add(self, low: Any, high: Any, count: DeviceCount) -> tuple[Any, Any]:
        """The low and high parts after another batch."""
        return carry(low + self.ops.wide(count.sums, 32), high)

    def read(self, low: Any, high: Any, maxima: NDArray[Any], batches: Any) -> Any:
        """The counts as an accumulator; raises for undeclared values and unusable scores."""
        sums = np.asarray(high).astype(np.int64) * BASE + np.asarray(low).astype(np.int64)
        if isinstance(self.tables, CompiledScores):
            return self.tables.read(sums, maxima, int(batches))
        count = read_counts(self.tables.encoding, sums, maxima)
        return self.like.empty().add(count, pairs=int(batches))
