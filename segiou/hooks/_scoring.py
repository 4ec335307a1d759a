"""What hooks share: classes, scores, how a prediction is read, counts in pairs of 32 bits."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import as_array
from segiou.labels.class_options import ClassOptions
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.report.formats import DEFAULT, SCALARS, check_scores

Scores = str | Sequence[str]


class Scoring:
    """The classes, which scores to give by which protocol, and how predictions are read.

    `labels` and `options` are as of :class:`segiou.ConfusionMatrix`; `scores`
    are those of :meth:`segiou.Report.scores`; `axis` is the class axis
    of predictions that are scores, and `threshold` decides between two classes.
    """

    def __init__(
        self,
        labels: Any,
        *,
        scores: Scores = DEFAULT,
        protocol: Protocol | str = "segiou",
        axis: int = 1,
        threshold: float | None = None,
        **options: Any,
    ) -> None:
        self.options = ClassOptions.of(labels, **options)
        self.options.warn_of_ignored_classes(stacklevel=4)
        self.protocol = load_protocol(protocol)
        if self.protocol.needs_images:
            msg = (
                f"protocol {self.protocol.name!r} averages over images, but a hook keeps only sums "
                "over all of them; count with segiou.hooks.images.ImageCounts and take its run()"
            )
            raise ValueError(msg)
        self.axis, self.threshold = axis, threshold
        self.names = check_scores(scores)
        #: The one number that was asked for by its name alone.
        self.only = scores if isinstance(scores, str) and scores in SCALARS else None

    def digest(self) -> list[int]:
        """Bytes that are equal where the same pairs give the same counts."""
        return digest([self.options.to_dict(), self.axis, self.threshold])

    def empty(self) -> ConfusionMatrix:
        """Nothing counted yet."""
        return ConfusionMatrix.from_options(self.options)

    def read(self, truth: Any, pred: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Truth and prediction without a class axis of one channel, and how `update` reads them.

        The arguments for `update` are none where the prediction is labels already.
        """
        truth, pred = _with_shape(truth, "truth"), _with_shape(pred, "pred")
        if len(truth.shape) >= len(pred.shape) and tuple(truth.shape) != tuple(pred.shape):
            truth = _without_channel(truth, self.axis)
        if self.threshold is not None:
            if len(pred.shape) == len(truth.shape) + 1:
                pred = _without_channel(pred, self.axis)
            self.options.check_scores(tuple(pred.shape), None)
            return truth, pred, {"threshold": self.threshold}
        if len(pred.shape) != len(truth.shape) + 1:
            return truth, pred, {}
        if pred.shape[self.axis] == 1 and self.options.num_classes == 2:
            msg = (
                f"scores of shape {tuple(pred.shape)} have one channel along axis {self.axis} for "
                "two classes: give the hook threshold=T (0.5 after a sigmoid, 0 for logits)"
            )
            raise ValueError(msg)
        self.options.check_scores(tuple(pred.shape), self.axis)
        return truth, pred, {"argmax": self.axis}

    def values(self, counted: ConfusionMatrix, separator: str = "/") -> dict[str, float]:
        """The scores by name, those of classes as ``iou/road``; NaN where undefined."""
        return counted.report(self.protocol).scores(names=self.names, separator=separator)


def _with_shape(data: Any, name: str) -> Any:
    return data if hasattr(data, "shape") else as_array(data, name)


def _without_channel(array: Any, axis: int) -> Any:
    """The array without its class axis if that has size 1; else as it is."""
    axes = len(array.shape)
    if not -axes <= axis < axes or array.shape[axis] != 1:
        return array
    return array[(slice(None),) * (axis % axes) + (0,)]


def digest(data: Any) -> list[int]:
    """SHA-256 of plain data."""
    return [*hashlib.sha256(json.dumps(data, sort_keys=True).encode()).digest()]


def missing(framework: str, extra: str, *, module: str | None = None) -> ImportError:
    """The error of a hook whose framework is not installed; the module is named as the extra."""
    msg = f"segiou.hooks.{module or extra} needs {framework}: pip install 'segiou[{extra}]'"
    return ImportError(msg)


#: A count is ``high · BASE + low``, for compilers that have no 64 bits. What is added at once
#: stays below 2^30, so the low part never overflows, and the low parts of up to 1024 devices
#: can be summed before they are carried.
BASE = 1 << 20


def check_pixels(shape: tuple[int, ...]) -> None:
    """Refuse a batch whose counts could overflow; shapes are known when it is traced."""
    if (pixels := math.prod(shape)) >= 1 << 30:
        msg = f"a batch of shape {shape} has {pixels} pixels; count fewer than 2^30 at once"
        raise ValueError(msg)


def carry(low: Any, high: Any) -> tuple[Any, Any]:
    """The same counts with the low parts below 2^20."""
    return low % BASE, high + low // BASE


def as_int64(low: Any, high: Any) -> NDArray[np.int64]:
    """The counts in 64 bits."""
    return np.asarray(high).astype(np.int64) * BASE + np.asarray(low).astype(np.int64)
