"""Counts of all processes of an :class:`accelerate.Accelerator`."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from segiou.hooks._scoring import missing

try:
    import torch
    from accelerate import Accelerator
    from accelerate.utils import gather_object
except ImportError as error:
    raise missing("accelerate", "accelerate") from error

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.hooks._scoring import check_agreement, pack, status, unpack
from segiou.hooks.images import ImageCounts

__all__ = ["ImageCounts", "all_reduce"]

Counted = TypeVar("Counted", ConfusionMatrix, ImageCounts)


def all_reduce(counted: Counted, accelerator: Accelerator) -> Counted:
    """Counts of all processes together; each process calls this and gets the same.

    Parameters
    ----------
    counted : ConfusionMatrix or ImageCounts
        Of this process; it stays as it is. With a ConfusionMatrix, count what
        ``accelerator.gather_for_metrics`` gives on one process only, or count
        ungathered batches whose sampler repeats nothing; an ImageCounts counts
        a repeated image once.
    accelerator : Accelerator

    Returns
    -------
    ConfusionMatrix or ImageCounts
        A new one.

    Raises
    ------
    ValueError
        On all processes, if one of them has counted with other classes or
        options, or has met undeclared values.
    """
    if isinstance(counted, ImageCounts):
        own, error = status(counted.empty().total())
        check_agreement(_gathered(own, accelerator), error)
        # A list within a list: gather_object joins the lists of all processes.
        everyone = gather_object([counted.images])
        total = counted.empty()
        for images in everyone:
            total.merge(images)
        return total
    own, error = status(counted)
    check_agreement(_gathered(own, accelerator), error)
    tensor = torch.from_numpy(pack(counted)).to(accelerator.device)
    summed = accelerator.reduce(tensor, reduction="sum")
    return unpack(counted, summed.cpu().numpy())


def _gathered(own: np.ndarray, accelerator: Accelerator) -> np.ndarray:
    gathered = accelerator.gather(torch.from_numpy(own[None]).to(accelerator.device))
    array: np.ndarray = gathered.cpu().numpy()
    return array
