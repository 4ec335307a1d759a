"""How often 95 % intervals of the difference of two models contain the true difference.

    python -m benchmarks.paired_coverage                 # 600 samples per cell
    python -m benchmarks.paired_coverage --samples 200   # a look
    python -m benchmarks.paired_coverage batches camvid  # some of the tables

Images are simulated: an image's difficulty is shared by both models, and what remains of each class
has the correlation rho between them. Training runs of a recipe share its noise on each image, have
noise of their own there, and their own shift. The truth is the difference on a very large set of
images. The table pools samples from such a set with heavy-tailed sizes: a lesion in 70 % of the
images, 19 classes with a long tail, losses on difficult images that gains on others outweigh, and
scores near 1. The table family compares equal models of which all pairs are tested. Each line has
the coverage, the mean width in points, and the share of intervals that exclude 0. The figures are
in docs/comparison.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from benchmarks.coverage import CAMVID, camvid
from benchmarks.situations import Cell, print_cells
from segiou.analysis.comparison.recipes import Crossed
from segiou.counting.counts import Counts
from segiou.inference.dependence import design_of
from segiou.inference.paired import Paired
from segiou.inference.paired_runs import Common
from segiou.inference.scored_runs import scored_images
from segiou.inference.significance import holm_adjust
from segiou.inference.statistics import statistic
from segiou.inference.units import Units, units_of
from segiou.metrics.overall import mean_iou

#: Presence and typical size of each class.
DESIGNS = {
    "common": (np.array([1, 0.9, 0.5]), np.array([1, 0.5, 0.2])),
    "skew": (np.geomspace(1, 0.04, 11), np.geomspace(1, 0.02, 11)),
}
SHARED = 0.6
_MANY = 100_000
PERMUTATIONS = 499
#: Of 28 pairs of 8 models, with an adjusted p below 0.05.
PERMUTATIONS_OF_PAIRS = 1999


def models(
    design: str,
    rho: float,
    lifts: Sequence[float],
    difficulty: np.ndarray,
    rng: np.random.Generator,
) -> list[Counts]:
    """Counts of as many models as there are lifts, on as many images as there are difficulties."""
    presence, size = DESIGNS[design]
    pixels, there, ease = _scenes(presence, size, difficulty, rng)
    common, found = rng.normal(0, 0.5, pixels.shape), []
    for own in lifts:
        noise = np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.normal(0, 0.5, pixels.shape)
        found.append(_counted(pixels, there, size, ease + noise + own))
    return found


def _scenes(
    presence: np.ndarray, size: np.ndarray, difficulty: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pixels of each class in each image, which classes occur, and how easy they are."""
    shape = len(difficulty), len(presence)
    there = rng.random(shape) < presence
    there[:, 0] = True
    pixels = np.rint(1e4 * size * np.exp(rng.normal(0, 0.8, shape))).astype(np.int64) * there
    ease = 1.8 - 0.15 * np.arange(shape[1]) + SHARED * difficulty[:, None]
    return pixels, there, ease + SHARED * 0.6 * rng.normal(size=shape)


def _counted(pixels: np.ndarray, there: np.ndarray, size: np.ndarray, ease: np.ndarray) -> Counts:
    """Counts of a model that finds this share of the pixels, on the scale of logits."""
    hit = np.rint(pixels / (1 + np.exp(-ease))).astype(np.int64)
    return Counts(hit, _false(pixels - hit, there, size), pixels - hit, 0 * pixels)


def training_runs(
    design: str, shifts: list[np.ndarray], number: int, rng: np.random.Generator
) -> list[list[Counts]]:
    """Counts of the runs of each recipe, with these shifts, on the same images."""
    presence, size = DESIGNS[design]
    pixels, there, ease = _scenes(presence, size, rng.normal(size=number), rng)
    found = []
    for recipe in shifts:
        of_recipe = ease + rng.normal(0, 0.3, ease.shape)
        noises = rng.normal(0, 0.3, (len(recipe), *ease.shape))
        eases = of_recipe + noises + recipe[:, None, None]
        found.append([_counted(pixels, there, size, each) for each in eases])
    return found


