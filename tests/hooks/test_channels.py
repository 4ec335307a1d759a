"""Channels that may overlap, in every adapter: values, names of keys, and counts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from segiou import ChannelCounts

NAMES = ["whole tumour", "core", "enhancing"]
WHOLE = ["mean_iou", "iou", "pixel_accuracy", "cohen_kappa", "matthews_correlation"]
THRESHOLDS = [0.5, 0.3, 0.7]


def batches(dtype=np.float32):
    """Two batches of channels (N, C, H, W), of nested regions, and scores in [0, 1]."""
    rng = np.random.default_rng(5)
    for number in (3, 2):
        depth = rng.integers(0, 4, (number, 1, 7, 6))
        truth = (depth > np.arange(3)[:, None, None]).astype(np.uint8)
        truth[0, :, 0] = 255  # not annotated
        yield truth, (0.4 * (truth == 1) + 0.6 * rng.random(truth.shape)).astype(dtype)


def by_hand(threshold):
    """TP, FP, FN and ignored values of each channel, and the mean IoU."""
    total = np.zeros((4, 3), int)
    for truth, scores in batches():
        for c, limit in enumerate(np.broadcast_to(threshold, 3)):
            valid, pred = truth[:, c] != 255, scores[:, c] > np.float32(limit)
            true = truth[:, c] == 1
            total[:, c] += [
                (true & pred & valid).sum(),
                (~true & pred & valid).sum(),
                (true & ~pred & valid).sum(),
                (~valid).sum(),
            ]
    tp, fp, fn, _ = total
    return total.tolist(), float((tp / (tp + fp + fn)).mean())


def found_of(counts):
    assert isinstance(counts, ChannelCounts)
    return [x.tolist() for x in (counts.counts.tp, counts.counts.fp, counts.counts.fn)] + [
        counts.ignored.tolist()
    ]


def torchmetrics(need, options):
    torch = need("torch")
    need("torchmetrics")
    from segiou.hooks.torchmetrics import SegmentationScores

    metric = SegmentationScores(**options)
    for truth, scores in batches():
        metric.update(torch.from_numpy(scores), torch.from_numpy(truth))
    return metric.compute(), metric.counts


def lightning(need, options):
    torch = need("torch")
    pl = need("lightning.pytorch")
    from segiou.hooks.lightning import SegmentationScores

    class Module(pl.LightningModule):
        def validation_step(self, batch, _):
            return {"truth": batch[0], "pred": batch[1]}

    scores = SegmentationScores(**options)
    quiet = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    trainer = pl.Trainer(accelerator="cpu", callbacks=[scores], **quiet)
    rows = [tuple(map(torch.from_numpy, batch)) for batch in batches()]
    loader = torch.utils.data.DataLoader(rows, batch_size=None)
    (logged,) = trainer.validate(Module(), loader, verbose=False)
    return {key.removeprefix("val/"): value for key, value in logged.items()}, scores.counts[0]


def transformers(need, options):
    need("transformers")
    from segiou.hooks.huggingface import ComputeMetrics

    metrics = ComputeMetrics(**options)
    given = [SimpleNamespace(predictions=p, label_ids=t) for t, p in batches()]
    metrics(given[0], compute_result=False)
    found = metrics(given[1], compute_result=True)
    return {key.replace("iou_", "iou/", 1): value for key, value in found.items()}, metrics.counts


def ignite(need, options):
    torch = need("torch")
    need("ignite")
    from ignite.engine import Engine

    from segiou.hooks.ignite import SegmentationScores

    engine, metric = Engine(lambda _, batch: batch[::-1]), SegmentationScores(**options)
    metric.attach(engine, "val")
    state = engine.run([tuple(map(torch.from_numpy, batch)) for batch in batches()])
    return state.metrics["val"], metric.counts


def mmengine(need, options):
    torch = need("torch")
    need("mmengine")
    from segiou.hooks.mmengine import SegmentationScores

    metric = SegmentationScores(**options)
    pairs = [pair for batch in batches() for pair in zip(*batch, strict=True)]
    for truth, scores in pairs:
        sides = {"gt_sem_seg": truth, "pred_sem_seg": scores}
        metric.process(None, [{key: {"data": torch.from_numpy(x)} for key, x in sides.items()}])
    found = metric.evaluate(len(pairs))
    return {key.removeprefix("segiou/"): value for key, value in found.items()}, metric.counts


def accelerate(need, options):
    need("accelerate")
    from accelerate import Accelerator

    from segiou.hooks.accelerate import all_reduce

    counts = ChannelCounts(NAMES, ignore=255)
    for truth, scores in batches():
        counts.update(truth, scores, axis=1, threshold=options["threshold"])
    total = all_reduce(counts, Accelerator(cpu=True))
    return total.report().scores(names=WHOLE), total


def jax(need, options):
    jax = need("jax")
    from segiou.hooks.jax import PixelCounter

    counter = PixelCounter(options["labels"])
    step = jax.jit(
        lambda state, *batch: counter.update(state, *batch, axis=1, threshold=options["threshold"])
    )
    state = counter.init()
    for batch in batches():
        state = step(state, *batch)
    total = counter.counts(counter.merge(state, counter.init()))
    return total.report().scores(names=WHOLE), total


def flax(need, options):
    need("flax")
    from flax import nnx

    from segiou.hooks.flax import SegmentationScores

    metric = SegmentationScores(**options, axis=1)
    step = nnx.jit(lambda metric, t, p: metric.update(logits=p, labels=t))
    for batch in batches():
        step(metric, *batch)
    return metric.compute(), metric.counts


ADAPTERS = (
    torchmetrics,
    lightning,
    transformers,
    ignite,
    mmengine,
    accelerate,
    jax,
    flax,
)


@pytest.mark.parametrize("threshold", [0.5, THRESHOLDS], ids=["one", "several"])
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_channels_by_hand(need, adapter, threshold):
    wanted, mean = by_hand(threshold)
    options = {
        "labels": ChannelCounts(NAMES, ignore=255),
        "threshold": threshold,
        "scores": WHOLE,
    }
    values, counts = adapter(need, options)
    assert found_of(counts) == wanted
    assert float(values["mean_iou"]) == pytest.approx(mean, abs=1e-6)
    reported = counts.report().scores(names=WHOLE)
    assert {key: float(value) for key, value in values.items()} == pytest.approx(reported)
    assert reported["pixel_accuracy"] == counts.report().pixel_accuracy
    assert "iou/whole_tumour" in values
    assert counts.pairs == (5 if adapter is mmengine else 2)


KERAS = """
import itertools
import json
import keras
import numpy as np
from segiou import ChannelCounts
from segiou.hooks.keras import SegmentationScores

