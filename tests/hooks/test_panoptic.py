"""Panoptic quality in torchmetrics' and Lightning's loops, and over several processes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from segiou.measures.objects import PanopticCounts

RANK = """
import sys, json
import numpy as np, torch
from torch import distributed as dist
from segiou.hooks.distributed import all_reduce
from segiou.measures.objects.torchmetrics import PanopticScores
from segiou.measures.objects import PanopticCounts

path, store, rank, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
data = np.load(path)
truth, pred = torch.from_numpy(data["truth"]), torch.from_numpy(data["pred"])
own, metric = PanopticCounts(3, things=[1]), PanopticScores(3, things=[1])
for i in range(rank, len(truth), size):
    metric.update(pred[i:i + 1], truth[i:i + 1])
    own.update(truth[i, ..., 0], truth[i, ..., 1], pred[i, ..., 0], pred[i, ..., 1])
out = {"reduced": all_reduce(own).state_dict(), "metric": float(metric.compute())}
late = PanopticScores(3, things=[1])
if rank:
    for i in range(len(truth)):
        late.update(pred[i:i + 1], truth[i:i + 1])
out["late"] = float(late.compute())
try:
    all_reduce(PanopticCounts(3, things=[rank]))
except ValueError as error:
    out["error"] = str(error)
gathered = [None] * size
dist.all_gather_object(gathered, out)
if rank == 0:
    print(json.dumps(gathered))
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def scenes():
    """Truth and prediction (6, 8, 9, 2): class and id of each pixel."""
    rng = np.random.default_rng(4)
    blocks = np.kron(rng.integers(0, 3, (6, 4, 3, 2)), np.ones((1, 2, 3, 1), int))
    changed = rng.random(blocks.shape) < 0.15
    return blocks, np.where(changed, rng.integers(0, 3, blocks.shape), blocks)


@pytest.fixture(scope="module")
def expected(scenes):
    counts = PanopticCounts(3, things=[1])
    for truth, pred in zip(*scenes, strict=True):
        counts.update(truth[..., 0], truth[..., 1], pred[..., 0], pred[..., 1])
    return counts


@pytest.fixture
def hook(need):
    need("torchmetrics")
    from segiou.measures.objects import torchmetrics

    return torchmetrics


@pytest.fixture
def batches(scenes, need):
    torch = need("torch")
    truth, pred = map(torch.from_numpy, scenes)
    return [(pred[:4], truth[:4]), (pred[4:], truth[4:])]


def test_the_counts_are_those_of_the_accumulator(hook, batches, expected):
    metric = hook.PanopticScores(3, things=[1])
    several = hook.PanopticScores(3, things=[1], scores=["pq", "rq"])
    for batch in batches:
        metric.update(*batch)
        several(*batch)
    assert metric.counts == expected
    found = expected.panoptic_quality()
    assert float(metric.compute()) == found["pq"]
    values = {name: float(value) for name, value in several.compute().items()}
    assert values == {name: found[name] for name in ("pq", "rq")}
    for again in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), metric.clone()):
        assert again.counts == expected
    metric.reset()
    assert metric.counts == PanopticCounts(3, things=[1])
    assert np.isnan(float(metric.compute()))


def test_metrics_of_other_options_are_no_compute_group(hook, batches):
    from torchmetrics import MetricCollection

    options = {"all": {}, "one": {"things": [1]}, "modified": {"protocol": "torchmetrics-modified"}}
    metrics = {name: hook.PanopticScores(3, **own) for name, own in options.items()}
    collection = MetricCollection({name: metric.clone() for name, metric in metrics.items()})
    for batch in batches:
        collection.update(*batch)
        for metric in metrics.values():
            metric.update(*batch)
    found = {name: float(value) for name, value in collection.compute().items()}
    assert found == {name: float(metric.compute()) for name, metric in metrics.items()}


@pytest.mark.parametrize("shape", [(2,), (4, 2), (2, 3, 4), (2, 3, 4, 3)])
def test_other_tensors_than_classes_with_ids_are_refused(hook, need, shape):
    zeros = need("torch").zeros(shape, dtype=int)
    metric = hook.PanopticScores(1)
    with pytest.raises(ValueError, match=r"target must have shape \(B, …, 2\) with class"):
        metric.update(zeros, zeros)


def test_scores_are_named(hook):
    with pytest.raises(ValueError, match="scores must be 'pq', 'sq' or 'rq', got 'iou'"):
        hook.PanopticScores(3, scores="iou")


def test_two_processes_count_as_one(run_two, scenes, tmp_path, expected, need):
    need("torch")
    need("torchmetrics")
    path = tmp_path / "scenes.npz"
    np.savez(path, truth=scenes[0], pred=scenes[1])
    for out in run_two(RANK, path):
        assert PanopticCounts.from_state_dict(out["reduced"]) == expected
        assert out["metric"] == out["late"] == expected.panoptic_quality()["pq"]
        assert "the classes or options of process 1 differ" in out["error"]


def test_lightning_logs_it(hook, batches, expected, need, tmp_path):
    lightning, torch = need("lightning.pytorch"), need("torch")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.metric = hook.PanopticScores(3, things=[1])
            self.layer = torch.nn.Linear(1, 1)

        def validation_step(self, batch, batch_idx):
            self.metric.update(*batch)
            self.log("val/pq", self.metric)

    trainer = lightning.Trainer(
        default_root_dir=tmp_path,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = torch.utils.data.DataLoader(batches, batch_size=None)
    found = trainer.validate(Module(), loader, verbose=False)
    assert found[0]["val/pq"] == pytest.approx(expected.panoptic_quality()["pq"])
