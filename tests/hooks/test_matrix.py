"""Every adapter in ten situations: the value, its key and the counts, by brute force.

The same table is in docs/hooks.md. Loops are in tests/importable/loops.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from segiou import ChannelCounts
from segiou.scoring import Evaluator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hooks.md"
IMPORTABLE = Path(__file__).resolve().parents[1] / "importable"
NAMES = ["a", "b", "c"]
FORMS = ("labels", "logits", "binary", "channels", "sizes")
SITUATIONS = (*FORMS, "interrupted", "loaders", "two", "resumed", "processes")
#: Key of the mean IoU, of that of a second dataloader and of a second metric of ours; whether a
#: loop resumes in the middle of an epoch; and who adds the counts of processes.
CELLS = {
    "PyTorch": ("mean_iou", "own", "own", "state_dict", "all_reduce"),
    "torchmetrics": ("mean_iou", "own", "val_fg", "state_dict", "compute"),
    "Lightning": (
        "val/mean_iou",
        "val/mean_iou/dataloader_idx_1",
        "val/fg/mean_iou",
        "anew",
        "callback",
    ),
    "Trainer": ("eval_mean_iou", "eval_1_mean_iou", "eval_fg_mean_iou", "anew", "Trainer"),
    "Accelerate": ("mean_iou", "own", "own", "state_dict", "all_reduce"),
    "Keras": ("mean_iou", "own", "fg", "anew", "own"),
    "Ignite": ("val/mean_iou", "own", "fg/mean_iou", "state_dict", "compute"),
    "MMEngine": ("segiou/mean_iou", "own", "fg/mean_iou", "anew", "evaluate"),
    "JAX": ("mean_iou", "own", "own", "pytree", "psum"),
    "Flax": ("mean_iou", "own", "fg/mean_iou", "pytree", "own"),
}
MODULES = {
    "PyTorch": ["torch"],
    "Lightning": ["lightning.pytorch"],
    "Trainer": ["transformers", "accelerate"],
}
#: Adapters whose processes are tested together, in a run of two.
TOGETHER = ("PyTorch", "torchmetrics", "Ignite", "MMEngine", "Accelerate", "Trainer", "Lightning")

RNG = np.random.default_rng(60)
TRUTH = RNG.choice([0, 1, 2, 255], (5, 6, 8), p=[0.5, 0.3, 0.1, 0.1])
LOGITS = RNG.normal(size=(5, 3, 6, 8)).astype(np.float32)
#: Regions, of which the second is within the first.
REGIONS = (RNG.integers(0, 3, (5, 1, 6, 8)) > np.arange(2)[:, None, None]).astype(np.uint8)


def split(*sides, uneven=False):
    """Two batches of 2 images, or of 3 and 2."""
    rows = (slice(3), slice(3, 5)) if uneven else (slice(2), slice(2, 4))
    return [tuple(side[some] for side in sides) for some in rows]


def given(form):
    """Labels and options of the hook, and batches."""
    usual = {"scores": ["mean_iou"]}
    if form == "channels":
        scores = (0.4 * REGIONS + 0.6 * RNG_SCORES).astype(np.float32)
        return ChannelCounts(NAMES[:2]), {"threshold": 0.5, **usual}, split(REGIONS, scores)
    if form == "binary":  # both (N, 1, H, W) floats, as BCEWithLogitsLoss takes them
        truth = (TRUTH[:, None] == 0).astype(np.float32)
        return NAMES[:2], {"threshold": 0.0, **usual}, split(truth, LOGITS[:, :1])
    usual["ignore"] = 255
    if form == "labels":
        return NAMES, usual, split(TRUTH, LOGITS.argmax(1))
    whole = [(TRUTH[:2], LOGITS[:2]), (TRUTH[2:, :4, :5], LOGITS[2:, :, :4, :5])]
    uneven = form == "processes"
    return NAMES, usual, whole if form == "sizes" else split(TRUTH, LOGITS, uneven=uneven)


RNG_SCORES = RNG.random(REGIONS.shape)


def expected(form, batches):
    """The counts and the mean IoU, from loops over pixels."""
    if form == "channels":
        truth, pred = (np.concatenate(side) for side in zip(*batches, strict=True))
        truth, pred = (np.moveaxis(x, 1, 0).reshape(2, -1) > 0.5 for x in (truth, pred))
        tp, fp, fn = (truth & pred).sum(1), (~truth & pred).sum(1), (truth & ~pred).sum(1)
        return [tp.tolist(), fp.tolist(), fn.tolist()], float((tp / (tp + fp + fn)).mean())
    classes = 2 if form == "binary" else 3
    matrix = np.zeros((classes, classes), int)
    for truth, pred in batches:
        if form == "binary":
            truth, pred = truth[:, 0].astype(int), (pred[:, 0] > 0).astype(int)
        elif pred.ndim > truth.ndim:
            pred = pred.argmax(1)
        for t, p in zip(truth.ravel().tolist(), pred.ravel().tolist(), strict=True):
            if t != 255:
                matrix[t, p] += 1
    return matrix.tolist(), mean_of(matrix)


def mean_of(matrix, first=0):
    tp = np.diag(matrix)
    return float((tp / (matrix.sum(0) + matrix.sum(1) - tp))[first:].mean())


def numbers(counts):
    if isinstance(counts, ChannelCounts):
        return [x.tolist() for x in (counts.counts.tp, counts.counts.fp, counts.counts.fn)]
    return counts.matrix.tolist()


def cell(loop, adapter, situation):
    """The scores by key, the key that should be there, and counts, of the loop of an adapter."""
    key, of_loader, of_second, *_ = CELLS[adapter]
    if situation in FORMS:
        labels, options, batches = given(situation)
        made = loop(labels, **options)
        return [(made.epoch(batches), key, made.counts)]
    labels, options, batches = given(situation)
    made = loop(labels, **options)
    if situation == "interrupted":
        from loops import Stop

        with pytest.raises(Stop):
            made.epoch(batches, stop=True)
        return [(made.epoch(batches), key, made.counts)]
    if situation == "resumed":
        return [(made.resumed(*batches), key, made.counts)]
    if situation == "loaders" and hasattr(loop, "loaders"):
        found, counts = loop.loaders(made, [batches[:1], batches[1:]])
        first = of_loader.replace("1", "0")
        return [(found, first, counts[0]), (found, of_loader, counts[1])]
    if situation == "loaders":
        other = loop(labels, **options)
        return [
            (one.epoch(part), key, one.counts)
            for one, part in ((made, batches[:1]), (other, batches[1:]))
        ]
    if situation == "processes":  # counts of both are added up
        if hasattr(loop, "processes"):
            return [(made.processes([batches[:1], batches[1:]]), key, made.counts)]
        other = loop(labels, **options)
        made.epoch(batches[:1]), other.epoch(batches[1:])
        total = made.counts + other.counts
        return [(total.report().scores(names=["mean_iou"]), "mean_iou", total)]
    options |= {"scores": "mean_iou"} if adapter == "torchmetrics" else {}
    name = {"Lightning": {"prefix": "fg/"}, "Keras": {"name": "fg"}, "MMEngine": {"prefix": "fg"}}
    both = loop(labels, **options), loop(labels, exclude=0, **options, **name.get(adapter, {}))
    if of_second == "own":
        return [(one.epoch(batches), key, one.counts) for one in both]
    found = loop.two(both, batches)
    first = {"torchmetrics": "val_all", "Flax": "all/mean_iou"}.get(adapter, key)
    keys = first, of_second
    return [(found, name, one.counts) for name, one in zip(keys, both, strict=True)]


def wanted(situation):
    """The mean IoU and the counts of each result of `cell`."""
    batches = given(situation)[2]
    parts = [batches[:1], batches[1:]] if situation == "loaders" else [batches]
    found = [expected(situation, part)[::-1] for part in parts]
    if situation == "two":
        (_, matrix) = found[0]
        found.append((mean_of(np.array(matrix), first=1), matrix))
    return found


KERAS = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
import test_matrix as matrix
from loops import Keras

found = {}
for situation in json.loads(sys.argv[2]):
    cells = matrix.cell(Keras, "Keras", situation)
    found[situation] = [(values, key, matrix.numbers(counts)) for values, key, counts in cells]
print(json.dumps(found))
"""

