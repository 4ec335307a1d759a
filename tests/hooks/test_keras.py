"""Each backend in a process of its own: Keras has one for the life of a process."""

from __future__ import annotations

import json

import numpy as np
import pytest

from segiou import ConfusionMatrix
from segiou.metrics import METRICS

FIT = """
import sys, json
import numpy as np
import keras
from segiou.hooks.keras import SegmentationScores
from segiou.metrics import METRICS

data = np.load(sys.argv[1])
images, truth, names = data["images"], data["truth"], data["names"].tolist()
keras.utils.set_random_seed(1)
model = keras.Sequential([
    keras.Input(images.shape[1:]),
    keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
    keras.layers.Conv2D(10, 1),
])
metric = SegmentationScores(names, ignore=255, name="miou")
several = SegmentationScores(names, ignore=255, scores=["mean_iou", "pixel_accuracy", "iou"])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=255)
model.compile("sgd", loss, metrics=[metric, several], **json.loads(sys.argv[2]))
log = model.fit(images[:4], truth[:4], epochs=2, batch_size=4, verbose=0,
                validation_data=(images, truth), validation_batch_size=4).history
model.evaluate(images, truth, batch_size=4, verbose=0)
counted = metric.counts
pred = np.asarray(model.predict(images, batch_size=4, verbose=0)).argmax(-1)
again = type(metric).from_config(metric.get_config())
again.update_state(truth[..., None], pred)
exact = again.counts.matrix

out = {"matrix": counted.matrix.tolist(), "pixels": counted.pixels, "pairs": counted.pairs,
       "ignored": counted.ignored, "val": log["val_miou"][-1], "exact": exact.tolist(),
       "log": {k: v[-1] for k, v in log.items()}, "backend": keras.backend.backend(),
       "mean_iou": counted.mean_iou(), "accuracy": counted.pixel_accuracy(),
       "road": counted.iou()[2]}

big = SegmentationScores(2)
big.high.assign(big.high.value + 2**25)  # each cell: 2^45 pixels
big.update_state(np.array([[0, 1]]), np.array([[0, 1]]))
out["carried"] = int(keras.ops.convert_to_numpy(big.high)[0])
big.reset_state()
big.low.assign(big.low.value + (2**20 - 1))
big.update_state(np.array([[0, 1]]), np.array([[0, 1]]))
out["limbs"] = [int(keras.ops.convert_to_numpy(v)[0]) for v in (big.low, big.high)]

bad = SegmentationScores(2)
bad.update_state(np.array([[0, 9]]), np.array([[0, 1]]))
out["poisoned"] = bool(np.isnan(keras.ops.convert_to_numpy(bad.result())))
try:
    bad.counts
except ValueError as error:
    out["error"] = str(error)
masked = SegmentationScores(2, scores="pixel_accuracy")
masked.update_state(np.array([[0, 9]]), np.array([[0.9, 0.1]])[..., None] * [1.0, -1.0],
                    sample_weight=np.array([[True, False]]))
out["masked"] = float(masked.result())
odd = SegmentationScores(["a", "b", "c"], ignore=7, exclude="c", unassigned="count",
                         scores=["mean_iou", "mean_dice", "mean_accuracy", "pixel_accuracy",
                                 "frequency_weighted_iou", *METRICS])
truth, pred = np.array([0, 0, 1, 1, 7, 2]), np.array([0, 1, 1, 200, 3, 0])
odd.update_state(truth.astype("uint8"), pred)
out["odd"] = {k: float(v) for k, v in odd.result().items()}
model.save(sys.argv[1] + ".keras")
loaded = keras.models.load_model(sys.argv[1] + ".keras")
out["loaded"] = float(loaded.evaluate(data["images"], data["truth"], batch_size=4, verbose=0,
                                      return_dict=True)["miou"])
print(json.dumps(out))
"""


