"""Score histograms in torch loops, torchmetrics and Lightning, and over several processes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from segiou import ScoreHistogram

RANK = """
import sys, json
import numpy as np, torch
from torch import distributed as dist
from segiou import ScoreHistogram
from segiou.hooks.distributed import all_reduce
from segiou.hooks.torchmetrics import SegmentationScores
from segiou.scoring import Evaluator

path, store, rank, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
data = np.load(path)
truth, logits = torch.from_numpy(data["truth"]), torch.from_numpy(data["logits"])
how = {"bins": 64, "ignore": 255}
own = ScoreHistogram(3, **how)
metric = SegmentationScores(ScoreHistogram(3, **how), activation="softmax")
late = SegmentationScores(
    ScoreHistogram(3, **how), activation="softmax", scores=["ece", "brier"]
)
evaluator = Evaluator(3, measures=["scores"], ignore=255)
for i in range(2 * rank, 5 if rank else 2):  # two images here, three there
    batch = slice(i, i + 1)
    own.update(truth[batch], logits[batch], activation="softmax")
    metric.update(logits[batch], truth[batch])
    probabilities = logits[batch].softmax(1)
    evaluator.update(truth[batch], probabilities, argmax=1, ids=[f"image{i}"])
before = own.copy()
out = {"reduced": all_reduce(own).state_dict(), "unchanged": own == before}
empty = ScoreHistogram(3, **how)
out["one empty"] = all_reduce(own if rank else empty).pairs
out["metric"] = float(metric.compute())
if rank:
    for i in range(5):
        late.update(logits[i:i + 1], truth[i:i + 1])
out["late"] = {name: float(value) for name, value in late.compute().items()}
run = all_reduce(evaluator).run()
out["run"] = ScoreHistogram.of_run(run).state_dict()
out["images"] = list(run.ids)
try:
    all_reduce(ScoreHistogram(3, bins=64 + rank))
except ValueError as error:
    out["error"] = str(error)
gathered = [None] * size
dist.all_gather_object(gathered, out)
if rank == 0:
    print(json.dumps(gathered))