def _false(missed: np.ndarray, there: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Missed pixels of each class go to the other classes of the image, the large ones first."""
    to = there[:, None, :] * size**0.5 * (1 - np.eye(len(size)))
    total = to.sum(-1, keepdims=True)
    share = np.divide(to, total, out=np.zeros_like(to), where=total > 0)
    return np.rint((missed[:, :, None] * share).sum(1)).astype(np.int64)


class Pool(NamedTuple):
    """A set of images, and what distinguishes the second model on them from the first."""

    presence: np.ndarray
    lift: float
    failures: float = 0.0
    slope: float = 0.8
    ability: float = 1.2
    heavy: float = 1.0
    rho: float = 0.9


LESION = np.array([1, 0.7])
POOLS = {
    "lesions": Pool(LESION, 0.436, heavy=1.6, rho=0.5),
    "failures": Pool(LESION, 0.407, 0.05, heavy=1.6, rho=0.5),
    "tail": Pool(np.r_[1, np.geomspace(0.8, 0.02, 18)], 0.146),
    "hard": Pool(np.array([1, 1, 0.9, 0.8, 0.6, 0.35, 0.12, 0.05]), 0.208, slope=1.2),
    "near1": Pool(np.array([1, 1, 1, 0.95]), 0.087, ability=4.5),
}
_POOL = 40_000


@cache
def pool(design: str) -> tuple[list[Counts], float]:
    """Two models on a set of images with heavy-tailed sizes, and their difference."""
    one, rng = POOLS[design], np.random.default_rng(5)
    shape = _POOL, len(one.presence)
    there = rng.random(shape) < one.presence
    there[:, 0] = True
    raw = np.exp(rng.normal(0, one.heavy, shape) + rng.normal(0, 0.4, (_POOL, 1)))
    raw *= np.where(rng.random(shape) < 0.05, 6, 1) * np.r_[6, np.geomspace(3, 0.25, shape[1] - 1)]
    if shape[1] == 2:
        raw[:, 1] *= 0.003
        raw[:, 0] = 1
    raw *= there
    size = np.rint(4e4 * raw / raw.sum(1, keepdims=True)).astype(np.int64)
    difficulty, shared, found = rng.normal(size=(_POOL, 1)), rng.normal(size=shape), []
    for lift, failures, slope in ((0.0, 0.0, 0.8), one[1:4]):
        noise = np.sqrt(one.rho) * shared + np.sqrt(1 - one.rho) * rng.normal(size=shape)
        ease = one.ability + lift - slope * difficulty + 0.9 * noise
        ease -= np.r_[-1, np.linspace(0, 1.2, shape[1] - 1)]
        ease = np.where(rng.random((_POOL, 1)) < failures, -3.0, ease)
        hit = np.rint(size / (1 + np.exp(-ease))).astype(np.int64)
        false = _false(size - hit, there, one.presence)
        found.append(Counts(hit, false, size - hit, 0 * size))
    return found, float(mean_iou(found[1].summed()) - mean_iou(found[0].summed()))


def pools(design: str, number: int, rng: np.random.Generator) -> list[float]:
    """Images of a pool with replacement."""
    pair, truth = pool(design)
    drawn = rng.integers(0, _POOL, number)
    return outcome([counts[drawn] for counts in pair], units_of(number), truth)


def family(design: str, number: int, rng: np.random.Generator, several: float) -> list[float]:
    """Equal models of which some pair differs: adjusted by Holm over the pairs, and unadjusted."""
    every = models(design, 0.8, [0.0] * int(several), rng.normal(size=number), rng)
    over = [statistic(counts, units=units_of(number)) for counts in every]
    p = [Paired.of(a, b, PERMUTATIONS_OF_PAIRS).score.p for a, b in combinations(over, 2)]
    some = [float(np.nanmin(one) < 0.05 - 1e-12) for one in (holm_adjust(np.array(p)), p)]
    return [some[0], 0.0, some[1], 0.0, 0.0]


@cache
def true_difference(design: str, rho: float, lift: float) -> float:
    """Difference of the two models on a very large set of images."""
    rng = np.random.default_rng(3)
    first, second = models(design, rho, (0.0, lift), rng.normal(size=_MANY), rng)
    return float(mean_iou(second.summed()) - mean_iou(first.summed()))


def outcome(pair: list[Counts], units: Units, truth: float) -> list[float]:
    """Whether the interval contains the truth, its width, whether it excludes 0; both bounds.

    As in a comparison, the means leave out the classes that only one of the models has.
    """
    images = [scored_images(counts, "iou", None) for counts in pair]
    change = Paired.of(*Common.of(images, units, None).scores, PERMUTATIONS).score
    (low, high), (below, above) = change.limits(0.95), change.limits(0.9)
    rejects = change.p < 0.05 - 1e-12
    assert math.isnan(low) or rejects == (low > 0 or high < 0)
    return [
        float(low <= truth <= high),
        100 * (high - low),
        float(rejects),
        float(below > truth),
        float(above < truth),
    ]


def images(design: str, number: int, rng: np.random.Generator, rho: float, lift: float) -> list:
    """Independent images."""
    pair = models(design, rho, (0.0, lift), rng.normal(size=number), rng)
    return outcome(pair, units_of(number), true_difference(design, rho, lift))


@cache
def true_recipe_difference(design: str, lift: float, spread: float) -> float:
    """Difference of the mean scores of two recipes over all images and all training runs."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    shifts = [spread * nodes, lift + spread * nodes]
    pair = training_runs(design, shifts, 20_000, np.random.default_rng(3))
    means = [[mean_iou(one.summed()) for one in runs] @ weights / weights.sum() for runs in pair]
    return float(means[1] - means[0])


def recipes(
    design: str,
    number: int,
    rng: np.random.Generator,
    first: float,
    second: float,
    spread: float,
    lift: float,
) -> list[float]:
    """Training runs of two recipes on independent images."""
    shifts = [rng.normal(0, spread, int(first)), rng.normal(lift, spread, int(second))]
    pair, units = training_runs(design, shifts, number, rng), units_of(number)
    a, b = ([statistic(counts, units=units) for counts in runs] for runs in pair)
    crossed = Crossed.of(a, b)
    truth = true_recipe_difference(design, lift, spread) if lift else 0.0
    usual, narrow = crossed.limits(0.95), crossed.limits(0.9)
    low, high, below, above = usual.low[0], usual.high[0], narrow.low[0], narrow.high[0]
    hits = [low <= truth <= high, 100 * (high - low), low > 0 or high < 0]
    return [*map(float, (*hits, below > truth, above < truth))]


def batches(
    design: str, number: int, rng: np.random.Generator, slow: float, least: float
) -> list[float]:
    """One sequence whose difficulty and whose difference of models are AR(1): equal models."""
    import segiou.inference.dependence as dependence

    dependence._LEAST_OF_DIFFERENCE = int(least)
    drift = rng.normal(size=(3, number))
    for t in range(1, number):
        drift[:, t] = slow * drift[:, t - 1] + np.sqrt(1 - slow**2) * drift[:, t]
    pair = [
        models(design, 0.8, (0.0,), drift[0] + own, np.random.default_rng(seed))[0]
        for own, seed in zip(0.5 * drift[1:], [rng.integers(2**32)] * 2, strict=True)
    ]
    ids = [f"drive_{5 * i:05d}" for i in range(number)]
    cases = [scored_images(counts, "iou", None).of_images() for counts in pair]
    return outcome(pair, design_of(ids, number, lambda: cases).units, 0.0)


def frames(design: str, number: int, rng: np.random.Generator, corrected: float, _: float) -> list:
    """Frames of CamVid with replacement: `small` and `base`, or `base` with errors corrected."""
    pair = [camvid("small"), camvid("base")]
    if corrected:
        pair = [pair[1], _corrected(pair[1], corrected)]
    truth = float(mean_iou(pair[1].summed()) - mean_iou(pair[0].summed()))
    drawn = rng.integers(0, len(pair[0].tp), number)
    return outcome([counts[drawn] for counts in pair], units_of(number), truth)


def _corrected(counts: Counts, share: float) -> Counts:
    """Counts after a share of the errors of each class in each frame is corrected."""
    missed = np.random.default_rng(0).binomial(counts.fn, share)
    false = np.rint(counts.fp * share).astype(np.int64)
    tp, fp, fn = counts.tp + missed, counts.fp - false, counts.fn - missed
    return Counts(tp, fp, fn, counts.tn)


def cells() -> Iterator[Cell]:
    """All situations, table by table."""
    for first, second in ((2, 2), (3, 3), (5, 5), (1, 3), (2, 5)):
        for spread in (0.0, 0.05, 0.2):
            for number in (10, 30, 100):
                yield Cell("recipes", recipes, "common", number, (first, second, spread, 0.0))
            yield Cell("recipes", recipes, "common", 30, (first, second, spread, 0.3))
    for design in DESIGNS:
        for rho in (0.0, 0.8, 0.98):
            for lift in (0.0, 0.15, 0.8):
                for number in (5, 8, 12, 20, 50):
                    yield Cell("images", images, design, number, (rho, lift))
        for least in (6, 8):
            for slow in (0.0, 0.6, 0.9):
                for number in (50, 100, 200):
                    yield Cell("batches", batches, design, number, (slow, least))
    for design in POOLS:
        for number in (5, 8, 20, 59):
            yield Cell("pools", pools, design, number)
    for design in DESIGNS:
        for several in (2, 3, 5, 8):
            yield Cell("family", family, design, 20, (several,))
    if CAMVID.is_dir():
        for corrected in (0.0, 0.03):
            for number in (6, 10, 20, 40):
                yield Cell("camvid", frames, "camvid", number, (corrected, 0.0))


def line(cell: Cell, options: str, means: np.ndarray) -> str:
    """The means of a cell."""
    hit, width, out, passed, failed = means
    if cell.table == "family":
        shown = f"some pair differs by Holm {100 * hit:5.1f}  without {100 * out:5.1f}"
        return f"{cell.table:8} {cell.design:7} {cell.number:4}  {options} models  {shown}"
    return (
        f"{cell.table:8} {cell.design:7} {cell.number:4}  {options:12} coverage {100 * hit:5.1f}  "
        f"width {width:5.1f}  excludes 0 {100 * out:5.1f}  above {100 * passed:5.1f}  below "
        f"{100 * failed:5.1f}"
    )


if __name__ == "__main__":
    print_cells(cells(), __doc__, 600, line)