# What Keras users give: each entry of "same" must count as the first.
INPUTS = """
import json
import numpy as np
import keras
from segiou.hooks.keras import SegmentationScores

rng = np.random.default_rng(0)
truth = rng.integers(0, 3, (4, 5, 6)).astype("uint8")
scores = rng.normal(size=(4, 5, 6, 3)).astype("float32")
pixels = rng.integers(0, 2, (4, 5, 6))
images = np.array([1, 0, 1, 0])
labels = scores.argmax(-1)

def counted(truth, pred, weight=None, **options):
    metric = SegmentationScores(options.pop("labels", 3), **options)
    metric.update_state(truth, pred, sample_weight=weight)
    return metric.counts

def matrix(*arguments, **options):
    cm = counted(*arguments, **options)
    return [cm.matrix.tolist(), cm.ignored]

def error(*arguments, **options):
    try:
        counted(*arguments, **options)
    except ValueError as error:
        return str(error)

def scored(truth, pred, **options):
    metric = SegmentationScores(4, **options)
    metric.update_state(truth, pred)
    again = SegmentationScores.from_config(json.loads(json.dumps(metric.get_config())))
    again.update_state(truth, pred)
    values = [float(metric.result()), float(again.result())]
    return [values, metric.counts.mean_iou(options["protocol"])]

one_hot = np.eye(3)[truth]
smooth = one_hot * 0.9 + 0.1 / 3
half = truth + np.where(np.arange(6) == 5, 0.5, 0)
every = pixels.astype(bool)
third = every.astype("float32") / 3
gap = {"labels": "voc2012", "scores": "mean_iou"}
same = {
    "truth": [matrix(x, scores) for x in (truth, truth.astype("float32"), one_hot,
              one_hot.astype("uint8"), one_hot.astype(bool), truth[..., None],
              truth[..., None].astype("float32"))],
    "first axis": [matrix(truth, scores), matrix(one_hot.transpose(0, 3, 1, 2),
                   scores.transpose(0, 3, 1, 2), axis=1)],
    "pixels": [matrix(truth, scores, x) for x in (every, pixels, pixels.astype("float32"),
               every[..., None], pixels[..., None].astype("float64"), third)],
    "images": [matrix(truth, scores, np.ones((4, 5, 6)) * images[:, None, None] > 0),
               *(matrix(truth, scores, x) for x in (images, images.astype("float32"),
                 images[:, None], images[:, None, None] > 0))],
    "threshold": [matrix(truth > 1, x, labels=2, threshold=0.5)
                  for x in (scores[..., 0], scores[..., :1])],
    "as many images as classes": [matrix(x > 1, x > 1, labels=4)
                                  for x in (truth, truth.reshape(2, 10, 6))],
    "ignored in one-hot": [matrix(np.where(every, 255, truth), scores, ignore=255),
                           *(matrix(np.where(every[..., None], 255, one_hot).astype(kind), scores,
                                    ignore=255) for kind in ("uint8", "float32"))],
    "half": [matrix(truth, scores, np.arange(6)[None, None] * np.ones((4, 5, 1)) < 5),
             matrix(half, scores, np.arange(6)[None, None] * np.ones((4, 5, 1)) < 5)],
}
hole = np.where(np.arange(6)[None, None, :] == 2, np.nan, truth)
errors = {
    "weights": error(truth, scores, third + pixels * np.arange(6)[None, None] / 3),
    "half": error(half, scores),
    "nan": error(hole, scores),
    "smooth": error(smooth, scores),
    "rows": error(truth, scores, np.ones((4, 5))),
    "channel": error(truth > 1, scores[..., :1], labels=2),
    "images": error(truth, scores, protocol="monai"),
}
poisoned = SegmentationScores(3)
poisoned.update_state(truth, scores, sample_weight=third - 1)
few = np.array([[0, 0, 1]]), np.array([[0, 2, 1]])
protocols = {name: scored(*few, protocol=name)
             for name in ("segiou", "detectron2", "ade20k", "paddleseg", "torchvision")}
protocols["torchmetrics"] = scored(*few, protocol="torchmetrics", ignore=0)
protocols["keras"] = scored(few[0] * 0 + 255, few[1], protocol="keras", ignore=255)
undeclared = np.array([[0, 0, 1, 1, 1]]), np.array([[0, 7, 7, 1, 0]])
protocols["ultralytics"] = scored(*undeclared, protocol="ultralytics", unassigned="count")
print(json.dumps({"same": same, "errors": errors, "protocols": protocols,
                  "poisoned": float(poisoned.result())}))
"""

# One model on two devices, fitted and evaluated, the last batch smaller than the others.
MIRRORED = """
import sys, json
import numpy as np
import keras
import tensorflow as tf
from segiou.hooks.keras import SegmentationScores

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
data = np.load(sys.argv[1])
images, truth = data["images"], data["truth"]
with strategy.scope():
    model = keras.Sequential([keras.Input(images.shape[1:]), keras.layers.Conv2D(10, 1)])
    metric = SegmentationScores(10, ignore=255)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=255)
    model.compile("sgd", loss, metrics=[metric])
model.fit(images[:4], truth[:4], batch_size=4, verbose=0)
val = model.evaluate(images, truth, batch_size=4, verbose=0, return_dict=True)
cm = metric.counts
pred = np.asarray(model.predict(images, batch_size=4, verbose=0)).argmax(-1)
with strategy.scope():
    strict = SegmentationScores(10)
    model.compile("sgd", loss, metrics=[strict])
errors = []
for rows in ([0], [0, 1, 2, 3]):  # wrong values on one device, on both
    wrong = np.where(truth[:4] == 255, 0, truth[:4])
    wrong[rows, 0] = 255
    model.evaluate(images[:4], wrong, batch_size=4, verbose=0)
    try:
        strict.counts
    except ValueError as error:
        errors.append(str(error))
print(json.dumps({"val": val["mean_iou"], "mean_iou": cm.mean_iou(), "errors": errors,
                  "matrix": cm.matrix.tolist(), "ignored": cm.ignored, "pred": pred.tolist()}))
"""

