"""Per-region overlap against a loop over thresholds and regions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import ndimage

from segiou import ScoreHistogram

RNG = np.random.default_rng(8)
BLOBS = ndimage.gaussian_filter(RNG.normal(size=(3, 40, 50)), (0, 2, 2))
TRUTH = (BLOBS > 0.12).astype(int) + (BLOBS < -0.15) * 2
TRUTH[0, :4] = 255
NOISE = RNG.normal(size=(3, 3, 40, 50))
LOGITS = NOISE + 1.5 * np.moveaxis(np.eye(3)[TRUTH % 3], -1, 1)
SCORES = (np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)).astype(np.float16)


def histogram(**options):
    return ScoreHistogram(3, ignore=255, regions=True, **{"bins": "float16"} | options)


def wanted(c, limit, truth=TRUTH, scores=SCORES):
    """The area by definition: every threshold, every region of every image."""
    own, valid, scores = truth == c, truth != 255, scores[:, c].astype(float)
    parts = []
    for mask, plane in zip(own, scores, strict=True):
        ids, number = ndimage.label(mask, np.ones((3, 3)))
        parts += [plane[ids == i] for i in range(1, number + 1)]
    others = scores[valid & ~own]
    x, y = [0.0], [0.0]
    for threshold in np.unique(scores)[::-1]:
        x.append((others >= threshold).mean())
        y.append(np.mean([(part >= threshold).mean() for part in parts]))
    inside = np.array(x) <= limit
    end = np.append(np.array(x)[inside], limit), np.append(np.array(y)[inside], 0)
    after = int(inside.sum())
    end[1][-1] = y[-1] if after == len(x) else np.interp(limit, x[after - 1 :], y[after - 1 :])
    return (np.diff(end[0]) * (end[1][1:] + end[1][:-1])).sum() / 2 / limit, len(parts)


@pytest.mark.parametrize("limit", [0.05, 0.3, 1])
@pytest.mark.gate
def test_definition(limit):
    found = histogram().update(TRUTH, SCORES)
    for c in range(3):
        area, regions = wanted(c, limit)
        assert regions > 3
        assert found.aupro(limit)[c] == pytest.approx(area, abs=1e-8)
    close = histogram(bins=4096).update(TRUTH, SCORES)
    np.testing.assert_allclose(close.aupro(limit), found.aupro(limit), atol=2e-3)


def test_by_hand():
    # Three regions, of one, two and three pixels.
    truth = np.array([[1, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 1], [0, 0, 0, 0, 0, 1]])
    scores = np.where(truth == 1, 0.75, 0.25)
    scores[0, 2] = 0.25  # half of the second, which is connected at a corner
    found = ScoreHistogram(2, regions=True).update(truth, scores, axis=None)
    # Mean overlap at a false positive rate of 0: (1 + 1/2 + 1) / 3; all pass at a rate of 1.
    start = 2.5 / 3
    assert found.aupro(1)[1] == pytest.approx((start + 1) / 2)
    assert found.aupro(0.3)[1] == pytest.approx(start + 0.15 * (1 - start))


def test_parts_add_up():
    whole = histogram().update(TRUTH, SCORES)
    parts = [histogram().update(t, s, axis=0) for t, s in zip(TRUTH, SCORES, strict=True)]
    merged = histogram().merge(*parts)
    assert (merged.aupro() == whole.aupro()).all()
    assert (
        merged.counts == ScoreHistogram(3, bins="float16", ignore=255).update(TRUTH, SCORES).counts
    ).all()
    for again in (
        whole.copy(),
        pickle.loads(pickle.dumps(whole)),
        ScoreHistogram.from_state_dict(whole.state_dict()),
    ):
        assert again == whole
        assert (again.aupro() == whole.aupro()).all()
    assert whole.calibration().ece == merged.calibration().ece
    with pytest.raises(ValueError, match="regions=True"):
        whole.merge(ScoreHistogram(3, bins="float16", ignore=255))


def test_inputs():
    expected = histogram().update(TRUTH, SCORES).aupro()
    last = histogram().update(TRUTH, np.moveaxis(SCORES, 1, -1), axis=-1)
    assert (last.aupro() == expected).all()
    masked = histogram().update(TRUTH % 255, SCORES, mask=TRUTH != 255)
    assert (masked.aupro() == expected).all()
    channels = np.stack([c == TRUTH for c in range(3)], 1)
    several = histogram().update(channels, SCORES, mask=TRUTH != 255)
    assert (several.aupro() == expected).all()
    logits = histogram().update(TRUTH, LOGITS, activation="softmax").aupro()
    np.testing.assert_allclose(logits, expected, atol=1e-3)


def test_undefined_and_refused():
    found = histogram()
    assert np.isnan(found.aupro()).all()
    found.update(np.zeros((4, 5), int), SCORES[0, :, :4, :5], axis=0)
    assert np.isnan(found.aupro()).all()
    with pytest.raises(ValueError, match="two axes"):
        histogram().update([0, 1], SCORES[0, :, 0, :2], axis=0)
    with pytest.raises(ValueError, match="regions=True"):
        ScoreHistogram(3).aupro()
    for limit in (0, 1.5):
        with pytest.raises(ValueError, match="limit"):
            found.aupro(limit)
    with pytest.raises(TypeError, match="regions"):
        ScoreHistogram(3, regions=2)
