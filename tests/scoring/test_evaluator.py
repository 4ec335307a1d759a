"""Ids in loops: an image that a sampler repeats counts once, by the same rule in both classes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import segiou
from segiou.scoring import Evaluator

TRUTH = np.array([[[0, 1]], [[1, 1]]])
PRED = np.array([[[0, 0]], [[1, 1]]])


@pytest.fixture
def make():
    return Evaluator


def test_an_image_counts_once(make):
    first = make(2).update(TRUTH, PRED, ids=["a", "b"])
    second = make(2).update(TRUTH[1:], PRED[1:], ids=["b"]).update(TRUTH[:1], TRUTH[:1], ids=["c"])
    both = first + second
    assert both.run().ids == ("a", "b", "c")
    # a: one of two pixels is missed; b and c are correct.
    assert both.total().matrix.tolist() == [[2, 0], [1, 3]]
    assert both.report().pairs == 3
    assert both == second + first


def test_a_different_result_is_an_error_or_dropped(make):
    counted = make(2).update(TRUTH, PRED, ids=["a", "b"])
    with pytest.raises(ValueError, match="'a' was counted twice with different results"):
        counted.update(TRUTH[::-1], TRUTH[::-1], ids=["c", "a"])
    with pytest.raises(ValueError, match="'a' was counted twice with different results"):
        counted.merge(make(2).update(TRUTH, TRUTH, ids=["c", "a"]))
    assert counted.run().ids == ("a", "b")
    kept = make(2, conflict="first").update(TRUTH, PRED, ids=["a", "b"])
    kept.update(TRUTH, TRUTH, ids=["a", "b"])
    assert kept.total() == counted.total()
    with pytest.raises(ValueError, match="conflict must be 'error' or 'first'"):
        make(2, conflict="last")


@pytest.mark.parametrize("ids", [[7, 3], np.array([7, 3]), [b"7", b"3"], ("7", np.int8(3))])
def test_ids_are_text(make, ids):
    assert make(2).update(TRUTH, PRED, ids=ids).run().ids == ("3", "7")
    assert segiou.score(TRUTH, PRED, labels=2, ids=ids).ids == ("3", "7")


def test_ids_are_tensors(make):
    torch = pytest.importorskip("torch")
    for ids in (torch.tensor([7, 3]), [*torch.tensor([7, 3])]):
        assert make(2).update(TRUTH, PRED, ids=ids).run().ids == ("3", "7")
        assert segiou.score(TRUTH, PRED, labels=2, ids=ids).ids == ("3", "7")


def test_saved_states_keep_ids_and_conflict(make):
    counted = make(2, conflict="first").update(TRUTH, PRED, ids=["a", "b"])
    state = json.loads(json.dumps(counted.state_dict()))
    again = make.from_state_dict(state)
    assert again == counted
    assert again.update(TRUTH, TRUTH, ids=["a", "b"]).total() == counted.total()


def test_errors_name_the_image(make):
    with pytest.raises(ValueError, match="neither a class") as caught:
        make(2).update(TRUTH + 5, PRED, ids=["a", "b"])
    assert caught.value.__notes__ == ["in image 'a'"]
    with pytest.raises(ValueError, match="got 2 truth images but 1 ids"):
        make(2).update(TRUTH, PRED, ids=["a"])


def test_ignored_classes_are_reported(make):
    with pytest.warns(UserWarning, match="declared class '1'") as caught:
        make(2, ignore=1)
    assert caught[0].filename == __file__


def test_images_without_ids_are_numbered_and_repeat():
    loop = Evaluator(2).update(TRUTH, PRED).update(TRUTH, PRED)
    assert loop.run().ids == ("0", "1", "2", "3")
    assert loop == Evaluator(2).update(np.tile(TRUTH, (2, 1, 1)), np.tile(PRED, (2, 1, 1)))
    loop.update(TRUTH, PRED, ids=["a", "b"])
    assert loop.run(name="mixed").ids == ("0", "1", "2", "3", "a", "b")
    loop.update(TRUTH[0], PRED[0], ids=["1"])
    with pytest.raises(ValueError, match="duplicate image id '1'"):
        loop.run()


def test_rows_with_ids_are_images_of_a_batch(make):
    rows = TRUTH[:, 0], PRED[:, 0]
    assert len(make(2).update(*rows)) == 1
    counted = make(2).update(*rows, ids=["a", "b"])
    assert counted.run().ids == ("a", "b")
    assert counted.total().matrix.tolist() == [[1, 0], [1, 2]]
    scores = np.eye(2)[PRED[:, 0]].transpose(0, 2, 1)
    assert make(2).update(rows[0], scores, ids=["a", "b"], argmax=1) == counted


def test_kinds_do_not_mix():
    with pytest.raises(TypeError, match="only evaluators can be merged"):
        Evaluator(2).merge(segiou.ConfusionMatrix(2))
