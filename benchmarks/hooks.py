"""Overhead of counting in a validation loop on the CPU: ``python -m benchmarks.hooks``.

Compared with the forward pass of two small networks on the same batch and with torchmetrics'
MulticlassJaccardIndex; then 10 000 updates, which must not use more memory; then an update of each
framework's own metric. Ratios are medians of
alternating rounds: on two shared cores, labels take 0.06 to 0.2 % of either network, float32 logits
of 19 classes 0.3 to 0.8 %. See also ``benchmarks/scores.py`` and, for GPUs,
``benchmarks/gpu_hooks.py``.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch

from segiou import ConfusionMatrix

CLASSES, SHAPE = 19, (4, 256, 512)
ROUNDS = 15


def convolutions():
    """Four convolutions at full resolution, 95 699 weights: small for segmentation."""
    torch.manual_seed(0)
    layers = []
    for width_in, width in ((3, 32), (32, 64), (64, 128)):
        layers += [torch.nn.Conv2d(width_in, width, 3, padding=1), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Conv2d(128, CLASSES, 1))


def segformer():
    """SegFormer-B0, 3.7 million weights, its quarter-size logits upsampled: light and common."""
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    torch.manual_seed(0)
    model = SegformerForSemanticSegmentation(SegformerConfig(num_labels=CLASSES)).eval()

    def forward(images):
        logits = model(pixel_values=images).logits
        return torch.nn.functional.interpolate(logits, scale_factor=4.0, mode="bilinear")

    return forward


def batch():
    """Images, blocky truth with 5 % unlabelled, and predictions with 5 % noise; int64."""
    generator = torch.Generator().manual_seed(1)
    small = torch.randint(0, CLASSES, (SHAPE[0], 16, 32), generator=generator)
    truth = small.repeat_interleave(16, 1).repeat_interleave(16, 2)
    noise = torch.rand(SHAPE, generator=generator)
    pred = torch.where(noise < 0.05, (truth + 1) % CLASSES, truth)
    truth = torch.where(noise > 0.95, 255, truth)
    return torch.rand((SHAPE[0], 3, *SHAPE[1:]), generator=generator), truth, pred


def medians(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Milliseconds, in alternating rounds."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(taken[1:]) for name, taken in times.items()}


def measured(network, rounds: int = ROUNDS) -> dict[str, float]:
    """Milliseconds per batch; the three results are compared first."""
    from torchmetrics.classification import MulticlassJaccardIndex

    from segiou.hooks.torchmetrics import SegmentationScores

    model, (images, truth, pred) = network(), batch()
    cm = ConfusionMatrix(CLASSES, ignore=255)
    hook = SegmentationScores(CLASSES, ignore=255)
    plain = MulticlassJaccardIndex(CLASSES, ignore_index=255, validate_args=False)
    checked = MulticlassJaccardIndex(CLASSES, ignore_index=255)
    cm.update(truth, pred), hook.update(pred, truth), checked.update(pred, truth)
    assert float(hook.compute()) == cm.mean_iou()
    assert abs(float(checked.compute()) - cm.mean_iou()) < 1e-6
    with torch.no_grad():
        logits = model(images)
        return medians(
            {
                "forward pass": lambda: model(images),
                "segiou, labels": lambda: cm.update(truth, pred),
                "segiou.hooks.torchmetrics, labels": lambda: hook.update(pred, truth),
                "torchmetrics, labels": lambda: checked.update(pred, truth),
                "torchmetrics unchecked, labels": lambda: plain.update(pred, truth),
                "segiou, logits": lambda: cm.update(truth, logits, argmax=1),
                "torchmetrics, logits": lambda: checked.update(logits, truth),
                "torch argmax alone": lambda: logits.argmax(1),
            },
            rounds,
        )


def growth(updates: int) -> int:
    """Growth of Python's and NumPy's memory in bytes after a number of updates."""
    rng = np.random.default_rng(0)
    truth, pred = (torch.from_numpy(rng.integers(0, CLASSES, (64, 64))) for _ in range(2))
    cm = ConfusionMatrix(CLASSES, ignore=255)
    for _ in range(100):
        cm.update(truth, pred)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(updates):
        cm.update(truth, pred)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert cm.pixels == (updates + 100) * truth.numel()
    return grown


# Keras has one backend for the life of a process; jit is what `fit` does on each.
KERAS = """
import json, sys
import numpy as np
import keras
from benchmarks.hooks import CLASSES, SHAPE, batch, medians
from segiou.hooks.keras import SegmentationScores

