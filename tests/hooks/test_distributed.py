"""Two real processes, with an uneven last batch, against one."""

from __future__ import annotations

import numpy as np
import pytest
from accumulator_kinds import KINDS, counted

from segiou import ConfusionMatrix
from segiou.scoring import Evaluator

# Each rank runs this: it counts its share in every way and rank 0 prints what it got.
RANK = """
import sys, json
import numpy as np, torch
from torch import distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from segiou import ConfusionMatrix
from segiou.counting import ConfusionCounts
from segiou.hooks.distributed import all_reduce
from segiou.scoring import Evaluator

path, store, rank, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
data = np.load(path)
truth, pred, ids = data["truth"][:5], data["pred"][:5], data["ids"][:5].tolist()
names = data["names"].tolist()
sampler = DistributedSampler(range(5), num_replicas=size, rank=rank, shuffle=False)
loader = DataLoader(range(5), batch_size=2, sampler=sampler)
out = {}

# Images by id: the sampler gives each rank 3 of 5, so that one is repeated.
images, padded = Evaluator(names, ignore=255), ConfusionMatrix(names, ignore=255)
for rows in loader:
    t, p = torch.from_numpy(truth)[rows], torch.from_numpy(pred)[rows]
    images.update(t, p, ids=[ids[i] for i in rows])
    padded.update(t, p)
total = all_reduce(images)
out["images"] = total.total().state_dict()
out["run"] = list(total.run().ids)
out["seen"] = len(images)
out["padded"] = all_reduce(padded).pixels

# No padding: an uneven split, one rank with a batch more than the other.
own = ConfusionMatrix(names, ignore=255)
for start in range(rank * 2, 5 if rank else 2, 2):
    own.update(truth[start:start + 2], pred[start:start + 2])
reduced = all_reduce(own)
out["matrix"] = reduced.state_dict()
out["again"] = all_reduce(own) == reduced  # nothing is added to what was given
empty = ConfusionMatrix(names, ignore=255)
out["one empty"] = all_reduce(own if rank else empty).state_dict() == own.state_dict() or not rank

big = ConfusionMatrix(2).add(ConfusionCounts([[2**60, 0, 0], [0, 0, 0]]))
out["big"] = int(all_reduce(big).matrix[0, 0])

from segiou.hooks import torchmetrics as hook
metric = hook.SegmentationScores(names, ignore=255)
for start in range(rank * 2, 5 if rank else 2, 2):
    metric.update(torch.from_numpy(pred[start:start + 2]), torch.from_numpy(truth[start:start + 2]))
out["torchmetrics"] = float(metric.compute())

import ignite.distributed as idist
from segiou.hooks.ignite import SegmentationScores
ignite = SegmentationScores(names, ignore=255)
for start in range(rank * 2, 5 if rank else 2, 2):
    rows = slice(start, start + 2)
    ignite.update((torch.from_numpy(pred[rows]), torch.from_numpy(truth[rows])))
out["ignite world"] = idist.get_world_size()
out["ignite"] = ignite.counts.state_dict()

try:
    all_reduce(ConfusionMatrix(2 + rank))
except ValueError as error:
    out["options"] = str(error)
broken = ConfusionMatrix(2)
if rank:
    from segiou.accumulators import confusion
    own_check, confusion.is_on_device = confusion.is_on_device, lambda x: True
    broken.update(torch.tensor([5]), torch.tensor([0]))  # as on a device: found when it is read
    confusion.is_on_device = own_check
try:
    all_reduce(broken)
except ValueError as error:
    out["broken"] = str(error)
conflicting = Evaluator(2)
conflicting.update([[0, 1]], [[rank, 1]], ids=["a"])
try:
    all_reduce(conflicting)
except ValueError as error:
    out["conflict"] = str(error)
conflicting.conflict = "first"
out["first"] = all_reduce(conflicting).total().matrix.tolist()
# Whatever differs, all processes raise, soon, and can go on afterwards.
disagreements = {
    "kinds": ConfusionMatrix(2) if rank else Evaluator(2),
    "conflicts": Evaluator(2, conflict="first" if rank else "error"),
    "ignored": Evaluator(2, ignore=255 if rank else ()),
    "no counts": [[1, 0], [0, 1]] if rank else ConfusionMatrix(2),
    "too many": ConfusionMatrix(2).add(ConfusionCounts([[2**62, 0, 0], [0, 0, 0]])),
}
for name, counted in disagreements.items():
    try:
        out[name] = str(all_reduce(counted))
    except (TypeError, ValueError, OverflowError) as error:
        out[name] = f"{type(error).__name__}: {error}"
gathered = [None] * size
dist.all_gather_object(gathered, out)
if rank == 0:
    print(json.dumps(gathered))
dist.destroy_process_group()
"""

