"""Code shared by hooks: class options, score names, decoding of predictions, wide counts."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import AtLeast, as_array
from segiou.counting.counts import Counts
from segiou.labels.class_options import ClassOptions
from segiou.measures.score_names import is_whole, read_name
from segiou.metrics.pixel_scores import PIXEL_SCORES
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.report.formats import DEFAULT, check_scores, score_keys

Scores = str | Sequence[str]


class Scoring:
    """Class options, score names, protocol, and the decoding of predictions with scores."""

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
                f"protocol {self.protocol.name!r} averages over images, but hooks only keep pooled "
                "counts; use segiou.hooks.images.ImageCounts and score its run()"
            )
            raise ValueError(msg)
        self.axis = axis
        self.threshold = None if threshold is None else self.protocol.threshold(threshold)
        self.names = check_scores(scores)
        self._known_keys: dict[tuple[str, str], dict[str, str]] = {}
        self.higher_is_better = True
        #: The score that was requested as a single name, if it is a scalar.
        self.only = scores if isinstance(scores, str) and is_scalar(scores) else None

    def digest(self) -> list[int]:
        """Bytes that are equal for options that count the same pairs equally."""
        return self._digest

    @cached_property
    def _digest(self) -> list[int]:
        equal = ["positive"] if isinstance(self.threshold, AtLeast) else []
        return digest([self.options.to_dict(), self.axis, self.threshold, *equal])

    def empty(self) -> ConfusionMatrix:
        """A confusion matrix without counts."""
        return ConfusionMatrix.from_options(self.options)

    def read(self, truth: Any, pred: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Truth and prediction without a class axis of size 1, and the keywords for `update`."""
        truth, pred = with_shape(truth, "truth"), with_shape(pred, "pred")
        if len(truth.shape) >= len(pred.shape) and tuple(truth.shape) != tuple(pred.shape):
            truth = without_channel(truth, self.axis)
        if self.threshold is not None:
            if len(pred.shape) == len(truth.shape) + 1:
                pred = without_channel(pred, self.axis)
            self.options.check_scores(tuple(pred.shape), None)
            return truth, pred, {"threshold": self.threshold}
        if len(pred.shape) != len(truth.shape) + 1:
            return truth, pred, {}
        if pred.shape[self.axis] == 1 and self.options.num_classes == 2:
            msg = (
                f"scores of shape {tuple(pred.shape)} have a single channel along axis {self.axis} "
                "for two classes; pass threshold=T to the hook (0.5 after a sigmoid, 0 for logits)"
            )
            raise ValueError(msg)
        self.options.check_scores(tuple(pred.shape), self.axis)
        return truth, pred, {"argmax": self.axis}

    def values(self, counted: Any, separator: str = "/") -> dict[str, float]:
        """Scores by name, with class scores as ``iou/road``; NaN if undefined."""
        counts: Counts = counted.counts
        found: dict[str, float] = {}
        for name in self.names:
            one = PIXEL_SCORES[read_name(name).score]
            if not one.per_class:
                found[name] = float(one.function(counts))
            elif is_whole(name):
                found[name] = self.protocol._mean(one.function, counts, self._include, None)[0]
            else:
                values, keys = one.function(counts).tolist(), self._keys(name, separator)
                rows = self.options.labels.class_names
                found |= {key: values[rows.index(row)] for key, row in keys.items()}
        return found

    @cached_property
    def _include(self) -> NDArray[np.bool_]:
        return self.protocol.include_of(self.empty())

    def _keys(self, name: str, separator: str) -> dict[str, str]:
        if (name, separator) not in self._known_keys:
            keys = score_keys([name], lambda _: self.options.labels.class_names, separator)
            self._known_keys[name, separator] = {key: one.row for key, one in keys.items()}
        return self._known_keys[name, separator]


def is_scalar(name: str) -> bool:
    """Whether a score of pixels is one number."""
    return is_whole(name) or not PIXEL_SCORES[read_name(name).score].per_class


def with_shape(data: Any, name: str) -> Any:
    """The data itself if it has a shape, else an array of it."""
    return data if hasattr(data, "shape") else as_array(data, name)


def without_channel(array: Any, axis: int) -> Any:
    """The array without its class axis if that axis has size 1, else unchanged."""
    axes = len(array.shape)
    if not -axes <= axis < axes or array.shape[axis] != 1:
        return array
    return array[(slice(None),) * (axis % axes) + (0,)]


def digest(data: Any) -> list[int]:
    """SHA-256 of plain data."""
    return [*hashlib.sha256(json.dumps(data, sort_keys=True).encode()).digest()]


def missing(framework: str, extra: str, *, module: str | None = None) -> ImportError:
    """The error of a hook whose framework is not installed; module defaults to the extra."""
    msg = f"segiou.hooks.{module or extra} needs {framework}: pip install 'segiou[{extra}]'"
    return ImportError(msg)


def warn_of_repeated_images(name: str, loader: Any, processes: int, fix: str) -> None:
    """Warn if the samplers of all processes together give more images than the data set has."""
    sampler: Any = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    try:
        drawn, images = processes * len(sampler), len(loader.dataset)
    except (TypeError, AttributeError):
        return  # without lengths nothing can be said
    if processes > 1 and drawn > images:
        warn_of_repeats(name, processes, drawn, images, fix)


def warn_of_repeats(name: str, processes: int, drawn: int, images: int, fix: str) -> None:
    """Warn that processes drew more images than there are."""
    text = (
        f"{name}: the samplers of {processes} processes draw {drawn} images from a data set "
        f"of {images}, so {drawn - images} are counted twice and skew the scores. {fix}"
    )
    warnings.warn(text, stacklevel=3)


#: A count is ``high · BASE + low``, for compilers without 64-bit integers. Each batch adds less
#: than 2^30, so the low part never overflows, and the low parts of up to 1024 devices can be
#: summed before they are carried.
BASE = 1 << 20


def check_pixels(shape: tuple[int, ...], limit: int = 1 << 30) -> None:
    """Raise a ValueError for a batch whose counts could overflow."""
    if (pixels := math.prod(shape)) >= limit:
        power = limit.bit_length() - 1
        msg = f"a batch must have fewer than 2^{power} pixels, got {pixels} in shape {shape}"
        raise ValueError(msg)


def carry(low: Any, high: Any) -> tuple[Any, Any]:
    """The same counts with the low parts below 2^20."""
    return low % BASE, high + low // BASE


def as_int64(low: Any, high: Any) -> NDArray[np.int64]:
    """The counts in 64 bits."""
    return np.asarray(high).astype(np.int64) * BASE + np.asarray(low).astype(np.int64)
