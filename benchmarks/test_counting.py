"""Counting label pairs: segiou compared with other tools and with only reading the bytes.

Run with ``python -m pytest benchmarks/test_counting.py``; all results are checked. For the
table in docs/speed.md, run ``python -m benchmarks.counting``.
"""

from __future__ import annotations

import functools

import pytest

pytest.importorskip("pytest_benchmark", reason="pytest-benchmark times these")
pytest.importorskip("segiou.counting._kernel", reason="the counting kernel is not built here")

from benchmarks import inputs, peers
from segiou.counting._kernel import BACKENDS

TASKS = {
    "camvid": lambda: inputs.camvid().first(12),
    "camvid-int64": lambda: inputs.camvid().first(12).cast("int64"),
    "davis": lambda: inputs.davis().first(8),
    "noise-19": lambda: inputs.noise(19),
    "noise-256": lambda: inputs.noise(256),
}
SLOW = ("scikit-learn", "torchmetrics", "Hugging Face evaluate", "mmsegmentation")


@functools.cache
def prepared(name):
    task = TASKS[name]()
    return task, peers.expected(task)


def timed(benchmark, task, contestant):
    benchmark.group = task.name
    benchmark.extra_info["pixels"] = task.pixels
    return benchmark.pedantic(contestant, (task,), rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("name", TASKS)
def test_segiou(benchmark, name):
    task, answers = prepared(name)
    assert peers.is_right(timed(benchmark, task, peers.segiou(task)), answers)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", TASKS)
def test_kernel(benchmark, name, backend):
    task, answers = prepared(name)
    assert peers.is_right(timed(benchmark, task, peers.kernel(task, backend)), answers)


@pytest.mark.parametrize("name", TASKS)
def test_bincount(benchmark, name):
    task, answers = prepared(name)
    assert peers.is_right(
        timed(benchmark, task, peers.each(peers.bincount(task.num_classes))), answers
    )


@pytest.mark.parametrize("peer", SLOW)
def test_peer(benchmark, peer):
    task, answers = prepared("camvid")
    installed = peers.peers(task.num_classes)
    if peer not in installed:
        pytest.skip(f"{peer} is not installed")
    assert peers.is_right(timed(benchmark, task, installed[peer]), answers)


@pytest.mark.parametrize("reader", peers.READERS)
@pytest.mark.parametrize("name", TASKS)
def test_just_reading(benchmark, name, reader):
    task, _ = prepared(name)
    assert timed(benchmark, task, peers.READERS[reader]).any()


def test_an_answer_can_be_wrong():
    _, answers = prepared("davis")
    matrix = answers[0].copy()
    assert peers.is_right(matrix, answers)
    matrix[0, 0] += 1
    assert not peers.is_right(matrix, answers)