ACCELERATE = """
import sys, json, os, warnings
import numpy as np, torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from segiou import ConfusionMatrix
from segiou.hooks.accelerate import all_reduce
from segiou.scoring import Evaluator

accelerator = Accelerator(cpu=True)
data = np.load(sys.argv[1])
truth, pred = (torch.from_numpy(data[k][:5]) for k in ("truth", "pred"))
rows = list(zip(truth, pred, torch.arange(5)))
loader = accelerator.prepare(DataLoader(rows, batch_size=2))
names = data["names"].tolist()
gathered, images, seen = ConfusionMatrix(names, ignore=255), Evaluator(names, ignore=255), 0
local = ConfusionMatrix(names, ignore=255)
for t, p, ids in loader:
    images.update(t, p, ids=ids)
    local.update(t, p)
    seen += len(ids)
    t, p = accelerator.gather_for_metrics((t, p))
    gathered.update(t, p)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    pixels = all_reduce(local, accelerator).pixels
    empty = ConfusionMatrix(names, ignore=255)
    all_reduce(gathered if accelerator.is_main_process else empty, accelerator)
out = {"gathered": gathered.state_dict(), "seen": seen, "local": pixels,
       "said": [str(w.message) for w in caught],
       "images": all_reduce(images, accelerator).total().state_dict()}
try:
    all_reduce(ConfusionMatrix(2 + accelerator.process_index), accelerator)
except ValueError as error:
    out["options"] = str(error)
if accelerator.is_main_process:
    print(json.dumps(out))
"""


@pytest.fixture
def path(streets, tmp_path):
    path = tmp_path / "streets.npz"
    arrays = {"truth": streets.truth, "pred": streets.pred}
    np.savez(path, ids=np.array(streets.ids), names=np.array(streets.names), **arrays)
    return path


@pytest.fixture
def alone(streets):
    cm = ConfusionMatrix(streets.names, ignore=255)
    for truth, pred in zip(streets.truth[:5], streets.pred[:5], strict=True):
        cm.update(truth, pred)
    return cm


def same_counts(state, cm):
    assert state["table"] == cm.state_dict()["table"]
    assert state["ignored"] == cm.ignored


@pytest.mark.gate
def test_two_processes_give_the_answer_of_one(need, run_two, path, alone, streets):
    need("torch")
    need("torchmetrics")
    need("ignite")
    for out in run_two(RANK, path):
        same_counts(out["images"], alone)
        assert (out["images"]["pairs"], out["run"]) == (5, streets.ids[:5])
        assert out["seen"] == 3
        assert out["padded"] == alone.pixels * 6 // 5  # what counting the padding would give
        same_counts(out["matrix"], alone)
        assert out["matrix"]["pairs"] == 3
        assert out["again"] and out["one empty"]
        assert out["big"] == 2**61
        assert out["torchmetrics"] == alone.mean_iou()
        assert out["ignite world"] == 2
        same_counts(out["ignite"], alone)
        assert "the classes or options of process 1 differ" in out["options"]
        assert "'a' was counted twice with different results" in out["conflict"]
        assert out["first"] == [[1, 0], [0, 1]]
        said = "process 1 passed ConfusionMatrix but process 0 passed Evaluator"
        assert out["kinds"].startswith(f"ValueError: {said}")
        for name in ("conflicts", "ignored"):
            assert "the classes or options of process 1 differ" in out[name]
        assert f"{2**63} pixels, more than int64 ({2**63 - 1})" in out["too many"]
    first, second = (out["no counts"] for out in run_two.last)
    assert first == "ValueError: process 1 could not read its counts; see the error on that process"
    wanted = "counted must be an accumulator, such as a ConfusionMatrix, not list"
    assert second.startswith(f"TypeError: {wanted}")
    texts = [out["broken"] for out in run_two.last]
    assert "process 1 could not read its counts" in texts[0]
    assert "the largest value 5" in texts[1]


