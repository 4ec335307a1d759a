"""Counting label pairs where a tensor lies, on a GPU or in another framework."""

from __future__ import annotations

import math
from collections.abc import Iterator
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import as_array, framework_of, is_on_device, to_host
from segiou.counting.counts import Tally
from segiou.counting.device_operations import Operations, operations_for
from segiou.counting.encoding import Encoding, UndeclaredValuesError, ValueCodes, can_hold
from segiou.counting.scores import nan_text

#: Stands for "no undeclared value was met" in the maxima; fits 32 bits.
NONE_MET = -(1 << 31)


class DeviceCount(NamedTuple):
    """What a batch counts to, still on its device."""

    operations: Operations
    """Of the device."""
    sums: Any
    """(C + 2) · (C + 1) + 1 integers: the table with a row for ignored and a row for undeclared
    truth, flat, and the pixels whose score is NaN. Batches add."""
    maxima: Any
    """Two integers: the largest undeclared value of truth and of prediction. Batches: maximum."""

    def plus(self, other: DeviceCount) -> DeviceCount:
        """Both batches together."""
        with self.operations.here():
            maxima = self.operations.maximum(self.maxima, other.maxima)
            return DeviceCount(self.operations, self.sums + other.sums, maxima)


class _Side(NamedTuple):
    low: int
    high: int
    codes: Any
    undeclared: int
    far: tuple[int, ...]


class CodeTables:
    """An encoding's look-up tables on one device, moved there once."""

    def __init__(self, operations: Operations, encoding: Encoding) -> None:
        self.ops = operations
        self.encoding = encoding
        self.truth = self._side(encoding.truth)
        self.pred = self._side(encoding.pred)

    def _side(self, side: ValueCodes) -> _Side:
        # One more entry at either end, for every value beyond it.
        codes = np.pad(side.codes.astype(np.int32), 1, constant_values=side.undeclared)
        high = side.low + len(side.codes) - 1
        return _Side(side.low, high, self.ops.array(codes), side.undeclared, side.far)

    def codes(self, labels: Any, side: _Side) -> tuple[Any, Any]:
        """Labels as integers that cannot wrap, and their codes."""
        below, above = side.low - 1, side.high + 1
        bits = _bits(labels, below, above, self.ops.widest)
        values = self.ops.wide(labels, bits)
        codes = self.ops.take(side.codes, self.ops.clip(values, below, above) - below)
        for value in side.far:
            if can_hold(_dtype_name(labels), value):
                codes = self.ops.where(self.ops.equal(labels, value), side.undeclared - 1, codes)
        return values, codes

    def count(
        self,
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        argmax: int | None = None,
        threshold: float | None = None,
    ) -> DeviceCount:
        """Count a batch on the device.

        Parameters
        ----------
        truth, pred, mask, argmax, threshold
            As :meth:`segiou.ConfusionMatrix.update`.

        Raises
        ------
        TypeError, ValueError
            As ``update``, for what is known without reading the device.
        """
        ops = self.ops
        truth, pred = _bring(ops, truth, "truth"), _bring(ops, pred, "pred")
        _check_labels(ops, truth, "truth")
        nan = None
        if argmax is None and threshold is None:
            _check_labels(ops, pred, "pred")
        else:
            pred, nan = _decide(ops, pred, argmax, threshold)
        if tuple(truth.shape) != tuple(pred.shape):
            msg = (
                f"truth has shape {tuple(truth.shape)} but pred has {tuple(pred.shape)}; "
                "they must be equal, pixel for pixel"
            )
            raise ValueError(msg)
        valid = None if mask is None else _valid(ops, mask, tuple(truth.shape))
        return self._count(truth, pred, valid, nan)

    def _count(self, truth: Any, pred: Any, valid: Any, nan: Any) -> DeviceCount:
        # nan is given where the labels were decided from scores.
        ops, classes = self.ops, self.encoding.num_classes
        truth_values, t = self.codes(truth, self.truth)
        if valid is not None:
            t = ops.where(valid, t, classes)
        bad_truth = ops.where(t == self.truth.undeclared, truth_values, NONE_MET)
        maxima = [ops.largest(bad_truth, NONE_MET)] * 2
        if nan is None:
            pred_values, p = self.codes(pred, self.pred)
            bad_pred = ops.where((p == classes) & (t < classes), pred_values, NONE_MET)
            maxima[1] = ops.largest(bad_pred, NONE_MET)
        else:
            p = ops.wide(pred, 32)  # class indices need no table
        # The last cell stays zero: it is the place of the NaN scores.
        sums = ops.histogram(t * (classes + 1) + p, (classes + 2) * (classes + 1) + 1)
        if nan is not None:
            nan = nan & (t != classes)  # on an ignored pixel any prediction is fine
            sums = ops.join([sums[:-1], ops.total(nan)])
        return DeviceCount(ops, sums, ops.join(maxima))


