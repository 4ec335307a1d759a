"""Score histograms, NumPy's argmax, scikit-learn and torchmetrics on the same probabilities.

Run with ``python -m benchmarks.score_histograms [CLASSES]``; nanoseconds of processor time per
pixel, medians of alternating runs.
"""

from __future__ import annotations

import sys
import time
from statistics import median

import numpy as np
import torch
from sklearn.metrics import average_precision_score
from torchmetrics.functional.classification import multiclass_average_precision

import segiou
from segiou.histograms import score_bins

ROUNDS = 3


def batch(classes, height=256, width=512):
    rng = np.random.default_rng(0)
    blocks = rng.integers(0, classes, (1, height // 32, width // 32))
    truth = blocks.repeat(32, 1).repeat(32, 2)
    logits = rng.normal(size=(1, classes, height, width))
    logits += 6 * np.moveaxis(np.eye(classes)[truth], -1, 1)
    return truth, logits.astype(np.float32)


def without_kernel(function):
    kept, score_bins._compiled = score_bins._compiled, None
    try:
        return function()
    finally:
        score_bins._compiled = kept


def contestants(truth, logits):
    scores = torch.from_numpy(logits).softmax(1)
    labels, classes = torch.from_numpy(truth), logits.shape[1]

    def ours(data, **how):
        return segiou.ScoreHistogram(classes).update(truth, data, **how).average_precision()

    def sklearn():
        return [
            average_precision_score((truth == c).ravel(), scores[:, c].ravel())
            for c in range(classes)
        ]

    return {
        "segiou, probabilities": lambda: ours(scores),
        "segiou, logits": lambda: ours(logits, activation="softmax"),
        "segiou without C": lambda: without_kernel(lambda: ours(scores)),
        "NumPy's argmax": lambda: logits.argmax(1),
        "scikit-learn": sklearn,
        "torchmetrics, 100 thresholds": lambda: multiclass_average_precision(
            scores, labels, classes, average=None, thresholds=100
        ),
    }


def main():
    torch.set_num_threads(1)
    truth, logits = batch(int(sys.argv[1]) if len(sys.argv) > 1 else 19)
    runs = contestants(truth, logits)
    times = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    for name, found in times.items():
        print(f"{name:30} {1e9 * median(found) / truth.size:10.1f} ns per pixel")


if __name__ == "__main__":
    main()
