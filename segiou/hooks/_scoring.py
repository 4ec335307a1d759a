"""Exact counters of two 32-bit integers each, for compilers that have no others.

A count is ``high · 2^20 + low``. What is added at once stays below 2^30, so
the low part never overflows, and the low parts of up to 1024 devices can be
summed before they are carried.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.encoding import PairCount
from segiou.labels.class_options import ClassOptions
from segiou.metrics.protocols import Protocol, load_protocol

__all__ = [
    "BASE",
    "SCALARS",
    "Scores",
    "Scoring",
    "carried",
    "check_agreement",
    "check_size",
    "joined",
    "missing",
    "pack",
    "rule_for",
    "status",
    "unpack",
]

BASE = 1 << 20


def check_size(shape: tuple[int, ...]) -> None:
    """Refuse a batch whose counts could overflow; shapes are known when it is traced.

    Raises
    ------
    ValueError
        If there are 2^30 pixels or more.
    """
    if (pixels := math.prod(shape)) >= 1 << 30:
        msg = f"a batch of shape {shape} has {pixels} pixels; count fewer than 2^30 at once"
        raise ValueError(msg)


def carried(low: Any, high: Any) -> tuple[Any, Any]:
    """The same count with the low part below 2^20."""
    return low % BASE, high + low // BASE


def joined(low: Any, high: Any) -> NDArray[np.int64]:
    """The counts in 64 bits."""
    return np.asarray(high).astype(np.int64) * BASE + np.asarray(low).astype(np.int64)


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


Scores = str | Sequence[str]
#: One number for the data set.
SCALARS = (
    "mean_iou",
    "mean_dice",
    "mean_accuracy",
    "pixel_accuracy",
    "frequency_weighted_iou",
)
#: One number a class, under the class's name.
PER_CLASS = ("iou", "dice", "precision", "recall")
DEFAULT = ("mean_iou", "mean_accuracy", "pixel_accuracy", "frequency_weighted_iou", "iou")


class Scoring:
    """Classes, the rule of the means, and which numbers are given.

    Parameters
    ----------
    labels, **options
        As :class:`segiou.ConfusionMatrix`.
    scores : str or sequence of str
        Names of :data:`SCALARS` and :data:`PER_CLASS`.
    protocol : Protocol or str
        By which rule the means are made.

    Raises
    ------
    ValueError
        If there is no such score.
    """

    def __init__(
        self,
        labels: Any,
        *,
        scores: Scores = DEFAULT,
        protocol: Protocol | str = "segiou",
        **options: Any,
    ) -> None:
        self.options: ClassOptions = ConfusionMatrix(labels, **options).options
        self.protocol = load_protocol(protocol)
        self.names = (scores,) if isinstance(scores, str) else tuple(scores)
        #: Whether one number was asked for, by its name alone.
        self.is_one = isinstance(scores, str) and scores in SCALARS
        if unknown := [name for name in self.names if name not in SCALARS + PER_CLASS]:
            msg = f"there is no score {unknown[0]!r}; choose from {', '.join(SCALARS + PER_CLASS)}"
            raise ValueError(msg)

    def empty(self) -> ConfusionMatrix:
        """Nothing counted yet."""
        return ConfusionMatrix.from_options(self.options)

    def values(self, counted: ConfusionMatrix, separator: str = "/") -> dict[str, float]:
        """The numbers by name, those of classes as ``iou/road``; NaN where undefined."""
        report = counted.report(self.protocol)
        known: dict[str, Any] = {
            name: getattr(report, name)
            if name in SCALARS
            else [getattr(row, name) for row in report.classes]
            for name in self.names
        }
        return {name: float(value) for name, value in self.named(known, separator).items()}

    def named(self, known: Mapping[str, Any], separator: str = "/") -> dict[str, Any]:
        """The asked for of all known numbers, one key each."""
        values: dict[str, Any] = {}
        for name in self.names:
            if name in SCALARS:
                values[name] = known[name]
            else:
                for i, class_name in enumerate(self.options.labels.class_names):
                    values[f"{name}{separator}{class_name}"] = known[name][i]
        return values

    def to_dict(self) -> dict[str, Any]:
        """Plain data that :meth:`arguments` reads."""
        scores = self.names[0] if self.is_one else list(self.names)
        return {"options": self.options.to_dict(), "scores": scores}

    @staticmethod
    def arguments(data: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a Scoring like the one that gave the data."""
        options = ClassOptions.from_dict(data["options"])
        return {
            "labels": options.labels,
            "pred_labels": options.pred_labels,
            "ignore": options.ignore,
            "exclude": options.exclude,
            "unassigned": options.unassigned,
            "scores": data["scores"],
        }


def rule_for(truth: Any, pred: Any, axis: int, threshold: float | None = None) -> dict[str, Any]:
    """How `update` is to read a prediction: by threshold, as scores with a class axis, or as is."""
    if threshold is not None:
        return {"threshold": threshold}
    return {"argmax": axis} if len(pred.shape) == len(truth.shape) + 1 else {}


def missing(framework: str, extra: str, *, module: str | None = None) -> ImportError:
    """The error of a hook whose framework is not installed; the module is named as the extra."""
    msg = f"segiou.hooks.{module or extra} needs {framework}: pip install 'segiou[{extra}]'"
    return ImportError(msg)
