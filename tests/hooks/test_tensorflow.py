"""Real tensors of TensorFlow, which no extra brings: these run where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

from segiou import ConfusionMatrix
from segiou.counting import scores_to_labels
from segiou.counting.arrays import is_on_device, to_host
from segiou.scoring import Evaluator

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed here")

RNG = np.random.default_rng(0)
TRUTH = RNG.choice([*range(5), 255], (4, 7, 9)).astype(np.uint8)
SCORES = RNG.normal(size=(4, 7, 9, 5)).astype(np.float32)


@pytest.fixture
def answer():
    return ConfusionMatrix(5, ignore=255).update(TRUTH, SCORES, argmax=-1)


def test_tensors_on_the_cpu_are_viewed_not_copied():
    for dtype in (tf.uint8, tf.int64, tf.float32, tf.float16, tf.bfloat16):
        tensor = tf.cast(TRUTH, dtype)
        assert not is_on_device(tensor)
        assert np.shares_memory(to_host(tensor), to_host(tensor))


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "uint16", "int32", "uint64", "int64"])
def test_labels_of_every_dtype(name):
    labels = tf.cast(np.array([[0, 1], [1, 1]]), name)
    cm = ConfusionMatrix(2).update(labels, tf.constant([[0, 1], [0, 1]], tf.int32))
    assert cm.matrix.tolist() == [[1, 0], [1, 2]]


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_scores_of_every_dtype(name):
    scores = tf.cast(SCORES, name)
    want = tf.argmax(scores, -1).numpy()
    np.testing.assert_array_equal(scores_to_labels(scores, argmax=-1), want)
    cm = ConfusionMatrix(5, ignore=255).update(tf.constant(TRUTH), scores, argmax=-1)
    assert cm == ConfusionMatrix(5, ignore=255).update(TRUTH, want)
    third = tf.cast([1 / 3, 0.5], name)
    assert scores_to_labels(third, threshold=1 / 3).tolist() == (third > 1 / 3).numpy().tolist()


def test_variables_and_masks(answer):
    cm = ConfusionMatrix(5, ignore=255)
    valid = tf.constant(TRUTH != 255)
    cm.update(tf.Variable(TRUTH), tf.Variable(SCORES), argmax=-1, mask=valid)
    assert (cm.matrix.tolist(), cm.ignored) == (answer.matrix.tolist(), answer.ignored)


def test_a_loop_over_a_dataset(answer):
    data = tf.data.Dataset.from_tensor_slices((np.arange(4), TRUTH, SCORES)).batch(3).prefetch(1)
    cm, images = ConfusionMatrix(5, ignore=255), Evaluator(5, ignore=255)
    for ids, truth, scores in data:
        cm.update(truth, scores, argmax=-1)
        images.update(truth, scores, ids=ids, argmax=-1)
    assert cm.matrix.tolist() == answer.matrix.tolist()
    assert images.total().matrix.tolist() == answer.matrix.tolist()
    assert images.run().ids == ("0", "1", "2", "3")
    named = Evaluator(5, ignore=255)
    named.update(TRUTH[:2], TRUTH[:2] % 5, ids=tf.constant(["a", "ä"]))
    assert named.run().ids == ("a", "ä")


SYMBOLIC = r"tensors inside tf\.function have no values yet; use segiou\.hooks\.keras"


@pytest.mark.parametrize("shape", [(4, 7, 9, 5), (None, None, None, 5), (None,) * 4, None])
def test_a_tensor_in_a_graph_is_refused_in_words(shape):
    @tf.function(input_signature=[tf.TensorSpec(shape, tf.float32)])
    def step(scores):
        return ConfusionMatrix(5, ignore=255).update(TRUTH, scores, argmax=-1).pixels

    with pytest.raises(TypeError, match=SYMBOLIC):
        step(SCORES)


def test_a_graph_can_call_back(answer):
    cm = ConfusionMatrix(5, ignore=255)

    @tf.function
    def step(truth, scores):
        def count(truth, scores):
            cm.update(truth, scores, argmax=-1)
            return np.int64(cm.pixels)

        return tf.py_function(count, [truth, scores], tf.int64)

    assert int(step(TRUTH, tf.cast(SCORES, tf.float32))) == TRUTH.size
    assert cm == answer


def test_what_is_no_rectangle_is_refused_in_words():
    ragged = tf.RaggedTensor.from_row_lengths([1, 0, 1], [1, 2])
    sparse = tf.sparse.from_dense([[1, 0], [1, 1]])
    for tensor, kind in ((ragged, "RaggedTensor"), (sparse, "SparseTensor")):
        with pytest.raises(TypeError, match=f"a {kind} is not supported; make it dense"):
            ConfusionMatrix(2).update(tensor, tensor)
    with pytest.raises(TypeError, match="truth has dtype object"):
        ConfusionMatrix(2).update(tf.constant(["a"]), tf.constant([0]))
    with pytest.raises(ValueError, match="NaN scores on 1 pixel"):
        ConfusionMatrix(2).update([0], tf.constant([[np.nan, 1]], tf.bfloat16), argmax=-1)