truth, scores, threshold = json.loads(INPUT)
truth, scores = np.moveaxis(truth, 1, -1), np.moveaxis(np.array(scores, "float32"), 1, -1)
metric = SegmentationScores(
    ChannelCounts(["whole tumour", "core", "enhancing"], ignore=255),
    threshold=threshold,
    scores=["mean_iou", "iou", "pixel_accuracy", "cohen_kappa", "matthews_correlation"],
)
model = keras.Sequential([keras.Input((7, 6, 3)), keras.layers.Activation(None)])
model.compile(loss="mse", metrics=[metric])
values = model.evaluate(scores, truth, batch_size=2, verbose=0, return_dict=True)
again = SegmentationScores.from_config(metric.get_config())
again.update_state(truth, scores)
counts = metric.counts
assert again.counts.counts.tp.tolist() == counts.counts.tp.tolist()
valid = np.random.default_rng(1).random(scores.shape[:-1]) < 0.5
wanted = ChannelCounts(3, ignore=255).update(
    truth, scores, axis=-1, threshold=threshold, mask=valid
)
weights = valid.astype("float32")
for axis, weight in itertools.product((-1, 1), (weights, weights[..., None])):
    weighted = SegmentationScores(ChannelCounts(3, ignore=255), threshold=threshold, axis=axis)
    sides = (np.moveaxis(side, -1, axis) for side in (truth, scores))
    weighted.update_state(*sides, sample_weight=weight)
    assert weighted.counts == wanted
