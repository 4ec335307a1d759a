"""Counts of several processes added up, after they have agreed that they fit: `torch.distributed`.

Other frameworks add up as :class:`Processes` does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.counts import Tally
from segiou.hooks._scoring import digest, missing
from segiou.hooks.images import Conflict, ImageCounts
from segiou.instances.panoptic import PanopticCounts

try:
    import torch
    from torch import distributed
except ImportError as error:
    raise missing("torch", "torch", module="distributed") from error

__all__ = ["ImageCounts", "all_reduce"]


Item = TypeVar("Item")
Counted = TypeVar("Counted", ConfusionMatrix, ImageCounts, PanopticCounts)
Ints = NDArray[np.int64]


class Processes(ABC):
    """What adding up needs of a framework; every process calls the same methods in one order."""

    @abstractmethod
    def gather(self, numbers: Ints) -> Ints:
        """The vectors of all processes, (P, K).

        Parameters
        ----------
        numbers : Ints
            Integers, of one shape in every process.
        """

    @abstractmethod
    def sum(self, numbers: Ints) -> Ints:
        """The sum of the vectors of all processes, (K,).

        Parameters
        ----------
        numbers : Ints
            Integers, of one shape in every process.
        """

    @abstractmethod
    def gather_objects(self, item: Item) -> list[Item]:
        """The objects of all processes.

        Parameters
        ----------
        item : array_like
            Any object that can be pickled.
        """

    def add_up(self, counted: Counted) -> Counted:
        """Counts of all processes together, new.

        Parameters
        ----------
        counted : Counted
            What was counted.

        Returns
        -------
        Counted
        """
        self._agree(counted)
        if isinstance(counted, ImageCounts):
            total = counted.empty()
            for images in self.gather_objects(counted.images):
                total.merge(images)
            return total
        if isinstance(counted, PanopticCounts):
            return counted.empty().merge(*self.gather_objects(counted))
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


_KINDS = (ConfusionMatrix, ImageCounts, PanopticCounts)
_CONFLICTS = get_args(Conflict)
_UNREADABLE = -1


def _description(counted: Counted) -> list[int]:
    """What all processes must agree on, as integers; and how many pixels were counted."""
    if not isinstance(counted, _KINDS):
        kinds = "a ConfusionMatrix, ImageCounts or PanopticCounts"
        msg = f"all_reduce takes {kinds}, not {type(counted).__name__}"
        raise TypeError(msg)
    if isinstance(counted, PanopticCounts):
        return [2, 0, _number(counted.empty().state_dict()), 0]
    options = _number(counted.options.to_dict())
    if isinstance(counted, ImageCounts):
        return [1, _CONFLICTS.index(counted.conflict), options, 0]
    return [0, 0, options, counted.pixels]


def _number(options: Any) -> int:
    return int.from_bytes(bytes(digest(options)[:7]), "big")


def _other(values: list[int]) -> int:
    """The first process whose value is not that of process 0; 0 if there is none."""
    return next((i for i, value in enumerate(values) if value != values[0]), 0)


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
    return _Group(group).add_up(counted)


class _Group(Processes):
    def __init__(self, group: distributed.ProcessGroup | None) -> None:
        self.group = group
        self.size = distributed.get_world_size(group)

    def gather(self, numbers: Ints) -> Ints:
        tensor = torch.from_numpy(numbers).to(self._device())
        everyone = [torch.empty_like(tensor) for _ in range(self.size)]
        distributed.all_gather(everyone, tensor, group=self.group)
        gathered: Ints = torch.stack(everyone).cpu().numpy()
        return gathered

    def sum(self, numbers: Ints) -> Ints:
        tensor = torch.from_numpy(numbers).to(self._device())
        distributed.all_reduce(tensor, group=self.group)
        total: Ints = tensor.cpu().numpy()
        return total

    def gather_objects(self, item: Item) -> list[Item]:
        everyone: list[Any] = [None] * self.size
        distributed.all_gather_object(everyone, item, group=self.group)
        return everyone

    def _device(self) -> torch.device:
        """Where the group's backend wants its tensors."""
        backend = str(distributed.get_backend(self.group))
        if "nccl" in backend and "gloo" not in backend:
            return torch.device("cuda", torch.cuda.current_device())
        if "xccl" in backend and "gloo" not in backend:
            return torch.device("xpu", torch.xpu.current_device())
        return torch.device("cpu")
