"""A confusion matrix as one vector of int64, to be summed over processes."""

from __future__ import annotations

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

from segiou.confusion import ConfusionMatrix
from segiou.counting import PairCount

__all__ = ["check_agreement", "pack", "status", "unpack"]


def pack(counted: ConfusionMatrix) -> NDArray[np.int64]:
    """The table, the ignored pixels and the pairs."""
    tally = counted.tally
    table = np.concatenate([tally.matrix, tally.unassigned[:, None]], axis=1)
    return np.append(table.ravel(), [counted.ignored, counted.pairs]).astype(np.int64)


def unpack(like: ConfusionMatrix, packed: NDArray[np.int64]) -> ConfusionMatrix:
    """The confusion matrix of a sum of packed ones."""
    classes = like.num_classes
    table = packed[:-2].reshape(classes, classes + 1)
    total = ConfusionMatrix.from_options(like.options)
    return total.add(PairCount(table, int(packed[-2])), pairs=int(packed[-1]))


def status(counted: ConfusionMatrix) -> tuple[NDArray[np.int64], ValueError | None]:
    """A digest of the options and whether the counts can be read, with what is wrong if not."""
    text = json.dumps(counted.options.to_dict(), sort_keys=True).encode()
    digest = int.from_bytes(hashlib.sha256(text).digest()[:7], "big")
    try:
        counted.tally  # noqa: B018 (reading is what finds undeclared values)
    except ValueError as error:
        return np.array([digest, 0]), error
    return np.array([digest, 1]), None


def check_agreement(statuses: NDArray[np.int64], own_error: ValueError | None) -> None:
    """Raise on every process, before any of them waits for one that has raised.

    Raises
    ------
    ValueError
        If a process has other options, or counts that cannot be read.
    """
    if own_error is not None:
        raise own_error
    if unread := np.flatnonzero(statuses[:, 1] == 0).tolist():
        msg = f"process {unread[0]} could not read its counts; its own error says why"
        raise ValueError(msg)
    if others := np.flatnonzero(statuses[:, 0] != statuses[0, 0]).tolist():
        msg = f"process {others[0]} counts with other classes or options than process 0"
        raise ValueError(msg)
