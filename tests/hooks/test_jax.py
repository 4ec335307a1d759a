from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from segiou import ChannelCounts, ConfusionMatrix, ScoreHistogram


@pytest.fixture
def jax(need):
    return need("jax")


@pytest.fixture
def counter(jax, streets):
    from segiou.hooks.jax import PixelCounter

    return PixelCounter(streets.names, ignore=255)


def test_jitted_over_the_streets(jax, counter, streets):
    step = jax.jit(counter.update)
    state = counter.init()
    for rows in (slice(0, 4), slice(4, 6)):
        state = step(state, streets.truth[rows], streets.pred[rows])
    cm = counter.counts(state)
    np.testing.assert_array_equal(cm.matrix, streets.matrix)
    assert (cm.ignored, cm.pairs) == (streets.ignored, 2)


def test_scores_scan_and_masks(jax, counter, streets):
    jnp = jax.numpy
    scores = jax.nn.one_hot(jnp.asarray(streets.pred), 10, dtype=jnp.bfloat16)
    mask = streets.truth != 2

    def step(state, batch):
        truth, pred, valid = batch
        return counter.update(state, truth, pred, argmax=-1, mask=valid), None

    state, _ = jax.lax.scan(step, counter.init(), (streets.truth, scores, mask))
    host = ConfusionMatrix(streets.names, ignore=255).update(streets.truth, streets.pred, mask=mask)
    cm = counter.counts(state)
    np.testing.assert_array_equal(cm.matrix, host.matrix)
    assert (cm.ignored, cm.pairs) == (host.ignored, 6)
    with pytest.raises(ValueError, match="9 channels along axis 1, expected 10"):
        counter.update(counter.init(), streets.truth, scores[..., :9].swapaxes(1, 3), argmax=1)


def test_counts_beyond_32_bits(jax, counter):
    from segiou.hooks._compiled import BASE

    jnp = jax.numpy
    state = counter.init()._replace(low=counter.init().low.at[0].set(BASE - 1))
    state = state._replace(high=state.high.at[0].set(2**21 - 1))
    state = counter.merge(
        state, counter.update(counter.init(), jnp.zeros(1, int), jnp.zeros(1, int))
    )
    assert counter.counts(state).matrix[0, 0] == 2**41
    with pytest.raises(ValueError, match=r"fewer than 2\^30"):
        jax.eval_shape(
            lambda t: counter.update(counter.init(), t, t),
            jax.ShapeDtypeStruct((1 << 15, 1 << 15), "uint8"),
        )


def test_undeclared_values_are_found_when_read(counter):
    state = counter.update(counter.init(), np.array([0, 77]), np.array([0, 0]))
    with pytest.raises(ValueError, match=r"truth .*the largest value 77"):
        counter.counts(state)


PSUM = """
import sys, json
import numpy as np, jax
from functools import partial
from jax.sharding import Mesh, PartitionSpec as P
from segiou.hooks.jax import PixelCounter

data = np.load(sys.argv[1])
counter = PixelCounter(data["names"].tolist(), ignore=255)
mesh = Mesh(np.array(jax.devices()), ("data",))

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P())
def count(truth, pred):
    state = counter.update(jax.lax.pcast(counter.init(), "data", to="varying"), truth, pred)
    return counter.psum(state, "data")

cm = counter.counts(count(data["truth"], data["pred"]))
print(json.dumps({"devices": len(jax.devices()), "matrix": cm.matrix.tolist(),
                  "ignored": cm.ignored, "pairs": cm.pairs}))
"""


