"""What adds up over units: a table, sparse where it is large, for most images have few classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.analysis.units import Units
from segiou.counting.counts import Counts

#: Numbers of a part that is looked at as a whole.
_PART = 1 << 20
#: Numbers of a table that is kept whole.
_DENSE = 1 << 23


def is_large(rows: int, columns: int) -> bool:
    """Whether a table is kept sparse."""
    return rows * columns > _DENSE


@dataclass(frozen=True, eq=False)
class CountParts:
    """Counts of N images of C classes, (n, C) at a time, so that not all need be in memory."""

    num_images: int
    num_classes: int
    parts: Callable[[], Iterator[Counts]]

    @classmethod
    def of(cls, counts: Counts | CountParts) -> CountParts:
        """The parts of counts (N, C)."""
        if isinstance(counts, CountParts):
            return counts
        number, classes = counts.tp.shape
        step = max(1, _PART // max(classes, 1))
        starts = range(0, max(number, 1), step)
        return cls(number, classes, lambda: (counts[s : s + step] for s in starts))


def unit_sums(units: Units, parts: Iterable[NDArray[Any]]) -> Any:
    """Sum rows of images, (n, F) at a time, to those of units: an array or a sparse one, (U, F)."""
    first, rest = _first(parts)
    if not is_large(len(units.index), first.shape[1]):
        return units.sums(np.concatenate([first, *rest]))
    from scipy import sparse  # type: ignore[import-untyped, unused-ignore]

    table = sparse.csr_array(first)
    table = sparse.vstack([table, *map(sparse.csr_array, rest)], format="csr")
    if units.kind == "image":
        return table
    ones = np.ones(len(units.index), dtype=table.dtype)
    members = (ones, (units.index, np.arange(len(ones))))
    return sparse.csr_array(members, shape=(len(units), len(ones))) @ table


def _first(parts: Iterable[NDArray[Any]]) -> tuple[NDArray[Any], Iterator[NDArray[Any]]]:
    rest = iter(parts)
    return next(rest), rest


def weighted(weights: NDArray[Any], table: Any) -> NDArray[Any]:
    """Sums over resamples: weights (B, U) times a table (U, F), in the type of the table."""
    weights = weights.astype(table.dtype)
    if isinstance(table, np.ndarray):
        return np.asarray(weights @ table)
    return np.ascontiguousarray((table.T @ np.ascontiguousarray(weights.T)).T)


def row_parts(table: Any) -> Iterator[NDArray[Any]]:
    """The rows of a table, some at a time, dense."""
    step = max(1, _PART // max(table.shape[1], 1))
    for start in range(0, table.shape[0], step):
        part = table[start : start + step]
        yield part if isinstance(part, np.ndarray) else part.toarray()


def largest(table: Any) -> int:
    """The largest number of a table."""
    if isinstance(table, np.ndarray):
        return int(np.abs(table).max(initial=0))
    return int(np.abs(table.data).max(initial=0))
