"""Labels from scores: segiou compared with NumPy's and torch's argmax and with only reading.

Run with ``python -m pytest benchmarks/test_scores.py``; all results are checked. For
nanoseconds per pixel, run ``python -m benchmarks.scores``.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

pytest.importorskip("pytest_benchmark", reason="pytest-benchmark times these")
torch = pytest.importorskip("torch", reason="torch makes the scores")

from benchmarks import scores as peers  # noqa: E402
from segiou.counting.scores import scores_to_labels  # noqa: E402

batch = functools.cache(peers.batch)


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", peers.NAMES)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", peers.DTYPES)
@pytest.mark.parametrize("classes", [2, 19])
def test_argmax(benchmark, classes, dtype, layout, name):
    scores, axis, answer = batch(classes, dtype, layout)
    benchmark.group = f"{classes} classes, {dtype}, {layout}"
    benchmark.extra_info["pixels"] = answer.size
    run = peers.contestants(scores, axis)[name]
    found = benchmark.pedantic(run, rounds=3, warmup_rounds=1)
    assert found if name == "just reading" else np.array_equal(found, answer)


@pytest.mark.parametrize("dtype", peers.DTYPES)
def test_threshold(benchmark, dtype):
    scores, _, _ = batch(2, dtype, "NCHW")
    benchmark.group = f"threshold, {dtype}"
    found = benchmark.pedantic(
        lambda: scores_to_labels(scores, threshold=0.5), rounds=3, warmup_rounds=1
    )
    assert np.array_equal(found, (scores > 0.5).numpy())
