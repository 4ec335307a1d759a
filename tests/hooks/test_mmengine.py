"""A real evaluator, a real runner with its loops, and two processes of it."""

from __future__ import annotations

import numpy as np
import pytest

from segiou import ConfusionMatrix

RUNNER = """
import json, sys
from pathlib import Path
import numpy as np, torch
from torch import distributed as dist
from mmengine.model import BaseModel
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement, PixelData
import segiou.hooks.mmengine

path, store, rank, size = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
if size > 1:
    # MMEngine's own launcher wants CUDA; a group that is there already it takes as it is.
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
data = np.load(path)
images, truth = torch.from_numpy(data["images"]), torch.from_numpy(data["truth"]).long()

class Scenes(torch.utils.data.Dataset):
    metainfo = {"classes": data["names"].tolist()}

    def __len__(self):
        return 5

    def __getitem__(self, i):
        sample = BaseDataElement(metainfo={"img_path": f"{i}.png"})
        sample.gt_sem_seg = PixelData(data=truth[i:i + 1])
        return {"inputs": images[i], "data_samples": sample}

class Net(BaseModel):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.last = torch.nn.Conv2d(8, 10, 1)

    def forward(self, inputs, data_samples=None, mode="tensor"):
        logits = self.last(self.first(torch.stack(inputs)).relu())
        if mode == "loss":
            masks = torch.cat([sample.gt_sem_seg.data for sample in data_samples])
            loss = torch.nn.functional.cross_entropy(logits, masks, ignore_index=255)
            return {"loss": loss}
        if mode == "tensor":
            return logits
        for sample, scores in zip(data_samples, logits):
            sample.pred_sem_seg = PixelData(data=scores.argmax(0, keepdim=True))
        return data_samples

def loader():
    return {"dataset": Scenes(), "batch_size": 2, "num_workers": 0,
            "sampler": {"type": "DefaultSampler", "shuffle": False},
            "collate_fn": {"type": "pseudo_collate"}}

best = {"type": "CheckpointHook", "save_best": "segiou/mean_iou", "rule": "greater"}
work = store.parent / "work"
runner = Runner(
    Net(), str(work), val_dataloader=loader(), val_cfg={},
    val_evaluator={"type": "SegmentationScores", "ignore": 255},
    train_dataloader=loader(), train_cfg={"by_epoch": True, "max_epochs": 2, "val_interval": 1},
    optim_wrapper={"optimizer": {"type": "SGD", "lr": 1e-3}}, default_hooks={"checkpoint": best},
    default_scope="mmengine", log_level="ERROR", randomness={"seed": 0},
)
if size == 1:
    runner.train()
logged = runner.message_hub.log_scalars.get("val/segiou/mean_iou")
# Loops of their own: their hooks want that a training began.
runner._hooks.clear()
scores = [runner.val(), runner.val()]
with torch.no_grad():
    pred = runner.model(list(images[:5])).argmax(1)
out = {"scores": scores, "logged": logged.current() if logged else None,
       "best": [path.name for path in work.glob("best*")],
       "batches": len(runner.val_dataloader)}
if rank == 0:
    np.save(store.parent / "pred.npy", pred.numpy())
    print(json.dumps(out))
if size > 1:
    dist.destroy_process_group()
"""


@pytest.fixture
def evaluator(need):
    need("mmengine")
    from mmengine.evaluator import Evaluator

    from segiou.hooks.mmengine import SegmentationScores

    def build(**options):
        metric = SegmentationScores(**options)
        whole = Evaluator(metric)
        return whole, metric

    return build


def samples(streets, need, rows):
    from mmengine.structures import BaseDataElement, PixelData

    torch = need("torch")
    made = []
    for i in rows:
        sample = BaseDataElement(metainfo={"img_path": f"{streets.ids[i]}.png"})
        sample.gt_sem_seg = PixelData(data=torch.from_numpy(streets.truth[i : i + 1]).long())
        sample.pred_sem_seg = PixelData(data=torch.from_numpy(streets.pred[i : i + 1]).long())
        made.append(sample)
    return made


def test_a_real_evaluator_names_classes_and_drops_padding(evaluator, streets, need):
    whole, metric = evaluator(ignore=255)
    whole.dataset_meta = {"classes": streets.names}
    for _ in range(2):
        for rows in ([0, 1, 2, 3], [4, 5, 0, 1]):  # a sampler's padding repeats 0 and 1
            whole.process(samples(streets, need, rows), data_batch=None)
        kept = [image.values.sum() for image in metric.results[:6]]
        assert sum(kept) == streets.matrix.sum()
        scores = whole.evaluate(size=6)
        diagonal = np.diag(streets.matrix)
        assert scores["segiou/pixel_accuracy"] == diagonal.sum() / streets.matrix.sum()
        union = streets.matrix.sum(0) + streets.matrix.sum(1) - diagonal
        assert scores["segiou/mean_iou"] == pytest.approx((diagonal / union).mean(), rel=1e-12)
        assert scores["segiou/iou/road"] == diagonal[2] / union[2]


def test_an_interrupted_evaluation_leaves_nothing_behind(evaluator, streets, need):
    whole, _ = evaluator(labels=streets.names, ignore=255)
    wrong = samples(streets, need, range(2))
    for sample in wrong:
        sample.pred_sem_seg.data = sample.pred_sem_seg.data * 0
    whole.process(wrong, data_batch=None)  # then the user stops, and validates again
    whole.process(samples(streets, need, range(6)), data_batch=None)
    scores = whole.evaluate(size=6)
    assert scores["segiou/pixel_accuracy"] == np.trace(streets.matrix) / streets.matrix.sum()


