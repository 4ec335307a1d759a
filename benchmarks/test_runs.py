"""Writing, reading and summing run files. Run: pytest benchmarks/test_runs.py."""

import sys
from pathlib import Path

import pytest

import segiou

pytest.importorskip("pytest_benchmark")

sys.path.insert(0, str(Path(__file__).parent))
from runs import synthetic, write

IMAGES = 20_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("runs") / "run.sqlite"
    write(made, IMAGES)
    return made


@pytest.mark.benchmark(group="run file, 20 000 images")
def test_write(benchmark, tmp_path):
    names = (tmp_path / f"{i}.sqlite" for i in range(1000))
    benchmark.pedantic(lambda: write(next(names), IMAGES), rounds=3)


@pytest.mark.benchmark(group="run file, 20 000 images")
def test_making_the_counts_up(benchmark):
    benchmark.pedantic(lambda: sum(len(block) for block in synthetic(IMAGES)), rounds=3)


@pytest.mark.benchmark(group="run file, 20 000 images")
def test_total(benchmark, path):
    total = benchmark(lambda: segiou.Run.open(path).total())
    assert total.pairs == IMAGES


@pytest.mark.benchmark(group="run file, 20 000 images")
def test_mean_over_images(benchmark, path):
    assert benchmark(lambda: segiou.Run.open(path).report("monai").mean_iou) > 0


@pytest.mark.benchmark(group="run file, 20 000 images")
def test_worst(benchmark, path):
    assert len(benchmark(lambda: segiou.Run.open(path).worst(10))) == 10
