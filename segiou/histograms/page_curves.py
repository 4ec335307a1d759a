"""Curves of a class for pages, with a limited number of thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from segiou.histograms.score_counts import ScoreHistogram
from segiou.measures.score_table import Chart, RowCurves
from segiou.metrics.ratio import Floats

#: Largest number of thresholds per class.
_THRESHOLDS = 101


def page_curves(histogram: ScoreHistogram, bins: int) -> Iterator[RowCurves]:
    """Curves of each class that has any; ``bins`` is that of the reliability diagram."""
    table, best = histogram.at_thresholds(), histogram.best_threshold()
    for c, name in enumerate(histogram.class_names):
        if name in histogram.undefined:
            continue
        at = int(np.searchsorted(table.thresholds, best.thresholds[c]))
        shown = _shown(table.recall[c], at)
        values = {"IoU": table.iou, "precision": table.precision, "recall": table.recall}
        series = {"threshold": tuple(float(f"{x:.5g}") for x in table.thresholds[shown])}
        series |= {title: _plain(one[c][shown]) for title, one in values.items()}
        found = histogram.calibration(bins, c)
        filled = found.pixels > 0
        points = zip(_plain(found.confidence[filled]), _plain(found.accuracy[filled]), strict=True)
        charts = (
            Chart("Precision and recall", "recall", "precision"),
            Chart("IoU at each threshold", "threshold", "IoU"),
            Chart("Reliability diagram", "mean score", "share of the class", tuple(points), True),
        )
        yield RowCurves(name, series, int(np.searchsorted(shown, at)), charts)


def _shown(recall: Floats, best: int) -> Any:
    """Indices of thresholds, half of them at equal steps of the index, half of recall."""
    number = len(recall)
    half = (_THRESHOLDS - 1) // 2
    equal = np.linspace(0, number - 1, half).round().astype(int)
    by_recall = number - np.searchsorted(recall[::-1], np.linspace(0, 1, half), side="left") - 1
    return np.unique([*equal, *np.clip(by_recall, 0, number - 1), best])


def _plain(values: Floats) -> tuple[Any, ...]:
    """Numbers with 4 decimal places; only exact ones are 0 or 1, and NaN is None."""
    near = np.where((values > 0) & (values < 1), values.clip(1e-5, 1 - 1e-5), values)
    kept = np.where((near < 1e-4) | (near > 1 - 1e-4), near.round(5), near.round(4))
    return tuple(None if np.isnan(x) else float(x) for x in kept)
