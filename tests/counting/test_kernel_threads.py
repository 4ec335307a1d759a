"""Counting in several threads at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from meanwhile import others_run_during

from segiou.counting.encoding import count_coded

pytest.importorskip("segiou.counting._kernel", reason="the counting kernel is not built here")

CODES = np.arange(5, dtype=np.uint16)


def counted(truth, pred):
    table = np.zeros((7, 6), np.int64)
    count_coded(truth, pred, 0, CODES, 0, CODES, table)
    return table


def pairs(count):
    rng = np.random.default_rng(5)
    dtypes = [np.uint8, np.int64, np.dtype(">i2"), np.uint32]
    for i in range(count):
        truth = rng.integers(0, 7, (97, 211)).astype(dtypes[i % 4])
        pred = np.repeat(rng.integers(0, 6, 97 * 211), 1 + i)[: 97 * 211].reshape(97, 211)
        yield truth, pred.astype(dtypes[i // 4 % 4])


def test_threads_count_what_one_thread_counts():
    made = list(pairs(24))
    serial = [counted(*pair) for pair in made]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(5):
            threaded = list(pool.map(lambda pair: counted(*pair), made))
            np.testing.assert_array_equal(threaded, serial)


def test_labels_that_change_meanwhile_do_no_harm():
    truth, pred = np.zeros(300_000, np.uint8), np.zeros(300_000, np.int32)
    stop = threading.Event()

    def scribble():
        rng = np.random.default_rng(6)
        while not stop.is_set():
            at = rng.integers(0, truth.size - 5000)
            truth[at : at + 5000] = rng.integers(0, 256, 5000)
            pred[at : at + 5000] = rng.integers(-(2**31), 2**31, 5000)

    writer = threading.Thread(target=scribble)
    writer.start()
    try:
        totals = [int(counted(truth, pred).sum()) for _ in range(200)]
    finally:
        stop.set()
        writer.join()
    assert totals == [truth.size] * 200


def test_other_threads_run_while_pixels_are_counted():
    long = np.broadcast_to(np.uint8(1), (1 << 14, 1 << 14))
    assert others_run_during(lambda: counted(long, long))
