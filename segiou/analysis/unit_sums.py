"""Counts of images, and what adds up of them over units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol as Structure

import numpy as np
from numpy.typing import NDArray

from segiou.analysis.units import Units
from segiou.counting.counts import Counts, check_counts
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats

Metric = str | Callable[[Counts], Floats]

#: Numbers of a part that is looked at as a whole.
_PART = 1 << 20
#: Numbers of a table that is kept whole; a larger one is sparse: most images have few classes.
_DENSE = 1 << 23


class Scored(Structure):
    """What has counts of known classes: a run, a report, a confusion matrix."""

    @property
    def counts(self) -> Counts:
        """Counts of each class, (C,)."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""

    @property
    def include(self) -> NDArray[np.bool_]:
        """Which classes take part in means, (C,)."""


class ScoredRun(Scored, Structure):
    """What a comparison needs of a run; :class:`segiou.Run` has it."""

    @property
    def name(self) -> str:
        """What the run is called."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the images."""

    @property
    def protocol(self) -> Protocol:
        """How means are made."""


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
        check_counts(counts, "counts of each image")
        if counts.tp.ndim != 2:
            msg = f"counts must be (N, C), of N images, got shape {counts.tp.shape}"
            raise ValueError(msg)
        number, classes = counts.tp.shape
        step = max(1, _PART // max(classes, 1))
        starts = range(0, max(number, 1), step)
        return cls(number, classes, lambda: (counts[s : s + step] for s in starts))


def is_large(rows: int, columns: int) -> bool:
    """Whether a table is kept sparse."""
    return rows * columns > _DENSE


def unit_sums(units: Units, parts: Iterable[NDArray[Any]]) -> Any:
    """Sum rows of images, (n, F) at a time, to those of units: an array or a sparse one, (U, F)."""
    rest = iter(parts)
    first = next(rest)
    number = len(units.index)
    if not is_large(number, first.shape[1]):
        return units.sums(np.concatenate([first, *rest]))
    from scipy import sparse  # type: ignore[import-untyped, unused-ignore]

    # One after the other, for all of them dense may not fit into memory.
    rows = [sparse.csr_array(part) for part in chain([first], rest)]
    table = sparse.vstack(rows, format="csr")
    if units.kind == "image":
        return table
    members = np.ones(number, dtype=table.dtype), (units.index, np.arange(number))
    return sparse.csr_array(members, shape=(len(units), number)) @ table


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
    numbers = table if isinstance(table, np.ndarray) else table.data
    return int(np.abs(numbers).max(initial=0))
