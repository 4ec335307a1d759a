"""Counts inside compiled code, each in two 32-bit integers because compilers may lack 64 bits."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import plural
from segiou.accumulators.channel_counts import ChannelCounts, check_channels
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.accumulators.histograms.score_counts import ScoreHistogram
from segiou.counting.arrays import check_same_shape, dtype_name, exceeds
from segiou.counting.channels import limits_of
from segiou.counting.counts import Counts
from segiou.counting.device_counts import NUM_MAXIMA, CodeTables, DeviceCount, read_counts
from segiou.counting.device_operations import NONE_MET, Operations, three_dimensions
from segiou.counting.encoding import Encoding
from segiou.counting.scores import NanScoresError, scale_of, warn_of_scale
from segiou.hooks._compiled_scores import MOST_PIXELS, CompiledScores

#: A count is ``high · BASE + low``. Each batch adds less than 2^30, so the low part never
#: overflows, and the low parts of up to 1024 devices can be summed before they are carried.
BASE = 1 << 20


def carry(low: Any, high: Any) -> tuple[Any, Any]:
    """The same counts with the low parts below 2^20."""
    return low % BASE, high + low // BASE


def as_floats(low: Any, high: Any, *, xp: Any) -> Any:
    """Counts in float32, by the operations of Keras; at most their last digits are rounded."""
    low, high = carry(low, high)
    return xp.cast(high, "float32") * BASE + xp.cast(low, "float32")


def _total(low: Any, high: Any, *, xp: Any, axis: int | None = None) -> tuple[Any, Any]:
    """Exact sums of up to 2^21 counts."""
    ones, more = xp.sum(low % 1024, axis), xp.sum(low // 1024, axis)
    return carry(more % 1024 * 1024 + ones, xp.sum(high, axis) + more // 1024)


def _differences(tp: Any, truth: Any, pred: Any, total: Any) -> tuple[Any, Any, Any, Any]:
    """TP, FP, FN and TN."""
    return tp, pred - tp, truth - tp, total - truth - pred + tp


class CompiledChannels:
    """Counts batches like :class:`segiou.ChannelCounts`, to the same integers.

    The sums of a batch are the five counts of each channel, and the numbers of values of truth and
    prediction that are neither 0 nor 1, and of NaN scores.
    """

    #: Options of :meth:`count` beside the mask.
    decisions: ClassVar = ("axis", "threshold")

    def __init__(self, ops: Operations, channels: ChannelCounts) -> None:
        self.ops, self.channels = ops, channels
        self.number = channels.num_classes
        self.cells: int = 5 * self.number + 3

    def count(
        self, truth: Any, pred: Any, *, axis: int, threshold: Any = None, mask: Any = None
    ) -> DeviceCount:
        """Count a batch, with the arguments of :meth:`segiou.ChannelCounts.update`."""
        ops, xp = self.ops, self.ops.xp
        truth, pred = ops.array(truth), ops.array(pred)
        check_same_shape(truth, pred)
        check_channels(tuple(truth.shape), axis, self.number)
        t = ops.wide(self._planes(truth, axis), 32)
        valid = self._valid(t, mask, len(truth.shape), axis)
        p, is_positive = self._positive(self._planes(pred, axis), threshold)
        wrong = [(side != 0) & (side != 1) & valid for side in (t, p)]
        bad = [wrong[0], wrong[1] & (threshold is None), (p != p) & valid]
        is_true = t == 1
        kinds = [is_true & is_positive, is_positive & ~is_true, is_true & ~is_positive]
        kinds = [kind & valid for kind in (*kinds, ~(is_true | is_positive))]
        rows = [xp.sum(ops.wide(kind, 32), axis=1) for kind in (*kinds, ~valid)]
        maxima = [ops.array(np.full(NUM_MAXIMA - 1, NONE_MET, np.int32))]
        scale = xp.zeros_like(t)
        if threshold is not None:
            scale = xp.where(valid, ops.wide(scale_of(p, threshold, xp), 32), scale)
        sums = ops.join([*rows, *(ops.total(values) for values in bad)])
        return DeviceCount(ops, sums, ops.join([*maxima, ops.largest(scale)]))

    def _planes(self, values: Any, axis: int) -> Any:
        """Values of each channel, (C, pixels)."""
        xp = self.ops.xp
        if None not in values.shape:  # as TensorFlow's batches in graphs
            values, axis = xp.reshape(values, three_dimensions(values.shape, axis)), 1
        return xp.reshape(xp.moveaxis(values, axis, 0), (self.number, -1))

    def _valid(self, t: Any, mask: Any, axes: int, axis: int) -> Any:
        """Which values of the channels are neither ignored nor masked."""
        valid = t == t
        for value in self.channels.options.ignore:
            valid = valid & (t != value)
        if mask is None:
            return valid
        mask = self.ops.array(mask)
        is_whole = len(mask.shape) == axes
        return valid & (self._planes(mask, axis) if is_whole else self.ops.flat(mask)[None])

    def _positive(self, p: Any, threshold: Any) -> tuple[Any, Any]:
        """Predictions as numbers, and which are positive."""
        is_float = "float" in dtype_name(p)
        if threshold is None:
            if is_float:
                msg = f"pred has dtype {dtype_name(p)}; if it contains scores, pass threshold=T"
                raise TypeError(msg)
            p = self.ops.wide(p, 32)
            return p, p != 0
        p = p if is_float else self.ops.real(p)
        limits = limits_of(threshold, self.number)
        return p, self.ops.xp.stack([exceeds(p[c], limit) for c, limit in enumerate(limits)])

    def counts_of(self, sums: Any, xp: Any) -> tuple[Counts, Any]:
        """Counts of the channels, and the number of bad values."""
        rows = xp.reshape(sums[:-3], (5, self.number))
        return Counts.trusted(rows[0], rows[1], rows[2], rows[3]), xp.sum(sums[-3:])

    def read(self, sums: NDArray[np.int64], maxima: Any, batches: int) -> ChannelCounts:
        """Counts of sums from a device; raises for values that `update` rejects."""
        truth, pred, nan = sums[-3:].tolist()
        for side, wrong in (("truth", truth), ("pred", pred)):
            if wrong:
                msg = (
                    f"{side} must contain only 0 and 1, found {plural(wrong, 'other value')}; "
                    "pass ignore= to ChannelCounts if such values are to be dropped"
                )
                raise ValueError(msg)
        if nan:
            raise NanScoresError(nan)
        warn_of_scale(int(maxima[2]))
        counted = self.channels.empty()
        counted._add(sums[:-3].reshape(5, self.number), batches)
        return counted


class CompiledMatrix(CodeTables):
    """Counts batches like a :class:`segiou.ConfusionMatrix`, to the same integers."""

    decisions: ClassVar = ("argmax", "threshold")

    def __init__(self, ops: Operations, matrix: ConfusionMatrix) -> None:
        super().__init__(ops, Encoding.of_classes(matrix.options))
        self.matrix = matrix

    def counts_of(
        self, low: Any, high: Any, xp: Any, *, drops_undeclared: bool = False
    ) -> tuple[Counts, Any]:
        """Counts of the classes in float32, and the number of bad values.

        The pixels of undeclared predictions are missed, or dropped. Differences are computed in
        integers. In float32, those of counts above 2^24 are noise.
        """
        classes = self.matrix.num_classes
        sides = [xp.reshape(x[:-1], (classes + 2, classes + 1)) for x in carry(low, high)]
        tables = [side[:classes, : classes + (not drops_undeclared)] for side in sides]
        tp, truth = [xp.diagonal(table) for table in tables], _total(*tables, xp=xp, axis=1)
        pred = [side[:classes] for side in _total(*tables, xp=xp, axis=0)]
        total = _total(*truth, xp=xp)
        counts = zip(*map(_differences, tp, truth, pred, total), strict=True)
        wrong = as_floats(*sides, xp=xp)
        bad = as_floats(low[-1], high[-1], xp=xp) + xp.sum(wrong[-1])
        if self.encoding.unassigned == "error":
            bad = bad + xp.sum(wrong[:classes, -1])
        return Counts.trusted(*(as_floats(*count, xp=xp) for count in counts)), bad

    def read(self, sums: NDArray[np.int64], maxima: Any, batches: int) -> ConfusionMatrix:
        """Counts of sums from a device; raises for undeclared values and unusable scores."""
        return self.matrix.empty().add(read_counts(self.encoding, sums, maxima), pairs=batches)


class CompiledCounts:
    """Counts batches like an accumulator: a matrix, channels or score histograms."""

    def __init__(self, operations: Operations, like: Any) -> None:
        self.like = like
        self.ops = operations
        self.tables: Any
        if isinstance(like, ScoreHistogram):
            self.tables = CompiledScores(operations, like)
        elif isinstance(like, ChannelCounts):
            self.tables = CompiledChannels(operations, like)
        else:
            self.tables = CompiledMatrix(operations, like)
        #: Number of counts.
        self.cells: int = self.tables.cells

    def check_pixels(self, shape: tuple[int | None, ...]) -> None:
        """Raise a ValueError for a batch whose counts could overflow."""
        limit = MOST_PIXELS if isinstance(self.tables, CompiledScores) else 1 << 30
        sizes = tuple(size or 1 for size in shape)  # None is unknown
        if (pixels := math.prod(sizes)) >= limit:
            power = limit.bit_length() - 1
            msg = f"a batch must have fewer than 2^{power} pixels, got {pixels} in shape {sizes}"
            raise ValueError(msg)

    def add(self, low: Any, high: Any, count: DeviceCount) -> tuple[Any, Any]:
        """The low and high parts after another batch."""
        return carry(low + self.ops.wide(count.sums, 32), high)

    def read(self, low: Any, high: Any, maxima: NDArray[Any], batches: Any) -> Any:
        """The counts as an accumulator; raises for undeclared values and unusable scores."""
        sums = np.asarray(high).astype(np.int64) * BASE + np.asarray(low).astype(np.int64)
        return self.tables.read(sums, maxima, int(batches))
