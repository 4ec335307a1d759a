"""Grey maps compared with PySODMetrics: ``python -m benchmarks.saliency [--rounds N]``.

One map of 375 × 500 pixels; the results are checked. Processor time, medians of alternating
rounds. The scores of histograms are all but the weighted F-measure, which needs distances.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import py_sod_metrics as sod
from scipy import ndimage

from benchmarks.counting import table
from benchmarks.reading import seconds
from segiou.measures.saliency import formulas, saliency_scores
from segiou.measures.saliency.levels import GreyMap


def scene() -> tuple[np.ndarray, np.ndarray]:
    """An object and a map of it with errors."""
    rng = np.random.default_rng(0)
    field = ndimage.gaussian_filter(rng.normal(size=(375, 500)), 30)
    noisy = field + 2 * field.std() * rng.normal(size=field.shape)
    grey = ndimage.gaussian_filter(noisy, 4)
    grey = 255 * (grey - grey.min()) / np.ptp(grey)
    return field > np.quantile(field, 0.8), grey.astype(np.uint8)


def tools() -> tuple[list[Any], Any]:
    """Those of histograms, and the weighted F-measure."""
    which = {"with_dynamic": True, "with_adaptive": True, "with_binary": True}
    handlers = {"dice": sod.DICEHandler(**which), "iou": sod.IOUHandler(**which)}
    several = [sod.MAE(), sod.Smeasure(), sod.Emeasure(), sod.Fmeasure(), sod.FmeasureV2(handlers)]
    return several, sod.WeightedFmeasure()


def weighted_alone(truth: np.ndarray, grey: np.ndarray) -> float:
    """The score from the map itself."""
    return formulas.weighted_f_measure(truth, GreyMap.of(grey))


def histograms_alone(truth: np.ndarray, grey: np.ndarray) -> None:
    """All scores but the weighted F-measure."""
    with patch.object(formulas, "weighted_f_measure", lambda *_: 0.0):
        saliency_scores(truth, grey)


def step(several: list[Any], grey: np.ndarray, truth: np.ndarray) -> None:
    for tool in several:
        tool.step(grey, truth)


def check(truth: np.ndarray, grey: np.ndarray) -> None:
    """Raise an error unless both have the same scores."""
    several, weighted = tools()
    step([*several, weighted], grey, truth * np.uint8(255))
    ours = saliency_scores(truth, grey)
    theirs = {"mae": several[0].get_results()["mae"], "s_measure": several[1].get_results()["sm"]}
    theirs["e_measure_mean"] = several[2].get_results()["em"]["curve"].mean()
    theirs["f_measure_max"] = several[3].get_results()["fm"]["curve"].max()
    theirs["iou_over_thresholds"] = several[4].get_results()["iou"]["dynamic"].mean()
    theirs["weighted_f_measure"] = weighted.get_results()["wfm"]
    for name, value in theirs.items():
        assert abs(ours[name] - value) < 1e-9, name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")
    truth, grey = scene()
    check(truth, grey)
    several, weighted = tools()
    inside = truth * np.uint8(255)
    runs: dict[str, Callable[[], Any]] = {
        "histograms": partial(histograms_alone, truth, grey),
        "weighted F-measure": partial(weighted_alone, truth, grey),
        "histograms, PySODMetrics": partial(step, several, grey, inside),
        "weighted F-measure, PySODMetrics": partial(step, [weighted], grey, inside),
    }
    fast, slow, histograms, theirs = (1e3 * taken for taken in seconds(runs, rounds).values())
    rows = [
        ["histograms", f"{fast:.2f}", f"{histograms:.1f}"],
        ["weighted F-measure", f"{slow:.1f}", f"{theirs:.1f}"],
        ["all", f"{fast + slow:.1f}", f"{histograms + theirs:.1f}"],
    ]
    for row in rows:
        row.append(f"{float(row[2]) / float(row[1]):.1f}")
    print(table(["ms per map", "segiou", "PySODMetrics", "×"], rows))


if __name__ == "__main__":
    main()
