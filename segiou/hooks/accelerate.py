"""Counts of all processes of an :class:`accelerate.Accelerator`."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.hooks._scoring import missing

try:
    import torch
    from accelerate import Accelerator
except ImportError as error:
    raise missing("accelerate", "accelerate") from error

from segiou.hooks.distributed import Counted, add_up
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

    def gather(numbers: NDArray[Any]) -> NDArray[Any]:
        tensor = torch.from_numpy(numbers[None]).to(accelerator.device)
        everyone: NDArray[Any] = accelerator.gather(tensor).cpu().numpy()
        return everyone

    def gather_objects(item: Any) -> list[Any]:
        # As bytes in tensors: accelerate gathers objects themselves on most devices only.
        data = np.frombuffer(pickle.dumps(item), dtype=np.uint8)
        sizes = gather(np.array([data.size]))[:, 0]
        padded = np.pad(data, (0, sizes.max() - data.size))
        rows = zip(gather(padded), sizes, strict=True)
        return [pickle.loads(row[:size]) for row, size in rows]

    return add_up(counted, gather_objects)
