from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from segiou import ConfusionMatrix


@pytest.fixture
def hook(need):
    need("torchmetrics")
    from segiou.hooks import torchmetrics

    return torchmetrics


@pytest.fixture
def batches(streets, need):
    torch = need("torch")
    truth, pred = torch.from_numpy(streets.truth), torch.from_numpy(streets.pred)
    return [(pred[:4], truth[:4]), (pred[4:], truth[4:])]


def test_counts_are_the_fixture_s(hook, streets, batches):
    metric = hook.SegmentationScores(streets.names, ignore=255)
    for pred, truth in batches:
        metric.update(pred, truth)
    cm = metric.confusion_matrix()
    np.testing.assert_array_equal(cm.matrix, streets.matrix)
    assert (cm.ignored, cm.pairs) == (streets.ignored, 2)
    assert float(metric.compute()) == cm.mean_iou()
    metric.reset()
    assert metric.confusion_matrix().pixels == 0


def test_agrees_with_torchmetrics_own_where_both_define_it(hook, streets, batches, need):
    from torchmetrics import MetricCollection
    from torchmetrics.classification import MulticlassJaccardIndex

    both = MetricCollection(
        {
            "theirs": MulticlassJaccardIndex(10, ignore_index=255),
            "ours": hook.SegmentationScores(streets.names, ignore=255),
        }
    )
    for pred, truth in batches:
        both.update(pred, truth)
    scores = both.compute()
    assert float(scores["ours"]) == pytest.approx(float(scores["theirs"]), abs=1e-6)


def test_forward_gives_the_batch_and_keeps_the_whole(hook, streets, batches):
    metric = hook.SegmentationScores(streets.names, ignore=255)
    own = []
    for pred, truth in batches:
        own.append(float(metric(pred, truth)))
        alone = ConfusionMatrix(streets.names, ignore=255).update(truth, pred)
        assert own[-1] == alone.mean_iou()
    np.testing.assert_array_equal(metric.confusion_matrix().matrix, streets.matrix)


def test_several_scores_are_a_dict_that_a_collection_flattens(hook, streets, batches):
    from torchmetrics import MetricCollection

    scores = ("mean_iou", "pixel_accuracy", "iou")
    metric = hook.SegmentationScores(streets.names, ignore=255, scores=scores)
    collection = MetricCollection([metric], prefix="val_")
    for pred, truth in batches:
        collection.update(pred, truth)
    values = collection.compute()
    assert len(values) == 12
    assert {"val_mean_iou", "val_pixel_accuracy", "val_iou/road"} <= set(values)
    assert all(value.ndim == 0 for value in values.values())


def test_clones_copies_pickles_and_checkpoints(hook, streets, batches, need):
    torch = need("torch")
    metric = hook.SegmentationScores(streets.names, ignore=255)
    metric.persistent(True)
    metric.update(*batches[0])
    again = hook.SegmentationScores(streets.names, ignore=255)
    again.persistent(True)
    again.load_state_dict(metric.state_dict())
    for other in (metric.clone(), copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), again):
        other.update(*batches[1])
        np.testing.assert_array_equal(other.confusion_matrix().matrix, streets.matrix)
    assert metric.confusion_matrix().pixels < streets.matrix.sum()
    merged = hook.SegmentationScores(streets.names, ignore=255)
    merged.update(*batches[1])
    merged.merge_state(metric)
    np.testing.assert_array_equal(merged.confusion_matrix().matrix, streets.matrix)
    assert merged.sums.dtype == torch.int64


def test_scores_and_thresholds(hook, need):
    torch = need("torch")
    truth = torch.tensor([[[0, 1], [1, 1]]])
    logits = torch.tensor([[[[2.0, 0], [0, 3]], [[1.0, 1], [1, 1]]]], dtype=torch.bfloat16)
    metric = hook.SegmentationScores(2, scores="pixel_accuracy")
    assert float(metric(logits, truth)) == 0.75
    binary = hook.SegmentationScores(2, scores="pixel_accuracy", threshold=0.5)
    assert float(binary(logits[:, 1], truth)) == 0.75


def test_counts_beyond_what_float32_holds(hook, need):
    torch = need("torch")
    metric = hook.SegmentationScores(2)
    metric.sums += torch.tensor([2**40, 1, 0, 0, 2**40, 0, 0, 0, 0, 0, 0, 0, 0])
    assert metric.confusion_matrix().matrix.tolist() == [[2**40, 1], [0, 2**40]]


def test_a_device_s_undeclared_values_raise_at_compute(hook, monkeypatch, need):
    torch = need("torch")
    from segiou.counting.device_counts import DeviceValuesError
    from segiou.hooks import _torch

    monkeypatch.setattr(_torch, "is_on_device", lambda x: True)
    metric = hook.SegmentationScores(2)
    metric.update(torch.tensor([0, 1]), torch.tensor([0, 9]))
    with pytest.raises(DeviceValuesError, match="largest value 9"):
        metric.compute()


def test_unknown_scores_are_refused(hook):
    with pytest.raises(ValueError, match="there is no score 'miou'; choose from mean_iou"):
        hook.SegmentationScores(2, scores="miou")


def test_the_protocol_is_used(hook, need):
    torch = need("torch")
    values = {}
    for protocol in ("segiou", "ade20k"):
        metric = hook.SegmentationScores(4, protocol=protocol)
        values[protocol] = float(metric(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 1])))
    assert values == {"segiou": 1.0, "ade20k": 0.5}
