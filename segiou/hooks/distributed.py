"""Counts of all processes of :mod:`torch.distributed`, in 64-bit integers."""

from __future__ import annotations

from typing import Any

from segiou.hooks._scoring import missing

try:
    import torch
    from torch import distributed
except ImportError as error:
    raise missing("torch", "torch", module="distributed") from error

from segiou.hooks._processes import Counted, Ints, Processes
from segiou.hooks.images import ImageCounts

__all__ = ["ImageCounts", "all_reduce"]


def all_reduce(counted: Counted, group: distributed.ProcessGroup | None = None) -> Counted:
    """Add up the counts of all processes; each process calls this and gets the same.

    Parameters
    ----------
    counted : ConfusionMatrix or ImageCounts
        Of this process; it stays as it is. An ImageCounts counts an image
        that several processes have seen once.
    group : ProcessGroup, optional
        The processes; all of them by default.

    Returns
    -------
    ConfusionMatrix or ImageCounts
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

    def gather_objects(self, item: Any) -> list[Any]:
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
