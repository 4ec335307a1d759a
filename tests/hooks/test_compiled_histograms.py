"""Score histograms counted inside compiled functions: the integers of ScoreHistogram."""

from __future__ import annotations

import numpy as np
import pytest

from segiou import ScoreHistogram

RNG = np.random.default_rng(3)
TRUTH = RNG.integers(0, 4, (3, 16, 20))
LOGITS = RNG.normal(size=(3, 4, 16, 20)).astype("f4") * RNG.choice([0.1, 1, 8], (3, 1, 16, 20))
LOGITS = LOGITS.astype("f4")
TRUTH[:, 0] = 255
MASK = RNG.random(TRUTH.shape) < 0.8


@pytest.fixture
def jax(need):
    return need("jax")


def counted(jax, like, truth, scores, **how):
    from segiou.hooks.jax import PixelCounter

    counter = PixelCounter(like)
    step = jax.jit(lambda *given, mask=None: counter.update(*given, mask=mask, **how))
    return counter, step


@pytest.mark.parametrize(
    ("bins", "kind", "activation"),
    [
        (4096, "float32", "softmax"),
        ("float16", "float32", "softmax"),
        ("float16", "bfloat16", "sigmoid"),
        (64, "float16", "softmax"),
        (4096, "float16", None),
        ("float16", "float32", None),
        (1000, "bfloat16", "softmax"),
    ],
)
def test_jitted(jax, bins, kind, activation):
    scores = jax.numpy.asarray(LOGITS).astype(kind)
    if activation is None:
        scores = jax.nn.sigmoid(scores)
    like = ScoreHistogram(4, bins=bins, ignore=255)
    counter, step = counted(jax, like, TRUTH, scores, activation=activation)
    state = counter.init()
    for i in range(3):
        state = step(state, TRUTH[i : i + 1], scores[i : i + 1])
    expected = like.empty()
    for i in range(3):
        expected.update(TRUTH[i : i + 1], np.asarray(scores[i : i + 1]), activation=activation)
    assert counter.counts(state) == expected
    assert like.pairs == 0


def test_axes_masks_and_a_single_score(jax):
    like = ScoreHistogram(4, ignore=255)
    last = np.moveaxis(LOGITS, 1, -1)
    counter, step = counted(jax, like, TRUTH, last, axis=-1, activation="softmax")
    expected = like.empty().update(TRUTH, last, -1, "softmax", mask=MASK)
    assert counter.counts(step(counter.init(), TRUTH, last, mask=MASK)) == expected
    two = ScoreHistogram(2)
    truth = (TRUTH == 1).astype("u1")
    for activation in (None, "sigmoid"):
        scores = LOGITS[:, 0] if activation else np.abs(LOGITS[:, 0]) % 1
        counter, step = counted(jax, two, truth, scores, axis=None, activation=activation)
        expected = two.empty().update(truth, scores, None, activation)
        assert counter.counts(step(counter.init(), truth, scores)) == expected


def test_every_score_has_its_bin(jax):
    """Both sides of every edge of the bins, and the ends."""
    for bins in (256, 65535, "float16"):
        like = ScoreHistogram(2, bins=bins)
        edges = like.bins.edges.astype("f4")
        middle = ((edges[1:].astype("f8") + edges[:-1]) / 2).astype("f4")
        near = [np.nextafter(x, np.float32(end)) for x in (edges, middle) for end in (0, 1)]
        scores = np.unique(np.concatenate([edges, middle, *near, [-0.0, 1.0]])).astype("f4")
        truth = np.arange(len(scores)) % 2
        counter, step = counted(jax, like, truth, scores, axis=None)
        found = counter.counts(step(counter.init(), truth, scores))
        assert found == like.empty().update(truth, scores, None)


def test_integer_scores(jax):
    scores = RNG.integers(0, 255, LOGITS.shape, "u1", endpoint=True)
    like = ScoreHistogram(4, bins=100, ignore=255)
    counter, step = counted(jax, like, TRUTH, scores)
    expected = like.empty().update(TRUTH, scores)
    assert counter.counts(step(counter.init(), TRUTH, scores)) == expected
    for kind, bins in (("u1", 100), ("u2", "float16")):
        values = np.arange(np.iinfo(kind).max + 1).astype(kind)
        two, truth = ScoreHistogram(2, bins=bins), values % 2
        counter, step = counted(jax, two, truth, values, axis=None)
        expected = two.empty().update(truth, values, None)
        assert counter.counts(step(counter.init(), truth, values)) == expected


def test_merge_scan_and_sums_beyond_32_bits(jax):
    from segiou.hooks.jax import PixelCounter

    like = ScoreHistogram(2, bins=64)
    counter = PixelCounter(like)
    truth, scores = np.ones((3, 1 << 16), "u1"), np.ones((3, 1 << 16), "f4")

    def step(state, batch):
        return counter.update(state, *batch, axis=None), None

    state, _ = jax.lax.scan(step, counter.init(), (truth, scores))
    both = counter.counts(counter.merge(state, state))
    assert both.top_sums[-1] == 2 * 3 * (1 << 16) << 24
    assert both.pairs == 6


