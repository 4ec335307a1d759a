"""A loop of each framework over given batches: it counts, and returns the scores as logged.

A loop has `epoch(batches)`, which returns the scores by key, and `counts`. Each epoch is a new one.
`epoch(batches, stop=True)` raises Stop after the first batch, as a user who interrupts does.
"""

from __future__ import annotations

import logging
from typing import ClassVar

import numpy as np


class Stop(Exception):
    """An interruption."""


def stopping(batches, stop):
    for i, batch in enumerate(batches):
        if stop and i:
            raise Stop
        yield batch


class Plain:
    """A loop that updates an accumulator."""

    def __init__(self, labels, **options):
        from segiou import ConfusionMatrix

        self.how = options
        self.ignore = {key: options.pop(key) for key in ("ignore", "exclude") if key in options}
        is_counted = hasattr(labels, "update")
        self.counts = labels.empty() if is_counted else ConfusionMatrix(labels, **self.ignore)
        self.is_matrix = not is_counted
        options.pop("scores", None)

    def add(self, truth, pred):
        how = self.options_for(truth, pred)
        if self.is_matrix and "threshold" in how:
            truth, pred = truth[:, 0].astype(int), pred[:, 0]
        self.counts.update(truth, pred, **how)

    def options_for(self, truth, pred):
        if not self.is_matrix:
            return {"axis": 1, **self.how}
        if "threshold" in self.how:
            return self.how
        return {"argmax": 1} if pred.ndim > truth.ndim else {}

    def epoch(self, batches, stop=False):
        self.counts = self.counts.empty()
        for batch in stopping(batches, stop):
            self.add(*batch)
        return self.values()

    def values(self):
        return self.total().report().scores(names=["mean_iou"])

    def total(self):
        from segiou.hooks.distributed import all_reduce

        self.counts = all_reduce(self.counts)
        return self.counts

    def resumed(self, first, second):
        """The scores of an epoch that goes on in another process, from what was saved."""
        self.add(*first)
        self.reload()
        self.add(*second)
        return self.values()

    def reload(self):
        self.counts = type(self.counts).from_state_dict(self.counts.state_dict())


class Accelerate(Plain):
    def total(self):
        from accelerate import Accelerator

        from segiou.hooks.accelerate import all_reduce

        self.counts = all_reduce(self.counts, Accelerator(cpu=True))
        return self.counts


def tensors(batches):
    import torch

    return [tuple(map(torch.from_numpy, batch)) for batch in batches]


class Torchmetrics:
    def __init__(self, labels, **options):
        from segiou.hooks.torchmetrics import SegmentationScores

        self.metric = SegmentationScores(labels, **options)

    @property
    def counts(self):
        return self.metric.counts

    def epoch(self, batches, stop=False):
        self.metric.reset()
        for truth, pred in stopping(tensors(batches), stop):
            self.metric.update(pred, truth)
        return self.values()

    def values(self):
        return {"mean_iou": float(self.metric.compute()["mean_iou"])}

    def resumed(self, first, second):
        (t, p), (truth, pred) = tensors([first, second])
        again = self.metric.clone()
        self.metric.update(p, t)
        for one in (self.metric, again):
            one.persistent(True)
        again.load_state_dict(self.metric.state_dict())
        self.metric = again
        again.update(pred, truth)
        return self.values()

    @classmethod
    def two(cls, both, batches):
        from torchmetrics import MetricCollection

        collection = MetricCollection({"all": both[0].metric, "fg": both[1].metric}, prefix="val_")
        for truth, pred in tensors(batches):
            collection.update(pred, truth)
        return {key: float(value) for key, value in collection.compute().items()}


class Lightning:
    """The validation loop of a Trainer."""

    def __init__(self, labels, prefix="", **options):
        from segiou.hooks.lightning import SegmentationScores

        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        self.callback = SegmentationScores(labels, prefix=prefix, **options)

    @property
    def counts(self):
        return self.callback.counts[0]

    def epoch(self, batches, stop=False):
        return validated([self.callback], [batches], stop)

    @classmethod
    def loaders(cls, loop, several):
        found = validated([loop.callback], several)
        return found, [*loop.callback.counts.values()]

    @classmethod
    def two(cls, both, batches):
        return validated([one.callback for one in both], [batches])


