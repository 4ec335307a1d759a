"""Boxes and intervals compared with the usual NumPy code: ``python -m benchmarks.derived``.

The results are checked. Processor time, medians of alternating rounds.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.reading import seconds
from segiou.counting.counts import Counts
from segiou.geometry.boxes import box_iou
from segiou.inference import bootstrap
from segiou.metrics.overall import mean_iou

RESAMPLES = 1000


def random_boxes(count: int, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    start = rng.uniform(0, 1000, (count, 2))
    return np.concatenate([start, start + rng.uniform(1, 200, (count, 2))], axis=1)


def broadcasting(truth: NDArray[np.float64], pred: NDArray[np.float64]) -> NDArray[np.float64]:
    top_left = np.maximum(truth[:, None, :2], pred[None, :, :2])
    bottom_right = np.minimum(truth[:, None, 2:], pred[None, :, 2:])
    size = np.clip(bottom_right - top_left, 0, None)
    shared = size[..., 0] * size[..., 1]
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (truth, pred)]
    return shared / (areas[0][:, None] + areas[1] - shared)


def image_by_image(counts: Counts) -> float:
    """The usual loop: select images, sum their counts, divide."""
    rng, images = np.random.default_rng(0), len(counts.tp)
    drawn = [counts[rng.integers(0, images, images)].summed() for _ in range(RESAMPLES)]
    return float(np.quantile([mean_iou(one) for one in drawn], 0.025))


def show(what: str, contestants: dict[str, Any], rounds: int) -> None:
    answers = [run() for run in contestants.values()]
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-12)
    times = seconds(contestants, rounds)
    ours, usual = times.values()
    print(f"{what}: {1e3 * ours:.1f} ms, the usual code takes {usual / ours:.1f} times as long")


def main() -> None:
    boxes = random_boxes(2000, 0), random_boxes(2000, 1)
    contestants = {"segiou": partial(box_iou, *boxes), "usual": partial(broadcasting, *boxes)}
    show("IoU of 2000 × 2000 boxes", contestants, 9)
    tp, fp, fn = np.random.default_rng(0).integers(0, 10_000, (3, 500, 19))
    counts = Counts(tp, fp, fn, 950_000 - tp - fp - fn)
    contestants = {
        "segiou": lambda: bootstrap(counts, resamples=RESAMPLES).overall.low,
        "usual": lambda: image_by_image(counts),
    }
    show(f"{RESAMPLES} resamples of 500 images, 19 classes", contestants, 5)


if __name__ == "__main__":
    main()
