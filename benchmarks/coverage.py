"""How often 95 % intervals contain the true mean IoU, and tests of equal models reject.

    python -m benchmarks.coverage                   # 1000 samples per cell: minutes on two cores
    python -m benchmarks.coverage --samples 200     # a look
    python -m benchmarks.coverage groups sequences  # some of the tables

The images are simulated: classes of log-normal sizes that occur in a fixed share of the images. An
image's difficulty is shared by its classes, within its group, or along its sequence (AR(1)). The
truth is the score of a very large set of such images. Raters draw star-shaped masks. Every cell has
a seed of its own. The figures are in docs/intervals.md and docs/raters.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.situations import Cell, print_cells
from segiou.counting.counts import Counts
from segiou.inference.bootstrapping import limits_of, resampled
from segiou.inference.dependence import design_of
from segiou.inference.leave_one_out import jackknife
from segiou.inference.paired import Paired
from segiou.inference.scored_runs import scored_images
from segiou.inference.statistics import statistic
from segiou.inference.units import units_of
from segiou.metrics.overall import mean_iou
from segiou.raters.scores import _excess, _expert_test, _Over

#: Share of the images in which each class occurs.
PRESENCE = {
    "common": np.array([1.0, 0.9, 0.5]),
    "skew": np.geomspace(1, 0.04, 11),
    "skew19": np.geomspace(1, 0.08, 19),
}
GROUP, SHARED = 10, 0.8
#: Raters: deviation of their outlines, and of their biases, relative to the radius.
NOISE, BIAS = 0.06, 0.03
RESAMPLES = 1000
_MANY = 300_000
CAMVID = Path(__file__).resolve().parents[2] / "shared" / "data" / "camvid"
BICYCLIST = 10


class Truths(NamedTuple):
    """What does not depend on a model: pixels of each class, and the difficulty of each image."""

    size: np.ndarray
    difficulty: np.ndarray


def truths(design: str, difficulty: np.ndarray, rng: np.random.Generator) -> Truths:
    """Draw the truth of as many images as there are difficulties."""
    presence = PRESENCE[design]
    there = rng.random((len(difficulty), len(presence))) < presence
    size = np.rint(1000 * rng.lognormal(0, 0.7, there.shape)).astype(np.int64) * there
    return Truths(size, difficulty)


def predicted(
    truth: Truths, rng: np.random.Generator, *, noise: float = 0.5, failures: float = 0.0
) -> Counts:
    """Counts (N, C) of a model; it misses everything on a share of the images, ``failures``."""
    size = truth.size
    ease = truth.difficulty[:, None] * 0.6 + rng.normal(0, noise, size.shape) + 1.0
    ease = np.where(rng.random((len(size), 1)) < failures, -3.0, ease)
    hit = rng.binomial(size, 1 / (1 + np.exp(-ease)))
    # Half of the missed pixels are predicted as the largest class of the image, half as the next.
    missed = size - hit
    half = missed // 2
    tp, fp = hit.copy(), np.zeros_like(hit)
    largest = np.argmax(size, 1)
    rows = np.arange(len(size))
    own = half[rows, largest]
    fp[rows, largest] += half.sum(1) - own
    tp[rows, largest] += own
    after = np.argmax(np.where(np.arange(size.shape[1]) == largest[:, None], -1, size), 1)
    rest = missed - half
    back = rest[rows, after]
    fp[rows, after] += rest.sum(1) - back
    tp[rows, after] += back
    fn = size - tp
    return Counts(tp, fp, fn, size.sum(1, keepdims=True) - size - fp)


def independent(number: int, rng: np.random.Generator) -> np.ndarray:
    """Difficulties of independent images."""
    return rng.normal(size=number)


def grouped(number: int, rng: np.random.Generator) -> np.ndarray:
    """Groups of ten images that share 80 % of the variance of their difficulty."""
    shared = np.repeat(rng.normal(size=number // GROUP), GROUP)
    return np.sqrt(SHARED) * shared + np.sqrt(1 - SHARED) * rng.normal(size=number)


def serial(correlation: float, length: int = 0) -> Callable[[int, np.random.Generator], np.ndarray]:
    """Difficulties along sequences of a length, AR(1); along one by default."""

    def difficulties(number: int, rng: np.random.Generator) -> np.ndarray:
        found = rng.normal(size=number)
        for t in range(1, number):
            if not length or t % length:
                found[t] = correlation * found[t - 1] + np.sqrt(1 - correlation**2) * found[t]
        return found

    return difficulties


@cache
def true_score(design: str) -> float:
    """Mean IoU of a very large set of images."""
    rng = np.random.default_rng(1)
    return float(mean_iou(predicted(truths(design, rng.normal(size=_MANY), rng), rng).summed()))


def contains(limits: tuple[float, float], truth: float) -> float:
    """1 if an interval contains the truth; NaN if there is no interval."""
    return math.nan if math.isnan(limits[0]) else float(limits[0] <= truth <= limits[1])


def intervals(design: str, number: int, rng: np.random.Generator) -> list[float]:
    """Independent images: jackknife-t and percentile bootstrap."""
    counts = predicted(truths(design, independent(number, rng), rng), rng)
    return both(counts, None, true_score(design))


def groups(design: str, number: int, rng: np.random.Generator) -> list[float]:
    """Groups of ten images as units: jackknife-t and percentile bootstrap."""
    counts = predicted(truths(design, grouped(number * GROUP, rng), rng), rng)
    return both(counts, np.repeat(np.arange(number), GROUP).tolist(), true_score(design))


def both(counts: Counts, given: list[int] | None, truth: float) -> list[float]:
    """Whether either kind of interval over units contains the truth."""
    prepared = statistic(counts, units=units_of(len(counts.tp), given))
    found = jackknife(prepared)
    (values,) = resampled((prepared,), RESAMPLES, 0)
    drawn = limits_of(values[:, 0], 0.95)
    return [contains((found.low[0], found.high[0]), truth), contains(drawn, truth)]


def sequences(design: str, number: int, rng: np.random.Generator, r: float, length: int) -> list:
    """Sequences found in the names, by the rule of the package and as independent images."""
    counts = predicted(truths(design, serial(r, length)(number, rng), rng), rng)
    # At steps of 5, as frames: consecutive numbers would first be judged by the scores.
    ids = [f"drive{i // (length or number)}_{5 * i:05d}" for i in range(number)]
    images = scored_images(counts, "iou", None)
    design_found = design_of(ids, number, lambda: [images.of_images()])
    truth, found = true_score(design), []
    for units in (design_found.units, units_of(number)):
        limits = jackknife(statistic(counts, units=units))
        found.append(contains((limits.low[0], limits.high[0]), truth))
    return found


def alarms(
    design: str, number: int, rng: np.random.Generator, failures: float, noise: float
) -> list[float]:
    """Two models of the same expected score: the interval of the difference excludes 0; p < .05.

    With ``noise``, one of the models varies more, and the truth is the difference of the two.
    """
    truth = truths(design, independent(number, rng), rng)
    pair = [predicted(truth, rng, failures=failures, noise=n) for n in (0.5, noise)]
    a, b = (statistic(counts, units=units_of(number)) for counts in pair)
    paired = Paired.of(a, b, 999)
    limits = paired.limits(0.95)
    target = 0.0 if noise == 0.5 else true_difference(design, noise)
    return [1 - contains((limits.low[0], limits.high[0]), target), float(paired.p[0] < 0.05)]


@cache
def true_difference(design: str, noise: float) -> float:
    """Difference of the scores of two models on a very large set of images."""
    rng = np.random.default_rng(2)
    truth = truths(design, rng.normal(size=_MANY), rng)
    first, second = (mean_iou(predicted(truth, rng, noise=n).summed()) for n in (0.5, noise))
    return float(second - first)


@cache
def camvid(model: str, left_out: float = 0) -> Counts:
    """Counts of each frame of the CamVid masks beside the checkout.

    ``left_out`` frames are left out, those in which ``base`` finds most pixels of bicyclists: one
    frame has 77 % of them.
    """
    from segiou import score_folder

    counts = score_folder(CAMVID / "truth", CAMVID / model, labels="camvid").counts
    if not left_out:
        return counts
    order = np.argsort(camvid("base").tp[:, BICYCLIST])
    return counts[np.sort(order[: len(order) - int(left_out)])]


def frames(model: str, number: int, rng: np.random.Generator, left_out: float) -> list[float]:
    """CamVid frames drawn with replacement: the interval contains the score of all frames."""
    counts = camvid(model, left_out)
    drawn = counts[rng.integers(0, len(counts.tp), number)]
    return both(drawn, None, float(mean_iou(counts.summed())))


def frame_pairs(model: str, number: int, rng: np.random.Generator, left_out: float) -> list[float]:
    """The same of the difference of the two models."""
    a, b = camvid("small", left_out), camvid(model, left_out)
    drawn = rng.integers(0, len(a.tp), number)
    pair = [statistic(counts[drawn], units=units_of(number)) for counts in (a, b)]
    limits = Paired.of(*pair, 999).limits(0.95)
    truth = float(mean_iou(b.summed()) - mean_iou(a.summed()))
    return [contains((limits.low[0], limits.high[0]), truth)]


def thresholds(design: str, number: int, rng: np.random.Generator, points: float) -> list[float]:
    """A model whose score is ``points`` above the threshold: passed, failed by one-sided bounds."""
    counts = predicted(truths(design, independent(number, rng), rng), rng)
    found = jackknife(statistic(counts, units=units_of(number)), level=0.9)
    least = true_score(design) - points / 100
    return [float(found.low[0] >= least), float(found.high[0] < least)]


def medians(
    design: str, number: int, rng: np.random.Generator, structures: int, shared: float
) -> list[float]:
    """Mean over structures of the median of log-normal distances: the bootstrap contains it.

    Cases share a part of the variance; with the design ``some``, 60 % of the structures occur.
    """
    typical = np.geomspace(1, 8, structures)
    noise = np.sqrt(shared) * rng.normal(size=(number, 1))
    noise = noise + np.sqrt(1 - shared) * rng.normal(size=(number, structures))
    values = typical * np.exp(noise)
    if design == "some":
        values[rng.random(values.shape) > 0.6] = np.nan
    drawn = values[rng.integers(0, number, (RESAMPLES, number))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # resamples without a structure
        means = np.nanmean(np.nanmedian(drawn, axis=1), axis=1)
    return [contains(limits_of(means, 0.95), float(typical.mean()))]


def distances(
    experts: int, number: int, differ: bool, rng: np.random.Generator, noise: float
) -> np.ndarray:
    """1 − Dice of star-shaped masks in each case, (N, R + 1, R + 1); the model is the last rater.

    It is one more expert with ``noise`` times as much noise. If raters differ, each has a bias
    and a skill in all cases.
    """
    angles = 2 * np.pi * np.arange(64) / 64
    waves = [of(k * angles) for of in (np.cos, np.sin) for k in range(1, 6)] / np.sqrt(5)
    everyone = experts + 1
    skill = NOISE * np.exp(0.3 * differ * rng.normal(size=(everyone, 1)))
    skill[-1] *= noise
    bias = BIAS * differ * rng.normal(size=(everyone, 1))
    own = rng.normal(size=(number, everyone, 10)) @ waves + rng.normal(size=(number, everyone, 1))
    outline = 1 + 0.1 * rng.normal(size=(number, 1, 10)) @ waves
    radius = np.maximum(outline * (1 + bias + skill * own), 0.05)
    area, found = np.square(radius).sum(-1), np.full((number, everyone, everyone), np.nan)
    for a, b in combinations(range(everyone), 2):
        both = np.square(np.minimum(radius[:, a], radius[:, b])).sum(-1)
        found[:, a, b] = found[:, b, a] = 1 - 2 * both / (area[:, a] + area[:, b])
    return found


def raters(
    design: str, number: int, rng: np.random.Generator, experts: int, noise: float
) -> list[float]:
    """A model against experts: Wald, t and percentile intervals contain 0; the test rejects."""
    apart = distances(experts, number, design == "differ", rng, noise)
    values = _excess(apart[..., None], experts, range(experts))
    (found,) = _Over(units_of(number), 0.95).means(values)
    reach = 1.96 * float(values.std(ddof=1)) / math.sqrt(number)
    resamples = values[rng.integers(0, number, (RESAMPLES, number)), 0].mean(1)
    ends = [(found.value - reach, found.value + reach), (found.low, found.high)]
    ends.append(limits_of(resamples, 0.95))
    rejected = _expert_test(apart, experts).p <= 0.05
    return [*(contains(limits, 0.0) for limits in ends), float(rejected)]


def cells() -> Iterator[Cell]:
    """All situations, table by table."""
    for design in PRESENCE:
        for number in (5, 10, 20, 50, 100, 200):
            yield Cell("images", intervals, design, number)
    for design in ("common", "skew"):
        for number in (3, 4, 5, 6, 8, 10, 20):
            yield Cell("groups", groups, design, number)
        for r in (0.0, 0.3, 0.6, 0.9):
            for number in (50, 100, 200, 500):
                yield Cell("sequences", sequences, design, number, (r, 0))
            for number in (80, 200):
                yield Cell("sequences", sequences, design, number, (r, 10))
        for failures, noise in ((0.0, 0.5), (0.05, 0.5), (0.0, 1.0)):
            for number in (5, 6, 8, 10, 20, 50):
                yield Cell("differences", alarms, design, number, (failures, noise))
        for points in (0.0, 5.0, -5.0):
            for number in (10, 20, 50, 200):
                yield Cell("thresholds", thresholds, design, number, (points,))
    for design, structures, shared in (
        ("all", 3, 0.5), ("all", 10, 0.5), ("all", 10, 0.0), ("some", 10, 0.5),
    ):  # fmt: skip
        for number in (6, 10, 20, 50, 100):
            yield Cell("medians", medians, design, number, (structures, shared))
    for design in ("alike", "differ"):
        for experts in (3, 4, 5):
            for number in (10, 30, 100):
                for noise in (1.0, 1.5):
                    yield Cell("raters", raters, design, number, (experts, noise))
    if CAMVID.is_dir():
        for left_out in (0, 1):
            for number in (10, 20, 40, 200):
                for model in ("base", "small"):
                    yield Cell("camvid", frames, model, number, (left_out,))
                yield Cell("camvid", frame_pairs, "base", number, (left_out,))


def line(cell: Cell, options: str, shares: np.ndarray) -> str:
    """The shares of a cell."""
    shown = "  ".join(f"{100 * share:5.1f} %" for share in shares)
    what = f"{cell.table} ({cell.measure.__name__})"
    return f"{what:26} {cell.design:7} {cell.number:4}  {options:8} {shown}"


if __name__ == "__main__":
    print_cells(cells(), __doc__, 1000, line)
