"""Loops as tutorials write them: 21 numbers of every framework and input form, by brute force."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

from segiou import ConfusionMatrix

pytestmark = pytest.mark.gate

NAMES = ["a", "b", "c", "d"]
MEANS = ["mean_iou", "mean_dice", "mean_accuracy"]
OF_CLASSES = ["iou", "dice", "precision", "recall"]
#: With four classes, 21 numbers.
SCORES = [*MEANS, "pixel_accuracy", "frequency_weighted_iou", *OF_CLASSES]

RNG = np.random.default_rng(43)
TRUTH = RNG.choice([0, 1, 2, 3, 255], (6, 8, 12), p=[0.4, 0.3, 0.15, 0.05, 0.1])
LOGITS = RNG.normal(size=(6, 4, 8, 12)).astype(np.float32)
SMALL = RNG.normal(size=(6, 4, 4, 6)).astype(np.float32)


def brute_force(truth, pred, classes=4):
    """All numbers from loops over pixels, in plain Python."""
    both = zip(truth.ravel().tolist(), pred.ravel().tolist(), strict=True)
    pairs = [(t, p) for t, p in both if t != 255]
    found, per_class, weighted = {}, {name: [] for name in OF_CLASSES}, 0.0
    for i in range(classes):
        tp = sum(1 for t, p in pairs if t == i and p == i)
        fn = sum(1 for t, p in pairs if t == i and p != i)
        fp = sum(1 for t, p in pairs if t != i and p == i)
        values = (tp / (tp + fp + fn), 2 * tp / (2 * tp + fp + fn), tp / (tp + fp), tp / (tp + fn))
        for name, value in zip(OF_CLASSES, values, strict=True):
            per_class[name].append(value)
            found[f"{name}/{NAMES[i]}"] = value
        weighted += (tp + fn) / len(pairs) * values[0]
    for name, of in zip(MEANS, ("iou", "dice", "recall"), strict=True):
        found[name] = sum(per_class[of]) / classes
    found["pixel_accuracy"] = sum(1 for t, p in pairs if t == p) / len(pairs)
    return found | {"frequency_weighted_iou": weighted}


#: Truth, prediction or scores, options of the hook, and the labels that count.
ARGMAX = LOGITS.argmax(1)
FORMS = {
    "int64 labels": (TRUTH, ARGMAX, {}, ARGMAX),
    "uint8 labels": (TRUTH.astype(np.uint8), ARGMAX.astype(np.uint8), {}, ARGMAX),
    "float32 logits": (TRUTH, LOGITS, {}, ARGMAX),
    "bfloat16 logits": (TRUTH, LOGITS, {}, None),
    "truth with a channel": (TRUTH[:, None], LOGITS, {}, ARGMAX),
    "float truth": (TRUTH.astype(np.float32), LOGITS, {}, ARGMAX),
    "channels last": (TRUTH, np.moveaxis(LOGITS, 1, -1), {"axis": -1}, ARGMAX),
    "small logits": (TRUTH, SMALL, {"upsample": True}, None),
}


@pytest.fixture
def batches(need):
    """Batches of 4 and 2 images as tensors, and the labels that they predict."""
    torch = need("torch")

    def build(form):
        truth, pred, options, labels = FORMS[form]
        truth, pred = torch.from_numpy(truth), torch.from_numpy(pred)
        if form == "bfloat16 logits":
            pred = pred.bfloat16()
            labels = pred.float().numpy().argmax(1)
        if form == "small logits":
            resized = torch.nn.functional.interpolate(pred, size=(8, 12), mode="bilinear")
            labels = resized.numpy().argmax(1)
        parts = [(truth[rows], pred[rows]) for rows in (slice(0, 4), slice(4, 6))]
        return parts, {"ignore": 255} | options, labels

    return build


def floats(values, prefix=""):
    return {name.removeprefix(prefix): float(value) for name, value in values.items()}


def how_of(truth, pred, options):
    """Keywords of `update` where no hook reads the batch."""
    if "threshold" in options:
        return {"threshold": options["threshold"]}
    return {"argmax": options.get("axis", 1)} if pred.ndim == 4 else {}


def plain_loop(need, batches, options, names=NAMES):
    cm = ConfusionMatrix(names, ignore=255)
    for truth, pred in batches:
        cm.update(truth, pred, **how_of(truth, pred, options))
    return cm.report().scores(names=SCORES)


def accelerate_loop(need, batches, options, names=NAMES):
    accelerator = need("accelerate").Accelerator(cpu=True)
    from segiou.hooks.accelerate import all_reduce
    from segiou.scoring import Evaluator

    torch = need("torch")
    rows = [row for batch in batches for row in zip(*batch, strict=True)]
    loader = torch.utils.data.DataLoader([(i, *row) for i, row in enumerate(rows)], batch_size=4)
    counts = Evaluator(names, ignore=255)
    for ids, truth, pred in accelerator.prepare(loader):
        counts.update(truth, pred, ids=ids, **how_of(truth, pred, options))
    return all_reduce(counts, accelerator).total().report().scores(names=SCORES)


def torchmetrics_loop(need, batches, options, names=NAMES):
    from segiou.hooks.torchmetrics import SegmentationScores

    metric = SegmentationScores(names, scores=SCORES, **options)
    for truth, pred in batches:
        metric.update(pred, truth)
    return floats(metric.compute())


def lightning_loop(need, batches, options, names=NAMES):
    pl = need("lightning.pytorch")
    from segiou.hooks.lightning import SegmentationScores

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(pl.LightningModule):
        def validation_step(self, batch, batch_idx):
            return {"truth": batch[0], "pred": batch[1]}

    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    callback = SegmentationScores(names, scores=SCORES, **options)
    trainer = pl.Trainer(accelerator="cpu", callbacks=[callback], **dict.fromkeys(quiet, False))
    loader = need("torch").utils.data.DataLoader(batches, batch_size=None)
    trainer.validate(Module(), loader, verbose=False)
    return floats(trainer.callback_metrics, "val/")


def huggingface_loop(need, batches, options, names=NAMES):
    EvalPrediction = need("transformers").EvalPrediction
    from segiou.hooks.huggingface import ComputeMetrics

    compute = ComputeMetrics(names, scores=SCORES, **options)
    for i, (truth, pred) in enumerate(batches):
        batch = EvalPrediction(predictions=pred, label_ids=truth)
        found = compute(batch, compute_result=i + 1 == len(batches))
    of_classes = {f"{score}_{name}": f"{score}/{name}" for score in OF_CLASSES for name in names}
    return {of_classes.get(key, key): value for key, value in found.items()}


def ignite_loop(need, batches, options, names=NAMES):
    engine = need("ignite.engine").Engine(lambda engine, batch: (batch[1], batch[0]))
    from segiou.hooks.ignite import SegmentationScores

    SegmentationScores(names, scores=SCORES, **options).attach(engine, "val")
    return floats(engine.run(batches).metrics["val"])


def mmengine_loop(need, batches, options, names=NAMES):
    evaluator = need("mmengine.evaluator").Evaluator
    from mmengine.structures import BaseDataElement, PixelData

    from segiou.hooks.mmengine import SegmentationScores

    whole = evaluator(SegmentationScores(names, scores=SCORES, **options))
    for batch in batches:
        samples = []
        for truth, pred in zip(*batch, strict=True):
            sample = BaseDataElement()
            sample.gt_sem_seg, sample.pred_sem_seg = PixelData(data=truth), PixelData(data=pred)
            samples.append(sample)
        whole.process(samples, data_batch=None)
    return floats(whole.evaluate(size=6), "segiou/")


def jax_loop(need, batches, options, names=NAMES):
    jax = need("jax")
    from segiou.hooks.jax import PixelCounter

    counter = PixelCounter(names, ignore=255)
    state = counter.init()
    for truth, pred in as_jax(jax, batches):
        how = how_of(truth, pred, options)
        state = jax.jit(lambda *given, how=how: counter.update(*given, **how))(state, truth, pred)
    return counter.counts(state).report().scores(names=SCORES)


def flax_loop(need, batches, options, names=NAMES):
    jax, nnx = need("jax"), need("flax.nnx")
    from segiou.hooks.flax import SegmentationScores

    metric = SegmentationScores(names, scores=SCORES, **{"axis": 1} | options)
    step = nnx.jit(lambda metric, truth, pred: metric.update(labels=truth, logits=pred))
    for truth, pred in as_jax(jax, batches):
        step(metric, truth, pred)
    return metric.compute()


def as_jax(jax, batches):
    for truth, pred in batches:
        is_bfloat16 = "bfloat16" in str(pred.dtype)
        scores = jax.numpy.asarray(pred.float().numpy() if is_bfloat16 else pred.numpy())
        yield truth.numpy(), scores.astype("bfloat16") if is_bfloat16 else scores


LOOPS = {
    one.__name__.removesuffix("_loop"): one
    for one in (
        plain_loop,
        accelerate_loop,
        torchmetrics_loop,
        lightning_loop,
        huggingface_loop,
        ignite_loop,
        mmengine_loop,
        jax_loop,
        flax_loop,
    )
}
#: Loops without a hook that reads the batch, and frameworks without bilinear resizing.
UNREAD = {"plain", "accelerate"}
LACKS = {
    **{loop: {"truth with a channel", "float truth", "small logits"} for loop in UNREAD},
    **{loop: {"small logits"} for loop in ("jax", "flax")},
}
CASES = [(loop, form) for loop in LOOPS for form in FORMS if form not in LACKS.get(loop, ())]


@pytest.mark.parametrize(("loop", "form"), CASES)
def test_a_loop_gives_the_numbers_of_brute_force(loop, form, batches, need):
    parts, options, labels = batches(form)
    found = LOOPS[loop](need, parts, options)
    expected = brute_force(TRUTH, labels)
    assert len(expected) == 21
    assert found == {name: pytest.approx(value, rel=1e-6) for name, value in expected.items()}


@pytest.mark.parametrize("loop", [one for one in LOOPS if one not in UNREAD])
def test_binary_logits_as_the_loss_takes_them(loop, need):
    torch = need("torch")
    truth = torch.from_numpy((TRUTH[:, None] == 0).astype(np.float32))
    logits = torch.from_numpy(LOGITS[:, :1])
    batches = [(truth[rows], logits[rows]) for rows in (slice(4), slice(4, 6))]
    found = LOOPS[loop](need, batches, {"threshold": 0.0}, NAMES[:2])
    expected = brute_force(TRUTH == 0, LOGITS[:, 0] > 0, classes=2)
    assert found == {name: pytest.approx(value, rel=1e-6) for name, value in expected.items()}


KERAS = """
import json, sys
import numpy as np
import keras
from segiou.hooks.keras import SegmentationScores