def test_psum_over_devices(jax, run_python, streets, tmp_path):
    path = tmp_path / "streets.npz"
    np.savez(path, truth=streets.truth, pred=streets.pred, names=np.array(streets.names))
    flags = "--xla_force_host_platform_device_count=3"
    out = run_python(PSUM, str(path), XLA_FLAGS=flags, JAX_PLATFORMS="cpu")
    assert (out["devices"], out["pairs"]) == (3, 3)
    np.testing.assert_array_equal(out["matrix"], streets.matrix)
    assert out["ignored"] == streets.ignored


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1, 32, 32, 7), -1), ((2, 24, 32, 7), -1), ((2, 32, 32, 2), -1), ((1, 7, 32, 32), 1)],
)
def test_small_batches_of_scores_compile(jax, shape, axis):
    from segiou.hooks.jax import PixelCounter

    counter = PixelCounter(shape[axis], ignore=255)
    rng = np.random.default_rng(5)
    scores = rng.random(shape, np.float32)
    truth = rng.integers(0, shape[axis], scores.argmax(axis).shape)
    step = jax.jit(lambda *given: counter.update(*given, argmax=axis))
    found = counter.counts(step(counter.init(), truth, scores))
    want = ConfusionMatrix(shape[axis], ignore=255).update(truth, scores, argmax=axis)
    np.testing.assert_array_equal(found.matrix, want.matrix)


def test_labels_beyond_32_bits_are_undeclared(jax):
    from segiou.hooks.jax import PixelCounter

    counter = PixelCounter(2, unassigned="count")
    far, zero = np.array([1 << 33, 0]), np.zeros(2, np.int64)
    found = counter.counts(counter.update(counter.init(), zero, far))
    assert (found.matrix.tolist(), found.unassigned.tolist()) == ([[1, 0], [0, 0]], [1, 0])
    with pytest.raises(ValueError, match="1 pixel, the largest value 2147483647 or more"):
        counter.counts(counter.update(counter.init(), far.astype(np.uint64), zero))


def test_a_state_of_several_devices_is_named(jax, counter):
    state = jax.tree.map(lambda x: x[None], counter.init())
    with pytest.raises(ValueError, match="device axis of size 1"):
        counter.counts(state)


def test_wrong_arguments_are_named(jax, counter):
    from segiou.hooks.jax import PixelCounter

    two, channels = PixelCounter(2), PixelCounter(ChannelCounts(3))
    truth, scores = np.zeros((2, 3, 4), int), np.zeros((2, 3, 4, 3), np.float32)
    with pytest.raises(ValueError, match="threshold must be a number, got NaN"):
        two.update(two.init(), truth, scores[..., 0], threshold=float("nan"))
    with pytest.raises(TypeError, match="has no option 'axis'; choose from argmax, threshold"):
        two.update(two.init(), truth, scores[..., :2], axis=-1)
    with pytest.raises(ValueError, match=r"mask has shape \(3,\) but the labels have \(2, 3, 4\)"):
        two.update(two.init(), truth, truth, mask=np.ones(3, bool))
    with pytest.raises(ValueError, match="axis=9 is out of range for channels"):
        channels.update(channels.init(), scores, scores, axis=9, threshold=0.5)
    with pytest.raises(TypeError, match="mask must be bool"):
        channels.update(channels.init(), scores, scores, axis=3, threshold=0.5, mask=truth)
    with pytest.raises(ValueError, match="expected 13; it belongs to a PixelCounter with differ"):
        two.counts(counter.init())
    with pytest.raises(TypeError, match="no values inside compiled functions"):
        jax.jit(two.counts)(two.init())


def test_masks_of_channels_and_histograms_have_their_shape(jax):
    from segiou.hooks.jax import PixelCounter

    channels, histogram = PixelCounter(ChannelCounts(2)), PixelCounter(ScoreHistogram(2))
    # Two pixels of two channels: a mask of two values is that of the pixels.
    sides, valid = np.array([[1, 1], [0, 1]]), np.array([True, False])
    counted = channels.counts(channels.update(channels.init(), sides, sides, axis=0, mask=valid))
    assert counted.counts.tp.tolist() == [1, 0]
    assert counted.ignored.tolist() == [1, 1]
    turned = np.ones((3, 2), bool)
    with pytest.raises(ValueError, match="mask has shape"):
        planes = np.zeros((2, 2, 3), int)
        channels.update(channels.init(), planes, planes, axis=0, mask=turned)
    with pytest.raises(ValueError, match="mask has shape"):
        scores = np.full((2, 3, 2), 0.5, np.float32)
        histogram.update(histogram.init(), np.zeros((2, 3), int), scores, axis=-1, mask=turned)