_, truth, pred = (one.numpy() for one in batch())
logits = np.random.default_rng(0).normal(size=(*SHAPE, CLASSES)).astype("float32")
truth, pred, logits = map(keras.ops.convert_to_tensor, (truth.astype("int32"), pred, logits))
eager, compiled = {}, {}
for name, given in (("labels", pred), ("logits", logits)):
    ours = SegmentationScores(CLASSES, ignore=255)
    theirs = keras.metrics.MeanIoU(CLASSES, ignore_class=255, sparse_y_pred=name == "labels")
    for who, metric in (("segiou", ours), ("MeanIoU", theirs)):
        eager[f"{who}, {name}"] = lambda m=metric, p=given: (
            m.update_state(truth, p), np.asarray(m.variables[0].value)  # waits for JAX
        )
    if keras.backend.backend() != "jax":
        continue
    import jax
    from segiou.hooks.jax import PixelCounter

    def jitted(metric):
        def step(values, truth, pred):
            return metric.stateless_update_state(values, truth, pred)
        step = jax.jit(step)
        values = [one.value for one in metric.variables]
        return lambda p: jax.block_until_ready(step(values, truth, p))

    counter = PixelCounter(CLASSES, ignore=255)
    how = {} if name == "labels" else {"argmax": -1}
    count = jax.jit(lambda *given, how=how: counter.update(*given, **how))
    counted = lambda p, count=count: jax.block_until_ready(count(counter.init(), truth, p))
    runs = {"segiou": jitted(ours), "MeanIoU": jitted(theirs), "PixelCounter": counted}
    for who, run in runs.items():
        compiled[f"{who} in jit, {name}"] = lambda r=run, p=given: r(p)
# Apart, since eager metrics leave nothing in the caches.
rounds = int(sys.argv[1])
print(json.dumps(medians(eager, rounds) | medians(compiled, 10 * rounds)))
"""


def of_frameworks(rounds: int = 7) -> Iterator[tuple[str, dict[str, float]]]:
    """Milliseconds per update of each framework's metric and of segiou's, on the same batch."""
    import ignite.metrics
    from torchmetrics.classification import MulticlassJaccardIndex

    from segiou.hooks import ignite as hook_of_ignite, torchmetrics as hook

    _, truth, pred = batch()
    logits = torch.randn((SHAPE[0], CLASSES, *SHAPE[1:]))
    ours = hook.SegmentationScores(CLASSES, ignore=255)
    theirs = MulticlassJaccardIndex(CLASSES, ignore_index=255)
    of_ignite = hook_of_ignite.SegmentationScores(CLASSES, ignore=255)
    matrix = ignite.metrics.ConfusionMatrix(CLASSES)
    metrics = {"segiou": ours.update, "MulticlassJaccardIndex": theirs.update}
    both = {"labels": pred, "logits": logits}
    runs = {
        f"{who}, {what}": partial(update, given, truth)
        for what, given in both.items()
        for who, update in metrics.items()
    }
    yield "torchmetrics", medians(runs, rounds)
    runs = {
        "segiou, logits": lambda: of_ignite.update((logits, truth)),
        "ConfusionMatrix, logits": lambda: matrix.update((logits, truth)),
    }
    yield "Ignite", medians(runs, rounds)
    for backend in ("jax", "torch"):
        environment = os.environ | {"KERAS_BACKEND": backend}
        command = [sys.executable, "-W", "ignore", "-c", KERAS, str(rounds)]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        yield f"Keras on {backend}", json.loads(done.stdout.splitlines()[-1])


def compared(rounds: int = 7) -> None:
    """Print a table of the updates of each framework."""
    print(
        "| hook | input | compared with | segiou, ms | theirs, ms | × |\n|---|---|---|--:|--:|--:|"
    )
    for framework, times in of_frameworks(rounds):
        for name, taken in times.items():
            who, what = name.split(", ")
            if not who.startswith("segiou"):
                own = times[f"segiou{' in jit' * who.endswith('in jit')}, {what}"]
                numbers = f"{own:.1f} | {taken:.1f} | {taken / own:.1f}"
                print(f"| {framework} | {what} | {who} | {numbers} |")


def main() -> None:
    for network in (convolutions, segformer):
        times = measured(network)
        forward = times["forward pass"]
        print(f"\n{network.__doc__}")
        for name, taken in times.items():
            print(f"{name:36} {taken:9.3f} ms  {100 * taken / forward:7.3f} % of the forward pass")
        for what in ("labels", "logits"):
            factor = times[f"torchmetrics, {what}"] / times[f"segiou, {what}"]
            print(f"torchmetrics takes {factor:.1f} times as long with {what}")
    print(f"\n10 000 updates: {growth(10_000)} bytes more\n")
    compared()


if __name__ == "__main__":
    main()