rows = [counts.counts.tp, counts.counts.fp, counts.counts.fn, counts.ignored]
print(json.dumps([values, [row.tolist() for row in rows]]))
"""


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_channels_of_keras(run_keras, backend):
    import json

    truth, scores = (np.concatenate(side).tolist() for side in zip(*batches(), strict=True))
    given = json.dumps([truth, scores, THRESHOLDS])
    values, counts = run_keras(backend, f"INPUT = {given!r}\n{KERAS}")
    wanted, mean = by_hand(THRESHOLDS)
    assert counts == wanted
    assert values["mean_iou"] == pytest.approx(mean, abs=1e-6)
    assert {"iou/whole_tumour", "pixel_accuracy", "matthews_correlation"} <= set(values)


def test_wrong_channels(need):
    jax = need("jax")
    from segiou.hooks.jax import PixelCounter

    truth = np.array([[[0, 1, 7]], [[0, 1, 1]]])
    counter = PixelCounter(ChannelCounts(2))
    step = jax.jit(lambda *batch: counter.update(counter.init(), *batch, axis=0))
    with pytest.raises(ValueError, match="truth must contain only 0 and 1, found 1 other value"):
        counter.counts(step(truth, truth % 2))
    with pytest.raises(ValueError, match="truth must be bool or contain only 0 and 1, found 7"):
        ChannelCounts(2).update(truth, truth % 2, axis=0)
    with pytest.raises(TypeError, match="pass threshold=T"):
        step(truth, truth * 0.5)
    with pytest.raises(ValueError, match="expected 3 channels along axis 0, got 2"):
        three = PixelCounter(ChannelCounts(3))
        three.update(three.init(), truth, truth, axis=0)


def test_options_of_channels(need):
    need("torchmetrics")
    from segiou.hooks.torchmetrics import SegmentationScores

    with pytest.raises(ValueError, match="expected one threshold, or 3 for 3 channels, got 2"):
        SegmentationScores(ChannelCounts(3), threshold=[0.5, 0.3])
    with pytest.raises(ValueError, match="exclude does not apply to a ChannelCounts"):
        SegmentationScores(ChannelCounts(3), exclude=1)
    with pytest.raises(ValueError, match="expected one threshold, or 3 for 3 channels, got 2"):
        ChannelCounts(3).update(np.zeros((3, 2)), np.zeros((3, 2)), axis=0, threshold=[0, 1])
    with pytest.raises(ValueError, match="ignore=1 is a value of every channel"):
        ChannelCounts(3, ignore=1)
    with pytest.raises(ValueError, match="ids need counts per image, which ChannelCounts"):
        need("lightning.pytorch")
        from segiou.hooks import lightning as hook

        hook.SegmentationScores(ChannelCounts(3), threshold=0.5, ids=lambda *_: [])


def test_bfloat16_and_half_precision_of_channels(need):
    torch = need("torch")
    generator = torch.Generator().manual_seed(2)
    truth = torch.rand((2, 3, 8, 9), generator=generator) < 0.4
    scores = torch.rand((2, 3, 8, 9), generator=generator)
    for dtype in (torch.bfloat16, torch.float16):
        short = scores.to(dtype)
        wanted = truth, torch.stack([short[:, c] > x for c, x in enumerate(THRESHOLDS)], 1)
        found = ChannelCounts(3).update(truth, short, axis=1, threshold=THRESHOLDS)
        assert found == ChannelCounts(3).update(*wanted, axis=1)
