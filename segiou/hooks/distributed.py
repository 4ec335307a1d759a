"""Counts of all processes of :mod:`torch.distributed`, in 64-bit integers."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from segiou.hooks._scoring import missing

try:
    import torch
    from torch import distributed
except ImportError as error:
    raise missing("torch", "torch", module="distributed") from error

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.hooks._scoring import check_agreement, pack, status, unpack
from segiou.hooks.images import ImageCounts

__all__ = ["ImageCounts", "all_reduce"]

Counted = TypeVar("Counted", ConfusionMatrix, ImageCounts)


def all_reduce(counted: Counted, group: distributed.ProcessGroup | None = None) -> Counted:
    """Counts of all processes together; each process calls this and gets the same.

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
    ValueError
        On all processes, if one of them has counted with other classes or
        options, or has met undeclared values.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return counted
    if isinstance(counted, ImageCounts):
        return _gather_images(counted, group)
    own, error = status(counted)
    check_agreement(_all_gather(own, group), error)
    total = torch.from_numpy(pack(counted)).to(_device(group))
    distributed.all_reduce(total, group=group)
    return unpack(counted, total.cpu().numpy())


def _gather_images(counted: ImageCounts, group: distributed.ProcessGroup | None) -> ImageCounts:
    own, error = status(counted.empty().total())
    check_agreement(_all_gather(own, group), error)
    everyone: list[tuple[object, ...]] = [()] * distributed.get_world_size(group)
    distributed.all_gather_object(everyone, counted.images, group=group)
    total = counted.empty()
    for images in everyone:
        total.merge(images)  # type: ignore[arg-type]
    return total


def _all_gather(
    own: NDArray[np.int64], group: distributed.ProcessGroup | None
) -> NDArray[np.int64]:
    tensor = torch.from_numpy(own).to(_device(group))
    everyone = [torch.empty_like(tensor) for _ in range(distributed.get_world_size(group))]
    distributed.all_gather(everyone, tensor, group=group)
    statuses: NDArray[np.int64] = torch.stack(everyone).cpu().numpy()
    return statuses


def _device(group: distributed.ProcessGroup | None) -> torch.device:
    """Where the group's backend wants its tensors."""
    backend = str(distributed.get_backend(group))
    if "nccl" in backend and "gloo" not in backend:
        return torch.device("cuda", torch.cuda.current_device())
    if "xccl" in backend and "gloo" not in backend:
        return torch.device("xpu", torch.xpu.current_device())
    return torch.device("cpu")
