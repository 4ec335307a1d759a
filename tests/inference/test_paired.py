"""Differences of two models: limits and p from the same permutations."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given, strategies as st
from scipy import stats

from segiou import Counts
from segiou.inference import statistic, units_of
from segiou.inference.paired import Change, Paired
from segiou.inference.significance import is_significant

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "intervals" / "swaps.json"


def counts_of(tp, union, truth):
    """Counts with true positives and unions, on a truth; 10⁶ pixels per image."""
    tp, union, truth = map(np.array, (tp, union, truth))
    return Counts(tp, union - truth, truth - tp, 10**6 - union)


def paired(tp_a, union_a, tp_b, union_b, **options):
    truth = np.maximum(tp_a, tp_b)
    units = units_of(len(truth))
    models = counts_of(tp_a, union_a, truth), counts_of(tp_b, union_b, truth)
    return Paired.of(*(statistic(one, units=units, **options) for one in models))


def some(images, seed, lift=20, classes=3):
    """Two models of one truth as true positives and unions."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(30, 200, (images, classes)) * (rng.random((images, classes)) < 0.8)
    luck = rng.integers(0, 30, truth.shape)
    found = []
    for more in (0, lift):
        missed = np.clip(luck + rng.integers(0, 30, truth.shape) + 10 - more, 0, truth)
        found += [truth - missed, truth + np.roll(missed, 1, axis=1)]
    return found


def reference_sets():
    if not REFERENCE.is_file():
        pytest.skip(f"needs {REFERENCE.name} of the shared folder")
    return json.loads(REFERENCE.read_text(encoding="utf-8"))["sets"]


def test_the_reference_sets():
    for one in reference_sets():
        found = paired(*(one[name] for name in ("tp_a", "union_a", "tp_b", "union_b")))
        found = replace(found, only=None)  # the reference has no rule for means of one class
        assert found.seen[1:].tolist() == one["seen"]
        np.testing.assert_allclose(found.values, one["value"], atol=1e-9)
        np.testing.assert_allclose(found.p, one["p"], atol=1e-9)
        for level, ends in one["limits"].items():
            limits = found.limits(float(level))
            for name in ("low", "high"):
                expected = np.clip(np.array(ends[name], float), -1, 1)
                np.testing.assert_allclose(getattr(limits, name), expected, atol=1e-9)


def change_of(steps, deltas, value=None):
    steps = np.array(steps, float)
    value = float(steps.sum()) if value is None else value
    return Change(value, steps, np.array(deltas, float), len(steps), (-1, 1))


def test_by_hand():
    # Six units that each add .01 or .02, as a sum: all 64 signs.
    steps = np.array([1, 1, 1, 2, 2, 2]) / 100
    signs = 1 - 2 * ((np.arange(64)[:, None] >> np.arange(6)) & 1)
    found = change_of(steps, signs @ steps)
    assert (found.value, found.p) == (pytest.approx(0.09), 2 / 64)
    # .05 · 64 = 3.2, so q is the fourth largest: .07, of six signs after the two of .09.
    variance = (3 * 1 + 3 * 4) / 1e4
    reach = 0.07 / math.sqrt(1 + (0.09**2 - 0.07**2) / (5 * variance))
    assert found.reach_to_0(0.95) == pytest.approx(reach)
    down, up = found.reach(0.95)
    assert down == pytest.approx(reach)
    # The largest deviation of a step from their mean is .005.
    assert up == pytest.approx(reach * math.sqrt(1 + 2 * 0.005**2 / variance))


def test_fewer_than_six_units_have_students_t():
    found = paired(*some(5, 0)).score
    assert found.p == pytest.approx(2 * stats.t.sf(abs(found.value) / found.error, 4))
    down, up = found.reach(0.95)
    assert min(down, up) == pytest.approx(stats.t.isf(0.025, 4) * found.error)


