"""Calibration as a function of histograms: errors, and the rows of the reliability diagram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import Json, plain
from segiou.accumulators.histograms.score_bins import SCORE_UNIT, ScoreBins
from segiou.accumulators.histograms.threshold_curves import brier
from segiou.metrics.ratio import Floats, ratio

#: Rows of a reliability diagram.
MOST_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration errors and the reliability diagram.

    Attributes
    ----------
    ece, mce, ace : float
        Expected, maximum and average calibration error: mean over pixels, maximum and
        mean over filled bins of the absolute difference of confidence and accuracy.
    brier : float
        Brier score: of one class the mean squared difference from the truth; of the
        highest scores, the sum of those of all classes.
    edges : ndarray of float64, shape (K + 1,)
        Edges of the bins of the diagram.
    pixels : ndarray of int64, shape (K,)
        Pixels in each bin.
    confidence, accuracy : ndarray of float64, shape (K,)
        Mean score, and share of right pixels; NaN in empty bins.
    """

    ece: float
    mce: float
    ace: float
    brier: float
    edges: Floats
    pixels: NDArray[np.int64]
    confidence: Floats
    accuracy: Floats

    def to_dict(self) -> dict[str, Json]:
        """Plain values; None where undefined."""
        return dict(plain(vars(self)))


def top_calibration(cells: NDArray[Any], bins: ScoreBins, rows: int) -> Calibration:
    """Calibration of the highest score of each pixel."""
    each = brier(cells[..., :-2, :, :], bins.values)
    sums = cells[-1, :, 0] * SCORE_UNIT
    return _calibration(cells[-2], sums, bins, rows, float(each.sum()))


def class_calibration(counts: NDArray[Any], bins: ScoreBins, rows: int) -> Calibration:
    """Calibration of one class against the rest."""
    sums = counts.sum(-1) * bins.values
    return _calibration(counts, sums, bins, rows, float(brier(counts, bins.values)))


def _calibration(
    counts: NDArray[Any], sums: Floats, bins: ScoreBins, rows: int, squared: float
) -> Calibration:
    parts = diagram(counts, sums, bins, rows)
    ece, mce, ace = map(float, errors(*parts))
    known = squared if parts[0].any() else np.nan
    return Calibration(ece, mce, ace, known, np.arange(rows + 1) / rows, *parts)


def diagram(
    counts: Any, sums: Any, bins: ScoreBins, rows: int, xp: Any = np
) -> tuple[Any, Floats, Floats]:
    """Pixels, mean score and share of right pixels in each row of the diagram, (..., K).

    ``xp`` is the module of the arrays, here and below: NumPy, or ``keras.ops`` for bins (B,).
    """
    # A bin that an edge of the diagram cuts belongs to the row of its centre.
    row = bins.rows_of(rows)
    starts = np.searchsorted(row, np.arange(rows))
    used = np.flatnonzero(np.bincount(row, minlength=rows))

    def summed(table: Any) -> Any:
        if xp is not np:
            return xp.segment_sum(table, row, num_segments=rows)
        row_sums = np.zeros((*table.shape[:-1], rows), table.dtype)
        row_sums[..., used] = np.add.reduceat(table, starts[used], -1)
        return row_sums

    pixels = summed(xp.sum(counts, axis=-1))
    return pixels, ratio(summed(sums), pixels), ratio(summed(counts[..., 1]), pixels)


def errors(pixels: Any, confidence: Any, accuracy: Any, xp: Any = np) -> tuple[Floats, ...]:
    """ECE, MCE and ACE of diagrams (..., K); NaN without pixels."""
    gap = xp.where(pixels > 0, xp.abs(confidence - accuracy), 0.0)
    total = xp.sum(pixels, axis=-1)
    filled = xp.sum(xp.where(pixels > 0, 1.0, 0.0), axis=-1)
    mce = xp.where(total > 0, xp.max(gap, axis=-1), np.nan)
    sums = xp.sum(gap * pixels, axis=-1), xp.sum(gap, axis=-1)
    return ratio(sums[0], total), mce, ratio(sums[1], filled)