def test_refused(jax):
    from segiou.hooks.jax import PixelCounter

    like = ScoreHistogram(2, bins=64)
    counter = PixelCounter(like)
    truth, scores = np.array([0, 1]), np.array([0.2, 0.8], "f4")
    wrong = {
        "largest value 7": (np.array([0, 7]), scores),
        "NaN": (truth, np.array([0.2, np.nan], "f4")),
        "outside": (truth, np.array([0.2, 1.5], "f4")),
    }
    for reason, given in wrong.items():
        state = counter.update(counter.init(), *given, axis=None)
        with pytest.raises(ValueError, match=reason):
            counter.counts(state)
    with pytest.raises(TypeError, match="must be floats, uint8 or uint16, got dtype int32"):
        counter.update(counter.init(), truth, np.array([1, 2], "i4"), axis=None)
    with pytest.raises(TypeError, match="activation='sigmoid' needs float scores, got uint8"):
        bytes_ = np.array([1, 2], "u1")
        counter.update(counter.init(), truth, bytes_, axis=None, activation="sigmoid")
    with pytest.raises(ValueError, match="compiled functions cannot find regions"):
        PixelCounter(ScoreHistogram(2, regions=True))
    with pytest.raises(ValueError, match="expected 2 classes along axis 0 of scores of shape"):
        counter.update(counter.init(), truth, np.zeros((3, 2), "f4"), axis=0)
    with pytest.raises(ValueError, match=r"fewer than 2\^23"):
        jax.eval_shape(
            lambda t: counter.update(counter.init(), t, t, axis=None),
            jax.ShapeDtypeStruct((1 << 12, 1 << 11), "float32"),
        )


WIDE = """
import sys, json
import jax, numpy as np
from segiou import ScoreHistogram
from segiou.hooks.jax import PixelCounter

data = np.load(sys.argv[1])
found = []
for bins, activation in ((4096, "softmax"), (4096, None), (100, None)):
    like = ScoreHistogram(4, bins=bins, ignore=255)
    counter = PixelCounter(like)
    scores = data["logits"] if activation else data["scores"]
    step = jax.jit(lambda *given: counter.update(*given, activation=activation))
    state = step(counter.init(), data["truth"], scores)
    same = counter.counts(state) == like.empty().update(data["truth"], scores, 1, activation)
    found.append([str(jax.numpy.asarray(scores).dtype), same])
print(json.dumps(found))
"""


@pytest.mark.gate
def test_64_bits(jax, run_python, tmp_path):
    logits = LOGITS.astype(np.float64)
    scores = 1 / (1 + np.exp(-logits))
    edges = np.arange(101) / 100  # and the doubles below them
    scores.flat[:201] = np.concatenate([edges, np.nextafter(edges[1:], 0)])
    np.savez(tmp_path / "scores.npz", truth=TRUTH, logits=logits, scores=scores)
    found = run_python(WIDE, str(tmp_path / "scores.npz"), JAX_ENABLE_X64="1")
    assert found == [["float64", True]] * 3


KERAS = """
import sys, json
import numpy as np
import keras
from segiou import ScoreHistogram
from segiou.hooks.keras import SegmentationScores

data = np.load(sys.argv[1])
truth, logits = data["truth"], np.moveaxis(data["logits"], 1, -1)
names = ["average_precision", "roc_auc", "best_iou", "fpr95", "ece", "mce", "ace", "brier"]
like = ScoreHistogram(4, ignore=255, exclude=3)
metric = SegmentationScores(like, activation="softmax", scores=names, name="scores")
model = keras.Sequential([keras.Input(logits.shape[1:]), keras.layers.Identity()])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=255)
model.compile("sgd", loss, metrics=[metric])
log = model.evaluate(logits, truth, batch_size=2, verbose=0, return_dict=True)
expected = like.empty()
for rows in (slice(0, 2), slice(2, 3)):
    expected.update(truth[rows], logits[rows], -1, "softmax")
again = type(metric).from_config(metric.get_config())
again.update_state(truth, logits, sample_weight=data["mask"])
masked = like.empty().update(truth, logits, -1, "softmax", mask=data["mask"])
single = SegmentationScores(ScoreHistogram(2, bins="float16"), axis=None, activation="sigmoid")
single.update_state(truth == 1, logits[..., 0])
two = ScoreHistogram(2, bins="float16").update(truth == 1, logits[..., 0], None, "sigmoid")
levels = np.arange(256, dtype="uint8")
bytes_ = SegmentationScores(ScoreHistogram(2, bins=100), axis=None)
bytes_.update_state(levels % 2, levels)
of_bytes = ScoreHistogram(2, bins=100).update(levels % 2, levels, None)
bad = SegmentationScores(ScoreHistogram(2), axis=None)
bad.update_state(np.array([0, 9]), np.array([0.2, 0.4]))
pairs = [(metric, expected), (again, masked), (single, two), (bytes_, of_bytes)]
out = {
    "same": [hook.counts == wanted for hook, wanted in pairs],
    "log": {name: float(log[f"scores/{name}"]) for name in names},
    "single": float(single.result()),
    "single_wanted": two.average_precision().mean(),
    "bad": bool(np.isnan(keras.ops.convert_to_numpy(bad.result()))),
    "state": expected.state_dict(),
}
try:
    bad.counts
except ValueError as error:
    out["error"] = str(error)
print(json.dumps(out))
"""


@pytest.mark.gate
@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_keras(backend, run_keras, tmp_path):
    path = tmp_path / "scores.npz"
    np.savez(path, truth=TRUTH, logits=LOGITS, mask=MASK)
    out = run_keras(backend, KERAS, str(path))
    assert out["same"] == [True] * 4
    expected = ScoreHistogram.from_state_dict(out["state"])
    calibration = expected.calibration()
    wanted = {
        "average_precision": expected.average_precision()[:3].mean(),
        "roc_auc": expected.roc_auc()[:3].mean(),
        "best_iou": expected.best_threshold().scores[:3].mean(),
        "fpr95": expected.fpr_at_tpr()[:3].mean(),
        "ece": calibration.ece,
        "mce": calibration.mce,
        "ace": calibration.ace,
        "brier": calibration.brier,
    }
    assert out["log"] == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    assert out["single"] == pytest.approx(out["single_wanted"], rel=1e-5)
    assert out["bad"]
    assert "the largest value 9" in out["error"]
