"""Counts scores with the operations of a framework, also inside compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou.accumulators.histograms import score_bins as bins_of
from segiou.accumulators.histograms.score_bins import (
    FLOAT16,
    SCORE_UNIT,
    Activation,
    ScoreBins,
    ScoreRangeError,
    as_floats,
    check_axis,
)
from segiou.accumulators.histograms.score_counts import ScoreHistogram
from segiou.counting.arrays import check_same_shape, dtype_name
from segiou.counting.device_counts import NUM_MAXIMA, CodeTables, DeviceCount, DeviceValuesError
from segiou.counting.device_operations import NONE_MET, Operations, three_dimensions
from segiou.counting.scores import NanScoresError
from segiou.metrics.ratio import Floats

#: Sums of top scores are counted in three digits, so that 2^23 pixels fit in 32 bits.
_DIGITS, _DIGIT = 3, 256
#: Most pixels of a batch.
MOST_PIXELS: int = 1 << 23


class CompiledScores:
    """Counts batches like a :class:`ScoreHistogram`, to the same integers.

    The sums of a batch are the cells of the classes and of the highest score, the digits of the
    sums of highest scores, and the numbers of ignored, undeclared, NaN and outside values.
    """

    decisions: ClassVar = ("axis", "activation")

    def __init__(self, ops: Operations, histogram: ScoreHistogram) -> None:
        if histogram.regions:
            msg = (
                "compiled functions cannot find regions; pass a histogram with regions=False, or "
                "update a ScoreHistogram outside them"
            )
            raise ValueError(msg)
        self.ops = ops
        self.histogram = histogram
        self._classes = histogram.num_classes
        self.bins: ScoreBins = histogram.bins
        self._codes = CodeTables(ops, histogram._encoding)
        self._top = (histogram.num_classes + 1) * self.bins.number * 2
        self.cells: int = self._top + _DIGITS * self.bins.number + 4
        self._powers: Any = ops.array(np.exp2(np.arange(-127, 128), dtype=np.float32))
        self._edges: Any = ops.array(_edges(self.bins, np.float32))

    def count(
        self,
        truth: Any,
        scores: Any,
        axis: int | None = 1,
        activation: Activation | None = None,
        *,
        mask: Any = None,
    ) -> DeviceCount:
        """Count a batch, with the arguments of :meth:`ScoreHistogram.update`."""
        ops, classes = self.ops, self.histogram.num_classes
        truth, scores = ops.array(truth), ops.array(scores)
        kind = dtype_name(scores)
        is_integer = kind in ("uint8", "uint16")
        if "float" not in kind and not is_integer:
            msg = f"scores must be floats, uint8 or uint16, got dtype {kind}"
            raise TypeError(msg)
        check_axis(tuple(scores.shape), kind, axis, activation, classes)
        check_same_shape(truth, scores, ("truth", "scores"), argmax=axis)
        raw = self._planes(scores, axis, activation)
        values, t = self._codes.codes(ops.flat(truth), *self._truth)
        if mask is not None:
            t = ops.xp.where(ops.flat(ops.array(mask)), t, classes)
        valid, bad = t < classes, t == self._truth[0].undeclared
        if is_integer:
            nan = outside = valid & ~valid
            binned = self._integer_bins(raw, kind, axis)
        else:
            probabilities = self._activated(raw, activation)
            nan = ops.xp.any(ops.xp.isnan(probabilities), axis=0) & valid
            outside = ((probabilities < 0) | (probabilities > 1)) & valid
            binned = self._index(probabilities), ops.wide(ops.xp.round(probabilities * 2.0**24), 32)
        ends = [ops.total(pixels) for pixels in (t == classes, bad, nan, outside)]
        largest = ops.largest(ops.xp.where(bad, values, NONE_MET))
        sums = ops.join([*self._counted(t, valid, raw, *binned), *ends])
        return DeviceCount(ops, sums, ops.join([largest] * NUM_MAXIMA))

    @property
    def _truth(self) -> tuple[Any, Any]:
        return self._codes.encoding.truth, self._codes.truth

    def _planes(self, scores: Any, axis: int | None, activation: Activation | None) -> Any:
        """Scores of each class, (C, pixels), in float32, float64 or, for integers, int32."""
        xp, number, kind = self.ops.xp, self.histogram.num_classes, dtype_name(scores)
        if "float" not in kind:
            scores = self.ops.wide(scores, 32)
        elif "float64" not in kind:
            scores = self.ops.real(scores)
        if axis is None:
            second = self.ops.flat(scores)
            whole = 1 if "float" in kind else np.iinfo(kind).max
            return xp.stack([whole - second if activation is None else -second, second])
        if None not in scores.shape:  # as TensorFlow's batches in graphs
            scores, axis = xp.reshape(scores, three_dimensions(scores.shape, axis)), 1
        return xp.reshape(xp.moveaxis(scores, axis, 0), (number, -1))

    def _counted(self, t: Any, valid: Any, raw: Any, index: Any, units: Any) -> list[Any]:
        """Cells of the classes and of the highest score, and the digits of its sums."""
        ops, xp, number = self.ops, self.ops.xp, self.bins.number
        top = ops.wide(xp.argmax(raw, axis=0), 32)
        rows = [2 * (c * number + index[c]) + ops.wide(t == c, 32) for c in range(self._classes)]
        chosen = [top == c for c in range(self._classes)]
        top_index = sum(xp.where(is_top, index[c], 0) for c, is_top in enumerate(chosen))
        best = sum(xp.where(is_top, units[c], 0) for c, is_top in enumerate(chosen))
        rows.append(2 * (self._classes * number + top_index) + ops.wide(top == t, 32))
        cells = [ops.histogram(xp.where(valid, row, self._top), self._top + 1) for row in rows]
        table = reduce(lambda a, b: a + b, cells)[:-1]
        at = xp.where(valid, top_index, number)
        digits = (best % _DIGIT, best // _DIGIT % _DIGIT, best // _DIGIT**2)
        return [table, *(ops.sums(at, digit, number + 1)[:-1] for digit in digits)]

    def _index(self, scores: Any) -> Any:
        """Bin of each score; any for a score outside [0, 1]."""
        ops, xp, number = self.ops, self.ops.xp, self.bins.number
        if self.bins.kind == FLOAT16:
            # The bits of a half-precision number, rounded by exact operations of single precision.
            exponent = sum(ops.wide(scores >= 2.0**k, 32) for k in range(-14, 1))
            scale = ops.take(self._powers, 127 + 25 - xp.maximum(exponent, 1))
            bits = ops.wide(xp.round(scores * scale), 32)
            return ops.clip(bits + 1024 * xp.maximum(exponent - 1, 0), 0, number - 1)
        # Products may round across an edge, so the nearest edge is compared with the score.
        edge = ops.clip(ops.wide(xp.round(scores * float(number)), 32), 0, number)
        is_double = "float64" in dtype_name(scores)
        edges = ops.array(_edges(self.bins, np.float64)) if is_double else self._edges
        return ops.clip(edge - ops.wide(scores < ops.take(edges, edge), 32), 0, number - 1)

    def _integer_bins(self, raw: Any, kind: str, axis: int | None) -> tuple[Any, Any]:
        """Bins of integers and their units of sums, from tables of all values."""
        ops, levels = self.ops, as_floats(np.arange(np.iinfo(kind).max + 1, dtype=kind))

        def taken(numbers_of: Callable[[Floats], NDArray[Any]]) -> Any:
            if axis is not None:
                return ops.take(ops.array(numbers_of(levels).astype(np.int32)), raw)
            planes = (1 - levels)[::-1], levels
            tables = [ops.array(numbers_of(plane).astype(np.int32)) for plane in planes]
            return ops.xp.stack([ops.take(table, raw[c]) for c, table in enumerate(tables)])

        return taken(self.bins.index_of), taken(lambda numbers: np.rint(numbers / SCORE_UNIT))

    def _activated(self, logits: Any, activation: Activation | None) -> Any:
        """As :func:`segiou.accumulators.histograms.score_bins.activated`."""
        xp = self.ops.xp
        if activation is None:
            return logits
        if activation == "sigmoid":
            x = self.ops.real(logits)
            e = self._exp(-xp.abs(x))
            return xp.where(x >= 0, xp.ones_like(e), e) / (1 + e)
        e = self._exp(self.ops.real(logits - xp.max(logits, axis=0)))
        total = e[0]
        for c in range(1, self._classes):
            total = total + e[c]
        return e / total

    def _exp(self, x: Any) -> Any:
        """As :func:`segiou.accumulators.histograms.score_bins.exp_of`."""
        ops, xp = self.ops, self.ops.xp
        constants = bins_of._LOG2E, bins_of._LN2_HIGH, bins_of._LN2_LOW, bins_of._HALF
        log2e, high, low, half = map(float, constants)

        def rounded(part: Any) -> Any:
            # Compilers would otherwise add with the exact product, and TensorFlow would change the
            # order of sums. No part is below this.
            return xp.maximum(part, -1e30)

        x = xp.maximum(x, float(bins_of._LEAST))
        n = xp.round(x * log2e)
        r = (x - rounded(n * high)) - rounded(n * low)
        first, *terms = map(float, bins_of._EXP)
        p = rounded(first * r)
        for term in terms:
            p = rounded((p + term) * r)
        p = rounded((p + half) * rounded(r * r)) + rounded(r + 1)
        return p * ops.take(self._powers, ops.clip(ops.wide(n, 32), -127, 0) + 127)

    def cells_of(self, sums: Any, xp: Any) -> Any:
        """The cells (C + 2, B, 2) of a :class:`ScoreHistogram` without ignored pixels."""
        number = self.bins.number
        table = xp.reshape(sums[: self._top], (self._classes + 1, number, 2))
        digits = xp.reshape(sums[self._top : -4], (_DIGITS, number))
        top_sums = digits[0] + _DIGIT * digits[1] + _DIGIT**2 * digits[2]
        last = xp.stack([top_sums, xp.zeros_like(top_sums)], axis=-1)
        return xp.concatenate([table, last[None]])

    def counts_of(self, sums: Any, xp: Any) -> tuple[Any, Any]:
        """The cells, and the number of bad values."""
        return self.cells_of(sums, xp), xp.sum(sums[-3:])

    def read(self, sums: NDArray[np.int64], maxima: Any, pairs: int) -> ScoreHistogram:
        """Histograms of sums from a device; raises for what :meth:`ScoreHistogram.update` does."""
        ignored, bad, nan, outside = sums[-4:].tolist()
        if bad:
            raise DeviceValuesError("truth", bad, int(maxima[0]))
        if nan:
            raise NanScoresError(nan)
        if outside:
            raise ScoreRangeError(outside)
        histogram, cells = self.histogram.empty(), self.cells_of(sums, np)
        cells[-1, 0, 1] = ignored
        histogram._add(cells, pairs)
        return histogram


def _edges(bins: ScoreBins, dtype: Any) -> Floats:
    """The smallest float of a type in each bin, and 1."""
    edges = np.append(bins.edges, 1.0)
    rounded = edges.astype(dtype)
    return np.where(rounded < edges, np.nextafter(rounded, dtype(1)), rounded)
