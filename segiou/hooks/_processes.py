"""Counts of several processes added up, after the processes have agreed that they fit."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.counts import Tally
from segiou.hooks.images import ImageCounts

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
        if isinstance(counted, ImageCounts):
            self._agree(counted.empty().total())
            total = counted.empty()
            for images in self.gather_objects(counted.images):
                total.merge(images)
            return total
        self._agree(counted)
        return _unpack(counted, self.sum(_pack(counted)))

    def _agree(self, counted: ConfusionMatrix) -> None:
        """Raise on every process, before any of them waits for one that has raised."""
        text = json.dumps(counted.options.to_dict(), sort_keys=True).encode()
        digest = int.from_bytes(hashlib.sha256(text).digest()[:7], "big")
        own_error = None
        try:
            counted.tally  # noqa: B018 (reading is what finds undeclared values)
        except ValueError as error:
            own_error = error
        digests, readable = self.gather(np.array([digest, own_error is None], dtype=np.int64)).T
        if own_error is not None:
            raise own_error
        if unread := np.flatnonzero(readable == 0).tolist():
            msg = f"process {unread[0]} could not read its counts; its own error says why"
            raise ValueError(msg)
        if others := np.flatnonzero(digests != digests[0]).tolist():
            msg = f"process {others[0]} counts with other classes or options than process 0"
            raise ValueError(msg)


def _pack(counted: ConfusionMatrix) -> Ints:
    """The table, the ignored pixels and the pairs, flat."""
    tally = counted.tally
    return np.append(tally.table.ravel(), [tally.ignored, counted.pairs]).astype(np.int64)


def _unpack(like: ConfusionMatrix, packed: Ints) -> ConfusionMatrix:
    table = packed[:-2].reshape(like.num_classes, like.num_classes + 1)
    total = ConfusionMatrix.from_options(like.options)
    return total.add(Tally.trusted(table, packed[-2]), pairs=int(packed[-1]))