def test_a_prefix_of_its_own_and_given_labels(evaluator, streets, need):
    whole, _ = evaluator(labels=streets.names, ignore=255, prefix="val", scores=["mean_iou"])
    whole.process(samples(streets, need, range(6)), data_batch=None)
    assert set(whole.evaluate(size=6)) == {"val/mean_iou"}


def test_samples_of_a_batch_are_counted_all_or_none(evaluator, streets, need):
    whole, metric = evaluator(labels=2, ignore=255)
    batch = samples(streets, need, [0, 1])
    batch[0].gt_sem_seg.data[:] = batch[0].pred_sem_seg.data[:] = 0
    with pytest.raises(ValueError, match="neither a class"):
        whole.process(batch, data_batch=None)
    assert metric.results == []


def test_it_is_in_the_registry(need, streets):
    need("mmengine")
    from mmengine.registry import METRICS

    import segiou.hooks.mmengine

    metric = METRICS.build({"type": "SegmentationScores", "labels": 3})
    assert isinstance(metric, segiou.hooks.mmengine.SegmentationScores)


def test_without_classes_it_says_so(evaluator, streets, need):
    whole, _ = evaluator()
    with pytest.raises(ValueError, match="dataset_meta has no 'classes'"):
        whole.process(samples(streets, need, [0]), data_batch=None)


@pytest.fixture
def path(streets, tmp_path):
    path = tmp_path / "streets.npz"
    np.savez(path, images=streets.images, truth=streets.truth, names=np.array(streets.names))
    return path


def check_scores(scores, streets, pred):
    """Those of the first five scenes, each counted once."""
    cm = ConfusionMatrix(streets.names, ignore=255).update(streets.truth[:5], pred)
    assert scores["segiou/mean_iou"] == cm.mean_iou()
    assert scores["segiou/pixel_accuracy"] == cm.pixel_accuracy()
    assert scores["segiou/iou/road"] == cm.iou()[2]


def test_a_real_runner_trains_validates_and_keeps_the_best(
    need, run_torch, streets, path, tmp_path
):
    need("mmengine.runner")  # which wants OpenCV, too
    out = run_torch(RUNNER, path, tmp_path / "store", "0", "1")
    first, second = out["scores"]
    assert first == second
    check_scores(first, streets, np.load(tmp_path / "pred.npy"))
    assert out["batches"] == 3
    assert out["logged"] == first["segiou/mean_iou"]
    assert len(out["best"]) == 1
    assert out["best"][0].startswith("best_segiou_mean_iou_epoch_")


def test_two_processes_of_a_runner_drop_the_padding(need, run_two, streets, path, tmp_path):
    need("mmengine.runner")
    (out,) = run_two(RUNNER, path)
    assert out["batches"] == 2  # of two and one: each process has three of five scenes
    for scores in out["scores"]:
        check_scores(scores, streets, np.load(tmp_path / "pred.npy"))


IMPORT = """
import json
from mmengine.hooks import CheckpointHook

keys = "_default_greater_keys", "_default_less_keys"
before = [list(getattr(CheckpointHook, name)) for name in keys]
import segiou.hooks.mmengine

print(json.dumps([before, [list(getattr(CheckpointHook, name)) for name in keys]]))
"""


def test_importing_the_metric_leaves_other_hooks_as_they_are(need, run_python):
    need("mmengine")
    before, after = run_python(IMPORT)
    assert before == after


WRONG = """
import json, sys
import torch
from torch import distributed as dist
from segiou.hooks.mmengine import SegmentationScores

rank = int(sys.argv[3])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
metric, said = SegmentationScores(3, scores=["pixel_accuracy"]), []
for last in (9 if rank else 2, 2):  # the first epoch fails
    sample = {"gt_sem_seg": {"data": torch.tensor([[[0, 1, last]]])},
              "pred_sem_seg": {"data": torch.tensor([[[0, 1, 2]]])}}
    try:
        metric.process(None, [sample])
        said.append(metric.evaluate(2))
    except ValueError as error:
        said.append(str(error))
everyone = [None, None]
dist.all_gather_object(everyone, said)
print(json.dumps([{"said": one} for one in everyone]))
dist.destroy_process_group()
"""


def test_an_error_of_one_process_raises_on_all_and_the_next_epoch_counts(need, run_two, tmp_path):
    need("mmengine")
    first, second = run_two(WRONG, tmp_path)
    scores = {"segiou/pixel_accuracy": 1.0}
    assert "process 1 could not" in first["said"][0]
    assert "9 (1 pixel)" in second["said"][0]
    assert first["said"][1] == second["said"][1] == scores


def test_arrays_of_numpy_and_images_of_one_row(need):
    need("mmengine")
    from segiou.hooks.mmengine import SegmentationScores

    truth = np.array([[0, 1, 2, 2]])
    scores = np.moveaxis(np.eye(3, dtype=np.float32)[[[0, 1, 2, 0]]], -1, 0)
    forms = [(t, p) for t in (truth, truth[None]) for p in (truth, truth[None], scores)]
    for t, p in forms:
        metric = SegmentationScores(3)
        metric.process(None, [{"gt_sem_seg": {"data": t}, "pred_sem_seg": {"data": p}}])
        metric.evaluate(1)
        wrong = int(p is scores)
        assert metric.counts.matrix.tolist() == [[1, 0, 0], [0, 1, 0], [wrong, 0, 2 - wrong]]