def validated(callbacks, several, stop=False):
    import lightning.pytorch as pl
    import torch

    class Module(pl.LightningModule):
        def validation_step(self, batch, i, dataloader_idx=0):
            if stop and i:
                raise Stop
            return {"truth": batch[0], "pred": batch[1]}

    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    devices = {}
    if torch.distributed.is_initialized() or "RANK" in __import__("os").environ:
        devices = {"devices": 2, "strategy": "ddp", "use_distributed_sampler": False}
    trainer = pl.Trainer(
        accelerator="cpu", callbacks=callbacks, **dict.fromkeys(quiet, False), **devices
    )
    loaders = [torch.utils.data.DataLoader(tensors(one), batch_size=None) for one in several]
    trainer.validate(Module(), loaders if len(loaders) > 1 else loaders[0], verbose=False)
    return {key: float(value) for key, value in trainer.callback_metrics.items()}


class Trainer:
    """The evaluation loop of the Hugging Face Trainer, batch by batch."""

    def __init__(self, labels, **options):
        from segiou.hooks.huggingface import ComputeMetrics

        self.metrics = ComputeMetrics(labels, **options)

    @property
    def counts(self):
        return self.metrics.counts

    def epoch(self, batches, stop=False):
        return evaluated(self.metrics, batches, stop)

    @classmethod
    def loaders(cls, loop, several):
        counts, found = [], {}
        for i, batches in enumerate(several):
            found |= evaluated(loop.metrics, batches, prefix=f"eval_{i}")
            counts.append(loop.counts)
        return found, counts

    @classmethod
    def two(cls, both, batches):
        def metrics(batch, compute_result):
            whole, other = (one.metrics(batch, compute_result) for one in both)
            return whole | {f"fg_{key}": value for key, value in other.items()}

        return evaluated(metrics, batches)


def evaluated(metrics, batches, stop=False, prefix="eval"):
    import tempfile

    import torch
    from transformers import Trainer as Theirs, TrainingArguments

    class Given(torch.nn.Module):
        def forward(self, pixel_values, labels):
            if stop and next(seen):
                raise Stop
            return {"loss": torch.zeros(()), "logits": pixel_values}

    seen = iter(range(len(batches)))
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            folder,
            per_device_eval_batch_size=1,
            batch_eval_metrics=True,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            label_names=["labels"],
        )
        rows = [{"pixel_values": p, "labels": t} for t, p in tensors(batches)]
        trainer = Theirs(
            Given(), args, eval_dataset=rows, compute_metrics=metrics, data_collator=first
        )
        return trainer.evaluate(metric_key_prefix=prefix)


def first(rows):
    return rows[0]


class Ignite:
    def __init__(self, labels, **options):
        from segiou.hooks.ignite import SegmentationScores

        self.metric = SegmentationScores(labels, **options)

    @property
    def counts(self):
        return self.metric.counts

    def epoch(self, batches, stop=False):
        return run({"val": self.metric}, batches, stop)

    def resumed(self, first, second):
        (t, p), (truth, pred) = tensors([first, second])
        self.metric.update((p, t))
        saved = self.metric.state_dict()
        self.metric.reset()
        self.metric.load_state_dict(saved)
        self.metric.update((pred, truth))
        return {"val/mean_iou": self.metric.compute()["mean_iou"]}

    @classmethod
    def two(cls, both, batches):
        return run({"val": both[0].metric, "fg": both[1].metric}, batches)


def run(metrics, batches, stop=False):
    from ignite.engine import Engine

    engine = Engine(lambda _, batch: batch[::-1])
    for name, metric in metrics.items():
        metric.attach(engine, name)
    several = tensors(batches)
    data = stopping(several, stop) if stop else several
    return engine.run(data, epoch_length=len(several)).metrics


class Listed:
    """A loop whose framework evaluates a list of metrics over batches, by `evaluated`."""

    @property
    def counts(self):
        return self.metric.counts

    def epoch(self, batches, stop=False):
        return self.evaluated([self.metric], batches, stop)

    @classmethod
    def two(cls, both, batches):
        return cls.evaluated([one.metric for one in both], batches)


def scored(metrics, batches, stop=False, size=None):
    from mmengine.evaluator import Evaluator

    whole, images = Evaluator(metrics), 0
    for truths, preds in stopping(tensors(batches), stop):
        pairs = [*zip(truths, preds, strict=True)]
        names = "gt_sem_seg", "pred_sem_seg"
        samples = [dict(zip(names, ({"data": one} for one in pair), strict=True)) for pair in pairs]
        for metric in whole.metrics:
            metric.process(None, samples)
        images += len(samples)
    return whole.evaluate(size or images)


