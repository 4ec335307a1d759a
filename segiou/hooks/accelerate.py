"""Counts of all processes of an :class:`accelerate.Accelerator`."""

from __future__ import annotations

from typing import Any

from segiou.hooks._scoring import missing

try:
    import torch
    from accelerate import Accelerator
    from accelerate.utils import gather_object
except ImportError as error:
    raise missing("accelerate", "accelerate") from error

from segiou.hooks.distributed import Counted, Ints, Item, Processes
from segiou.hooks.images import ImageCounts

__all__ = ["ImageCounts", "all_reduce"]


def all_reduce(counted: Counted, accelerator: Accelerator) -> Counted:
    """Add up the counts of all processes; each process calls this and gets the same.

    Parameters
    ----------
    counted : ConfusionMatrix or ImageCounts
        Of this process; it stays as it is. With a ConfusionMatrix, count what
        ``accelerator.gather_for_metrics`` gives on one process only, or count
        ungathered batches whose sampler repeats nothing; an ImageCounts counts
        a repeated image once.
    accelerator : Accelerator
        The accelerator of the training loop.

    Returns
    -------
    ConfusionMatrix or ImageCounts
        A new one.

    Raises
    ------
    TypeError, ValueError
        On all processes, if one of them gives another kind of counts, other
        classes, options or `conflict`, or has met undeclared values.
    OverflowError
        On all processes, if there are more pixels together than int64 holds.
    """
    return _Accelerated(accelerator).add_up(counted)


class _Accelerated(Processes):
    def __init__(self, accelerator: Accelerator) -> None:
        self.accelerator = accelerator

    def _tensor(self, numbers: Ints) -> torch.Tensor:
        return torch.from_numpy(numbers).to(self.accelerator.device)

    def gather(self, numbers: Ints) -> Ints:
        gathered: Ints = self.accelerator.gather(self._tensor(numbers[None])).cpu().numpy()
        return gathered

    def sum(self, numbers: Ints) -> Ints:
        total = self.accelerator.reduce(self._tensor(numbers), reduction="sum")
        summed: Ints = total.cpu().numpy()
        return summed

    def gather_objects(self, item: Item) -> list[Item]:
        # A list within a list: gather_object joins the lists of all processes.
        everyone: list[Any] = gather_object([item])
        return everyone
