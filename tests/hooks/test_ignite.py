from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def scores(need):
    need("ignite")
    from segiou.hooks.ignite import SegmentationScores

    return SegmentationScores


def evaluate(streets, network, need, metrics):
    from ignite.engine import create_supervised_evaluator

    torch = need("torch")
    engine = create_supervised_evaluator(network(), metrics=metrics)
    data = torch.utils.data.TensorDataset(
        torch.from_numpy(streets.images), torch.from_numpy(streets.truth)
    )
    return engine, torch.utils.data.DataLoader(data, batch_size=4)


def test_a_real_engine_twice(scores, streets, network, need, answer):
    own = scores(streets.names, ignore=255)
    one = scores(streets.names, ignore=255, scores="mean_iou")
    engine, loader = evaluate(streets, network, need, {"segiou": own, "miou": one})
    for _ in range(2):
        metrics = engine.run(loader).metrics
        np.testing.assert_array_equal(own.confusion_matrix().matrix, answer.matrix)
        assert metrics["mean_iou"] == metrics["miou"] == answer.mean_iou()
        assert metrics["iou/road"] == answer.iou()[2]
        assert metrics["segiou"]["pixel_accuracy"] == answer.pixel_accuracy()


def test_agrees_with_ignite_s_own(scores, streets, network, need, answer):
    from ignite.metrics import ConfusionMatrix as Theirs

    matrix = Theirs(num_classes=10)
    engine, loader = evaluate(streets, network, need, {"cm": matrix})
    theirs = engine.run(loader).metrics["cm"]
    np.testing.assert_array_equal(theirs.numpy(), answer.matrix)


def test_output_transform_state_and_reset(scores, need):
    torch = need("torch")
    metric = scores(2, output_transform=lambda output: (output["p"], output["t"]))
    metric.iteration_completed(
        type("E", (), {"state": type("S", (), {"output": {"p": torch.tensor([0, 1]),
                                                          "t": torch.tensor([0, 0])}})})
    )  # fmt: skip
    assert metric.compute()["pixel_accuracy"] == 0.5
    again = scores(2)
    again.load_state_dict(metric.state_dict())
    assert again.confusion_matrix() == metric.confusion_matrix()
    metric.reset()
    assert metric.confusion_matrix().pixels == 0


def test_a_state_of_other_options_is_refused(scores, need):
    torch = need("torch")
    saved = scores(["a", "b"])
    saved.update((torch.tensor([0, 1]), torch.tensor([0, 1])))
    metric = scores(["a", "b"], ignore=255)
    metric.load_state_dict(saved.state_dict())
    with pytest.raises(ValueError, match="metric with different classes or options"):
        metric.compute()
