"""Resamples of very many units draw sums of units, with the same p and intervals."""

from __future__ import annotations

import numpy as np
import pytest

from segiou.counting import Counts
from segiou.inference import units as units_module
from segiou.inference.bootstrapping import resampled
from segiou.inference.significance import permutation_test
from segiou.inference.statistics import statistic
from segiou.inference.units import Units, resampled_sums, unit_sums, units_of

IMAGES = 20_000


def models(difference):
    """IoU of two classes of two models, of which the second finds more pixels of the first."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 200, (IMAGES, 2))
    share = rng.beta(4, 2, (IMAGES, 2))
    scores = []
    for more in (0, difference):
        noise = np.clip(share + rng.normal(0, 0.1, share.shape) + [more, 0], 0, 1)
        tp = np.rint(truth * noise).astype(np.int64)
        fp = (truth - tp)[:, ::-1]
        counts = Counts(tp, fp, truth - tp, truth.sum(1, keepdims=True) - truth - fp)
        scores.append(statistic(counts, units=units_of(IMAGES)))
    return scores


@pytest.mark.gate
@pytest.mark.parametrize("difference", [0.0, 0.0008, 0.005])
def test_p_and_intervals_are_those_of_single_units(monkeypatch, difference):
    a, b = models(difference)
    single = permutation_test(a, b, 2000, 0), resampled([a, b], 2000, 0)
    monkeypatch.setattr(units_module, "MOST_RESAMPLED", 4000)
    several = permutation_test(a, b, 2000, 0), resampled([a, b], 2000, 0)
    assert a.products.shape[0] == 4000
    for p, expected in zip(several[0].p, single[0].p, strict=True):
        # Four standard errors of the difference of two shares of 2000.
        assert p == pytest.approx(
            expected, abs=4 * np.sqrt(expected * (1 - expected) / 1000) + 1e-3
        )
    for grouped, each in zip(several[1], single[1], strict=True):
        assert grouped.std(0) == pytest.approx(each.std(0), rel=0.1)
        ends = np.quantile(each, [0.025, 0.975], axis=0)
        error = 0.25 * each.std(0)
        assert np.abs(np.quantile(grouped, [0.025, 0.975], axis=0) - ends).max(0) == pytest.approx(
            0, abs=error.max()
        )


def test_groups_have_all_units_once(monkeypatch):
    monkeypatch.setattr(units_module, "MOST_RESAMPLED", 3)
    table = np.eye(7, dtype=np.int64)
    sums = resampled_sums(table)
    assert sorted(sums.sum(1).tolist()) == [2, 2, 3]
    assert sums.sum(0).tolist() == [1] * 7
    assert resampled_sums(table[:3]) is not None
    assert resampled_sums(table).tolist() == sums.tolist()


def test_sums_of_groups_do_not_depend_on_the_parts():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 9, (11, 4))
    units = Units("group", ("a", "b", "c"), rng.permutation([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1]))
    expected = [rows[units.index == unit].sum(0).tolist() for unit in range(3)]
    for parts in ([rows], [rows[:4], rows[4:5], rows[5:]]):
        assert unit_sums(units, parts).tolist() == expected
    seen = unit_sums(units, [rows[:4] > 7, rows[4:] > 7])
    assert (seen > 0).tolist() == [
        (rows[units.index == unit] > 7).any(0).tolist() for unit in range(3)
    ]
