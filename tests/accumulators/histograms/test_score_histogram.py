"""Histograms of scores: integers by hand, merge laws, inputs, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from segiou import ScoreHistogram
from segiou.accumulators.histograms import ScoreRangeError
from segiou.counting import UndeclaredValuesError
from segiou.counting.scores import NanScoresError

RNG = np.random.default_rng(8)
TRUTH = RNG.integers(0, 4, (3, 20, 30)).astype(np.uint8)
TRUTH[TRUTH == 3] = 255
LOGITS = RNG.normal(size=(3, 3, 20, 30)).astype(np.float32) * 3
PROBABILITIES = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)


def histogram(bins=64, **more):
    return ScoreHistogram(3, bins=bins, ignore=255, **more)


def test_counts_by_hand():
    found = ScoreHistogram(2, bins=4, ignore=9)
    scores = np.array([[1.0, 0.5, 0.25, 0.75, 0.1], [0.0, 0.5, 0.75, 0.25, 0.9]])
    found.update([0, 1, 1, 1, 9], scores, axis=0)
    # Bins begin at 0, .25, .5 and .75; the last one contains 1. Columns: other, own.
    assert found.counts.tolist() == [
        [[0, 0], [1, 0], [1, 0], [1, 1]],
        [[1, 0], [0, 1], [0, 1], [0, 1]],
    ]
    # Highest scores: 1 (right), .5 (first of two equal ones: wrong), .75 (right), .75 (wrong).
    assert found.top_counts.tolist() == [[0, 0], [0, 0], [1, 0], [1, 2]]
    assert found.top_sums.tolist() == [0, 0, 2**23, 2**24 + 2 * 3 * 2**22]
    assert (found.ignored, found.pairs) == (1, 1)


def test_half_precision_bins_are_the_numbers():
    scores = np.array([0.0, 2**-24, 0.1, 0.5, 1.0], np.float16)
    found = ScoreHistogram(2, bins="float16").update([0, 0, 1, 1, 1], scores, axis=None)
    bins = np.flatnonzero(found.counts[1].any(-1))
    assert (bins == scores.view(np.uint16)).all()
    assert (found.bins.values[bins] == scores).all()


def test_a_score_passes_the_threshold_that_it_equals():
    """29, 57 and 58 hundredths times 100 are below 29, 57 and 58 in floating point."""
    scores = [0.29, 0.57, 0.58, 0.1]
    found = ScoreHistogram(2, bins=100).update([1, 1, 1, 0], scores, axis=None)
    assert np.flatnonzero(found.counts[1].any(-1)).tolist() == [10, 29, 57, 58]
    table = found.at_thresholds()
    assert table.thresholds[[29, 57, 58]].tolist() == scores[:3]
    assert table.recall[1, [29, 30, 57, 58, 59]].tolist() == [1, 2 / 3, 2 / 3, 1 / 3, 0]


def test_rows_of_diagrams_start_with_their_lower_edge():
    """The centre of the last of 3 bins, 5/6, is the edge of the last 3 of 18 rows."""
    found = ScoreHistogram(2, bins=3).update([1], [0.9], axis=None)
    assert np.flatnonzero(found.calibration(18).pixels).tolist() == [15]


@pytest.mark.parametrize("bins", [7, 64, 1000, "float16"])
def test_a_batch_is_its_images(bins):
    parts = [histogram(bins).update(t, p, 0) for t, p in zip(TRUTH, PROBABILITIES, strict=True)]
    whole = histogram(bins).update(TRUTH, PROBABILITIES)
    assert sum(parts).counts.tolist() == whole.counts.tolist()
    assert (whole.ignored + whole.top_counts.sum(), whole.pairs) == (TRUTH.size, 1)
    assert (whole.counts.sum((1, 2)) == whole.top_counts.sum()).all()
    with pytest.raises(ValueError, match="bins is"):
        whole.merge(histogram(5))


def test_states():
    whole = histogram().update(TRUTH, PROBABILITIES)
    kept = whole.state_dict()
    assert ScoreHistogram.from_state_dict(kept).bins == whole.bins
    with pytest.raises(ValueError, match="different options"):
        histogram(8).load_state_dict(kept)
    with pytest.raises(ValueError, match="top_sums must have shape"):
        histogram().load_state_dict({**kept, "top_sums": [1]})


@pytest.mark.parametrize("activation", [None, "softmax", "sigmoid"])
def test_layouts_and_dtypes_are_the_same_scores(activation):
    scores = (PROBABILITIES if activation is None else LOGITS).astype(np.float16)
    wanted = histogram(128).update(TRUTH, scores, activation=activation)
    for dtype in (np.float32, np.float64, ">f4"):
        assert histogram(128).update(TRUTH, scores.astype(dtype), activation=activation) == wanted
    last = np.ascontiguousarray(np.moveaxis(scores, 1, -1))
    assert histogram(128).update(TRUTH, last, -1, activation) == wanted
    turned = histogram(128).update(TRUTH[:, ::-1], scores[:, :, ::-1], 1, activation)
    assert turned == wanted


def test_integers():
    values = RNG.integers(0, 256, (3, 3, 20, 30)).astype(np.uint8)
    found = histogram(256).update(TRUTH, values)
    wanted = histogram(256).update(TRUTH, values / 255)
    assert found == wanted
    assert np.bincount(values[:, 1][TRUTH != 255], minlength=256).tolist() == (
        found.counts[1].sum(-1).tolist()
    )
    wide = RNG.integers(0, 1 << 16, (3, 3, 20, 30)).astype(np.uint16)
    exact = histogram(1 << 16).update(TRUTH, wide).counts[2].sum(-1)
    assert (exact == np.bincount(wide[:, 2][TRUTH != 255], minlength=1 << 16)).all()


def test_activations_are_those_of_scipy():
    from scipy.special import expit, softmax

    fine = {"bins": 1 << 16}
    for name, wanted in (("softmax", softmax(LOGITS, 1)), ("sigmoid", expit(LOGITS))):
        found = histogram(**fine).update(TRUTH, LOGITS, activation=name).counts.cumsum(1)
        other = histogram(**fine).update(TRUTH, wanted).counts.cumsum(1)
        # Scores next to an edge may fall on either side of it.
        assert np.abs(found - other).max() <= 2


def test_tensors():
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(PROBABILITIES)
    wanted = histogram().update(TRUTH, PROBABILITIES)
    assert histogram().update(torch.from_numpy(TRUTH), tensor.requires_grad_()) == wanted
    rounded = tensor.detach().bfloat16()
    assert histogram().update(TRUTH, rounded) == histogram().update(TRUTH, rounded.float())
    last = tensor.permute(0, 2, 3, 1)
    assert histogram().update(TRUTH, last, axis=-1) == wanted


def test_masks_drop_pixels():
    mask = RNG.random(TRUTH.shape) < 0.5
    hidden = np.where(mask, TRUTH, 255)
    found = histogram().update(TRUTH, PROBABILITIES, mask=mask)
    assert found == histogram().update(hidden, PROBABILITIES)
    broken = np.where(mask[:, None], PROBABILITIES, np.nan)
    assert histogram().update(TRUTH, broken, mask=mask) == found


def test_the_second_of_two_classes():
    truth = (TRUTH == 1).astype(int)
    single = np.float64(PROBABILITIES[:, 1])
    both = np.stack([1 - single, single], 1)
    found = ScoreHistogram(2).update(truth, single, axis=None)
    assert found == ScoreHistogram(2).update(truth, both)
    logits = ScoreHistogram(2).update(truth, LOGITS[:, 1], axis=None, activation="sigmoid")
    alone = ScoreHistogram(2).update(
        truth, np.stack([-LOGITS[:, 1], LOGITS[:, 1]], 1), 1, "sigmoid"
    )
    assert logits == alone


def test_channels_may_overlap():
    channels = RNG.random((3, 3, 20, 30)) < 0.4
    mask = RNG.random((3, 20, 30)) < 0.5
    found = histogram().update(channels, PROBABILITIES, mask=mask)
    for c in range(3):
        alone = ScoreHistogram(2, bins=64)
        alone.update(channels[:, c].astype(int), PROBABILITIES[:, c], axis=None, mask=mask)
        assert (found.counts[c] == alone.counts[1]).all()
    assert not found.top_counts.any()
    assert found.ignored == (~mask).sum()
    void = np.where(mask[:, None], channels, 255)
    assert histogram().update(void, PROBABILITIES, mask=mask) == found
    with pytest.raises(ValueError, match=r"^truth must be bool or contain only 0 and 1, found 255"):
        histogram().update(void, PROBABILITIES)


def test_label_sets_have_values():
    found = ScoreHistogram(["a", "b"], bins=2, exclude="a")
    assert found.include.tolist() == [False, True]
    labels = {"a": [7, 8], "b": 3}
    valued = ScoreHistogram(labels, bins=2).update([7, 8, 3], [[0.9, 0.9, 0.1], [0.1, 0.1, 0.9]], 0)
    assert valued.counts.tolist() == [[[1, 0], [0, 2]], [[2, 0], [0, 1]]]


def test_refused():
    scores = PROBABILITIES.copy()
    valid = np.argwhere(TRUTH != 255)
    for n, y, x in valid[:3]:
        scores[n, 1, y, x] = np.nan
    found = histogram()
    with pytest.raises(NanScoresError, match="3 pixels"):
        found.update(TRUTH, scores)
    with pytest.raises(ScoreRangeError) as caught:
        found.update(TRUTH, LOGITS)
    assert caught.value.scores == int(
        ((LOGITS < 0) | (LOGITS > 1))[np.broadcast_to((TRUTH != 255)[:, None], LOGITS.shape)].sum()
    )
    assert pickle.loads(pickle.dumps(caught.value)).scores == caught.value.scores
    with pytest.raises(UndeclaredValuesError, match="3"):
        found.update(np.full_like(TRUTH, 3), PROBABILITIES)
    with pytest.raises(ValueError, match="axis 2"):
        found.update(TRUTH[0], PROBABILITIES, axis=2)
    with pytest.raises(ValueError, match="axis 0 of scores"):
        found.update(TRUTH[:2], PROBABILITIES[:2], axis=0)
    with pytest.raises(ValueError, match="shape"):
        found.update(TRUTH[:2], PROBABILITIES)
    with pytest.raises(ValueError, match="2 classes"):
        found.update(TRUTH, PROBABILITIES[:, 0], axis=None)
    with pytest.raises(ValueError, match="activation must be"):
        found.update(TRUTH, LOGITS, activation="tanh")
    with pytest.raises(TypeError, match="int64"):
        found.update(TRUTH, np.ones(LOGITS.shape, np.int64))
    with pytest.raises(TypeError, match="float scores"):
        found.update(TRUTH, np.ones(LOGITS.shape, np.uint8), activation="softmax")
    with pytest.raises(ValueError, match="sigmoid"):
        found.update(TRUTH[:, None].repeat(3, 1), LOGITS, activation="softmax")
    assert found == histogram()
    for bins in (1, 1 << 17, "float8"):
        with pytest.raises(ValueError, match="bins"):
            ScoreHistogram(2, bins=bins)
    with pytest.raises(TypeError, match="bins"):
        ScoreHistogram(2, bins=2.5)


def test_compiled_counts_check_arguments_like_update():
    jax = pytest.importorskip("jax")
    from segiou.hooks.jax import PixelCounter

    like = ScoreHistogram(3)
    counter = PixelCounter(like)
    truth, scores = np.zeros((2, 4), int), np.full((2, 3, 4), 0.25, np.float32)
    wrong = [
        ({"axis": 1, "activation": "tanh"}, ValueError, "activation must be"),
        ({"axis": 5}, ValueError, "expected 3 classes along axis 5"),
        ({"axis": 0}, ValueError, "expected 3 classes along axis 0"),
        ({"axis": None}, ValueError, "axis=None needs 2 classes, not 3"),
    ]
    for how, error, text in wrong:
        with pytest.raises(error, match=text):
            like.update(truth, scores, **how)
        with pytest.raises(error, match=text):
            jax.jit(lambda state, how=how: counter.update(state, truth, scores, **how))(
                counter.init()
            )


def test_diagrams_have_at_most_65536_rows():
    histogram = ScoreHistogram(2, bins=4).update([0, 1], [[0.75, 0.25], [0.25, 0.75]], axis=-1)
    for function in (histogram.calibration, histogram.classwise_ece):
        with pytest.raises(ValueError, match="bins must be at most 65536"):
            function(2**63)


def test_beta_needs_fbeta():
    histogram = ScoreHistogram(2, bins=4).update([0, 1], [[0.75, 0.25], [0.25, 0.75]], axis=-1)
    with pytest.raises(ValueError, match="beta=2 applies to by='fbeta' only"):
        histogram.best_threshold("iou", beta=2)
    with pytest.raises(ValueError, match="beta must be at most 1e"):
        histogram.best_threshold("fbeta", beta=float("inf"))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_a_single_pixel_without_axes(dtype):
    found = ScoreHistogram(3, bins=10).update(dtype(1), np.array([0.2, 0.5, 0.3]), axis=0)
    assert found == ScoreHistogram(3, bins=10).update([1], [[0.2, 0.5, 0.3]], axis=1)
    assert found.counts[1, 5].tolist() == [0, 1]
