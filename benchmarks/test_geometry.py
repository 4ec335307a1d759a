"""Boxes: all pairs, compared with NumPy broadcasting. Run: pytest benchmarks/test_geometry.py"""

import numpy as np
import pytest

from segiou.geometry.boxes import box_giou, box_iou, box_signed_iou, iter_box_iou
from segiou.geometry.matching import match_boxes

pytest.importorskip("pytest_benchmark")


def random_boxes(count, seed):
    rng = np.random.default_rng(seed)
    start = rng.uniform(0, 1000, (count, 2))
    return np.concatenate([start, start + rng.uniform(1, 200, (count, 2))], axis=1)


def usual_broadcasting(truth, pred):
    top_left = np.maximum(truth[:, None, :2], pred[None, :, :2])
    bottom_right = np.minimum(truth[:, None, 2:], pred[None, :, 2:])
    size = np.clip(bottom_right - top_left, 0, None)
    shared = size[..., 0] * size[..., 1]
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (truth, pred)]
    return shared / (areas[0][:, None] + areas[1] - shared)


@pytest.mark.benchmark(group="box IoU, all pairs")
@pytest.mark.parametrize("function", [box_iou, usual_broadcasting, box_giou, box_signed_iou])
@pytest.mark.parametrize("count", [50, 2000])
def test_pairs(benchmark, function, count):
    truth, pred = random_boxes(count, 0), random_boxes(count, 1)
    result = benchmark(function, truth, pred)
    if function is box_iou:
        np.testing.assert_allclose(result, usual_broadcasting(truth, pred), rtol=1e-12)


@pytest.mark.benchmark(group="box IoU, 10 000 x 10 000")
@pytest.mark.parametrize("way", ["out float32", "blocks"])
def test_many(benchmark, way):
    truth, pred = random_boxes(10_000, 0), random_boxes(10_000, 1)
    out = np.empty((10_000, 10_000), dtype=np.float32)

    def run():
        if way == "blocks":
            return max(block.max() for _, block in iter_box_iou(truth, pred))
        return box_iou(truth, pred, out=out).max()

    assert 0 < benchmark.pedantic(run, rounds=1) <= 1


@pytest.mark.benchmark(group="matching")
def test_matching(benchmark):
    truth, pred = random_boxes(1000, 0), random_boxes(1000, 1)
    scores = np.random.default_rng(2).random(1000)
    matching = benchmark(match_boxes, truth, pred, scores, threshold=0.3)
    assert matching.tp + matching.fp == 1000
