"""Scores of random bits: every loop counts what NumPy counts, or refuses the same pixels."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from bit_patterns import CASES, LAYOUTS, WIDTHS, any_floats, mixed
from instruction_sets import loops_here, with_loops

from segiou import ScoreHistogram
from segiou.accumulators.histograms import ScoreRangeError, score_bins
from segiou.accumulators.histograms.score_bins import ScoreBins, count_scores
from segiou.counting.scores import NanScoresError

ACTIVATIONS = (None, "softmax", "sigmoid")
BINS = (2, 100, 4096, 1 << 16, "float16")
COMPILED = score_bins._compiled


@pytest.fixture
def on_all(monkeypatch):
    """Calls a function with each of the compiled loops, then without, and compares."""
    if COMPILED is None:
        pytest.skip("the routine is not compiled")
    monkeypatch.setattr(score_bins, "warn_missing", lambda module: None)

    def compared(function, what):
        monkeypatch.setattr(score_bins, "_compiled", None)
        expected = outcome(function)
        for loops in loops_here(count_one_score):
            part = with_loops(COMPILED, "count_scores", loops)
            monkeypatch.setattr(score_bins, "_compiled", part)
            np.testing.assert_equal(outcome(function), expected, err_msg=str(what))
        return expected

    return compared


def count_one_score(loops):
    cells = np.zeros((3, 2, 2), np.int64)
    COMPILED.count_scores(np.zeros((1, 1), "u1"), "bool", np.zeros(1, "u2"), cells, 1, 0, 0, loops)


def outcome(function):
    """What a count returns, or the error that it raises."""
    try:
        return function()
    except (NanScoresError, ScoreRangeError) as error:
        return str(error)


@pytest.mark.few(4)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kind", WIDTHS)
def test_random_bits(on_all, kind, activation):
    rng = np.random.default_rng(0)
    counted = 0
    for number in range(CASES):
        bins, name = BINS[number % len(BINS)], [*LAYOUTS][number % len(LAYOUTS)]
        classes, shape = int(rng.integers(1, 5)), tuple(rng.integers(1, (30, 40)))
        scores = mixed(rng, kind, (classes, *shape), rng.choice([0, 0, 0.001, 1]))
        scores = LAYOUTS[name](scores)
        codes = rng.integers(0, classes + rng.integers(3), scores.shape[1:]).astype(np.uint16)
        count = partial(count_scores, codes, scores, ScoreBins(bins), activation)
        counted += not isinstance(on_all(count, (bins, name, number)), str)
    assert counted > CASES // 3


@pytest.mark.parametrize("bits", [0xFFFFFFFF, 0x7FFFFFFF, 0xFFFFF000, 0xFF800000, 0x80000000])
def test_every_nan_is_found(on_all, bits):
    """Their bits, taken as an index, end before and after the bins."""
    scores = np.full((2, 4, 4), 0.5, np.float32)
    scores.view(np.uint32)[0, 1, 1] = bits
    codes = np.zeros((4, 4), np.uint16)
    for activation in ACTIVATIONS:
        count = partial(count_scores, codes, scores, ScoreBins("float16"), activation)
        found = on_all(count, bits)
        if np.isnan(scores[0, 1, 1]):
            assert found == str(NanScoresError(1))
        elif bits == 0xFF800000 and activation is None:
            assert found == str(ScoreRangeError(1))
        else:
            assert found[:-1].sum() == 3 * 16


@pytest.mark.parametrize("how", ["classes", "one score", "channels", "regions", "mask"])
def test_histograms(on_all, how):
    rng = np.random.default_rng(1)
    for number in range(CASES):
        bins, activation = BINS[-1 - number % len(BINS)], ACTIVATIONS[number % len(ACTIVATIONS)]
        scores = any_floats(rng, "float32", (1, 2, 9, 11))
        if number % 2:
            scores = mixed(rng, "float32", scores.shape, 0.01)
        truth, axis, mask = rng.integers(0, 2, (1, 9, 11)).astype(np.uint8), 1, None
        if how == "one score":
            scores, axis = scores[:, 0], None
        if how == "channels":
            truth = rng.integers(0, 2, scores.shape).astype(np.uint8)
        if how == "mask":  # what is not valid may be anything
            mask = ~np.isnan(scores).any(1) & (scores >= 0).all(1) & (scores <= 1).all(1)
        if activation == "softmax" and how in ("one score", "channels"):
            activation = "sigmoid"
        empty = ScoreHistogram(2, bins=bins, regions=how == "regions")
        count = partial(empty.count, truth, scores, axis, activation, mask=mask)
        found = on_all(count, (bins, activation, number))
        if how == "mask":
            assert found[2].sum() == mask.sum()
