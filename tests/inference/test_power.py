import math

import numpy as np
import pytest
from scipy import stats

from segiou import Counts, compare, score
from segiou.inference import permutation_test, power, statistic, units_of
from segiou.inference.paired import Paired


def single(images, shift, spread, seed=0):
    """Models whose recalls per image differ by ``shift`` with a known spread."""
    rng = np.random.default_rng(seed)
    right = np.rint(rng.normal(500, 20, images)).astype(np.int64)
    step = rng.normal(0, spread, images)
    return recalls(right, np.rint(1000 * (step - step.mean() + shift)).astype(np.int64))


def recalls(right, step):
    """One class of 1000 pixels per image: what the first finds, and how many more the second."""
    zero = np.zeros((len(right), 1), np.int64)
    return tuple(
        statistic(
            Counts(r[:, None], zero, 1000 - r[:, None], zero), "recall", units=units_of(len(r))
        )
        for r in (right, right + step)
    )


def power_of(a, b, **options):
    change = Paired.of(a, b).score
    return power(a.units, lambda units: change.spread(units, 0.95), **options)


def test_needed_is_what_the_paired_t_test_needs():
    # Recall over images of equal size is a plain mean: n = (1.96 + 0.84)² σ²/δ² = 31.4, and
    # two more for Student's instead of the normal distribution.
    a, b = single(200, shift=0.05, spread=0.04)
    found = power_of(a, b, detect=0.02)
    sigma = float(np.std((b.sums - a.sums)[:, 0] / 1000))
    assert found.needed == pytest.approx(7.85 * (sigma / 0.02) ** 2 + 2, abs=1)
    assert found.now > 0.999


def test_power_is_that_of_the_noncentral_t_test():
    a, b = single(25, shift=0.0, spread=0.05)
    error = float(np.std((b.sums - a.sums)[:, 0] / 1000, ddof=1)) / 5
    t = stats.t.ppf(0.975, 24)
    for detect in (0.01, 0.03, 0.05):
        exact = stats.nct.sf(t, 24, detect / error)
        assert power_of(a, b, detect=detect).now == pytest.approx(exact, abs=0.05)


@pytest.mark.gate
def test_power_is_that_of_the_permutation_test():
    a, b = single(40, shift=0.03, spread=0.05, seed=2)
    rng = np.random.default_rng(0)
    seen, repeats = 0, 300
    for _ in range(repeats):
        drawn = rng.integers(0, 40, 40)
        parts = [
            statistic(Counts(s.sums[drawn, :1], s.sums[drawn, 1:2], s.sums[drawn, 2:3],
                             s.sums[drawn, 3:]), "recall", units=units_of(40))
            for s in (a, b)
        ]  # fmt: skip
        p = permutation_test(*parts, 199, seed=int(rng.integers(1 << 30))).p[0]
        seen += p < 0.05 and parts[1].values[0] > parts[0].values[0]
    assert seen / repeats == pytest.approx(power_of(a, b, detect=0.03).now, abs=0.1)


def test_the_detectable_difference_is_detected_with_the_target_power():
    a, b = single(50, 0.02, 0.05)
    found = power_of(a, b, target=0.9)
    assert power_of(a, b, detect=found.detectable, target=0.9).now == pytest.approx(0.9, abs=1e-9)
    assert power_of(a, b, detect=found.detectable, target=0.9).needed == 50
    assert power_of(b, a).detectable == pytest.approx(power_of(a, b).detectable)


def test_the_observed_difference_does_not_matter():
    near, far = (power_of(*single(30, shift, 0.05), detect=0.01) for shift in (0.0, 0.2))
    assert near.now == pytest.approx(far.now, abs=0.05)


def test_without_a_question_or_spread_there_is_no_answer():
    a, b = single(30, 0.02, 0.05)
    asked_nothing = power_of(a, b)
    assert (asked_nothing.needed, asked_nothing.to_dict()["now"]) == (None, None)
    assert power_of(a, a, detect=0.01).detectable == 0.0


def test_a_difference_far_too_small_is_out_of_reach():
    a, b = recalls(np.full(100, 500), np.tile([100, -100], 50))
    assert power_of(a, b, detect=1e-5).needed is None


@pytest.mark.parametrize("detect", [0, -0.0, math.inf, -math.inf, math.nan])
def test_a_difference_to_detect_is_a_number_other_than_0(detect):
    preds = [[0, 1], [1, 0]], [[0, 0], [1, 1]]
    runs = [score([[0, 1], [1, 1]], pred, labels=2) for pred in preds]
    with pytest.raises(ValueError, match=r"detect must be a"):
        compare(*runs, detect=detect)


@pytest.mark.parametrize("names", [["a", ""], ["a", " "], ["a", 1]])
def test_names_of_runs_are_texts(names):
    preds = [[0, 1], [1, 0]], [[0, 0], [1, 1]]
    runs = [score([[0, 1], [1, 1]], pred, labels=2) for pred in preds]
    with pytest.raises(ValueError, match="2 distinct names, one per run"):
        compare(*runs, names=names)
