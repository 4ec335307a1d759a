"""Common ways to count, each following its authors' code, and segiou's.

For all pairs of a task, each returns either the confusion matrix (C, C) or three areas (3, C) of
the valid pixels: intersection, truth and prediction. `expected` returns both, computed naively.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.inputs import Labels, Task
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting import _kernel
from segiou.counting.encoding import Encoding

Count = Callable[[Labels, Labels], NDArray[Any]]
Contestant = Callable[[Task], NDArray[Any]]


def each(count: Count) -> Contestant:
    """Count pair by pair and sum."""

    def total(task: Task) -> NDArray[Any]:
        pairs = zip(task.truths, task.preds, strict=True)
        return np.sum([count(truth, pred) for truth, pred in pairs], axis=0)

    return total


def bincount(num_classes: int) -> Count:
    def count(truth: Labels, pred: Labels) -> NDArray[Any]:
        valid = truth < num_classes
        index = num_classes * truth[valid].astype(int) + pred[valid]
        return np.bincount(index, minlength=num_classes**2).reshape(num_classes, num_classes)

    return count


def scikit_learn(num_classes: int) -> Count:
    from sklearn.metrics import confusion_matrix

    def count(truth: Labels, pred: Labels) -> NDArray[Any]:
        valid = truth < num_classes
        return confusion_matrix(truth[valid], pred[valid], labels=range(num_classes))

    return count


def torchmetrics(num_classes: int) -> Count:
    import torch
    from torchmetrics.functional.classification import multiclass_confusion_matrix

    def count(truth: Labels, pred: Labels) -> NDArray[Any]:
        # In all inputs, the ignored value follows the last class.
        matrix = multiclass_confusion_matrix(
            torch.from_numpy(pred).long(),
            torch.from_numpy(truth).long(),
            num_classes,
            ignore_index=num_classes,
            validate_args=False,
        )
        return matrix.numpy()

    return count


def hugging_face(num_classes: int) -> Count:
    """The three histograms of evaluate's mean_iou."""

    def count(truth: Labels, pred: Labels) -> NDArray[Any]:
        valid = truth < num_classes
        truth, pred = truth[valid], pred[valid]
        areas = (pred[pred == truth], truth, pred)
        limits = (0, num_classes - 1)
        return np.array([np.histogram(area, num_classes, limits)[0] for area in areas])

    return count


def mmsegmentation(num_classes: int) -> Count:
    """The three float histograms of mmsegmentation's IoUMetric."""
    import torch

    def count(truth: Labels, pred: Labels) -> NDArray[Any]:
        t, p = torch.from_numpy(truth), torch.from_numpy(pred)
        valid = t < num_classes
        t, p = t[valid], p[valid]
        areas = [
            torch.histc(area.float(), num_classes, min=0, max=num_classes - 1)
            for area in (p[p == t], t, p)
        ]
        return torch.stack(areas).numpy()

    return count


def hotcoco(num_classes: int) -> Count:
    from hotcoco.metrics import pixel_confusion

    def count(truth: Labels, pred: Labels) -> NDArray[Any]:
        return pixel_confusion(truth, pred, num_classes, ignore_index=num_classes)

    return count


def vernier(num_classes: int) -> Count:
    """Its evaluator takes unsigned labels of at most 32 bits."""
    from vernier.semantic import Dataset, Evaluator, Predictions

    def unsigned(labels: Labels) -> NDArray[Any]:
        return labels if labels.dtype.kind == "u" else labels.astype(np.uint32)

    def count(truth: Labels, pred: Labels) -> NDArray[Any]:
        known = Dataset.from_arrays({0: unsigned(truth)}, num_classes, num_classes)
        found = Evaluator().evaluate(known, Predictions.from_arrays({0: unsigned(pred)}))
        return np.asarray(found.confusion_matrix.counts()).reshape(num_classes, num_classes)

    return count


def segiou(task: Task) -> Contestant:
    """The public call with all checks; as in practice, the accumulator is created once."""
    matrix = ConfusionMatrix(task.num_classes, ignore=task.ignore)

    def total(task: Task) -> NDArray[Any]:
        matrix.reset()
        for truth, pred in zip(task.truths, task.preds, strict=True):
            matrix.update(truth, pred)
        return matrix.matrix

    return total


def kernel(task: Task, backend: str) -> Contestant:
    """The kernel alone."""
    encoding = Encoding.of([(c,) for c in range(task.num_classes)], ignore=task.ignore)
    true, guessed = encoding.truth, encoding.pred

    def total(task: Task) -> NDArray[Any]:
        table = np.zeros((task.num_classes + 2, task.num_classes + 1), np.int64)
        for truth, pred in zip(task.truths, task.preds, strict=True):
            _kernel.count_coded(
                truth, pred, true.low, true.codes, guessed.low, guessed.codes, table, backend
            )
        return table[:-2, :-1]

    return total


def read_as_bytes(truth: Labels, pred: Labels) -> NDArray[Any]:
    return np.array([labels.reshape(-1).view(np.uint8).max() for labels in (truth, pred)])


def read_as_words(truth: Labels, pred: Labels) -> NDArray[Any]:
    usable = truth.nbytes // 8 * 8
    flat = (labels.reshape(-1).view(np.uint8)[:usable] for labels in (truth, pred))
    return np.array([np.bitwise_or.reduce(labels.view(np.uint64)) for labels in flat])


def sum_both(truth: Labels, pred: Labels) -> NDArray[Any]:
    return np.array([truth.sum(), pred.sum()])


#: Only reading the same bytes; the fastest is the lower bound.
READERS = {
    "read as bytes": each(read_as_bytes),
    "read as words": each(read_as_words),
    "sum": each(sum_both),
}

_PEERS = {
    "scikit-learn": (scikit_learn, "sklearn"),
    "torchmetrics": (torchmetrics, "torchmetrics"),
    "Hugging Face evaluate": (hugging_face, "numpy"),
    "mmsegmentation": (mmsegmentation, "torch"),
    "hotcoco": (hotcoco, "hotcoco"),
    "vernier": (vernier, "vernier"),
}


def peers(num_classes: int) -> dict[str, Contestant]:
    """The installed tools, on one thread like all others."""
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
    return {
        name: each(make(num_classes))
        for name, (make, package) in _PEERS.items()
        if find_spec(package)
    }


def expected(task: Task) -> tuple[NDArray[Any], NDArray[Any]]:
    """The confusion matrix of all pairs, one class at a time, and its three areas."""
    classes = np.arange(task.num_classes)
    matrix = np.zeros((task.num_classes, task.num_classes), np.int64)
    for truth, pred in zip(task.truths, task.preds, strict=True):
        for label in classes:
            predicted = pred[truth == label].ravel()
            matrix[label] += np.bincount(predicted, minlength=task.num_classes)
    return matrix, np.array([np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)])


def is_right(result: NDArray[Any], answers: tuple[NDArray[Any], NDArray[Any]]) -> bool:
    return any(result.shape == answer.shape and (result == answer).all() for answer in answers)
