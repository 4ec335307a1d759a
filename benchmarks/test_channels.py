"""Counting overlapping channels compared with the usual NumPy expressions.

``pytest benchmarks/test_channels.py`` prints the ratios; all results are checked.
"""

import time
from statistics import median

import numpy as np
import pytest

from segiou.counting.channels import CHANNELS_BACKEND, count_channels
from segiou.counting.reference import count_bytes as count_in_numpy

CASES = [
    pytest.param((19, 512, 1024), 0, id="C,H,W"),
    pytest.param((512, 1024, 19), 2, id="H,W,C"),
    pytest.param((8, 3, 256, 256), 1, id="N,C,H,W"),
    pytest.param((1, 1024, 2048), 0, id="one channel"),
]


def seconds(function, rounds=7):
    function()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return median(times)


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


@pytest.mark.parametrize(("shape", "axis"), CASES)
def test_channels(shape, axis, capsys):
    rng = np.random.default_rng(0)
    truth, pred = rng.random((2, *shape)) < 0.3
    counts = count_channels(truth, pred, axis=axis)
    for ours, theirs in zip(
        (counts.tp, counts.fp, counts.fn, counts.tn), expressions(truth, pred, axis), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(numpy_path(truth, pred, axis)[0], counts.tp)

    ours = seconds(lambda: count_channels(truth, pred, axis=axis))
    fallback = seconds(lambda: numpy_path(truth, pred, axis))
    theirs = seconds(lambda: expressions(truth, pred, axis))
    with capsys.disabled():
        print(
            f"\n{shape}, axis {axis}: {CHANNELS_BACKEND} {1e3 * ours:.2f} ms "
            f"({truth.size / ours / 1e9:.1f} G values/s), {theirs / ours:.0f} × the expressions "
            f"({1e3 * theirs:.1f} ms); NumPy path {theirs / fallback:.1f} ×"
        )