@pytest.mark.gate
def test_accelerate_in_two_processes(need, run_two, path, alone):
    need("accelerate")
    (out,) = run_two(ACCELERATE, path)
    same_counts(out["gathered"], alone)
    same_counts(out["images"], alone)
    assert out["seen"] * 2 > 5  # batches were filled up with repeated images
    (said,) = out["said"]
    assert f"2 processes draw {out['seen'] * 2} images from a data set of 5" in said
    assert out["local"] > alone.pixels
    assert "the classes or options of process 1 differ" in out["options"]


def test_accelerate_and_torch_in_one_process(need, alone, streets):
    need("accelerate")
    from accelerate import Accelerator

    from segiou.hooks import accelerate, distributed

    images = Evaluator(streets.names, ignore=255)
    images.update(streets.truth[:5], streets.pred[:5], ids=streets.ids[:5])
    here = Accelerator(cpu=True)
    assert accelerate.all_reduce(alone, here) == alone
    assert accelerate.all_reduce(images, here).total() == alone
    assert distributed.all_reduce(alone) == alone
    assert distributed.all_reduce(images).total() == alone


@pytest.mark.parametrize("name", KINDS)
def test_every_accumulator_adds_up(need, name):
    need("torch")
    from segiou.hooks import distributed

    parts = [counted(name, range(2)), KINDS[name].make(), counted(name, range(2, 4))]
    everyone = [distributed._described(part) for part in parts]
    assert distributed.add_up(parts[1], lambda own: everyone) == counted(name, range(4))


def test_images_know_scores_masks_and_their_ids(need):
    torch = need("torch")
    scores = torch.tensor([[[[1.0, 0]], [[0, 1]]], [[[0, 2]], [[3, 1]]]])  # (2, 2, 1, 2)
    truth = torch.tensor([[[0, 1]], [[0, 0]]])
    images = Evaluator(2).update(truth, scores, ids=torch.tensor([7, 3]), argmax=1)
    assert images.run().ids == ("3", "7")
    assert images.total().matrix.tolist() == [[2, 1], [0, 1]]
    last = Evaluator(2).update(truth, scores.movedim(1, -1), ids=[7, 3], argmax=-1)
    assert last.total() == images.total()
    masked = Evaluator(2).update(truth, scores, ids=[7, 3], argmax=1, mask=truth == 1)
    assert (masked.total().ignored, masked.total().matrix.sum()) == (3, 1)
    assert len(images.reset()) == 0


DEFERRED = """
import sys, json
import torch
from torch import distributed
from segiou import ConfusionMatrix, ScoreHistogram
from segiou.hooks.distributed import DeferredErrors, all_reduce
from segiou.hooks.torchmetrics import SegmentationScores

rank = int(sys.argv[3])
distributed.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
said = []
labels_of, flat = torch.tensor([[0, 1, 2]]), torch.full((1, 3, 3), 0.3)
for labels, pred in ((3, labels_of), (ScoreHistogram(3), flat)):
    metric = SegmentationScores(labels)
    metric.update(pred, torch.tensor([[0, 1, 9 if rank else 2]]))
    try:
        metric.compute()
        said.append("")
    except ValueError as error:
        said.append(str(error))
# One's own loop, in which the model of each batch waits for the other process, too.
cm, errors = ConfusionMatrix(3), DeferredErrors()
for last in (9 if rank else 2, 2):
    distributed.barrier()
    with errors:
        cm.update([[0, 1, last]], labels_of)
try:
    all_reduce(cm, errors=errors)
except ValueError as error:
    said.append(str(error))
everyone = [None, None]
distributed.all_gather_object(everyone, said)
print(json.dumps([{"said": one} for one in everyone]))
"""


def test_an_undeclared_value_of_one_process_raises_on_all(need, run_two, tmp_path):
    need("torchmetrics")
    first, second = run_two(DEFERRED, tmp_path)
    assert len(first["said"]) == 3
    for other, own in zip(first["said"], second["said"], strict=True):
        assert "process 1 could not" in other
        assert "9 (1 pixel)" in own
