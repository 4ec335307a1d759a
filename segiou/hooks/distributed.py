"""Plain PyTorch: batches counted into tensors, and counts of several processes added up.

Other frameworks count into tensors with :class:`TorchCounter`, and add up with :func:`add_up`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import is_on_device, to_host
from segiou.counting.counts import SparseConfusionCounts
from segiou.counting.device_counts import NONE_MET, count_on_device, read_counts
from segiou.counting.encoding import Encoding
from segiou.hooks._scoring import Scoring, missing
from segiou.hooks.images import ImageCounts
from segiou.instances.panoptic import PanopticCounts

try:
    import torch
    from torch import distributed
except ImportError as error:
    raise missing("torch", "torch", module="distributed") from error

__all__ = ["ImageCounts", "all_reduce"]


Counted = TypeVar("Counted", ConfusionMatrix, ImageCounts, PanopticCounts)


def all_reduce(counted: Counted, group: distributed.ProcessGroup | None = None) -> Counted:
    """Add up the counts of all processes; each process calls this and gets the same.

    Parameters
    ----------
    counted : ConfusionMatrix, ImageCounts or PanopticCounts
        Of this process; it stays as it is. An ImageCounts counts an image
        that several processes have seen once.
    group : ProcessGroup, optional
        The processes; all of them by default.

    Returns
    -------
    ConfusionMatrix, ImageCounts or PanopticCounts
        A new one; `counted` itself where nothing is distributed.

    Raises
    ------
    TypeError, ValueError
        On all processes, if one of them gives another kind of counts, other
        classes, options or `conflict`, or has met undeclared values.
    OverflowError
        On all processes, if there are more pixels together than int64 holds.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return counted

    def gather(item: Any) -> list[Any]:
        everyone: list[Any] = [None] * distributed.get_world_size(group)
        distributed.all_gather_object(everyone, item, group=group)
        return everyone

    return add_up(counted, gather)


def add_up(counted: Counted, gather: Callable[[Any], list[Any]]) -> Counted:
    """Counts of all processes together, new; `gather` gives each process what all of them have."""
    own_error = own = None
    try:
        own = _described(counted)
    except (TypeError, ValueError, OverflowError) as error:
        own_error = error
    everyone = gather(own)
    if own_error is not None:
        raise own_error
    # All processes raise here, if one does: none of them waits for another.
    if None in everyone:
        broken = everyone.index(None)
        msg = f"process {broken} could not read its counts; its own error says why"
        raise ValueError(msg)
    kinds, conflicts, options, parts = zip(*everyone, strict=True)
    if other := _other(kinds):
        msg = f"process {other} gives {kinds[other]} but process 0 {kinds[0]}; give the same on all"
        raise ValueError(msg)
    if other := _other(conflicts):
        mine, theirs = conflicts[0], conflicts[other]
        msg = f"process {other} has conflict={theirs!r} but process 0 conflict={mine!r}"
        raise ValueError(msg)
    if other := _other(options):
        msg = f"process {other} counts with other classes or options than process 0"
        raise ValueError(msg)
    if isinstance(counted, ImageCounts):
        return counted.empty().merge(chain.from_iterable(parts))
    if isinstance(counted, PanopticCounts):
        return counted.empty().merge(*parts)
    cells, pixels, pairs = zip(*parts, strict=True)
    if (total := sum(pixels)) >= 1 << 63:
        msg = f"all processes together have counted {total} pixels; int64 holds {(1 << 63) - 1}"
        raise OverflowError(msg)
    tally = SparseConfusionCounts.summed(counted.num_classes, cells)
    return counted.empty().add(tally, pairs=sum(pairs))


def _described(counted: Any) -> tuple[str, str, Any, Any]:
    """Kind, `conflict` and options, on which all processes must agree; and the counts."""
    if isinstance(counted, ConfusionMatrix):
        counts = counted.tally.cells, counted.pixels, counted.pairs
        return "ConfusionMatrix", "", counted.options.to_dict(), counts
    if isinstance(counted, ImageCounts):
        options = counted.options.to_dict()
        return "ImageCounts", counted.conflict, options, counted.images
    if isinstance(counted, PanopticCounts):
        return "PanopticCounts", "", counted.empty().state_dict(), counted
    kinds = "a ConfusionMatrix, ImageCounts or PanopticCounts"
    msg = f"all_reduce takes {kinds}, not {type(counted).__name__}"
    raise TypeError(msg)


def _other(values: tuple[Any, ...]) -> int:
    """The first process whose value is not that of process 0; 0 if there is none."""
    return next((i for i, value in enumerate(values) if value != values[0]), 0)


class TorchCounter:
    """Counts batches into two tensors: sums, which add, and maxima, of which the largest stays."""

    def __init__(self, scoring: Scoring) -> None:
        self.scoring = scoring
        self._counting = scoring.empty()
        self._encoding = Encoding.of_classes(scoring.options)
        self._tables: dict[Any, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies build their own tables: these may be on a device that the copy is not on.
        return (TorchCounter, (self.scoring,))

    def empty(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums and maxima of no batch."""
        sums = torch.zeros(self._encoding.empty_table().size + 1, dtype=torch.int64)
        return sums, torch.full((2,), NONE_MET, dtype=torch.int64)

    def check_options(self, kept: torch.Tensor) -> None:
        """Refuse counts that were kept with other options."""
        if kept.tolist() != self.scoring.digest():
            msg = (
                "these counts were made with other classes or options (ignore, unassigned, "
                "pred_labels, exclude, axis, threshold) than this metric's: they come from a "
                "checkpoint, another process, or a metric that shares its state (compute_groups); "
                "build both with the same arguments"
            )
            raise ValueError(msg)

    def add(
        self, sums: torch.Tensor, maxima: torch.Tensor, truth: Any, pred: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sums and maxima with a batch more, which is counted where it lies."""
        truth, pred, decision = self.scoring.read(truth, pred)
        if not (is_on_device(truth) or is_on_device(pred)):
            table = self._encoding.table_of(self._counting.count(truth, pred, **decision))
            batch = torch.from_numpy(np.append(table.ravel(), 0))
            return sums + batch.to(sums.device), maxima
        tables = self._tables
        counted = count_on_device(self._encoding, truth, pred, tables=tables, **decision)
        largest = counted.maxima.to(maxima.device)
        return sums + counted.sums.to(sums.device), torch.maximum(maxima, largest)

    def read(self, sums: torch.Tensor, maxima: torch.Tensor, pairs: int) -> ConfusionMatrix:
        """The confusion matrix; raises if a device met undeclared values."""
        both = to_host(torch.cat([sums, maxima]))
        count = read_counts(self._encoding, both[:-2], both[-2:])
        return self.scoring.empty().add(count, pairs=pairs)
