"""Batches as people pass them to Keras, in a process for each backend."""

import pytest

SCALE_OF_KERAS = """
import json
import warnings
import keras
import numpy as np
from segiou.hooks.keras import SegmentationScores

found = []
rng = np.random.default_rng(0)
x, y = 2 * rng.standard_normal((6, 8, 9, 1)).astype("float32"), rng.integers(0, 2, (6, 8, 9, 1))
for activation, threshold in ((None, 0.5), (None, 0.0), ("sigmoid", 0.0), ("sigmoid", 0.5)):
    model = keras.Sequential([keras.Input((8, 9, 1)), keras.layers.Activation(activation)])
    model.compile(loss="mse", metrics=[SegmentationScores(2, threshold=threshold)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            model.evaluate(x, y, batch_size=2, verbose=0)
    texts = [str(warning.message) for warning in caught]
    found.append([text for text in texts if text.startswith("threshold is")])
print(json.dumps(found))
"""


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_a_threshold_of_another_scale_in_keras(run_keras, backend):
    found = run_keras(backend, SCALE_OF_KERAS)
    found = [[text.partition("so they ")[2] for text in texts] for texts in found]
    assert found == [
        [
            "are probably logits; apply a sigmoid, or pass the logit of the threshold: "
            "log(p / (1 - p)), which is 0 for p = 0.5"
        ],
        [],
        ["are probably probabilities; pass threshold=0.5"],
        [],
    ]


CHANNELS_OF_KERAS = """
import json
import keras
import numpy as np
from segiou.hooks.keras import SegmentationScores

found = []
model = keras.Sequential([keras.Input((8, 9, 3)), keras.layers.Conv2D(2, 1)])
y = np.random.default_rng(0).random((2, 8, 9, 2)) < 0.4
model.compile(loss="mse", metrics=[SegmentationScores(2, threshold=0.5)])
for call in (
    lambda: model.evaluate(np.zeros((2, 8, 9, 3)), y.astype("float32"), verbose=0),
    lambda: SegmentationScores(2).update_state(y, y),
    lambda: SegmentationScores(2).update_state(y.astype(int), y.astype(int)),
    lambda: SegmentationScores(4).update_state(np.tile(y, 2), np.tile(y, 2)),
):
    try:
        found.append(str(call()))
    except ValueError as error:
        found.append(str(error))
print(json.dumps(found))
"""


@pytest.mark.parametrize("backend", ["jax"])
def test_overlapping_channels_of_keras(run_keras, backend):
    found = run_keras(backend, CHANNELS_OF_KERAS)
    assert all("channels along axis -1" in text and "ChannelCounts(" in text for text in found)


VALUES_OF_KERAS = """
import json
import keras
import numpy as np
from segiou.hooks.keras import SegmentationScores

# Ties of -0 and 0, which keras.ops.argmax ranks.
truth = np.zeros((2, 2, 3), int)
scores = np.tile(np.float32([-0.0, 0.0, -1.0]), (2, 2, 3, 1))
metric = SegmentationScores(3)
model = keras.Sequential([keras.Input((2, 3, 3)), keras.layers.Identity()])
model.compile(loss=lambda t, p: keras.ops.mean(p, axis=-1), metrics=[metric])
model.evaluate(scores, truth, verbose=0)
ties = metric.counts.matrix.tolist()
config = metric.get_config()
SegmentationScores.from_config(config)
names = ["specificity", "cohen_kappa", "matthews_correlation", "precision", "recall"]
rare = SegmentationScores(2, scores=names)
table = np.zeros((4, 3), np.int64)
table[:2, :2] = [[4_000_000_000, 7], [5, 3]]
for part, values in ((rare.low, table % 2**20), (rare.high, table // 2**20)):
    part.assign(np.append(values.ravel(), 0))
values = {name: float(value) for name, value in rare.result().items()}
print(json.dumps([ties, config == metric.get_config(), values]))
"""