PROCESSES = """
import json, sys
sys.path[:0] = json.loads(IMPORTABLE)
import torch
from accelerate import Accelerator

Accelerator(cpu=True)  # joins the processes
import loops, test_matrix as matrix
from segiou.hooks.distributed import all_reduce
from segiou.scoring import Evaluator

rank, found = int(sys.argv[3]), {}
labels, options, _ = matrix.given("logits")
one = lambda i: (matrix.TRUTH[i : i + 1], matrix.LOGITS[i : i + 1])
few = lambda *rows: (matrix.TRUTH[[*rows]], matrix.LOGITS[[*rows]])
mine = [few(1, 3)] if rank else [few(0, 2), few(4)]
for name in matrix.TOGETHER:
    made = loops.LOOPS[name](labels, **options)
    if name == "Trainer":  # its own loader deals out the images, and drops those that it repeats
        values = made.epoch([one(i) for i in range(5)])
    elif name == "MMEngine":  # its sampler repeats an image; its evaluator is told of five
        values = loops.scored([made.metric], [few(1, 3, 0) if rank else few(0, 2, 4)], size=5)
    else:
        values = made.epoch(mine)
    counts = made.counts
    if name == "torchmetrics":  # those of this process
        counts = all_reduce(counts)
    found[name] = [(values, matrix.CELLS[name][0], counts and matrix.numbers(counts))]
images = Evaluator(labels, ignore=255, measures=["boundary"])
rows = [1, 3, 0] if rank else [0, 2, 4]  # as a sampler repeats an image
images.update(matrix.TRUTH[rows], matrix.LOGITS[rows], ids=rows, argmax=1)
measured = all_reduce(images).scores()
wrong = {}
for name in ("torchmetrics", "Ignite", "PyTorch"):  # processes with other numbers of classes
    try:
        made = loops.LOOPS[name](3 + rank, **options)
        wrong[name] = str(made.epoch([(t, p.argmax(1)) for t, p in mine]))
    except ValueError as error:
        wrong[name] = str(error)
torch.distributed.barrier()
if rank == 0:
    out = {"cells": found, "wrong": wrong, "measured": measured}
    print(json.dumps(out, default=float))
"""