dist.destroy_process_group()
"""

RNG = np.random.default_rng(6)
TRUTH = RNG.integers(0, 3, (5, 8, 9))
LOGITS = (RNG.normal(size=(5, 3, 8, 9)) + 2 * np.moveaxis(np.eye(3)[TRUTH], -1, 1)).astype("f4")
TRUTH[:, 0] = 255


def alone(**options):
    found = ScoreHistogram(3, ignore=255, **options)
    for truth, logits in zip(TRUTH, LOGITS, strict=True):
        found.update(truth, logits, axis=0, activation="softmax")
    return found


@pytest.fixture
def hook(need):
    need("torchmetrics")
    from segiou.hooks import torchmetrics

    return torchmetrics


@pytest.fixture
def batches(need):
    torch = need("torch")
    logits, truth = torch.from_numpy(LOGITS), torch.from_numpy(TRUTH)
    return [(logits[i : i + 2], truth[i : i + 2]) for i in (0, 2, 4)]


def made(hook, exclude=(), **options):
    like = ScoreHistogram(3, bins=64, ignore=255, exclude=exclude)
    return hook.SegmentationScores(like, activation="softmax", **options)


@pytest.mark.gate
def test_two_processes_give_the_histogram_of_one(need, run_two, tmp_path):
    need("torch")
    need("torchmetrics")
    np.savez(tmp_path / "scores.npz", truth=TRUTH, logits=LOGITS)
    expected = alone(bins=64)
    calibration = expected.calibration()
    for out in run_two(RANK, tmp_path / "scores.npz"):
        assert ScoreHistogram.from_state_dict(out["reduced"]) == expected
        assert out["unchanged"]
        assert out["one empty"] == 3
        assert out["metric"] == expected.average_precision().mean()
        wanted = {"ece": calibration.ece, "brier": calibration.brier}
        assert out["late"] == pytest.approx(wanted)
        assert out["images"] == [f"image{i}" for i in range(5)]
        of_run = ScoreHistogram.from_state_dict(out["run"])
        assert of_run.counts.sum() == expected.counts.sum()
        np.testing.assert_allclose(of_run.roc_auc(), alone().roc_auc(), atol=1e-4)
        assert "the classes or options of process 1 differ" in out["error"]


def test_the_metric_counts_like_the_histogram(hook, batches):
    expected = alone(bins=64)
    one, several = made(hook), made(hook, scores=["best_iou", "ece"])
    for batch in batches:
        one.update(*batch)
        several(*batch)
    assert (one.counts.counts == expected.counts).all()
    assert (one.counts.pairs, one.counts.ignored) == (3, 45)
    assert float(one.compute()) == expected.average_precision().mean()
    values = {name: float(value) for name, value in several.compute().items()}
    wanted = {"best_iou": expected.best_threshold().scores.mean()}
    assert values == pytest.approx(wanted | {"ece": expected.calibration().ece})
    for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one)), one.clone()):
        assert again.counts == one.counts
    assert (one.higher_is_better, made(hook, scores="ece").higher_is_better) == (True, False)
    one.reset()
    assert one.counts == ScoreHistogram(3, bins=64, ignore=255)
    assert np.isnan(float(one.compute()))


def test_metrics_of_other_options_are_no_compute_group(hook, batches):
    from torchmetrics import MetricCollection

    metrics = {"all": made(hook), "two": made(hook, exclude=0), "ece": made(hook, scores="ece")}
    collection = MetricCollection({name: metric.clone() for name, metric in metrics.items()})
    for batch in batches:
        collection.update(*batch)
        for metric in metrics.values():
            metric.update(*batch)
    found = {name: float(value) for name, value in collection.compute().items()}
    assert found == {name: float(metric.compute()) for name, metric in metrics.items()}


def test_a_checkpoint_of_other_options_is_refused(hook, batches):
    saved, other = made(hook), made(hook, exclude=0)
    for metric in (saved, other):
        metric.persistent(True)
    saved.update(*batches[0])
    with pytest.raises(ValueError, match="different classes or options"):
        other.load_state_dict(saved.state_dict())
    again = made(hook)
    again.persistent(True)
    again.load_state_dict(saved.state_dict())
    assert again.counts == saved.counts


def test_refused(hook, batches):
    with pytest.raises(ValueError, match=r"scores must be .*'pq'"):
        made(hook, scores="pq")
    with pytest.raises(ValueError, match="activation needs a segiou"):
        hook.SegmentationScores(3, activation="softmax")
    for name, value in {"threshold": 0.5, "protocol": "nnunet", "exclude": 1}.items():
        with pytest.raises(ValueError, match=f"{name} does not apply to a ScoreHistogram"):
            made_with = {name: value}
            hook.SegmentationScores(ScoreHistogram(3), **made_with)
    metric = hook.SegmentationScores(ScoreHistogram(3), ignore=255)
    with pytest.raises(ValueError, match="activation='softmax'"):
        metric.update(*batches[0])
    assert metric.counts == ScoreHistogram(3, ignore=255)


def test_lightning_logs_it(hook, batches, need, tmp_path):
    lightning, torch = need("lightning.pytorch"), need("torch")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.metric = made(hook)
            self.layer = torch.nn.Linear(1, 1)

        def validation_step(self, batch, batch_idx):
            self.metric.update(*batch)
            self.log("val/ap", self.metric)

        def on_validation_epoch_end(self):
            self.histogram = self.metric.counts

    trainer = lightning.Trainer(
        default_root_dir=tmp_path,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module = Module()
    loader = torch.utils.data.DataLoader(batches, batch_size=None)
    found = trainer.validate(module, loader, verbose=False)
    assert found[0]["val/ap"] == pytest.approx(alone(bins=64).average_precision().mean())
    assert (module.histogram.counts == alone(bins=64).counts).all()


def test_the_lightning_callback_logs_it(batches, need, tmp_path):
    lightning, torch = need("lightning.pytorch"), need("torch")
    from segiou.hooks.lightning import SegmentationScores

    class Module(lightning.LightningModule):
        def validation_step(self, batch, batch_idx):
            return {"truth": batch[1], "pred": batch[0]}

    scores = SegmentationScores(ScoreHistogram(3, ignore=255, bins=64), activation="softmax")
    trainer = lightning.Trainer(
        default_root_dir=tmp_path,
        accelerator="cpu",
        callbacks=[scores],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = torch.utils.data.DataLoader(batches, batch_size=None)
    (found,) = trainer.validate(Module(), loader, verbose=False)
    expected = alone(bins=64)
    assert (scores.counts[0].counts == expected.counts).all()
    assert found["val/brier"] == pytest.approx(expected.calibration().brier)
    assert found["val/average_precision"] == pytest.approx(expected.average_precision().mean())
    for option in ({"ids": len}, {"report": "page.html"}):
        with pytest.raises(ValueError, match=r"^(ids|report) needs?"):
            SegmentationScores(ScoreHistogram(3), **option)


def test_ignite(batches, need):
    need("ignite")
    from ignite.engine import Engine

    from segiou.hooks.ignite import SegmentationScores

    like = ScoreHistogram(3, ignore=255, bins=64)
    metric = SegmentationScores(like, activation="softmax", scores="ece")
    engine = Engine(lambda engine, batch: batch)
    metric.attach(engine, "ece")
    for _ in range(2):
        found = engine.run(batches).metrics["ece"]
        assert (metric.counts.counts == alone(bins=64).counts).all()
        assert metric.counts.pairs == 3
    assert found == alone(bins=64).calibration().ece
    again = SegmentationScores(like, activation="softmax", scores="ece")
    again.load_state_dict(metric.state_dict())
    assert again.counts == metric.counts
    with pytest.raises(ValueError, match=r"^ids need counts per image"):
        SegmentationScores(like, ids=True)


def test_mmengine(need):
    need("mmengine")
    torch = need("torch")
    from mmengine.structures import BaseDataElement, PixelData

    from segiou.hooks.mmengine import SegmentationScores

    like = ScoreHistogram(3, ignore=255, bins=64)
    metric = SegmentationScores(like, activation="softmax", pred_key="seg_logits")
    for truth, logits in zip(TRUTH, LOGITS, strict=True):
        sample = BaseDataElement()
        sample.gt_sem_seg = PixelData(data=torch.from_numpy(truth[None]))
        sample.seg_logits = PixelData(data=torch.from_numpy(logits))
        metric.process(None, [sample.to_dict()])
    found = metric.evaluate(size=4)  # the first sample is one of an interrupted evaluation
    expected = ScoreHistogram(3, ignore=255, bins=64)
    expected.update(TRUTH[1:], LOGITS[1:], activation="softmax")
    assert found["segiou/roc_auc"] == expected.roc_auc().mean()
    assert found["segiou/ece"] == expected.calibration().ece


def test_hugging_face(need):
    torch = need("torch")
    need("transformers")
    from transformers import EvalPrediction

    from segiou.hooks.huggingface import ComputeMetrics

    metrics = ComputeMetrics(ScoreHistogram(3, bins=64), ignore=255, activation="softmax")
    padded = TRUTH.copy()
    padded[:, -1] = -100
    small = LOGITS[..., ::2, ::3]
    for rows in (slice(0, 4), slice(4, 5)):
        given = EvalPrediction(predictions=small[rows], label_ids=padded[rows])
        found = metrics(given, compute_result=rows.start == 4)
    full = torch.nn.functional.interpolate(
        torch.from_numpy(small), size=(8, 9), mode="bilinear", align_corners=False
    )
    expected = ScoreHistogram(3, bins=64, ignore=[255, -100])
    expected.update(padded, full, activation="softmax")
    assert (metrics.counts.counts == expected.counts).all()
    assert metrics.counts.ignored == 2 * 45
    assert found["best_iou"] == expected.best_threshold().scores.mean()


IGNITE = """
import sys, json
import numpy as np, torch
from ignite import distributed as idist
from segiou import ScoreHistogram
from segiou.hooks.ignite import SegmentationScores

