"""Scores of random bits: every loop decides as NumPy does, and finds the same NaN."""

from __future__ import annotations

import numpy as np
import pytest
from bit_patterns import CASES, LAYOUTS, WIDTHS, any_floats, mixed, values_of
from instruction_sets import loops_here, with_loops

from segiou.counting import count_channels, scores, scores_to_labels
from segiou.counting.arrays import AtLeast
from segiou.counting.scores import NanScoresError

NUMBERS = (1, 2, 3, 16, 33, 257)
COMPILED = scores._compiled


def decide_nothing(loops):
    COMPILED.decide_into(np.zeros((1, 0), "u1"), "uint", None, np.zeros(0, "u1"), loops)


@pytest.fixture(params=["c"] if COMPILED is None else loops_here(decide_nothing))
def loops(request, monkeypatch):
    if COMPILED is None:
        pytest.skip("the routines are not compiled")
    monkeypatch.setattr(scores, "_compiled", with_loops(COMPILED, "decide_into", request.param))


def decided(*given, **how):
    """The labels, or the number of pixels that have none."""
    try:
        return scores_to_labels(*given, **how)
    except NanScoresError as error:
        return error.pixels


@pytest.mark.parametrize("kind", WIDTHS)
def test_argmax(loops, kind):
    rng = np.random.default_rng(0)
    for number in range(CASES):
        classes = NUMBERS[number % len(NUMBERS)]
        name, layout = [*LAYOUTS.items()][number % len(LAYOUTS)]
        shape = classes, *rng.integers(1, (9, 70))
        array = layout(mixed(rng, kind, shape, rng.choice([0, 0.0001, 1])))
        values = values_of(np.ascontiguousarray(array))
        missing = int(np.isnan(values).any(0).sum())
        expected = missing or values.argmax(0)
        np.testing.assert_equal(decided(array, argmax=0), expected, err_msg=f"{name} {number}")


@pytest.mark.parametrize("kind", WIDTHS)
def test_thresholds(loops, kind):
    rng = np.random.default_rng(1)
    for number in range(CASES):
        array = [*LAYOUTS.values()][number % 4](mixed(rng, kind, (3, 7, 50), number % 3 / 2))
        values = values_of(np.ascontiguousarray(array))
        limit = values_of(any_floats(rng, kind, (1,)))[0]
        if np.isnan(limit):
            continue
        missing = int(np.isnan(values).sum())
        for threshold, expected in (
            (float(limit), values > limit),
            (AtLeast(limit), values >= limit),
        ):
            found = decided(array, threshold=threshold)
            np.testing.assert_equal(found, missing or expected, err_msg=f"{limit} {number}")


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_every_number_is_at_least_minus_infinity(kind):
    scores = np.array([-np.inf, np.finfo(kind).min, 0, np.inf], kind)
    assert decided(scores, threshold=AtLeast(-np.inf)).tolist() == [True] * 4
    assert decided(scores, threshold=AtLeast(scores[1])).tolist() == [False, True, True, True]


def test_channels():
    rng = np.random.default_rng(2)
    for number in range(CASES):
        kind = ("float16", "float32", "float64")[number % 3]
        pred = [*LAYOUTS.values()][number % 4](mixed(rng, kind, (3, 7, 50), number % 2 / 100))
        truth = rng.integers(0, 2, pred.shape).astype(bool)
        limit = float(rng.choice(pred.ravel()))
        if np.isnan(pred).any():
            with pytest.raises(ValueError, match="NaN"):
                count_channels(truth, pred, axis=0, threshold=limit)
            pred = np.where(np.isnan(pred), pred.dtype.type(0), pred)
        limit = 0.0 if np.isnan(limit) else limit
        found = count_channels(truth, pred, axis=0, threshold=limit)
        assert found.tp.tolist() == (truth & (pred > limit)).sum((1, 2)).tolist()
        assert found.fp.tolist() == (~truth & (pred > limit)).sum((1, 2)).tolist()
