"""Counts scores with the operations of a framework, also inside compiled functions."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import check_same_shape, dtype_name
from segiou.counting.device_counts import (
    NONE_MET,
    CodeTables,
    DeviceCount,
    DeviceValuesError,
    Operations,
    three_dimensions,
)
from segiou.counting.scores import NanScoresError
from segiou.histograms import score_bins as bins_of
from segiou.histograms.score_bins import FLOAT16, Activation, ScoreBins, ScoreRangeError
from segiou.histograms.score_counts import ScoreHistogram

#: Sums of top scores are counted in three digits, so that 2^23 pixels fit in 32 bits.
_DIGITS, _DIGIT = 3, 256
#: Most pixels of a batch.
MOST_PIXELS: int = 1 << 23


class CompiledScores:
    """Counts batches like a :class:`ScoreHistogram`, to the same integers.

    The sums of a batch are the cells of the classes and of the highest score, the digits of the
    sums of highest scores, and the numbers of ignored, undeclared, NaN and outside values.
    """

    def __init__(self, ops: Operations, histogram: ScoreHistogram) -> None:
        kind = histogram.bins.kind
        if histogram.regions or (isinstance(kind, int) and kind & (kind - 1)):
            wanted = "regions=False" if histogram.regions else "a power of 2 or 'float16' as bins"
            msg = f"compiled functions count histograms with {wanted}"
            raise ValueError(msg)
        self.ops = ops
        self.histogram = histogram
        self._classes = histogram.num_classes
        self.bins: ScoreBins = histogram.bins
        self._codes = CodeTables(ops, histogram._encoding)
        self._top = (histogram.num_classes + 1) * self.bins.number * 2
        self.cells: int = self._top + _DIGITS * self.bins.number + 4
        self._powers: Any = ops.array(np.exp2(np.arange(-127, 128), dtype=np.float32))

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
        if "float" not in dtype_name(scores):
            msg = f"compiled functions count float scores, got {dtype_name(scores)}"
            raise TypeError(msg)
        check_same_shape(truth, scores, ("truth", "scores"), argmax=axis)
        raw = self._planes(scores, axis, activation)
        values, t = self._codes.codes(ops.flat(truth), *self._truth)
        if mask is not None:
            t = ops.xp.where(ops.flat(ops.array(mask)), t, classes)
        valid, bad = t < classes, t == self._truth[0].undeclared
        found = self._activated(raw, activation)
        nan = ops.xp.any(ops.xp.isnan(found), axis=0) & valid
        outside = ((found < 0) | (found > 1)) & valid
        ends = [ops.total(one) for one in (t == classes, bad, nan, outside)]
        largest = ops.largest(ops.xp.where(bad, values, NONE_MET))
        sums = ops.join([*self._counted(t, valid, raw, found), *ends])
        return DeviceCount(ops, sums, ops.join([largest, largest]))

    @property
    def _truth(self) -> tuple[Any, Any]:
        return self._codes.encoding.truth, self._codes.truth

    def _planes(self, scores: Any, axis: int | None, activation: Activation | None) -> Any:
        """Scores of each class, (C, pixels), in float32 or float64."""
        xp, number = self.ops.xp, self.histogram.num_classes
        double = "float64" in dtype_name(scores)
        scores = scores if double else self.ops.real(scores, 32)
        if axis is None:
            if number != 2 or activation == "softmax":
                msg = "axis=None needs 2 classes, and probabilities or activation='sigmoid'"
                raise ValueError(msg)
            second = self.ops.flat(scores)
            return xp.stack([1 - second if activation is None else -second, second])
        if scores.shape[axis] != number:
            found = f"got {scores.shape[axis]}"
            msg = f"expected {number} classes along axis {axis} of scores, {found}"
            raise ValueError(msg)
        if None not in scores.shape:  # as TensorFlow's batches in graphs
            scores, axis = xp.reshape(scores, three_dimensions(scores.shape, axis)), 1
        return xp.reshape(xp.moveaxis(scores, axis, 0), (number, -1))

    def _counted(self, t: Any, valid: Any, raw: Any, found: Any) -> list[Any]:
        """Cells of the classes and of the highest score, and the digits of its sums."""
        ops, xp, number = self.ops, self.ops.xp, self.bins.number
        index = self._index(found)
        top = ops.wide(xp.argmax(raw, axis=0), 32)
        rows = [2 * (c * number + index[c]) + ops.wide(t == c, 32) for c in range(self._classes)]
        chosen = [top == c for c in range(self._classes)]
        top_index = sum(xp.where(one, index[c], 0) for c, one in enumerate(chosen))
        best = sum(xp.where(one, found[c], 0.0) for c, one in enumerate(chosen))
        rows.append(2 * (self._classes * number + top_index) + ops.wide(top == t, 32))
        cells = [ops.histogram(xp.where(valid, row, self._top), self._top + 1) for row in rows]
        table = reduce(lambda a, b: a + b, cells)[:-1]
        units = ops.wide(xp.round(best * 2.0**24), 32)
        at = xp.where(valid, top_index, number)
        digits = (units % _DIGIT, units // _DIGIT % _DIGIT, units // _DIGIT**2)
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
        return ops.clip(ops.wide(scores * float(number), 32), 0, number - 1)

    def _activated(self, logits: Any, activation: Activation | None) -> Any:
        """As :func:`segiou.histograms.score_bins.activated`."""
        xp = self.ops.xp
        if activation is None:
            return logits
        x = self.ops.real(logits, 32)
        if activation == "sigmoid":
            e = self._exp(-xp.abs(x))
            return xp.where(x >= 0, xp.ones_like(e), e) / (1 + e)
        e = self._exp(x - xp.max(x, axis=0))
        total = e[0]
        for c in range(1, self._classes):
            total = total + e[c]
        return e / total

    def _exp(self, x: Any) -> Any:
        """As :func:`segiou.histograms.score_bins.exp_of`."""
        ops, xp = self.ops, self.ops.xp
        constants = bins_of._LOG2E, bins_of._LN2_HIGH, bins_of._LN2_LOW, bins_of._HALF
        log2e, high, low, half = map(float, constants)

        def rounded(product: Any) -> Any:
            # Compilers would otherwise add with the exact product. No product is below this.
            return xp.maximum(product, -1e30)

        x = xp.maximum(x, float(bins_of._LEAST))
        n = xp.round(x * log2e)
        r = (x - rounded(n * high)) - rounded(n * low)
        first, *terms = map(float, bins_of._EXP)
        p = rounded(first * r)
        for term in terms:
            p = rounded((p + term) * r)
        p = rounded((p + half) * rounded(r * r)) + (r + 1)
        return p * ops.take(self._powers, ops.clip(ops.wide(n, 32), -127, 0) + 127)

    def parts(self, sums: Any, xp: Any) -> tuple[Any, Any, Any]:
        """Cells of the classes (C, B, 2) and of the highest score, and its sums, of flat sums."""
        number = self.bins.number
        table = xp.reshape(sums[: self._top], (self._classes + 1, number, 2))
        digits = xp.reshape(sums[self._top : -4], (_DIGITS, number))
        top_sums = digits[0] + _DIGIT * digits[1] + _DIGIT**2 * digits[2]
        return table[:-1], table[-1], top_sums

    def read(self, sums: NDArray[np.int64], maxima: Any, pairs: int) -> ScoreHistogram:
        """Histograms of sums from a device; raises for what :meth:`ScoreHistogram.update` does."""
        counts, top, top_sums = self.parts(sums, np)
        ignored, bad, nan, outside = sums[-4:].tolist()
        if bad:
            raise DeviceValuesError("truth", bad, int(maxima[0]))
        if nan:
            raise NanScoresError(nan)
        if outside:
            raise ScoreRangeError(outside)
        found = self.histogram.empty()
        cells = found._empty()
        cells[:-2], cells[-2], cells[-1, :, 0] = counts, top, top_sums
        cells[-1, 0, 1] = ignored
        found._add(cells, pairs)
        return found
