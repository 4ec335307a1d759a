"""Counts label pairs on a tensor's own device and in its framework."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import plural
from segiou.counting.arrays import (
    as_array,
    check_decision,
    check_labels,
    check_mask,
    check_same_shape,
    dtype_name,
    exceeds,
    framework_of,
    is_on_device,
    to_host,
    with_dimensions_of,
)
from segiou.counting.counts import ConfusionCounts
from segiou.counting.device_operations import (
    LARGEST_FLOAT,
    LARGEST_INTEGER,
    NONE_MET,
    Operations,
    operations_for,
)
from segiou.counting.encoding import Encoding, UndeclaredValuesError
from segiou.counting.one_hot import check_label_maps, decided_truth
from segiou.counting.scores import NanScoresError, scale_of, warn_of_scale
from segiou.counting.value_codes import ValueCodes, can_hold

#: Stands for a label that is not a whole number.
NOT_WHOLE = NONE_MET + 1
#: Length of the maxima of a count.
NUM_MAXIMA = 3


class DeviceCount(NamedTuple):
    """Counts of a batch, still on its device."""

    operations: Operations
    """Operations on the device."""
    sums: Any
    """(C + 2) · (C + 1) + 1 integers: the flat table with rows for ignored and undeclared truth,
    and the number of NaN scores. The sums of batches are added."""
    maxima: Any
    """The largest undeclared value of truth and of prediction, and of :func:`scale_of`; or the
    maximum over batches."""

    def plus(self, other: DeviceCount) -> DeviceCount:
        """The counts of both batches."""
        with self.operations.here():
            maxima = self.operations.xp.maximum(self.maxima, other.maxima)
            return DeviceCount(self.operations, self.sums + other.sums, maxima)


#: Most values that are compared one by one.
_MOST_COMPARED = 4


class CodeTables:
    """Look-up tables of an encoding, copied to a device once."""

    def __init__(self, operations: Operations, encoding: Encoding) -> None:
        self.ops = operations
        self.encoding = encoding
        self.truth: Any = self._table(encoding.truth)
        self.pred: Any = self._table(encoding.pred)
        #: Length of the sums of a batch.
        self.cells: int = (encoding.num_classes + 2) * (encoding.num_classes + 1) + 1

    def _table(self, side: ValueCodes) -> Any:
        """The codes, with an entry at either end for all values beyond it."""
        codes = np.pad(side.codes.astype(np.int32), 1, constant_values=side.undeclared)
        return self.ops.array(codes)

    def codes(self, labels: Any, side: ValueCodes, table: Any) -> tuple[Any, Any]:
        """Labels as integers that cannot overflow, and their codes."""
        ops, below, above = self.ops, side.low - 1, side.low + len(side.codes)
        bits = _bits(labels, below, above, ops.widest)
        values = signed = ops.wide(labels, bits)
        if dtype_name(labels) == f"uint{bits}":  # negative values were above every class
            values = ops.xp.where(signed < 0, (1 << (bits - 1)) - 1, signed)
        codes = self._compared(values, side) if ops.is_compiled else None
        if codes is None:
            codes = ops.take(table, ops.clip(values, below, above) - below)
        for far in side.far:
            if can_hold(dtype_name(labels), far):
                same_bits = far if far < 1 << (bits - 1) else far - (1 << bits)
                codes = ops.xp.where(signed == same_bits, side.undeclared - 1, codes)
        return values, codes

    def _compared(self, values: Any, side: ValueCodes) -> Any:
        """Codes by comparisons if the values of the classes are successive, with few exceptions."""
        ops, where, classes = self.ops, self.ops.xp.where, self.encoding.num_classes
        first = int(np.argmax(side.codes < classes))
        start = first - int(side.codes[first])
        places = np.arange(len(side.codes)) - start
        usual = np.where((places >= 0) & (places < classes), places, side.undeclared)
        others = np.flatnonzero(side.codes != usual)
        if len(others) > _MOST_COMPARED:
            return None
        low, high = side.low + max(start, 0), side.low + min(start + classes, len(places))
        is_class = (values >= low) & (values < high)
        codes = where(is_class, ops.wide(values - (side.low + start), 32), side.undeclared)
        for i in others.tolist():
            codes = where(values == side.low + i, int(side.codes[i]), codes)
        return codes

    def count(
        self,
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        argmax: int | None = None,
        threshold: float | None = None,
    ) -> DeviceCount:
        """Count a batch on the device, with the arguments of :meth:`ConfusionMatrix.update`."""
        ops = self.ops
        pred, mask = with_dimensions_of(truth, pred, argmax), with_dimensions_of(truth, mask)
        truth, pred = _bring(ops, truth, "truth"), _bring(ops, pred, "pred")
        check_labels(truth, "truth")
        score = None
        if argmax is None and threshold is None:
            check_labels(pred, "pred")
        else:
            check_decision(tuple(pred.shape), argmax, threshold)
        check_same_shape(truth, pred, argmax=argmax)
        if mask is not None:
            mask = _bring(ops, mask, "mask")
            check_mask(mask, tuple(truth.shape))
            mask = ops.flat(mask)
        if argmax is not None:
            pred, score = ops.argmax(pred, argmax)
        elif threshold is not None:
            pred, score = exceeds(pred, threshold), ops.flat(pred)
        score = None if score is None else ops.flat(score)
        return self._count(ops.flat(truth), ops.flat(pred), mask, score, threshold)

    def _count(
        self, truth: Any, pred: Any, mask: Any, score: Any, threshold: float | None
    ) -> DeviceCount:
        """Count checked labels; `score` is the largest score of each pixel, if there are scores."""
        ops, classes = self.ops, self.encoding.num_classes
        cells = (classes + 2) * (classes + 1)
        if 0 in tuple(truth.shape):
            nothing = np.zeros(cells + 1, dtype=np.int64), np.full(NUM_MAXIMA, NONE_MET)
            return DeviceCount(ops, *map(ops.array, nothing))
        given = truth, pred, mask, score
        coded = self._coded(*given)
        (_, t), (_, p) = coded
        # The last cell is zero so far; it stores the number of NaN scores.
        sums = ops.histogram(t * (classes + 1) + p, cells + 1)
        maxima = ops.maxima(
            ops.xp.reshape(sums[:-1], (classes + 2, classes + 1)),
            lambda: self._undeclared(*coded),
            lambda: self._undeclared(*self._coded(*given)),
        )
        if score is not None:
            nan = (score != score) & (t != classes)  # ignored pixels may have any prediction
            sums = ops.join([sums[:-1], ops.total(nan)])
        if threshold is not None and "float" in dtype_name(score):
            scale = ops.wide(scale_of(score, threshold, ops.xp), 32)
            scale = ops.largest(ops.xp.where(t < classes, scale, 0))
            maxima = ops.join([maxima[:-1], scale])
        return DeviceCount(ops, sums, maxima)

    def _coded(self, truth: Any, pred: Any, mask: Any, score: Any) -> Any:
        """Values and codes of truth and prediction; class indices are their own codes."""
        values, t = self.codes(truth, self.encoding.truth, self.truth)
        if mask is not None:
            t = self.ops.xp.where(mask, t, self.encoding.num_classes)
        if score is None:
            return (values, t), self.codes(pred, self.encoding.pred, self.pred)
        return (values, t), (None, self.ops.wide(pred, 32))

    def _undeclared(self, truth: tuple[Any, Any], pred: tuple[Any, Any]) -> Any:
        """The largest undeclared values of truth and of prediction, as maxima of a count."""
        ops, classes = self.ops, self.encoding.num_classes
        (values, t), (others, p) = truth, pred
        where, none = ops.xp.where, self.encoding.truth.undeclared
        maxima = [ops.largest(where(t == none, values, NONE_MET))] * NUM_MAXIMA
        if others is not None:
            maxima[1] = ops.largest(where((p == classes) & (t < classes), others, NONE_MET))
        return ops.join(maxima)


def _bits(labels: Any, below: int, above: int, widest: int) -> int:
    fits = below >= NONE_MET and above < 1 << 31
    if widest == 32 and not fits:
        msg = (
            f"label values from {below + 1} to {above - 1} do not fit in JAX's 32 bits; enable "
            "jax_enable_x64, or count on the CPU"
        )
        raise ValueError(msg)
    narrow = dtype_name(labels) in ("bool", "uint8", "int8", "int16", "uint16")
    return 32 if fits and (narrow or widest == 32) else 64


def _bring(ops: Operations, data: Any, name: str) -> Any:
    return ops.array(data if framework_of(data) else as_array(data, name))


def not_whole(number: int) -> str:
    """Error text for labels that are not whole numbers."""
    text = "value that is not a whole number in int64", "values that are not whole numbers in int64"
    return plural(number, *text)


class DeviceValuesError(UndeclaredValuesError):
    """Undeclared values found when counts were read from a device; only the largest is known."""

    def __init__(self, side: str, pixels: int, largest: int) -> None:
        super().__init__(side, {largest: pixels})
        self.values: dict[int, int] = {}
        self.pixels = pixels
        self.largest = largest
        clipped = largest in (LARGEST_FLOAT, LARGEST_INTEGER)
        shown = (
            f"{plural(pixels, 'pixel')}, the largest value {largest}{' or more' if clipped else ''}"
        )
        meaning = "neither a class nor ignored" if side == "truth" else "undeclared on valid pixels"
        value = "the value" if clipped else largest
        fix = f"ignore={value}" if side == "truth" else "unassigned='count'"
        text = (
            f"{side} contained values that are {meaning} since the last reset: {shown}; declare "
            f"classes for them, or pass {fix}. To list all values and find the batch, update with "
            "CPU tensors"
        )
        if largest == NOT_WHOLE:
            text = f"{side} contained {not_whole(pixels)}; pass labels"
        self.args: tuple[object, ...] = (text,)

    def __reduce__(self) -> tuple[Any, ...]:
        return (DeviceValuesError, (self.side, self.pixels, self.largest))


#: Look-up tables of one encoding by framework and device.
Tables = dict[tuple[str, str], CodeTables]


def count_on_device(
    encoding: Encoding, truth: Any, pred: Any, *, tables: Tables | None = None, **decision: Any
) -> DeviceCount:
    """Count on the device of the prediction, or else of the truth, as :meth:`CodeTables.count`."""
    if decision.get("argmax") is None and decision.get("threshold") is None:
        check_label_maps(truth, pred, encoding.num_classes)
    truth = decided_truth(truth, pred, decision.get("argmax"), encoding.truth_values)
    ops = operations_for(pred if is_on_device(pred) or not framework_of(truth) else truth)
    tables = {} if tables is None else tables
    with ops.here():
        if ops.place not in tables:
            tables[ops.place] = CodeTables(ops, encoding)
        return tables[ops.place].count(truth, pred, **decision)


def read(encoding: Encoding, count: DeviceCount) -> ConfusionCounts:
    """Transfer counts to the host and check them; raises as :func:`read_counts`."""
    with count.operations.here():
        numbers = to_host(count.operations.join([count.sums, count.maxima]))
    return read_counts(encoding, numbers[:-NUM_MAXIMA], numbers[-NUM_MAXIMA:])


def read_counts(encoding: Encoding, sums: NDArray[Any], maxima: Any) -> ConfusionCounts:
    """Confusion counts of sums from a device; raises for undeclared values and NaN scores."""
    classes = encoding.num_classes
    table = sums[:-1].astype(np.int64, copy=False).reshape(classes + 2, classes + 1)
    if nan := int(sums[-1]):
        raise NanScoresError(nan)
    ignored, bad = np.add.reduce(table[-2:], 1).tolist()
    if bad:
        raise DeviceValuesError("truth", bad, int(maxima[0]))
    if encoding.unassigned == "error" and (bad := int(np.add.reduce(table[:-2, -1]))):
        raise DeviceValuesError("pred", bad, int(maxima[1]))
    warn_of_scale(int(maxima[2]))
    if not ignored and looks_one_hot(table[:-2]):
        text = (
            f"the counts look like those of one-hot arrays: only 2 of {classes} classes occur, and "
            f"the second has exactly 1/{classes} of the pixels in truth and prediction. Pass class "
            "indices instead: truth.argmax(AXIS) with the class axis"
        )
        warnings.warn(text, stacklevel=3)
    return ConfusionCounts.trusted(table[:-2], ignored)


def looks_one_hot(table: NDArray[np.int64]) -> bool:
    """Whether a table (C, C + 1) of many pixels is what pairs of one-hot arrays give as labels.

    The counts of two classes cannot show it, since half of the pixels may be of either.
    """
    if len(table) < 3:
        return False
    block = table[:2, :2]
    pixels, ones = int(block.sum()), (int(block[1].sum()), int(block[:, 1].sum()))
    is_share = ones[0] == ones[1] and ones[0] * len(table) == pixels >= 1000
    return is_share and int(table.sum()) == pixels
