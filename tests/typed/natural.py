"""Counting, scoring and reports, as a user would write them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import segiou
from segiou import geometry, metrics, read_mask
from segiou.counting import ConfusionCounts, count_pairs
from segiou.hooks.evaluate import mean_iou
from segiou.measures.boundary import BoundaryOptions


def batches() -> Iterator[tuple[NDArray[np.uint8], NDArray[np.float32]]]:
    rng = np.random.default_rng(0)
    for _ in range(2):
        yield rng.integers(0, 3, (2, 4, 4), dtype=np.uint8), rng.random((2, 3, 4, 4), np.float32)


def count() -> segiou.ConfusionMatrix:
    cm = segiou.ConfusionMatrix(3, ignore=255)
    for truth, logits in batches():
        cm.update(truth, logits, argmax=1)
    iou: NDArray[np.float64] = cm.iou()
    accuracy: float = float(cm.pixel_accuracy())
    assert iou.shape == (3,) and accuracy <= 1
    listed = segiou.ConfusionMatrix(["sky", "road"], exclude=["sky"], unassigned="count")
    listed.update([[0, 1]], [[1, 1]])
    return cm + cm


def report(cm: segiou.ConfusionMatrix) -> str:
    made = cm.report("detectron2")
    names = [row.name for row in made.classes]
    return made.to_json() + made.to_csv() + made.to_markdown() + made.to_html() + names[0]


def plain(cm: segiou.ConfusionMatrix) -> float:
    found = cm.report().to_dict()
    mean, matrix = found["mean_iou"], found["matrix"]
    first = found["classes"][0]["iou"]
    interval = found["scores"]["iou"].get("low")
    assert matrix is None or matrix[0][0] >= 0
    assert isinstance(interval, float | str) or interval is None
    return (mean or 0.0) + (first or 0.0) + sum(step["gain"] for step in found["next_steps"])


def score(folder: Path) -> segiou.Run:
    labels = segiou.load_labels(folder / "labels.toml")
    run = segiou.score_folder(folder / "truth", str(folder / "model_a"), labels=labels)
    other = segiou.score_folder(
        folder / "truth", folder / "model_b", labels=labels, boundary=BoundaryOptions(2), workers=2
    )
    whole: segiou.ConfusionMatrix = run.total()
    ids = [image.id for image in run] + [str(row["id"]) for row in run.worst(3, by="mean_iou")]
    intervals = run.intervals(groups=r"^[^_]+", seed=1, resamples=100)
    run.report("segiou", intervals=intervals).to_html()
    comparison = segiou.compare(run, other)
    delta: float = comparison.pairs[0].overall.delta
    assert whole.pairs and ids and delta == delta and comparison.to_text()
    return segiou.Run.open("run.sqlite")


def pieces(path: Path) -> None:
    mask = read_mask(path)
    counts: NDArray[np.int64] = count_pairs(mask, mask, 256)
    by_hand = segiou.Counts([1, 2], [0, 1], [1, 0], [5, 5])
    tally = ConfusionCounts.of_matrix(matrix=[[3, 1], [0, 4]], unassigned=[0, 2], ignored=5)
    mean = metrics.mean(metrics.iou(by_hand))
    boxes = geometry.box_iou([[0, 0, 1, 1]], [geometry.mask_to_box(mask > 0)])
    channels = segiou.ChannelCounts(["a", "b"])
    channels.update(np.ones((2, 3), bool), np.ones((2, 3), bool), axis=0)
    scores = mean_iou(predictions=[mask], references=[mask], num_labels=2, ignore_index=255)
    assert counts.any() and tally.pixels and mean and boxes.any() and scores["mean_iou"]