class MMEngine(Listed):
    def __init__(self, labels, prefix=None, **options):
        from segiou.hooks.mmengine import SegmentationScores

        self.metric = SegmentationScores(labels, prefix=prefix, **options)

    evaluated = staticmethod(scored)


class Jax(Plain):
    """A compiled step with a state; loops with the same options share the step."""

    shared: ClassVar[dict] = {}

    def __init__(self, labels, **options):
        import jax

        from segiou.hooks.jax import PixelCounter

        super().__init__(labels, **options)
        if (key := repr((labels, options))) not in self.shared:
            counter = PixelCounter(self.counts)
            how = ("argmax", "axis", "threshold")
            self.shared[key] = counter, jax.jit(counter.update, static_argnames=how)
        self.counter, self.step = self.shared[key]
        self.state = self.counter.init()

    def add(self, truth, pred):
        self.state = self.step(self.state, truth, pred, **self.options_for(truth, pred))

    def epoch(self, batches, stop=False):
        self.state = self.counter.init()
        return super().epoch(batches, stop)

    def total(self):
        self.counts = self.counter.counts(self.state)
        return self.counts

    def reload(self):
        self.state = type(self.state)(*map(np.asarray, self.state))

    def processes(self, parts):
        """Two devices that count different numbers of batches."""
        states = []
        for batches in parts:
            self.epoch(batches)
            states.append(self.state)
        self.state = self.counter.merge(*states)
        return self.values()


class Flax:
    def __init__(self, labels, **options):
        from flax import nnx

        from segiou.hooks.flax import SegmentationScores

        self.metric = SegmentationScores(labels, axis=1, **options)
        self.step = nnx.jit(lambda metric, t, p: metric.update(labels=t, logits=p))

    @property
    def counts(self):
        return self.metric.counts

    def epoch(self, batches, stop=False):
        self.metric.reset()
        for truth, pred in stopping(batches, stop):
            self.add(truth, pred)
        return self.metric.compute()

    def add(self, truth, pred):
        self.step(self.metric, truth, pred)

    def resumed(self, first, second):
        from flax import nnx

        self.add(*first)
        saved = nnx.to_pure_dict(nnx.state(self.metric))
        self.metric.reset()
        state = nnx.state(self.metric)
        nnx.replace_by_pure_dict(state, saved)
        nnx.update(self.metric, state)
        self.add(*second)
        return self.metric.compute()

    @classmethod
    def two(cls, both, batches):
        from flax import nnx

        several = nnx.MultiMetric(all=both[0].metric, fg=both[1].metric)
        for truth, pred in batches:
            several.update(labels=truth, logits=pred)
        return {f"{key}/mean_iou": one["mean_iou"] for key, one in several.compute().items()}


def tested(metrics, batches, stop=False):
    import keras

    are_labels = batches[0][1].ndim == 3  # Keras casts inputs to float
    last = keras.layers.Lambda(lambda x: keras.ops.argmax(x, -1) if are_labels else x)
    model = keras.Sequential([last])
    model.compile(loss=lambda t, p: keras.ops.mean(p * 1.0, -1), metrics=metrics)

    class Rows(keras.utils.PyDataset):
        def __len__(self):
            return len(batches)

        def __getitem__(self, i):
            truth, pred = batches[i]
            truth = np.moveaxis(truth, 1, -1) if truth.ndim == 4 else truth
            return np.eye(3)[pred] if are_labels else np.moveaxis(pred, 1, -1), truth

    class Stopped(keras.callbacks.Callback):
        def on_test_batch_end(self, batch, logs=None):
            if stop:
                raise Stop

    found = model.evaluate(Rows(), verbose=0, return_dict=True, callbacks=[Stopped()])
    return {key: float(value) for key, value in found.items() if key != "loss"}


class Keras(Listed):
    """`evaluate` of a compiled model; Keras takes channels last."""

    def __init__(self, labels, name=None, **options):
        from segiou.hooks.keras import SegmentationScores

        self.metric = SegmentationScores(labels, name=name, **options)

    evaluated = staticmethod(tested)


LOOPS = {
    "PyTorch": Plain,
    "torchmetrics": Torchmetrics,
    "Lightning": Lightning,
    "Trainer": Trainer,
    "Accelerate": Accelerate,
    "Keras": Keras,
    "Ignite": Ignite,
    "MMEngine": MMEngine,
    "JAX": Jax,
    "Flax": Flax,
}
