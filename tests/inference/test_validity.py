"""Do intervals cover and tests reject as often as they claim?

The populations are synthetic and large, and their true scores are those of all their images.

Small; the sizes at which docs/intervals.md quotes figures with SEGIOU_SLOW=1.
"""

import os

import numpy as np
import pytest
from scipy import stats

from segiou import Counts
from segiou.counting import ConfusionCounts
from segiou.inference import permutation_test, statistic, units_of
from segiou.inference.bootstrapping import limits_of, resampled

FULL = os.environ.get("SEGIOU_SLOW") == "1"
REPEATS, RESAMPLES = (2000, 1000) if FULL else (150, 300)
pytestmark = [pytest.mark.slow, pytest.mark.gate]

#: Share of the images that have each class: everywhere, often, seldom, rarely.
PRESENCE = (1.0, 0.9, 0.5, 0.05)


def population(images=20_000, presence=PRESENCE, seed=0, groups=None, strength=0.0):
    """Counts of a large set of images, each with its own sizes and its own difficulty.

    Difficulty is shared by the classes of an image, and, where ``groups`` says
    which images belong together, with ``strength`` (0 to 1) by those of a group.
    """
    rng = np.random.default_rng(seed)
    own = rng.normal(size=images)
    if groups is not None:
        shared = rng.normal(size=int(groups.max()) + 1)[groups]
        own = np.sqrt(strength) * shared + np.sqrt(1 - strength) * own
    classes = len(presence)
    there = rng.random((images, classes)) < presence
    size = np.rint(1000 * rng.lognormal(0, 0.7, (images, classes))).astype(np.int64) * there
    ease = own[:, None] * 0.6 + rng.normal(0, 0.5, (images, classes)) + 1.0
    hit = rng.binomial(size, 1 / (1 + np.exp(-ease)))
    table = np.zeros((images, classes, classes + 1), np.int64)
    for c in range(classes):
        # Half of what is missed is taken for the first class, half for the next.
        half = (size[:, c] - hit[:, c]) // 2
        table[:, c, c] += hit[:, c]
        table[:, c, 0] += half
        table[:, c, (c + 1) % classes] += size[:, c] - hit[:, c] - half
    return ConfusionCounts(table).counts


def spoiled(counts, seed):
    """A model on the same truth that gets other pixels right; several are exchangeable."""
    rng = np.random.default_rng(seed)
    move = rng.binomial(np.minimum(counts.tp, counts.fn), 0.4)
    back = rng.binomial(np.minimum(counts.tp, counts.fn), 0.4)
    tp = counts.tp - move + back
    return Counts(tp, counts.fp, counts.truth - tp, counts.tn)


def claimed(target=0.95, sure=3.5):
    """What the measured coverage may be: 93 to 97 % at full size, chance added at small size."""
    error = sure * np.sqrt(target * (1 - target) / REPEATS)
    return (0.93, 0.97) if FULL else (target - 0.02 - error, 1.0)


def coverage(counts, number, *, groups=None, resample_groups=False, method="percentile", **options):
    """Share of samples whose interval holds the population's score."""
    truth = statistic(counts, units=units_of(len(counts.tp)), **options).values[0]
    rng = np.random.default_rng(number)
    inside = 0
    for repeat in range(REPEATS):
        if groups is None:
            index, of = rng.integers(0, len(counts.tp), number), None
        else:
            index, of = drawn_groups(rng, groups, number)
        units = units_of(len(index), of if resample_groups else None)
        sample = statistic(counts[index], units=units, **options)
        (values,) = resampled((sample,), RESAMPLES, repeat)
        without = sample.left_out[:, 0] if method == "bca" else None
        low, high = limits_of(values[:, 0], 0.95, sample.values[0], without)
        inside += low <= truth <= high
    return inside / REPEATS


def drawn_groups(rng, groups, number):
    """Images of ``number`` groups drawn with replacement, and which draw they came with."""
    size = int((groups == 0).sum())
    drawn = rng.integers(0, len(groups) // size, number)
    index = (drawn[:, None] * size + np.arange(size)).ravel()
    return index, np.repeat(np.arange(number), size).tolist()


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("aggregate", ["D", "I", "C"])
def test_coverage_with_enough_images_of_every_class(aggregate, method):
    counts = population(presence=(1.0, 0.9, 0.5))
    least, most = claimed()
    assert least <= coverage(counts, 200, aggregate=aggregate, method=method) <= most


def test_coverage_of_pixel_accuracy():
    least, most = claimed()
    counts = population(presence=(1.0, 0.9, 0.5))
    assert least <= coverage(counts, 200, metric="pixel_accuracy") <= most


def test_where_it_does_not_cover():
    # One class of four is in 5 % of the images: with 20 of them it is in one or none, and
    # the mean over four classes is hardly ever the mean of what was drawn.
    assert coverage(population(), 20) < 0.85


def test_groups_must_be_resampled_as_groups():
    groups = np.repeat(np.arange(2000), 10)
    counts = population(presence=(1.0, 0.9, 0.5), groups=groups, strength=0.8)
    by_image = coverage(counts, 80, groups=groups)
    by_group = coverage(counts, 80, groups=groups, resample_groups=True)
    assert by_image < 0.8
    least, most = claimed()
    assert least <= by_group <= most


def test_p_is_uniform_where_nothing_differs():
    counts = population(images=5000, presence=(1.0, 0.9, 0.5))
    other = spoiled(counts, seed=1)
    again = spoiled(counts, seed=2)
    rng = np.random.default_rng(0)
    found = []
    for repeat in range(2000 if FULL else 200):
        index = rng.integers(0, 5000, 40)
        pair = (statistic(c[index], units=units_of(40)) for c in (other, again))
        found.append(permutation_test(*pair, 199, seed=repeat).p)
    values = np.array(found)
    for column in values.T:
        # Steps of 1/200 are fine enough for a test against the continuous distribution.
        assert stats.kstest(column, "uniform").pvalue > 0.001
        alarms = (column <= 0.05).mean()
        assert alarms == pytest.approx(0.05, abs=3.5 * np.sqrt(0.05 * 0.95 / len(column)))