@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_values_of_keras(run_keras, backend):
    ties, is_unchanged, found = run_keras(backend, VALUES_OF_KERAS)
    assert ties == [[12, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert is_unchanged
    # Classes of 4e9 + 7 and 8 pixels: float32 rounds the first to a multiple of 256.
    a, b, c, d = 4_000_000_000, 7, 5, 3
    kappa = 2 * (a * d - b * c) / ((a + b) * (b + d) + (c + d) * (a + c))
    matthews = (a * d - b * c) / ((a + b) * (c + d) * (a + c) * (b + d)) ** 0.5
    wanted = {
        "specificity/0": d / (c + d),
        "specificity/1": a / (a + b),
        "cohen_kappa": kappa,
        "matthews_correlation": matthews,
        "precision/0": a / (a + c),
        "precision/1": d / (b + d),
        "recall/0": a / (a + b),
        "recall/1": d / (c + d),
    }
    assert found == pytest.approx(wanted, rel=1e-6)


EMPTY_BATCHES_OF_KERAS = """
import json
import numpy as np
from segiou import ChannelCounts, ScoreHistogram
from segiou.hooks.keras import SegmentationScores

found = []
labels, scores = np.zeros((0, 2), int), np.zeros((0, 2, 3), "float32")
for like, truth, more in (
    (3, labels, {}),
    (ScoreHistogram(3), labels, {"activation": "softmax"}),
    (ChannelCounts(3), scores, {"threshold": 0.5}),
):
    metric = SegmentationScores(like, **more)
    metric.update_state(truth, scores, sample_weight=np.ones(0))
    found.append([metric.counts.pairs, int(metric.counts._cells.sum())])
metric = SegmentationScores(ChannelCounts(3), threshold=0.5, axis=7)
four = np.zeros((4, 2, 3), "float32")
for call in (
    lambda: metric.update_state(four, four),
    lambda: SegmentationScores(3).update_state(np.zeros((4, 2)), four, np.ones(3)),
):
    try:
        found.append(call())
    except ValueError as error:
        found.append(str(error))
print(json.dumps(found))
"""


@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_empty_batches_and_wrong_shapes_of_keras(run_keras, backend):
    *empty, axis, weight = run_keras(backend, EMPTY_BATCHES_OF_KERAS)
    assert empty == [[1, 0]] * 3
    assert axis == "axis=7 is out of range for channels of shape (4, 2, 3)"
    assert weight == "sample_weight must have shape (N,) or (4, 2), got (3,)"


COPIES_OF_KERAS = """
import copy
import json
import pickle
import numpy as np
import torch
from segiou.hooks.keras import SegmentationScores

metric = SegmentationScores(["a", "b", "c"], ignore=9, name="iou")
metric.update_state(np.array([[0, 1, 2, 9]]), np.array([[0, 1, 1, 1]]))
copies = [copy.copy(metric), copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))]
metric.update_state(np.array([[1]]), np.array([[2]]))
found = [[one.name, float(one.result()), one.counts.matrix.tolist()] for one in copies]
errors = []
for tensor in (torch.zeros(1, 2).to_sparse(), torch.zeros(1, 2, device="meta")):
    try:
        metric.update_state(tensor.long(), np.array([[0, 1]]))
    except TypeError as error:
        errors.append(str(error))

truth, pred = np.array([[0, 1, 2, 9]]), np.array([[0, 1, 1, 1]])
odd = []
for kind in (">i4", ">u8", "uint64", ">f4"):
    other = SegmentationScores(3, ignore=9)
    other.update_state(truth.astype(kind), pred)
    odd.append(other.counts.matrix.tolist())
for wrong in (np.ma.masked_array(truth, truth == 2), truth.astype("O"), truth.astype(complex)):
    try:
        metric.update_state(wrong, pred)
    except TypeError as error:
        errors.append(str(error))
weight = np.array([[1, 1, 0, 1]], ">f4")
other = SegmentationScores(3, ignore=9)
other.update_state(truth, pred, sample_weight=weight)
odd.append([other.counts.pixels, other.counts.ignored])
try:
    other.update_state(truth, pred, sample_weight=np.ma.masked_array(weight, weight == 0))
except TypeError as error:
    errors.append(str(error))
print(json.dumps([found, errors, metric.counts.pixels, odd]))
"""


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_copies_keep_their_counts_and_odd_arrays_are_counted_or_named(
    need_keras, need, run_python, backend
):
    need("torch")
    need_keras(backend)
    found, errors, pixels, odd = run_python(COPIES_OF_KERAS, KERAS_BACKEND=backend)
    assert found == [["iou", 0.5, [[1, 0, 0], [0, 1, 0], [0, 1, 0]]]] * 3
    assert [error.split(";")[0] for error in errors] == [
        "sparse and nested tensors are not supported",
        "tensors on the meta device have no values",
        "an array is a masked array",
        "an array has dtype object",
        "an array has dtype complex128",
        "an array is a masked array",
    ]
    assert pixels == 5
    assert odd == [*[[[1, 0, 0], [0, 1, 0], [0, 1, 0]]] * 4, [4, 2]]
