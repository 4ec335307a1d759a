"""Coverage of 95 % intervals of mean IoU, and false-positive rates of the comparison.

    python -m benchmarks.coverage                   # a few minutes on two cores
    python -m benchmarks.coverage --samples 300     # a quick estimate

The images are synthetic: three classes of very different sizes, in 100 %, 90 % and 50 % of the
images. Difficulty is correlated within an image, and also within its group or along a sequence,
AR(1). The truth is the score of a very large set of such images. The figures are in
docs/intervals.md, and in ``segiou.analysis.bootstrapping.MEASURED_COVERAGE``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import numpy as np

from segiou.analysis.bootstrapping import limits_of, resampled
from segiou.analysis.comparing import permutation_test
from segiou.analysis.dependence import Blocks, Sequences, dependence_of
from segiou.analysis.statistics import image_scores, statistic
from segiou.analysis.units import units_of
from segiou.counting.counts import Counts
from segiou.metrics.overall import mean_iou

PRESENCE = (1.0, 0.9, 0.5)
RESAMPLES = 1000
METHODS = ("percentile", "bca")
GROUP, SHARED = 10, 0.8


def images(difficulty: np.ndarray, rng: np.random.Generator) -> Counts:
    """Counts (N, C) of images with standard normal difficulties."""
    number, classes = len(difficulty), len(PRESENCE)
    there = rng.random((number, classes)) < PRESENCE
    size = np.rint(1000 * rng.lognormal(0, 0.7, (number, classes))).astype(np.int64) * there
    ease = difficulty[:, None] * 0.6 + rng.normal(0, 0.5, (number, classes)) + 1.0
    hit = rng.binomial(size, 1 / (1 + np.exp(-ease)))
    # Half of the missed pixels are predicted as the first class, the rest as the next.
    missed = size - hit
    half = missed // 2
    tp, fp = hit.copy(), np.roll(missed - half, 1, axis=1)
    tp[:, 0] += half[:, 0]
    fp[:, 0] += half[:, 1:].sum(1)
    return Counts(tp, fp, size - tp, size.sum(1, keepdims=True) - size - fp)


def independent(number: int, rng: np.random.Generator) -> np.ndarray:
    """Difficulties of independent images."""
    return rng.normal(size=number)


def grouped(number: int, rng: np.random.Generator) -> np.ndarray:
    """Groups of ten images that share 80 % of the variance of their difficulty."""
    shared = np.repeat(rng.normal(size=number // GROUP), GROUP)
    return np.sqrt(SHARED) * shared + np.sqrt(1 - SHARED) * rng.normal(size=number)


def serial(correlation: float) -> Callable[[int, np.random.Generator], np.ndarray]:
    """Difficulties along one sequence, AR(1)."""

    def difficulties(number: int, rng: np.random.Generator) -> np.ndarray:
        found = np.empty(number)
        found[0] = rng.normal()
        steps = np.sqrt(1 - correlation**2) * rng.normal(size=number)
        for t in range(1, number):
            found[t] = correlation * found[t - 1] + steps[t]
        return found

    return difficulties


def in_order(number: int) -> Sequences:
    """All images as one sequence."""
    return Sequences(("",), (np.arange(number),))


def intervals(counts: Counts, how: str, seed: int) -> list[tuple[float, float]]:
    """Percentile and BCa interval of mean IoU, from resampled images, groups, or blocks."""
    number = len(counts.tp)
    drawn = score = statistic(counts, units=units_of(number))
    blocks = None
    if how == "groups":
        groups = (np.arange(number) // GROUP).tolist()
        drawn = score = statistic(counts, units=units_of(number, groups))
    if how == "blocks":
        length = dependence_of(image_scores(counts, "iou"), in_order(number)).block_length
        blocks = Blocks(in_order(number), length)
        score = statistic(counts, units=blocks.units(drawn.units.names))
    (values,) = resampled((drawn,), RESAMPLES, seed, blocks)
    without = {"percentile": None, "bca": score.left_out[:, 0]}
    return [limits_of(values[:, 0], 0.95, score.values[0], without[method]) for method in METHODS]


@cache
def true_score() -> float:
    """Mean IoU of a very large set of images."""
    rng = np.random.default_rng(1)
    return float(mean_iou(images(rng.normal(size=400_000), rng).summed()))


def covered(design: str, number: int, how: str, samples: int) -> list[float]:
    """Share of samples whose interval contains the truth, for both methods."""
    difficulty, truth = DESIGNS[design], true_score()
    rng = np.random.default_rng([number, *design.encode()])
    inside = np.zeros(len(METHODS))
    for sample in range(samples):
        found = np.array(intervals(images(difficulty(number, rng), rng), how, sample))
        inside += (found[:, 0] <= truth) & (truth <= found[:, 1])
    return (inside / samples).tolist()


def alarms(design: str, number: int, how: str, samples: int) -> list[float]:
    """Share of samples with p at most .05 for two models that differ only by chance."""
    difficulty = DESIGNS[design]
    rng = np.random.default_rng([number, 7, *design.encode()])
    found = 0
    for sample in range(samples):
        # Both models share the truth; their difficulties are separate and autocorrelated.
        seed = int(rng.integers(2**31))
        # The truth is sampled first, so it is the same for the same seed.
        a, b = (images(difficulty(number, rng), np.random.default_rng(seed)) for _ in range(2))
        units = units_of(number)
        if how == "blocks":
            differences = image_scores(b, "iou") - image_scores(a, "iou")
            length = dependence_of(differences, in_order(number)).block_length
            units = Blocks(in_order(number), length).units(units.names)
        pair = [statistic(counts, units=units) for counts in (a, b)]
        found += permutation_test(*pair, 399, sample).p[0] <= 0.05
    return [found / samples]


DESIGNS: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "independent": independent,
    "groups of 10": grouped,
    "AR(.3)": serial(0.3),
    "AR(.6)": serial(0.6),
    "AR(.9)": serial(0.9),
}
SERIAL = [name for name in DESIGNS if name.startswith("AR")]


def questions() -> Iterator[tuple[str, str, int, str]]:
    """Measurements: (interval or test, design, images, resampling unit)."""
    for number in (10, 20, 50, 100, 200):
        yield "interval", "independent", number, "images"
    for number in (100, 200, 400, 800):
        for how in ("images", "groups"):
            yield "interval", "groups of 10", number, how
    for design in SERIAL:
        for number in (60, 200, 600):
            for how in ("images", "blocks"):
                yield "interval", design, number, how
    for design in ("independent", *SERIAL):
        for number in (60, 200):
            for how in ("images", "blocks"):
                yield "test", design, number, how


def answer(question: tuple[str, str, int, str, int]) -> list[float]:
    """Run one measurement."""
    what, *options = question
    return (covered if what == "interval" else alarms)(*options)


def main() -> None:
    """Print a line per measurement: percentile and BCa coverage, or the false-positive rate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parsed = parser.parse_args()
    asked = list(questions())
    with ProcessPoolExecutor(parsed.workers) as pool:
        found = pool.map(answer, [(*question, parsed.samples) for question in asked])
        for (what, design, number, how), shares in zip(asked, found, strict=True):
            shown = "  ".join(f"{100 * share:5.1f} %" for share in shares)
            print(f"{what:8}  {design:12}  {number:4} images, by {how:7}  {shown}", flush=True)


if __name__ == "__main__":
    main()
