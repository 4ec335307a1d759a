"""Counts of several processes added up, after the processes have agreed that they fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.counts import Tally
from segiou.hooks._scoring import digest
from segiou.hooks.images import Conflict, ImageCounts

Counted = TypeVar("Counted", ConfusionMatrix, ImageCounts)
Ints = NDArray[np.int64]


class Processes(ABC):
    """What adding up needs of a framework; every process calls the same methods in one order."""

    @abstractmethod
    def gather(self, numbers: Ints) -> Ints:
        """The vectors of all processes, (P, K)."""

    @abstractmethod
    def sum(self, numbers: Ints) -> Ints:
        """The sum of the vectors of all processes, (K,)."""

    @abstractmethod
    def gather_objects(self, item: Any) -> list[Any]:
        """The objects of all processes."""

    def add_up(self, counted: Counted) -> Counted:
        """Counts of all processes together, new."""
        self._agree(counted)
        if isinstance(counted, ImageCounts):
            total = counted.empty()
            for images in self.gather_objects(counted.images):
                total.merge(images)
            return total
        tally = counted.tally
        packed = np.append(tally.table.ravel(), [tally.ignored, counted.pairs])
        packed = self.sum(packed.astype(np.int64))
        table = packed[:-2].reshape(tally.table.shape)
        return counted.empty().add(Tally.trusted(table, packed[-2]), pairs=int(packed[-1]))

    def _agree(self, counted: Counted) -> None:
        """Raise on every process, before any of them waits for one that has raised."""
        own_error = None
        try:
            own = _description(counted)
        except (TypeError, ValueError, OverflowError) as error:
            own_error, own = error, [_UNREADABLE, 0, 0, 0]
        kinds, conflicts, options, pixels = self.gather(np.array(own, dtype=np.int64)).T.tolist()
        if own_error is not None:
            raise own_error
        if _UNREADABLE in kinds:
            broken = kinds.index(_UNREADABLE)
            msg = f"process {broken} could not read its counts; its own error says why"
            raise ValueError(msg)
        if other := _other(kinds):
            mine, theirs = (_KINDS[kinds[i]].__name__ for i in (0, other))
            msg = f"process {other} gives {theirs} but process 0 {mine}; give the same on all"
            raise ValueError(msg)
        if other := _other(conflicts):
            mine, theirs = (_CONFLICTS[conflicts[i]] for i in (0, other))
            msg = f"process {other} has conflict={theirs!r} but process 0 conflict={mine!r}"
            raise ValueError(msg)
        if other := _other(options):
            msg = f"process {other} counts with other classes or options than process 0"
            raise ValueError(msg)
        if (total := sum(pixels)) >= 1 << 63:
            msg = f"all processes together have counted {total} pixels; int64 holds {(1 << 63) - 1}"
            raise OverflowError(msg)


_KINDS = (ConfusionMatrix, ImageCounts)
_CONFLICTS = get_args(Conflict)
_UNREADABLE = -1


def _description(counted: Counted) -> list[int]:
    """What all processes must agree on, as integers; and how many pixels were counted."""
    if not isinstance(counted, _KINDS):
        msg = f"all_reduce takes a ConfusionMatrix or ImageCounts, not {type(counted).__name__}"
        raise TypeError(msg)
    options = int.from_bytes(bytes(digest(counted.options.to_dict())[:7]), "big")
    if isinstance(counted, ImageCounts):
        return [1, _CONFLICTS.index(counted.conflict), options, 0]
    return [0, 0, options, counted.pixels]


def _other(values: list[int]) -> int:
    """The first process whose value is not that of process 0; 0 if there is none."""
    return next((i for i, value in enumerate(values) if value != values[0]), 0)