@pytest.fixture(scope="session")
def of_keras(run_keras):
    folders = json.dumps([str(Path(__file__).parent), str(IMPORTABLE)])
    several = [one for one in SITUATIONS if one != "resumed"]
    return run_keras("torch", KERAS, folders, json.dumps(several))


@pytest.fixture(scope="session")
def of_two(need, run_two_once):
    for name in TOGETHER:
        for module in MODULES.get(name, [name.lower()]):
            need(module)
    folders = json.dumps([str(Path(__file__).parent), str(IMPORTABLE)])
    code = f"IMPORTABLE = {folders!r}\n{PROCESSES}"
    (found,) = run_two_once(code, IMPORTABLE)
    return found


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("adapter", CELLS)
def test_cell(adapter, situation, need, request):
    if situation == "resumed" and CELLS[adapter][3] == "anew":
        pytest.skip("each epoch of this framework starts anew")
    if adapter == "Keras":
        found = request.getfixturevalue("of_keras")[situation]
    elif situation == "processes" and adapter in TOGETHER:
        found = request.getfixturevalue("of_two")["cells"][adapter]
    else:
        for module in MODULES.get(adapter, [adapter.lower()]):
            need(module)
        from loops import LOOPS

        cells = cell(LOOPS[adapter], adapter, situation)
        found = [(values, key, numbers(counts)) for values, key, counts in cells]
    for (values, key, counts), (value, matrix) in zip(found, wanted(situation), strict=True):
        assert float(values[key]) == pytest.approx(value, rel=1e-6), key
        assert counts == matrix


def test_processes_with_other_numbers_of_classes_raise(of_two):
    for name, text in of_two["wrong"].items():
        assert "differ" in text, name


def test_measures_of_processes_count_a_repeated_image_once(of_two):
    alone = Evaluator(NAMES, ignore=255, measures=["boundary"])
    assert of_two["measured"] == alone.update(TRUTH, LOGITS, argmax=1).scores()


def test_the_page_has_the_same_table():
    text = PAGE.read_text(encoding="utf-8")
    _, table = text.split("## Situations\n", 1)
    rows = re.findall(r"^\| (.+) \|$", table.split("\n## ")[0], re.MULTILINE)
    cells = {}
    for row in rows[2:]:
        name, *others = (part.strip().strip("`") for part in row.split(" | "))
        cells[name] = tuple(others)
    assert cells == CELLS