data = np.load(sys.argv[1])
names, scores = json.loads(sys.argv[2])
truth, logits = data["truth"], data["logits"]
one_hot = np.eye(4, dtype="float32")[np.where(truth == 255, 0, truth)]
forms = {
    "int64": (truth, None),
    "uint8": (truth.astype("uint8"), None),
    "float": (truth.astype("float32"), None),
    "channel": (truth[..., None], None),
    "one-hot": (one_hot, (truth != 255).astype("float32")),
}
first = keras.Input(logits.shape[1:])
model = keras.Model(first, keras.layers.Activation("linear")(first))
loss = lambda y_true, y_pred: keras.ops.mean(y_pred, axis=-1)
found = {}
for is_eager in (False, True):
    for name, (y_true, weight) in forms.items():
        metric = SegmentationScores(names, ignore=255, scores=scores)
        kind = "weighted_metrics" if weight is not None else "metrics"
        model.compile(loss=loss, run_eagerly=is_eager, **{kind: [metric]})
        log = model.evaluate(logits, y_true, sample_weight=weight, batch_size=4, verbose=0,
                             return_dict=True)
        log.pop("loss")
        found[f"{name}, {'eager' if is_eager else 'compiled'}"] = log
print(json.dumps(found))
"""


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_keras_gives_the_numbers_of_brute_force(backend, run_keras, tmp_path):
    logits = np.moveaxis(LOGITS, 1, -1)
    np.savez(tmp_path / "data.npz", truth=TRUTH, logits=logits)
    arguments = str(tmp_path / "data.npz"), json.dumps([NAMES, SCORES])
    found = run_keras(backend, KERAS, *arguments)
    expected = brute_force(TRUTH, ARGMAX)
    assert len(found) == 10
    for form, values in found.items():
        assert values == pytest.approx(expected, rel=1e-5), form