# How a step is run: as each backend does by itself, and otherwise.
MODES = [
    ("torch", {}),
    ("jax", {}),
    ("tensorflow", {}),
    ("tensorflow", {"jit_compile": True}),
    ("tensorflow", {"jit_compile": False}),
    ("tensorflow", {"run_eagerly": True}),
]


@pytest.mark.parametrize(("backend", "mode"), MODES, ids=str)
def test_fit_with_validation(backend, mode, run_keras, streets, tmp_path):
    path = tmp_path / "streets.npz"
    images = streets.images.transpose(0, 2, 3, 1)[:, ::2, ::2]
    np.savez(path, images=images, truth=streets.truth[:, ::2, ::2], names=np.array(streets.names))
    out = run_keras(backend, FIT, str(path), json.dumps(mode))
    assert out["backend"] == backend
    # The compiled metric counted what the same network predicts, to the integer.
    assert out["matrix"] == out["exact"]
    assert (out["pixels"], out["pairs"]) == (streets.truth[:, ::2, ::2].size, 2)
    assert out["ignored"] == int((streets.truth[:, ::2, ::2] == 255).sum())
    assert out["val"] == pytest.approx(out["mean_iou"], rel=1e-5)
    log = out["log"]
    assert log["val_pixel_accuracy"] == pytest.approx(out["accuracy"], rel=1e-5)
    assert log["val_iou/road"] == pytest.approx(out["road"], rel=1e-5)
    assert out["loaded"] == pytest.approx(out["mean_iou"], rel=1e-5)
    assert out["carried"] == 2**25
    assert out["limbs"] == [0, 1]
    assert out["poisoned"]
    assert "truth contained values" in out["error"]
    assert "the largest value 9" in out["error"]
    assert out["masked"] == 1.0
    check_scores(out["odd"])


def check_scores(scores):
    cm = ConfusionMatrix(["a", "b", "c"], ignore=7, exclude="c", unassigned="count")
    report = cm.update([0, 0, 1, 1, 7, 2], [0, 1, 1, 200, 3, 0]).report()
    for name in ("mean_iou", "mean_dice", "mean_accuracy", "pixel_accuracy"):
        assert scores[name] == pytest.approx(getattr(report, name), rel=1e-6), name
    expected = report.frequency_weighted_iou
    assert scores["frequency_weighted_iou"] == pytest.approx(expected, rel=1e-6)
    for row in report.classes:
        for name in METRICS:
            expected = row.values[name]
            assert scores[f"{name}/{row.name}"] == pytest.approx(expected, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_what_keras_users_give(backend, run_keras):
    out = run_keras(backend, INPUTS)
    for name, (first, *others) in out["same"].items():
        assert np.sum(first[0]) > 0
        for other in others:
            assert other == first, name
    assert out["same"]["images"][0][1] == 2 * 5 * 6
    errors = out["errors"]
    assert "values other than 0 and the largest of its batch" in errors["weights"]
    assert "y_true has 20 pixels with neither" in errors["half"]
    assert "y_true has 20 pixels with neither" in errors["nan"]
    assert "y_true has 120 pixels with neither" in errors["smooth"]
    assert "sample_weight must have shape (N,) or (4, 5, 6), got (4, 5)" in errors["rows"]
    assert "a single channel along axis -1 for two classes; pass threshold=T" in (errors["channel"])
    assert "protocol 'monai' averages over images" in errors["images"]
    assert np.isnan(out["poisoned"])
    for name, (values, expected) in out["protocols"].items():
        assert values == pytest.approx([expected] * 2, rel=1e-6, nan_ok=True), name


def test_one_model_on_two_devices(run_keras, streets, tmp_path):
    path = tmp_path / "streets.npz"
    images, truth = streets.images.transpose(0, 2, 3, 1)[:, ::8, ::8], streets.truth[:, ::8, ::8]
    np.savez(path, images=images, truth=truth)
    out = run_keras("tensorflow", MIRRORED, str(path))
    expected = ConfusionMatrix(10, ignore=255).update(truth, np.array(out["pred"]))
    assert out["matrix"] == expected.matrix.tolist()
    assert out["ignored"] == expected.ignored
    assert out["val"] == pytest.approx(out["mean_iou"], rel=1e-5)
    assert "the largest value 255" in out["errors"][0]
    assert "undeclared values were counted on 2 devices" in out["errors"][1]
