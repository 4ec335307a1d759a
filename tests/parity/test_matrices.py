"""Exact confusion matrices of compiled counters, also beyond the integers of float32."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra.numpy import arrays

import segiou

CLASSES = 5
masks = arrays(np.uint8, (2, 3, 6, 7), elements=st.integers(0, CLASSES - 1))


def hotcoco_matrix(peer, truth, pred, ignore):
    counted = peer("hotcoco.metrics").pixel_confusion(truth, pred, CLASSES, ignore_index=ignore)
    return np.asarray(counted)


def vernier_matrix(peer, truth, pred, ignore):
    semantic = peer("vernier.semantic")
    known = semantic.Dataset.from_arrays(dict(enumerate(truth)), CLASSES, ignore)
    found = semantic.Predictions.from_arrays(dict(enumerate(pred)))
    counts = semantic.Evaluator().evaluate(known, found).confusion_matrix.counts()
    return np.asarray(counts).reshape(CLASSES, CLASSES)


@pytest.mark.parametrize("counter", [hotcoco_matrix, vernier_matrix])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(masks)
def test_the_matrix_of_another_counter(peer, counter, sides):
    truth, pred = sides
    truth[:, 0] = 255
    theirs = counter(peer, truth, pred, 255)
    ours = segiou.ConfusionMatrix(CLASSES, ignore=255).update(truth, pred)
    assert ours.matrix.tolist() == theirs.tolist()


@pytest.mark.gate
@pytest.mark.parametrize("counter", [hotcoco_matrix, vernier_matrix])
def test_more_pixels_than_float32_counts(peer, counter):
    truth = np.ones((1, 4097, 4097), np.uint8)
    truth[0, 0, :3] = 2
    theirs = counter(peer, truth, np.ones_like(truth), 255)
    ours = segiou.ConfusionMatrix(CLASSES, ignore=255).update(truth, np.ones_like(truth))
    assert ours.matrix.tolist() == theirs.tolist()
    assert ours.matrix[1, 1] == 4097**2 - 3
