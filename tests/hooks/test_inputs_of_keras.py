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
def test_a_threshold_of_another_scale_in_keras(need_keras, run_python, backend):
    need_keras(backend)
    found = run_python(SCALE_OF_KERAS, KERAS_BACKEND=backend)
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
def test_overlapping_channels_of_keras(need, run_python, backend):
    need("jax")
    found = run_python(CHANNELS_OF_KERAS, KERAS_BACKEND=backend)
    assert all("channels along axis -1" in text and "ChannelCounts(" in text for text in found)