@pytest.mark.parametrize("like", [2, ChannelCounts(2), ScoreHistogram(2)])
def test_counters_are_pickled_and_empty_batches_counted(jax, like):
    from segiou.hooks.jax import PixelCounter

    counter = pickle.loads(pickle.dumps(copy.deepcopy(PixelCounter(like))))
    truth = np.zeros((0, 2) if isinstance(like, ChannelCounts) else 0, int)
    how = {"argmax": 1} if like == 2 else {"axis": 1}
    how |= {"threshold": 0.5} if isinstance(like, ChannelCounts) else {}
    state = counter.update(counter.init(), truth, np.zeros((0, 2), np.float32), **how)
    found = counter.counts(state)
    assert found.pairs == 1
    assert not found._cells.any()


@pytest.mark.parametrize("ignored", [("int4", -8), ("uint4", 15)])
def test_labels_of_four_bits_are_counted(jax, ignored):
    from segiou.hooks.jax import PixelCounter

    dtype, value = ignored
    truth = jax.numpy.array([0, 1, 2, 1, value], dtype)
    pred = jax.numpy.array([0, 1, 1, 0, 1], "uint4")
    wanted = [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    counter = PixelCounter(3, ignore=value)
    state = jax.jit(counter.update)(counter.init(), truth, pred)
    host = ConfusionMatrix(3, ignore=[value, 1 << 40])
    assert host.update(truth, pred).matrix.tolist() == wanted
    assert host.empty().update(np.asarray(truth), np.asarray(pred)) == host
    assert counter.counts(state).matrix.tolist() == wanted


def test_channels_need_their_axis(jax):
    from segiou.hooks.jax import PixelCounter

    counter = PixelCounter(ChannelCounts(2))
    with pytest.raises(TypeError, match=r"PixelCounter\.update needs axis="):
        counter.update(counter.init(), np.zeros((2, 3), int), np.zeros((2, 3), int))


@pytest.fixture
def nnx(need):
    return need("flax.nnx")


def updated(nnx, metric, **given):
    nnx.jit(lambda one, rest: one.update(**rest))(metric, given)
    return metric


@pytest.mark.gate
def test_a_metric_of_flax(nnx):
    from segiou.hooks.flax import SegmentationScores

    truth, pred = np.array([[0, 0, 1, 2], [1, 1, 2, 2]]), np.array([[0, 0, 0, 2], [1, 1, 2, 1]])
    metrics = nnx.MultiMetric(
        accuracy=nnx.metrics.Accuracy(),
        one=SegmentationScores(3, exclude=0),
        several=SegmentationScores(3, scores=["mean_iou", "iou"]),
    )
    logits = np.eye(3, dtype=np.float32)[pred]
    for _ in range(2):
        metrics.reset()
        updated(nnx, metrics, logits=logits, labels=truth)
        found = metrics.compute()
        assert found["accuracy"] == 0.75
        assert found["one"] == pytest.approx((1 / 2 + 2 / 3) / 2)
        values = {"mean_iou": 11 / 18, "iou/0": 2 / 3, "iou/1": 1 / 2, "iou/2": 2 / 3}
        assert found["several"] == pytest.approx(values)
    first = np.array([True, False])
    masked = updated(nnx, SegmentationScores(3), logits=pred, labels=truth, mask=first)
    assert masked.counts.matrix.tolist() == [[2, 0, 0], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("shape_of_truth", "shape"),
    [
        ((2, 3, 4), (2, 1, 3, 4)),
        ((2, 3, 4), (2, 3, 4, 1)),
        ((2, 1, 3, 4), (2, 1, 3, 4)),
        ((2, 1, 3, 4), (2, 3, 4)),
    ],
)
def test_one_channel_counts_with_or_without_its_axis(jax, shape_of_truth, shape):
    from segiou.hooks.jax import PixelCounter

    rng = np.random.default_rng(7)
    truth, logits = rng.integers(0, 2, (2, 3, 4)), rng.random((2, 3, 4), np.float32)
    counter = PixelCounter(2)
    step = jax.jit(lambda *given: counter.update(*given, threshold=0.5))
    state = step(counter.init(), truth.reshape(shape_of_truth), logits.reshape(shape))
    expected = [[int(((truth == t) & ((logits > 0.5) == p)).sum()) for p in (0, 1)] for t in (0, 1)]
    assert counter.counts(state).matrix.tolist() == expected
    labels = counter.update(counter.init(), truth, (logits > 0.5).astype(int).reshape(shape))
    assert counter.counts(labels).matrix.tolist() == expected


def test_two_channels_with_a_threshold_name_their_axis(jax):
    from segiou.hooks.jax import PixelCounter

    counter, truth = PixelCounter(2), np.zeros((2, 3, 4), int)
    with pytest.raises(ValueError, match=r"\(2, 2, 3, 4\) have 2 channels along axis 1"):
        counter.update(counter.init(), truth, np.zeros((2, 2, 3, 4), np.float32), threshold=0.5)


@pytest.mark.gate
def test_binary_logits_and_float_truth_of_flax(nnx):
    from segiou.hooks.flax import SegmentationScores

    logits = np.array([[[-1.0], [2.0], [0.0], [3.0]]], np.float32)
    truth = np.array([[[0.0], [1.0], [1.0], [0.0]]], np.float32)
    metric = updated(nnx, SegmentationScores(2, threshold=0.0), logits=logits, labels=truth)
    assert metric.counts.matrix.tolist() == [[1, 1], [1, 1]]
    metric.update(logits=logits, labels=truth)
    assert metric.counts.matrix.tolist() == [[2, 2], [2, 2]]
    updated(nnx, metric, logits=logits, labels=truth + 0.5)
    with pytest.raises(ValueError, match="truth contained 4 values that are not whole numbers"):
        metric.compute()


@pytest.mark.gate
def test_histograms_of_flax(nnx):
    from segiou.hooks.flax import SegmentationScores

    scores = np.array([[[0.75, 0.25], [0.25, 0.75]]], np.float32)
    metric = SegmentationScores(ScoreHistogram(2), scores=["average_precision", "brier"])
    truth = np.array([[0, 1]])
    updated(nnx, metric, logits=scores, labels=truth)
    assert metric.compute()["average_precision"] == 1.0
    assert metric.counts == ScoreHistogram(2).update(truth, scores, axis=-1)


#: Labels and options, and whether comparisons give the class of a value.
LAYOUTS = {
    "plain": ({"labels": 19, "ignore": 255}, True),
    "class 0 is ignored": ({"labels": ["none", "a", "b"], "ignore": 0}, True),
    "from -2": ({"labels": {"a": -2, "b": -1, "c": 0}, "ignore": [7, 2**20]}, True),
    "in reverse": ({"labels": {"a": 4, "b": 3, "c": 2, "d": 1, "e": 0, "f": -1}}, False),
    "gaps": ({"labels": {"a": [0, 3], "b": 1, "c": 5}}, True),
    "aliases": ({"labels": {"a": [0, *range(9, 20)], "b": 1}}, False),
    "two label sets": ({"labels": {"a": 3, "b": 4}, "pred_labels": {"b": 0, "a": 1}}, True),
}


@pytest.mark.filterwarnings("ignore:ignored value")
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_of_any_layout(jax, layout, dtype):
    from segiou.hooks.jax import PixelCounter

    options, is_compared = LAYOUTS[layout]
    options = {**options, "unassigned": "count"}
    host = ConfusionMatrix(**options)
    values = [v for one in host.labels.classes for v in one.values]
    values += [v for v in host.options.ignore if isinstance(v, int)]
    bounds = np.iinfo(dtype)
    values = [v for v in values if bounds.min <= v <= bounds.max]
    rng = np.random.default_rng(0)
    truth = rng.choice(values, (2, 9, 50)).astype(dtype)
    pred = rng.choice([*range(25), bounds.min, bounds.max], truth.shape).astype(dtype)
    host.update(truth, pred)
    counter = PixelCounter(**options)
    update = jax.jit(counter.update)
    read = counter.counts(update(counter.init(), truth, pred))
    assert read.state_dict() == host.state_dict()
    text = str(jax.make_jaxpr(counter.update)(counter.init(), truth, pred))
    assert ("gather" in text) == (not is_compared)
