"""Intervals and comparisons of whole runs. Run: pytest benchmarks/test_bootstrap.py."""

import tracemalloc

import numpy as np
import pytest

from segiou.analysis import bootstrap, influence
from segiou.counting.counts import Counts
from segiou.metrics.overall import mean_iou

pytest.importorskip("pytest_benchmark")


def some_counts(images, classes, seed=0):
    rng = np.random.default_rng(seed)
    tp, fp, fn = rng.integers(0, 10_000, (3, images, classes))
    return Counts(tp, fp, fn, 50_000 * classes - tp - fp - fn)


def image_by_image(counts, resamples, seed=0):
    """The usual loop: select images, sum their counts, divide."""
    rng = np.random.default_rng(seed)
    number = len(counts.tp)
    return [
        float(mean_iou(counts[rng.integers(0, number, number)].summed())) for _ in range(resamples)
    ]


@pytest.mark.benchmark(group="bootstrap, 10 000 resamples")
@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize(("images", "classes"), [(500, 19), (2000, 150)])
def test_bootstrap(benchmark, images, classes, method):
    counts = some_counts(images, classes)
    found = benchmark.pedantic(bootstrap, (counts,), {"method": method}, rounds=3)
    assert found.overall.low < found.overall.value < found.overall.high


@pytest.mark.benchmark(group="bootstrap, 1000 resamples of 500 images, 19 classes")
@pytest.mark.parametrize("way", ["one product per batch", "one image at a time"])
def test_beside_the_usual_loop(benchmark, way):
    counts = some_counts(500, 19)
    if way == "one image at a time":
        values = benchmark.pedantic(image_by_image, (counts, 1000), rounds=3)
        low = float(np.quantile(values, 0.025))
    else:
        low = benchmark.pedantic(bootstrap, (counts,), {"resamples": 1000}, rounds=3).overall.low
    # The same seed selects the same images, so results agree up to rounding.
    expected = bootstrap(counts, resamples=1000).overall.low
    assert low == pytest.approx(expected, abs=1e-12)


@pytest.mark.benchmark(group="leave one out")
def test_influence(benchmark):
    found = benchmark(influence, some_counts(2000, 150))
    assert found.left_out.shape == (2000, 151)


def test_memory():
    """NumPy reports its arrays to tracemalloc, so this is the peak of one bootstrap."""
    counts = some_counts(2000, 150)
    tracemalloc.start()
    bootstrap(counts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"peak memory of 10 000 resamples of 2000 x 150: {peak / 2**20:.0f} MiB")
    assert peak < 2**30