def test_units_that_differ_alike_have_p_and_no_interval():
    for units in (4, 10):
        one = [np.full((units, 2), n) for n in (300, 340, 310, 340)]
        found = paired(*one)
        assert np.isnan(found.score.limits(0.95)).all()
        assert found.p.tolist() == [2 / 2**units] * 3


def test_a_model_against_itself():
    a, union, *_ = some(8, 1)
    found = paired(a, union, a, union)
    assert np.isnan(found.limits(0.95).low).all()
    assert found.p.tolist() == [1.0] * 4


@examples(60)
@given(st.integers(0, 10**6), st.integers(3, 9), st.integers(-10, 30))
def test_limits_and_p_agree_at_every_level(seed, images, lift):
    models = some(images, seed, lift)
    forth, back = paired(*models), paired(*models[2:], *models[:2])
    assert back.p == pytest.approx(forth.p, nan_ok=True)
    last = None
    for level in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999):
        limits, mirrored = forth.limits(level), back.limits(level)
        np.testing.assert_allclose(limits.low, -mirrored.high, atol=1e-9)
        for low, high, p in zip(limits.low, limits.high, forth.p, strict=True):
            if not math.isnan(low):
                assert (low > 0 or high < 0) == is_significant(p, level)
        if last is not None:  # nested
            assert not (limits.low > last.low + 1e-9).any()
            assert not (limits.high < last.high - 1e-9).any()
        last = limits


def test_random_permutations_agree_with_p_too():
    for seed in range(20):
        models = some(30, seed, lift=6)
        truth = np.maximum(models[0], models[2])
        pair = [
            statistic(counts_of(*one, truth), units=units_of(30))
            for one in (models[:2], models[2:])
        ]
        found = Paired.of(*pair, 199)
        for level in (0.9, 0.95, 0.99):
            limits = found.limits(level)
            outside = (limits.low > 0) | (limits.high < 0)
            assert outside.tolist() == [is_significant(p, level) for p in found.p]


@pytest.mark.parametrize("aggregate", [None, "I", "C"])
def test_a_mean_over_one_class_is_that_class(aggregate):
    found = paired(*some(8, 2), include=[False, True, False], aggregate=aggregate)
    limits = found.limits(0.95)
    for column in (limits.values, limits.low, limits.high, limits.standard_error, found.p):
        assert column[0] == column[2] != column[1]


@pytest.mark.parametrize("images_with_class_2", [30, 1])
def test_means_of_some_classes(images_with_class_2):
    models = some(30, 3)
    for table in models:  # a class of one image vanishes with it
        table[images_with_class_2:, 2] = 0
    found, two = paired(*models), np.array([True, False, True])
    only = paired(*models, include=two)
    assert found.mean_of(two).limits(0.9) == pytest.approx(only.score.limits(0.9))
    assert found.mean_of(np.ones(3, bool)).limits(0.9) == pytest.approx(found.score.limits(0.9))
    one = found.mean_of(np.array([False, False, True]))
    assert one.limits(0.9) == found.one_class(2).limits(0.9)


def test_a_class_that_only_some_permutations_score_does_not_hide_the_others():
    # The truth lacks class 2. Each model predicts it in one image, so after some exchanges one
    # of them never does: the test covers two classes of three, and the limits are in their size.
    tp_a, union_a, tp_b, union_b = some(10, 4, lift=25, classes=2)
    ghost_a, ghost_b = np.zeros((2, 10, 1), int)
    ghost_a[0], ghost_b[7] = 5, 9
    nothing = np.zeros((10, 1), int)
    found = paired(
        np.hstack([tp_a, nothing]),
        np.hstack([union_a, ghost_a]),
        np.hstack([tp_b, nothing]),
        np.hstack([union_b, ghost_b]),
    )
    without = paired(tp_a, union_a, tp_b, union_b)
    assert found.values[0] == pytest.approx(without.values[0] * 2 / 3)
    assert found.p[0] == without.p[0] < 0.05
    assert found.score.limits(0.95) == pytest.approx(2 / 3 * np.array(without.score.limits(0.95)))