def _bits(labels: Any, below: int, above: int, widest: int) -> int:
    fits = below >= NONE_MET and above < 1 << 31
    if widest == 32 and not fits:
        msg = (
            f"label values from {below + 1} to {above - 1} do not fit JAX's 32 bits; enable "
            "jax_enable_x64, or count on the CPU"
        )
        raise ValueError(msg)
    narrow = _dtype_name(labels) in ("bool", "uint8", "int8", "int16", "uint16")
    return 32 if fits and (narrow or widest == 32) else 64


def _dtype_name(array: Any) -> str:
    return str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")


def _bring(ops: Operations, data: Any, name: str) -> Any:
    return ops.array(data if framework_of(data) else as_array(data, name))


def _check_labels(ops: Operations, labels: Any, name: str) -> None:
    if (kind := ops.kind(labels)) not in "biu":
        hint = (
            "; if these are scores, say argmax=AXIS (the class axis) or threshold=T"
            if kind == "f"
            else ""
        )
        msg = f"{name} is {_dtype_name(labels)}; labels must be integers or bool{hint}"
        raise TypeError(msg)


def _decide(
    ops: Operations, scores: Any, argmax: int | None, threshold: float | None
) -> tuple[Any, Any]:
    if threshold is not None and argmax is not None:
        msg = "say either argmax=AXIS or threshold=T, not both and not neither"
        raise ValueError(msg)
    if threshold is not None:
        return scores > threshold, ops.isnan(scores)
    assert argmax is not None
    if not -len(scores.shape) <= argmax < len(scores.shape):
        msg = f"scores of shape {tuple(scores.shape)} have no axis {argmax}"
        raise ValueError(msg)
    return ops.argmax(scores, argmax)


def _valid(ops: Operations, mask: Any, shape: tuple[int, ...]) -> Any:
    valid = _bring(ops, mask, "mask")
    if _dtype_name(valid) != "bool":
        found = _dtype_name(valid)
        msg = f"mask must be bool (True = counted), got {found}; perhaps mask != 0 is meant"
        raise TypeError(msg)
    if tuple(valid.shape) != shape:
        msg = f"mask has shape {tuple(valid.shape)} but the labels have {shape}"
        raise ValueError(msg)
    return valid


