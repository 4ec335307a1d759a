"""Large tables are sparse and looked at in parts, and give the same numbers."""

import numpy as np
import pytest

from segiou import Counts, bootstrap, compare, score
from segiou.analysis import influence
from segiou.inference import permutation_test, statistic, units, units_of
from segiou.inference.paired import Paired
from segiou.inference.statistics import scored_counts
from segiou.inference.units import ImageParts, weighted


@pytest.fixture
def as_large(monkeypatch):
    """Take every table for a large one, three images of two classes at a time."""

    def now():
        monkeypatch.setattr(units, "_DENSE", 0)
        monkeypatch.setattr(units, "_PART", 6)
        monkeypatch.setattr("segiou.runs.run_counts._PART", 6)

    return now


def two_runs(images=14):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (images, 4, 9))
    preds = [np.where(rng.random(truth.shape) < wrong, 1 - truth, truth) for wrong in (0.3, 0.2)]
    return [score(list(truth), list(p), labels=2) for p in preds]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "bca"},
        {"groups": [i % 11 for i in range(14)]},
        {"blocks": 3},
        {"metric": "pixel_accuracy"},
        {"protocol": "detectron2"},
    ],
)
def test_intervals_are_the_same_bits(as_large, options):
    run, _ = two_runs()
    small = bootstrap(run, resamples=60, **options)
    as_large()
    assert sum(len(part.tp) for part in run.count_parts()) == 14
    assert len(next(iter(run.count_parts())).tp) == 3
    assert bootstrap(run, resamples=60, **options) == small
    assert bootstrap(run.counts, ids=run.ids, class_names=run.class_names, resamples=60, **options)


@pytest.mark.parametrize("aggregate", ["I", "C"])
def test_means_over_images_are_the_same_but_for_rounding(as_large, aggregate):
    run, _ = two_runs()
    small = bootstrap(run, aggregate=aggregate, resamples=60)
    as_large()
    large = bootstrap(run, aggregate=aggregate, resamples=60)
    for one, other in zip(small, large, strict=True):
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-14)


def test_comparisons_are_the_same(as_large):
    runs = two_runs()
    small, alone = compare(*runs, permutations=60), influence(runs[0].counts)
    as_large()
    large, small = (found.pairs[0] for found in (compare(*runs, permutations=60), small))
    assert (large.overall.p, large.power.unit) == (small.overall.p, small.power.unit)
    assert large.overall.low == pytest.approx(small.overall.low)
    again = influence(runs[0].counts)
    assert np.array_equal(again.left_out, alone.left_out)


def test_tests_and_power_take_sparse_tables(as_large):
    runs = two_runs()
    small = [statistic(run.counts, units=units_of(14)) for run in runs]
    as_large()
    large = [statistic(run.counts, units=units_of(14)) for run in runs]
    assert not isinstance(large[0].sums, np.ndarray)
    assert np.array_equal(permutation_test(*large, 50, 0).p, permutation_test(*small, 50, 0).p)
    of_large, of_small = (Paired.of(*pair, 50).limits(0.95) for pair in (large, small))
    for name in ("values", "low", "high", "standard_error", "freedom"):
        one, other = getattr(of_large, name), getattr(of_small, name)
        assert one == pytest.approx(other, abs=1e-12, nan_ok=True)
    weights = np.arange(28).reshape(2, 14)
    assert np.array_equal(weighted(weights, large[0].sums), weights @ small[0].sums)
    assert large[0].seen.tolist() == small[0].seen.tolist()


def test_parts_of_counts_and_scores_of_images(as_large):
    counts = two_runs()[0].counts
    whole = scored_counts(counts, "iou").of_images()
    as_large()
    parts = ImageParts.of(counts)
    assert [len(part.tp) for part in parts.parts()] == [3, 3, 3, 3, 2]
    assert (parts.number, parts.width) == (14, 2)
    assert ImageParts.of(parts) is parts
    assert np.array_equal(scored_counts(counts, "iou").of_images(), whole)


def test_channels_with_other_valid_pixels_keep_them(as_large):
    counts = Counts([[1, 2], [3, 0]], [[1, 0], [0, 1]], [[0, 1], [1, 0]], [[5, 9], [2, 7]])
    for _ in range(2):
        found = statistic(counts, "specificity", units=units_of(2)).values
        assert found[1:] == pytest.approx([7 / 8, 16 / 17])
        as_large()


@pytest.mark.parametrize("aggregate", [None, "I"])
def test_rows_of_many_images_are_computed_when_they_are_read(monkeypatch, as_large, aggregate):
    a, b = two_runs()
    few = a.intervals(groups="none", aggregate=aggregate), compare(a, b, groups="none")
    as_large()
    monkeypatch.setattr("segiou.inference.statistics.MOST_RESAMPLED", 10)
    monkeypatch.setattr(units, "MOST_RESAMPLED", 13)
    found = statistic(a.counts, units=units_of(14), aggregate=aggregate)
    assert isinstance(found.sums, units.ManyRows)
    assert found.products.shape == (13, found.sums.shape[1])
    many = a.intervals(groups="none", aggregate=aggregate), compare(a, b, groups="none")
    for one, expected in zip(many[0], few[0], strict=True):
        limits = [(each.value, each.low, each.high, each.units) for each in (one, expected)]
        assert limits[0] == pytest.approx(limits[1], rel=1e-12)
    (one,), (expected,) = many[1].pairs, few[1].pairs
    assert one.images_differing == expected.images_differing
    assert [i.id for i in one.favours_a] == [i.id for i in expected.favours_a]
    assert one.overall.delta == expected.overall.delta


def test_recipes_of_many_images(monkeypatch, as_large):
    a, b = two_runs()
    few = compare({"A": [a, b], "B": [b, a]}, groups="none").pairs[0]
    as_large()
    monkeypatch.setattr("segiou.inference.statistics.MOST_RESAMPLED", 10)
    monkeypatch.setattr(units, "MOST_RESAMPLED", 13)
    many = compare({"A": [a, b], "B": [b, a]}, groups="none").pairs[0]
    numbers = [(p.overall.delta, p.overall.low, p.overall.high, p.overall.p) for p in (many, few)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, abs=1e-12)
