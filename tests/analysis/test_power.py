from itertools import pairwise

import numpy as np
import pytest

from segiou.analysis.comparing import permutation_test, power
from segiou.analysis.statistics import statistic
from segiou.analysis.units import units_of
from segiou.counting.counts import Counts


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


def test_needed_is_what_the_paired_t_test_needs():
    # Recall over images of equal size is a plain mean: n = (1.96 + 0.84)² σ²/δ² = 31.4, and
    # two more for Student's instead of the normal distribution.
    a, b = single(200, shift=0.02, spread=0.04)
    found = power(a, b, simulations=4000)
    assert found.difference == pytest.approx(0.02, abs=2e-4)
    sigma = float(np.std((b.sums - a.sums)[:, 0] / 1000))
    assert found.needed == pytest.approx(7.85 * (sigma / found.difference) ** 2 + 2, rel=0.12)
    assert found.now > 0.999


def test_power_grows_and_a_smaller_difference_needs_more():
    wide, narrow = (power(*single(100, shift, 0.05)) for shift in (0.03, 0.015))
    assert narrow.needed > 3 * wide.needed
    shares = [share for _, share in wide.grid]
    assert all(later > earlier - 0.04 for earlier, later in pairwise(shares))
    assert shares[0] < 0.5 < 0.95 < shares[-1]


def test_power_is_that_of_the_permutation_test():
    # The linearised interval stands in for the permutation test, which would cost much more.
    a, b = single(40, shift=0.015, spread=0.05, seed=2)
    rng = np.random.default_rng(0)
    number, seen, repeats = 25, 0, 300
    for _ in range(repeats):
        drawn = rng.integers(0, 40, number)
        parts = [
            statistic(Counts(s.sums[drawn, :1], s.sums[drawn, 1:2], s.sums[drawn, 2:3],
                             s.sums[drawn, 3:]), "recall", units=units_of(number))
            for s in (a, b)
        ]  # fmt: skip
        p = permutation_test(*parts, 199, seed=int(rng.integers(1 << 30))).p[0]
        seen += p < 0.05 and parts[1].values[0] > parts[0].values[0]
    grid = dict(power(a, b, simulations=4000).grid)
    near = np.interp(np.log(number), np.log(list(grid)), list(grid.values()))
    assert seen / repeats == pytest.approx(near, abs=0.1)


def test_either_model_may_be_ahead():
    a, b = single(50, 0.02, 0.05)
    forth, back = power(a, b), power(b, a)
    assert (forth.needed, forth.grid) == (back.needed, back.grid)
    assert forth.difference == -back.difference


def test_no_difference_no_number():
    a, _ = single(20, 0.0, 0.05)
    found = power(a, a)
    assert (found.needed, found.grid) == (None, ())
    assert np.isnan(found.now)
    assert found.to_dict()["now"] is None


def test_a_difference_far_too_small_is_out_of_reach():
    # ±100 pixels in turn and 1 pixel more: 1e-5 of recall with a spread of 0.1.
    step = np.tile([100, -100], 50)
    step[0] += 1
    a, b = recalls(np.full(100, 500), step)
    found = power(a, b, simulations=50)
    assert found.difference == pytest.approx(1e-5)
    assert found.needed is None
    assert found.grid[-1][0] == 1_000_000


def test_the_same_step_on_every_image_is_seen_at_once():
    a, b = single(30, 0.02, 0.0)
    assert power(a, b).needed == 5
