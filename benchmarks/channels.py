"""Counting overlapping channels compared with the usual NumPy expressions.

``python -m benchmarks.channels``; the results are checked. Processor time, medians of alternating
rounds.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.counting import table
from benchmarks.reading import seconds
from segiou.counting.channels import count_channels
from segiou.counting.reference import count_bytes as count_in_numpy

#: Shape, and the axis of the channels.
CASES = {
    "C,H,W": ((19, 512, 1024), 0),
    "H,W,C": ((512, 1024, 19), 2),
    "N,C,H,W": ((8, 3, 256, 256), 1),
    "one channel": ((1, 1024, 2048), 0),
}


def expressions(truth, pred, axis):
    others = tuple(a for a in range(truth.ndim) if a != axis)
    return (
        (truth & pred).sum(others),
        (~truth & pred).sum(others),
        (truth & ~pred).sum(others),
        (~truth & ~pred).sum(others),
    )


def numpy_path(truth, pred, axis):
    shape = truth.shape
    outer, inner = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
    totals = np.zeros((3, shape[axis]), np.int64)
    assert count_in_numpy(truth, pred, outer, shape[axis], inner, totals)
    return totals


def main() -> None:
    rows = []
    for name, (shape, axis) in CASES.items():
        truth, pred = np.random.default_rng(0).random((2, *shape)) < 0.3
        counts = count_channels(truth, pred, axis=axis)
        ours = counts.tp, counts.fp, counts.fn, counts.tn
        np.testing.assert_array_equal(ours, expressions(truth, pred, axis))
        np.testing.assert_array_equal(numpy_path(truth, pred, axis)[0], counts.tp)
        contestants = {
            "segiou": partial(count_channels, truth, pred, axis=axis),
            "NumPy path": partial(numpy_path, truth, pred, axis),
            "expressions": partial(expressions, truth, pred, axis),
        }
        times = seconds(contestants, 7)
        ratio = times["expressions"] / times["segiou"]
        rows.append([name, *(f"{1e3 * taken:.2f}" for taken in times.values()), f"{ratio:.0f}"])
    print(table(["ms", *contestants, "× the expressions"], rows))


if __name__ == "__main__":
    main()
