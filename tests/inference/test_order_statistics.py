"""Intervals of medians and of means of the worst cases."""

import math
from dataclasses import replace

import numpy as np
import pytest

import segiou
from segiou.inference import (
    confidence_intervals,
    jackknife,
    median_limits,
    units_of,
    worst_mean_limits,
)
from segiou.inference.scored_runs import scored_images

NAN, INF = float("nan"), float("inf")


def test_limits_of_a_median_by_hand():
    # n = 6: P(Bin(6, .5) < 1) = 1/64 and P(< 2) = 7/64, so coverages 62/64 and 50/64;
    # I = (.96875 - .95) / .1875 = .1, and the weight of the second is 5 I / (1 + 4 I) = .5 / 1.4.
    weight = 0.5 / 1.4
    expected = (1 + weight, 6 - weight)
    assert median_limits([4, 2, 6, 1, 3, NAN, 5]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("n", "last"), [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (30, 10), (50, 18)]
)
def test_limits_are_between_the_published_order_statistics(n, last):
    low, high = median_limits(np.arange(1, n + 1))
    assert last <= low < last + 1
    assert low + high == pytest.approx(n + 1)


def test_few_and_infinite_values():
    assert np.isnan(median_limits([1, 2, 3, 4, 5])).all()
    assert np.isnan(median_limits([])).all()
    # P(Bin(3, .5) < 1) = 1/8: the smallest and the largest have the level of 75 % exactly.
    assert median_limits([3, 1, 2], level=0.75) == (1, 3)
    assert median_limits([1, 2, 3, 4, 5, INF])[1] == INF
    assert median_limits([1.0] * 9) == (1, 1)
    assert median_limits([1, INF, INF, INF, INF, INF, INF, INF, INF, INF, INF]) == (INF, INF)


def test_the_worst_cases_have_their_own_degrees_of_freedom():
    values = np.linspace(0.3, 0.9, 40)
    worst = values[:4]
    low, high = worst_mean_limits(values, 10)
    assert low < worst.mean() < high
    assert all(np.isnan(worst_mean_limits(values, 4)))  # one case
    assert all(np.isnan(worst_mean_limits([0.5] * 9, 50)))
    # The whole is the mean of all cases: t with n - 1 degrees of freedom on the logit.
    low, high = worst_mean_limits(values, 100)
    error = values.std(ddof=1) / math.sqrt(40)
    mean = values.mean()
    reach = 2.0226909 * error / (mean * (1 - mean))
    centre = math.log(mean / (1 - mean))
    expected = [1 / (1 + math.exp(-(centre + side * reach))) for side in (-1, 1)]
    assert (low, high) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("percent", [-1, 101, NAN])
def test_refused(percent):
    with pytest.raises(ValueError, match="percent"):
        worst_mean_limits([0.5, 0.6], percent)


@pytest.fixture(scope="module")
def run():
    truth = np.zeros((8, 24, 24), int)
    truth[:, 8:16, 8:16] = 1
    preds = np.stack([np.roll(one, far, 1) for far, one in enumerate(truth)])
    return segiou.score(truth, preds, labels=["back", "disc"], surfaces=True)


@pytest.mark.needs("measures.surfaces")
def test_medians_of_distances_have_order_statistics(run):
    found = confidence_intervals(run, "hausdorff_95", groups="none")
    disc = {one.name: one for one in found.classes}["disc"]
    assert found.method == "order_statistics"
    expected = median_limits(np.arange(8.0))
    assert (disc.low, disc.high) == pytest.approx(expected, abs=0.05)
    assert str(found).startswith(
        "Mean of median HD95 is 3.50 px on 8 images (95 % percentile bootstrap interval "
    )
    assert "order-statistic intervals over 8 images" in found.method_text()
    assert (
        "mean of the medians: percentile bootstrap, 10\N{NARROW NO-BREAK SPACE}000 resamples"
        in (found.method_text())
    )
    assert found.caution().text == (
        "the interval of a mean of medians is probably too narrow with fewer than 20 images"
    )
    one = confidence_intervals(run, "hausdorff_95:disc", groups="none")
    assert one.caution() is None
    assert one.overall == replace(disc, name="median HD95 of disc")
    assert "(95 % order-statistic interval " in str(one)


@pytest.mark.needs("measures.surfaces")
def test_a_missed_structure_is_infinitely_far_in_the_cases_of_every_ranking(run):
    truth, missed = np.zeros((8, 24, 24), int), np.zeros((8, 24, 24), int)
    truth[:, 8:16, 8:16] = 1
    missed[1:, 8:16, 8:16] = 1
    lacking = segiou.score(truth, missed, labels=["back", "disc"], surfaces=True)
    runs, name = {"a": run, "b": lacking, "c": run}, "hausdorff_95:disc"
    compared = segiou.compare(*runs.values(), names=[*runs], metric=name, groups="none")
    ranked = segiou.rank(runs, by=name, groups="none", aggregate="median", draws=0)
    assert compared.stability.cases == ranked.cases
    assert compared.stability.cases[1] == (INF, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.needs("measures.surfaces")
def test_equal_distances_have_no_interval():
    truth = np.zeros((8, 8, 8), int)
    truth[:, 2:5, 2:5] = 1
    moved = segiou.score(truth, np.roll(truth, 1, 2), labels=["back", "disc"], surfaces=True)
    for one in moved.intervals("hausdorff_95", groups="none"):
        assert one.value == 1
        assert np.isnan([one.low, one.high]).all()


@pytest.mark.needs("measures.surfaces")
def test_medians_over_groups_have_a_bootstrap(run):
    found = confidence_intervals(run, "hausdorff_95", groups=list("aabbccdd"))
    assert (found.method, found.unit, found.resamples) == ("percentile", "group", 10_000)


@pytest.mark.needs("measures.surfaces")
@pytest.mark.parametrize("aggregate", ["I", "C"])
@pytest.mark.filterwarnings("error")
def test_a_missing_surface_makes_the_mean_distance_infinite(run, aggregate):
    truth = np.zeros((4, 24, 24), int)
    truth[:, 8:16, 8:16] = 1
    preds = np.stack([np.roll(truth[0], far, 1) for far in range(3)] + [0 * truth[0]])
    lacking = segiou.score(truth, preds, labels=["back", "disc"], surfaces=True)
    found = confidence_intervals(lacking, "hausdorff_95", aggregate=aggregate, groups="none")
    disc = {one.name: one for one in found.classes}["disc"]
    for one in (disc, found.overall):
        assert one.value == INF
        assert np.isnan([one.low, one.high, one.standard_error]).all()
    whole = confidence_intervals(run, "hausdorff_95", aggregate=aggregate, groups="none")
    assert {one.name: one.value for one in whole.classes}["disc"] == pytest.approx(3.5, abs=0.1)


@pytest.mark.needs("measures.surfaces")
def test_the_jackknife_of_a_median_is_refused(run):
    prepared = scored_images(run, "hausdorff_95", None).over(units_of(8), None)
    with pytest.raises(ValueError, match="medians"):
        jackknife(prepared)
    with pytest.raises(ValueError, match="medians"):
        segiou.compare({"a": [run, run], "b": [run, run]}, metric="hausdorff_95", groups="none")
