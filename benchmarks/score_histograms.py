"""Score histograms, argmax, scikit-learn and torchmetrics on the same scores.

Run with ``python -m benchmarks.score_histograms [CLASSES [ROUNDS]]``; nanoseconds of processor
time per score (pixel and class), medians of alternating runs. The first group derives average
precision, the area under the ROC curve and the precision-recall curve of each class; the second
only counts, beside argmax of the same logits.
"""

from __future__ import annotations

import sys
import time
from statistics import median

import numpy as np
import torch
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score
from torchmetrics.functional import classification as theirs

import segiou
from segiou.accumulators.histograms import score_bins


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


def derived(truth, logits):
    """Areas and curves of the same probabilities by each tool."""
    scores = torch.from_numpy(logits).softmax(1)
    labels, classes = torch.from_numpy(truth), logits.shape[1]

    def ours(data, **how):
        found = segiou.ScoreHistogram(classes).update(truth, data, **how)
        curves = [found.pr_curve(c) for c in range(classes)]
        return found.average_precision(), found.roc_auc(), curves

    def sklearn():
        for c in range(classes):
            own, score = (truth == c).ravel(), scores[:, c].ravel()
            average_precision_score(own, score)
            roc_auc_score(own, score)
            precision_recall_curve(own, score)

    def torchmetrics(thresholds):
        for name in ("average_precision", "auroc", "precision_recall_curve"):
            more = {} if name.endswith("curve") else {"average": None}
            function = getattr(theirs, f"multiclass_{name}")
            function(scores, labels, classes, thresholds=thresholds, **more)

    return {
        "segiou, probabilities": lambda: ours(scores),
        "segiou, logits": lambda: ours(logits, activation="softmax"),
        "segiou without C": lambda: without_kernel(lambda: ours(scores)),
        "scikit-learn": sklearn,
        "torchmetrics, 100 thresholds": lambda: torchmetrics(100),
        "torchmetrics, exact": lambda: torchmetrics(None),
    }


def counted(truth, logits):
    """Counts of the same logits, and argmax of them."""
    histogram = segiou.ScoreHistogram(logits.shape[1])
    last = np.ascontiguousarray(np.moveaxis(logits, 1, -1))
    tensors = torch.from_numpy(logits), torch.from_numpy(last)
    probabilities = tensors[0].softmax(1)
    return {
        "update, probabilities": lambda: histogram.update(truth, probabilities),
        "update, softmax NCHW": lambda: histogram.update(truth, logits, 1, "softmax"),
        "update, softmax NHWC": lambda: histogram.update(truth, last, -1, "softmax"),
        "NumPy's argmax, NCHW": lambda: logits.argmax(1),
        "NumPy's argmax, NHWC": lambda: last.argmax(-1),
        "torch's argmax, NCHW": lambda: tensors[0].argmax(1),
        "torch's argmax, NHWC": lambda: tensors[1].argmax(-1),
    }


def main():
    classes, rounds = (int(x) for x in (*sys.argv[1:3], *("19", "5")[len(sys.argv) - 1 :]))
    torch.set_num_threads(1)
    truth, logits = batch(classes)
    for group in (derived, counted):
        runs = group(truth, logits)
        times = {name: [] for name in runs}
        for _ in range(rounds):
            for name, run in runs.items():
                start = time.process_time()
                run()
                times[name].append(time.process_time() - start)
        first = median(times[next(iter(times))])
        for name, found in times.items():
            nanoseconds = 1e9 * median(found) / logits.size
            print(f"{name:30} {nanoseconds:10.2f} ns per score {median(found) / first:8.2f}")


if __name__ == "__main__":
    main()
