"""The compiled routine counts the same integers as NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_sets import loops_here, with_loops

from segiou.accumulators.histograms import ScoreRangeError, score_bins
from segiou.accumulators.histograms.score_bins import ScoreBins, count_scores
from segiou.counting.arrays import _BFLOAT16
from segiou.counting.scores import NanScoresError

RNG = np.random.default_rng(3)
LOGITS = RNG.normal(size=(5, 3, 37, 41)) * np.array([0.1, 3, 30])[:, None, None]
CODES = RNG.integers(0, 6, (3, 37, 41)).astype(np.uint16)
EDGES = np.concatenate([np.arange(65) / 64, [2**-24, 2**-25, 2**-14, 1 - 2**-12, -0.0, 6e-5]])

pytestmark = pytest.mark.skipif(score_bins._compiled is None, reason="the routine is not compiled")


def count_one_score(loops):
    cells = np.zeros((3, 2, 2), np.int64)
    part = score_bins._compiled
    part.count_scores(np.zeros((1, 1), "u1"), "bool", np.zeros(1, "u2"), cells, 1, 0, 0, loops)


def both(monkeypatch, *arguments):
    compiled = count_scores(*arguments)
    for loops in loops_here(count_one_score):
        with monkeypatch.context() as patch:
            part = with_loops(score_bins._compiled, "count_scores", loops)
            patch.setattr(score_bins, "_compiled", part)
            assert (count_scores(*arguments) == compiled).all()
    with monkeypatch.context() as patch:
        patch.setattr(score_bins, "_compiled", None)
        patch.setattr(score_bins, "warn_missing", lambda module: None)
        return compiled, count_scores(*arguments)


def bfloat16(array):
    bits = array.astype(np.float32).view(np.uint32) >> 16
    return np.ascontiguousarray(bits.astype(np.uint16)).view(_BFLOAT16)


LAYOUTS = {
    "planes": lambda a: a,
    "rows": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0),
    "backwards": lambda a: a[:, ::-1, :, ::-1],
    "every other": lambda a: a.repeat(2, -1)[..., ::2],
}


@pytest.mark.parametrize("bins", [2, 100, 4096, 1 << 16, "float16"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, "bfloat16", ">f4"])
@pytest.mark.parametrize("activation", [None, "softmax", "sigmoid"])
@pytest.mark.gate
def test_same_integers(monkeypatch, bins, kind, activation):
    scores = LOGITS if activation else RNG.random(LOGITS.shape)
    if activation is None:
        scores[RNG.random(scores.shape) < 0.2] = 0
        scores[0].flat[: len(EDGES)] = EDGES
        scores[4].flat[: len(EDGES)] = 1.0
    array = bfloat16(scores) if kind == "bfloat16" else scores.astype(kind)
    for name, layout in LAYOUTS.items():
        compiled, plain = both(monkeypatch, CODES, layout(array), ScoreBins(bins), activation)
        assert (compiled == plain).all(), name
        assert compiled[:-1].sum((1, 2)).tolist() == [int((CODES < 5).sum())] * 6


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.bool_])
def test_integers(monkeypatch, kind):
    scores = RNG.integers(0, 1 << 16, LOGITS.shape).astype(kind)
    for bins in (256, 1 << 16, 1000, "float16"):
        compiled, plain = both(monkeypatch, CODES, scores, ScoreBins(bins))
        assert (compiled == plain).all()


@pytest.mark.parametrize("bins", [5, 49, 100, 1000, 65535])
def test_double_scores_at_edges(monkeypatch, bins):
    """A bin starts with the double nearest to k / bins, though its product may be below k."""
    edges = np.array([k / bins for k in range(bins)])
    scores = np.concatenate([edges, np.nextafter(edges[1:], 0), [1.0]])
    own = np.concatenate([np.arange(bins), np.arange(bins - 1), [bins - 1]])
    codes = np.zeros(len(own), np.uint16)
    for counted in both(monkeypatch, codes, scores[None], ScoreBins(bins)):
        assert (counted[0, :, 1] == np.bincount(own)).all()


@pytest.mark.parametrize("activation", [None, "softmax", "sigmoid"])
def test_same_errors(monkeypatch, activation):
    broken = RNG.random(LOGITS.shape)
    broken[1, 0, 3, 4:9] = np.nan
    broken[2, 1, 5, 2] = np.inf
    for scores in (broken, np.where(np.isnan(broken), 2.5, broken)):
        found = []
        for compiled in (score_bins._compiled, None):
            with monkeypatch.context() as patch:
                patch.setattr(score_bins, "_compiled", compiled)
                patch.setattr(score_bins, "warn_missing", lambda module: None)
                try:
                    found.append(count_scores(CODES * 0, scores, ScoreBins(), activation).sum())
                except (NanScoresError, ScoreRangeError) as error:
                    found.append((type(error), str(error)))
        assert found[0] == found[1]


def test_extreme_logits(monkeypatch):
    values = np.array([0, -0.0, 1e-30, -200, 87, 88.7, 1e30, -1e30, -np.inf, 3])
    scores = np.array(np.meshgrid(values, values, [0.0])).reshape(3, -1)
    codes = np.zeros(scores.shape[1], np.uint16)
    for activation in ("softmax", "sigmoid"):
        compiled, plain = both(monkeypatch, codes, scores, ScoreBins("float16"), activation)
        assert (compiled == plain).all()


def test_shapes(monkeypatch):
    for shape in ((), (0,), (1,), (255,), (256,), (257,), (2, 0, 3), (1, 1, 300)):
        scores = RNG.random((2, *shape))
        codes = RNG.integers(0, 3, shape).astype(np.uint16)
        compiled, plain = both(monkeypatch, np.asarray(codes, np.uint16), scores, ScoreBins(8))
        assert (compiled == plain).all()


def test_refuses_what_does_not_fit():
    part = score_bins._compiled.count_scores
    scores, codes = np.zeros((2, 4), np.uint32), np.zeros(4, np.uint16)
    cells = np.zeros((4, 8, 2), np.int64)
    assert part(scores, "float32", codes, cells, 2, False, 0) == (0, 0)
    for wrong in (
        (scores, "float64", codes, cells),
        (scores, "int", codes, cells),
        (scores, "float32", codes[:3], cells),
        (scores, "float32", codes.astype(np.uint32), cells),
        (scores, "float32", codes, cells[:3]),
        (scores[:0], "float32", codes, cells[:2]),
    ):
        with pytest.raises(ValueError, match="do not fit"):
            part(*wrong, 2, False, 0)
    with pytest.raises(ValueError, match="no such loops"):
        part(scores, "float32", codes, cells, 2, False, 0, "abacus")
    with pytest.raises(ValueError, match="do not fit"):
        part(scores, "float32", codes, cells, 2, True, 0)


@pytest.mark.parametrize("offset", [1e6, -1e12])
def test_softmax_of_doubles_depends_on_differences_only(monkeypatch, offset):
    """In float32, the offset rounds the logits."""
    logits = np.round(LOGITS * 256) / 256
    plain, _ = both(monkeypatch, CODES, logits, ScoreBins(), "softmax")
    for found in both(monkeypatch, CODES, logits + offset, ScoreBins(), "softmax"):
        assert (found == plain).all()


def test_softmax_of_doubles_beyond_float32(monkeypatch):
    hard = (LOGITS.max(0) == LOGITS).astype(float)
    for found in both(monkeypatch, CODES, LOGITS * 1e39, ScoreBins(), "softmax"):
        assert (found[:5] == count_scores(CODES, hard, ScoreBins())[:5]).all()
