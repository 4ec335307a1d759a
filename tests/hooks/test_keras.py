"""Each backend in a process of its own: Keras has one for the life of a process."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec

import numpy as np
import pytest

from segiou import ConfusionMatrix

FIT = """
import sys, json
import numpy as np
import keras
from segiou.hooks.keras import SegmentationScores

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
counted = metric.confusion_matrix()
pred = np.asarray(model.predict(images, batch_size=4, verbose=0)).argmax(-1)
again = type(metric).from_config(metric.get_config())
again.update_state(truth[..., None], pred)
exact = again.confusion_matrix().matrix

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
    bad.confusion_matrix()
except ValueError as error:
    out["error"] = str(error)
masked = SegmentationScores(2, scores="pixel_accuracy")
masked.update_state(np.array([[0, 9]]), np.array([[0.9, 0.1]])[..., None] * [1.0, -1.0],
                    sample_weight=np.array([[True, False]]))
out["masked"] = float(masked.result())
odd = SegmentationScores(["a", "b", "c"], ignore=7, exclude="c", unassigned="count",
                         scores=["mean_iou", "mean_dice", "mean_accuracy", "pixel_accuracy",
                                 "frequency_weighted_iou", "precision", "recall", "dice"])
truth, pred = np.array([0, 0, 1, 1, 7, 2]), np.array([0, 1, 1, 200, 3, 0])
odd.update_state(truth.astype("uint8"), pred)
out["odd"] = {k: float(v) for k, v in odd.result().items()}
for weight, name in (([[1.0, 0.5]], "weight"),):
    try:
        masked.update_state(np.array([[0, 1]]), np.array([[0, 1]]), sample_weight=np.array(weight))
    except TypeError as error:
        out[name] = str(error)
model.save(sys.argv[1] + ".keras")
loaded = keras.models.load_model(sys.argv[1] + ".keras")
out["loaded"] = float(loaded.evaluate(data["images"], data["truth"], batch_size=4, verbose=0,
                                      return_dict=True)["miou"])
print(json.dumps(out))
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
def test_fit_with_validation(backend, mode, run_python, streets, tmp_path):
    # Only whether they are there: importing keras would fix its backend.
    for name in ("keras", backend):
        if find_spec(name) is None:
            # No extra brings TensorFlow.
            if name != "tensorflow" and os.environ.get("SEGIOU_REQUIRE_FRAMEWORKS") == "1":
                pytest.fail(f"{name} is not installed here")
            pytest.skip(f"{name} is not installed here")
    path = tmp_path / "streets.npz"
    images = streets.images.transpose(0, 2, 3, 1)[:, ::2, ::2]
    np.savez(path, images=images, truth=streets.truth[:, ::2, ::2], names=np.array(streets.names))
    out = run_python(FIT, str(path), json.dumps(mode), KERAS_BACKEND=backend)
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
    assert "truth has had values" in out["error"]
    assert "the largest value 9" in out["error"]
    assert out["masked"] == 1.0
    assert "mask must be bool" in out["weight"]
    check_scores(out["odd"])


def check_scores(scores):
    cm = ConfusionMatrix(["a", "b", "c"], ignore=7, exclude="c", unassigned="count")
    report = cm.update([0, 0, 1, 1, 7, 2], [0, 1, 1, 200, 3, 0]).report()
    for name in ("mean_iou", "mean_dice", "mean_accuracy", "pixel_accuracy"):
        assert scores[name] == pytest.approx(getattr(report, name), rel=1e-6), name
    expected = report.frequency_weighted_iou
    assert scores["frequency_weighted_iou"] == pytest.approx(expected, rel=1e-6)
    for row in report.classes:
        for name in ("precision", "recall", "dice"):
            expected = getattr(row, name)
            assert scores[f"{name}/{row.name}"] == pytest.approx(expected, rel=1e-6, nan_ok=True)
