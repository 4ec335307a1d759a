"""Counting where the tensors are: on a GPU or another device, without waiting for it.

A batch becomes two short vectors on its device: sums (the table of counts and
the pixels whose score is NaN) and maxima (the largest undeclared value of
either side, for the error message). Vectors of batches add up on the device;
:meth:`Pending.collect` transfers them once and only then can an undeclared
value be reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.code_tables import CodeTables, DeviceCount
from segiou.counting.devices import framework_of, is_on_device, to_host
from segiou.counting.operations import operations_for
from segiou.counting.pairs import Encoding, PairCount, UndeclaredValuesError
from segiou.counting.scores import nan_text

__all__ = [
    "DeviceValuesError",
    "Pending",
    "count_on_device",
    "read",
    "read_counts",
    "sums_of_table",
]


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
        mend = f"ignore={largest}" if side == "truth" else "unassigned='count'"
        self.args = (
            f"{side} has had values, since the last reset, that are {meaning}: {found}; declare "
            f"classes for them, or say {mend}. To see all of them and in which batch, "
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
        Of the labels; where a rule is given, of class indices.
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


def sums_of_table(count: PairCount) -> NDArray[np.int64]:
    """The sums that counting the same pair on a device would give."""
    classes = len(count.table)
    table = np.zeros((classes + 2, classes + 1), dtype=np.int64)
    table[:classes] = count.table
    table[classes, 0] = count.ignored
    return np.append(table.ravel(), 0)


def read(encoding: Encoding, count: DeviceCount) -> PairCount:
    """Transfer counts to the host, once, and check them; raises as :func:`read_counts`."""
    with count.operations.here():
        both = to_host(count.operations.join([count.sums, count.maxima]))
    return read_counts(encoding, both[:-2], both[-2:])


def read_counts(encoding: Encoding, sums: NDArray[Any], maxima: NDArray[Any]) -> PairCount:
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
    return PairCount(table[:-2].copy(), int(table[-2].sum()))


class Pending:
    """Counts of batches that are still on their devices."""

    def __init__(self) -> None:
        self._tables: dict[Any, Any] = {}
        self._counts: dict[Any, DeviceCount] = {}
        self._pixels = 0

    def add(self, encoding: Encoding, truth: Any, pred: Any, **how: Any) -> Iterator[PairCount]:
        """Count a batch; gives what had to be collected before, lest a counter overflow."""
        count = count_on_device(encoding, truth, pred, tables=self._tables, **how)
        place, pixels = count.operations.place, math.prod(np.shape(truth))
        if count.operations.limit and self._pixels + pixels > count.operations.limit:
            yield from self.collect(encoding)
        self._pixels += pixels
        before = self._counts.get(place)
        self._counts[place] = count if before is None else before.plus(count)

    def collect(self, encoding: Encoding) -> Iterator[PairCount]:
        """Transfer the counts, one small vector a device; what cannot be read stays."""
        for place, count in list(self._counts.items()):
            table = read(encoding, count)
            del self._counts[place]
            yield table
        self._pixels = 0

    def clear(self) -> None:
        """Forget the counts; the look-up tables stay where they are."""
        self._counts.clear()
        self._pixels = 0