path, store, rank, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
idist.initialize("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
data = np.load(path)
metric = SegmentationScores(ScoreHistogram(3, bins=64, ignore=255), activation="softmax")
for i in range(2 * rank, 5 if rank else 2):
    batch = slice(i, i + 1)
    metric.update((torch.from_numpy(data["logits"][batch]), torch.from_numpy(data["truth"][batch])))
found = metric.counts.state_dict()
if rank == 0:
    print(json.dumps(found))
"""

ACCELERATE = """
import sys, json
import numpy as np
from accelerate import Accelerator
from segiou import ScoreHistogram
from segiou.hooks.accelerate import all_reduce

data, rank = np.load(sys.argv[1]), int(sys.argv[3])
accelerator = Accelerator(cpu=True)
own = ScoreHistogram(3, bins=64, ignore=255)
for i in range(2 * rank, 5 if rank else 2):
    batch = slice(i, i + 1)
    own.update(data["truth"][batch], data["logits"][batch], activation="softmax")
found = all_reduce(own, accelerator).state_dict()
if rank == 0:
    print(json.dumps(found))
"""


@pytest.mark.gate
@pytest.mark.parametrize(("framework", "code"), [("ignite", IGNITE), ("accelerate", ACCELERATE)])
def test_two_processes_of(framework, code, need, run_two, tmp_path):
    need(framework)
    np.savez(tmp_path / "scores.npz", truth=TRUTH, logits=LOGITS)
    (out,) = run_two(code, tmp_path / "scores.npz")
    assert ScoreHistogram.from_state_dict(out) == alone(bins=64)
