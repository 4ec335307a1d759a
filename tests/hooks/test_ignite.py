from __future__ import annotations

import pickle

import numpy as np
import pytest

from segiou import ConfusionMatrix


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
        np.testing.assert_array_equal(own.counts.matrix, answer.matrix)
        assert metrics["segiou/mean_iou"] == metrics["miou"] == answer.mean_iou()
        assert metrics["segiou/iou/road"] == answer.iou()[2]
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
    assert again.counts == metric.counts
    metric.reset()
    assert metric.counts.pixels == 0


def test_a_state_of_other_options_is_refused(scores, need):
    torch = need("torch")
    saved = scores(["a", "b"])
    saved.update((torch.tensor([0, 1]), torch.tensor([0, 1])))
    metric = scores(["a", "b"], ignore=255)
    metric.load_state_dict(saved.state_dict())
    with pytest.raises(ValueError, match="metric with different classes or options"):
        metric.compute()


TWO_PROCESSES = """
import sys, json, warnings
import numpy as np, torch
from ignite import distributed as idist
from ignite.engine import Engine
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from segiou.hooks.ignite import SegmentationScores

path, store, rank, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
idist.initialize("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
data = np.load(path)
truth, pred = (torch.from_numpy(data[k][:5]) for k in ("truth", "pred"))
rows = TensorDataset(pred, truth, torch.arange(5))
sampler = DistributedSampler(rows, num_replicas=size, rank=rank, shuffle=False)
engine = Engine(lambda engine, batch: batch)
names = data["names"].tolist()
metrics = {
    "padded": SegmentationScores(names, ignore=255),
    "by_id": SegmentationScores(names, ignore=255, ids=True),
}
for name, metric in metrics.items():
    metric.attach(engine, name)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        engine.run(DataLoader(rows, batch_size=2, sampler=sampler))
found = {name: metric.counts.state_dict() for name, metric in metrics.items()}
if rank == 0:
    said = [str(w.message) for w in caught if "counted twice" in str(w.message)]
    print(json.dumps({**found, "said": said}))
"""


def test_two_processes(scores, streets, run_two, tmp_path):
    path = tmp_path / "streets.npz"
    np.savez(path, truth=streets.truth, pred=streets.pred, names=np.array(streets.names))
    alone = ConfusionMatrix(streets.names, ignore=255)
    alone.update(streets.truth[:5], streets.pred[:5])
    (out,) = run_two(TWO_PROCESSES, path)
    assert out["by_id"]["table"] == alone.state_dict()["table"]
    assert np.sum(out["padded"]["table"]) > alone.matrix.sum()
    (said,) = out["said"]
    assert "padded: the samplers of 2 processes draw 6 images from a data set of 5" in said


def test_metrics_are_pickled(scores, need):
    torch, metric = need("torch"), scores(2, scores="iou")
    metric.update((torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])))
    assert pickle.loads(pickle.dumps(metric)).compute() == {"iou/0": 0.5, "iou/1": 0.5}
