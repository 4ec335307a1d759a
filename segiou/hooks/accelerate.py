"""Sums counts over the processes of an :class:`accelerate.Accelerator`."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.optional import extra_named
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.hooks._repeats import warn_of_accelerate

with extra_named("segiou.hooks.accelerate needs accelerate", "accelerate"):
    import torch
    from accelerate import Accelerator

from segiou.hooks.distributed import Counted, DeferredErrors, add_up

__all__ = ["DeferredErrors", "all_reduce"]

_FIX = "Count with segiou.scoring.Evaluator and ids to count each image once"


def all_reduce(
    counted: Counted, accelerator: Accelerator, *, errors: DeferredErrors | None = None
) -> Counted:
    """Sum the counts of all processes; every process must call this and gets the result.

    Parameters
    ----------
    counted : Accumulator
        Counts of this process; not modified. For a ConfusionMatrix, either
        count the output of ``accelerator.gather_for_metrics`` on one process
        only, or count batches of a sampler that does not repeat images. An
        Evaluator counts a repeated image once.
    accelerator : Accelerator
        The accelerator of the training loop. If its data loader repeated images
        that a ConfusionMatrix counted, a warning reports how many.
    errors : DeferredErrors, optional
        Errors of the loop of this process.

    Returns
    -------
    Accumulator
        The sum, as a new object.

    Raises
    ------
    TypeError, ValueError
        On all processes, if types, classes or options differ between processes, or
        if one process counted undeclared values or has an error in `errors`.
    OverflowError
        On all processes, if the total number of pixels exceeds int64.
    """

    def gather(numbers: NDArray[Any]) -> NDArray[Any]:
        tensor = torch.from_numpy(numbers[None]).to(accelerator.device)
        everyone: NDArray[Any] = accelerator.gather(tensor).cpu().numpy()
        return everyone

    def gather_objects(item: Any) -> list[Any]:
        # As bytes in tensors, since accelerate cannot gather objects on all devices.
        data = np.frombuffer(pickle.dumps(item), dtype=np.uint8)
        sizes = gather(np.array([data.size]))[:, 0]
        padded = np.pad(data, (0, sizes.max() - data.size))
        rows = zip(gather(padded), sizes, strict=True)
        return [pickle.loads(row[:size]) for row, size in rows]

    total = add_up(counted, gather_objects, errors)
    if isinstance(total, ConfusionMatrix) and accelerator.is_main_process:
        warn_of_accelerate(accelerator, total.pairs, _FIX)
    return total