class DeviceValuesError(UndeclaredValuesError):
    """Undeclared values that were counted on a device and found when its counts were read.

    Attributes
    ----------
    side : str
        ``"truth"`` or ``"pred"``.
    values : dict
        Empty: how many pixels each value has is not known.
    pixels : int
        Pixels of undeclared values.
    largest : int
        The largest of the values.
    """

    def __init__(self, side: str, pixels: int, largest: int) -> None:
        super().__init__(side, {largest: pixels})
        self.values = {}
        self.pixels = pixels
        self.largest = largest
        found = f"{pixels} pixels, the largest value {largest}"
        meaning = "neither a class nor ignored" if side == "truth" else "no class, on valid pixels"
        fix = f"ignore={largest}" if side == "truth" else "unassigned='count'"
        self.args = (
            f"{side} has had values, since the last reset, that are {meaning}: {found}; declare "
            f"classes for them, or say {fix}. To see all of them and in which batch, "
            "update with the tensors on the CPU",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (DeviceValuesError, (self.side, self.pixels, self.largest))


def count_on_device(
    encoding: Encoding, truth: Any, pred: Any, *, tables: dict[Any, Any] | None = None, **how: Any
) -> DeviceCount:
    """Count a batch on the device that its prediction (or else its truth) is on.

    Parameters
    ----------
    encoding : Encoding
        Of the labels; of class indices where ``argmax`` or ``threshold`` is given.
    truth, pred, **how
        As :meth:`CodeTables.count`, any of the arrays on the device.
    tables : dict, optional
        Keeps the look-up tables from one call to the next.
    """
    ops = operations_for(pred if is_on_device(pred) or not framework_of(truth) else truth)
    key = (ops.place, id(encoding))
    tables = {} if tables is None else tables
    with ops.here():
        if key not in tables:
            tables[key] = CodeTables(ops, encoding)
        counted: DeviceCount = tables[key].count(truth, pred, **how)
    return counted


def sums_of_table(count: Tally) -> NDArray[np.int64]:
    """The sums that counting the same pair on a device would give."""
    classes = len(count.table)
    table = np.zeros((classes + 2, classes + 1), dtype=np.int64)
    table[:classes] = count.table
    table[classes, 0] = count.ignored
    return np.append(table.ravel(), 0)


def read(encoding: Encoding, count: DeviceCount) -> Tally:
    """Transfer counts to the host, once, and check them; raises as :func:`read_counts`."""
    with count.operations.here():
        both = to_host(count.operations.join([count.sums, count.maxima]))
    return read_counts(encoding, both[:-2], both[-2:])


def read_counts(encoding: Encoding, sums: NDArray[Any], maxima: NDArray[Any]) -> Tally:
    """Check what came from a device, as the host would have checked each batch.

    Raises
    ------
    UndeclaredValuesError
        If there were values that are neither a class nor ignored.
    ValueError
        If there were NaN scores.
    """
    classes = encoding.num_classes
    table = sums[:-1].astype(np.int64).reshape(classes + 2, classes + 1)
    if nan := int(sums[-1]):
        raise ValueError(nan_text(nan))
    if bad := int(table[-1].sum()):
        raise DeviceValuesError("truth", bad, int(maxima[0]))
    if encoding.unassigned == "error" and (bad := int(table[:-2, -1].sum())):
        raise DeviceValuesError("pred", bad, int(maxima[1]))
    return Tally.trusted(table[:-2].copy(), table[-2].sum())


class Pending:
    """Counts of batches that are still on their devices; threads take turns."""

    def __init__(self, tables: dict[Any, Any]) -> None:
        self._tables = tables
        self._counts: dict[Any, DeviceCount] = {}
        self._pixels = 0
        self._lock = RLock()

    def add(self, encoding: Encoding, truth: Any, pred: Any, **how: Any) -> Iterator[Tally]:
        """Count a batch; gives what had to be collected before, lest a counter overflow."""
        count = count_on_device(encoding, truth, pred, tables=self._tables, **how)
        place, pixels = count.operations.place, math.prod(np.shape(truth))
        with self._lock:
            if count.operations.limit and self._pixels + pixels > count.operations.limit:
                yield from self.collect(encoding)
            self._pixels += pixels
            before = self._counts.get(place)
            self._counts[place] = count if before is None else before.plus(count)

    def collect(self, encoding: Encoding) -> Iterator[Tally]:
        """Transfer the counts, one small vector a device; what cannot be read stays."""
        with self._lock:
            while self._counts:
                place, count = next(iter(self._counts.items()))
                tally = read(encoding, count)
                del self._counts[place]
                yield tally
            self._pixels = 0
