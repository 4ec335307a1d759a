"""Counting id pairs compared with ``np.unique``: ``python -m benchmarks.objects [--rounds N]``.

The results are checked. Processor time, medians of alternating rounds. The last line compares
panoptic quality of two id maps with torchmetrics.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks import inputs
from benchmarks.counting import table
from benchmarks.reading import seconds
from segiou.counting import count_id_pairs
from segiou.instances import PanopticCounts, label_components

Ids = NDArray[Any]


def blobs(seed: int) -> Ids:
    """Numbered components of a smooth random volume."""
    smooth = ndimage.gaussian_filter(np.random.default_rng(seed).random((64, 256, 256)), 4)
    return label_components(smooth > np.quantile(smooth, 0.8))


def id_maps() -> Iterator[tuple[str, Ids, Ids]]:
    rng = np.random.default_rng(0)
    for task in (inputs.camvid(), inputs.davis()):
        name = f"{task.name.split(',')[0]}, components"
        yield name, *(label_components(s[0].astype(int) + 1) for s in (task.truths, task.preds))
    yield "ellipses, 1024 × 2048", *inputs.segments(rng, 1024, 2048)[1]
    for truth, pred in pairwise(map(blobs, range(2))):
        yield "3-D components", truth, pred
    for ids in (60, 1000, 1 << 20):
        yield f"noise, {ids} × {ids} ids", *rng.integers(0, ids, (2, 1024, 2048), np.uint32)


def unique(truth: Ids, pred: Ids) -> tuple[Ids, Ids, Ids]:
    """Both ids as one number, one sort: the fastest NumPy version, as in panopticapi."""
    both = truth.astype(np.uint64) << np.uint64(32) | pred.astype(np.uint64)
    found, pixels = np.unique(both, return_counts=True)
    return found >> np.uint64(32), found & np.uint64(2**32 - 1), pixels


def pair_table(rounds: int) -> str:
    rows = []
    for name, truth, pred in id_maps():
        for ours, theirs in zip(count_id_pairs(truth, pred), unique(truth, pred), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        runs = {f.__name__: partial(f, truth, pred) for f in (count_id_pairs, unique)}
        times = [1e9 * taken / truth.size for taken in seconds(runs, rounds).values()]
        rows.append([name, *(f"{t:.2f}" for t in times), f"{times[1] / times[0]:.1f}"])
    return table(["ns per pixel", "count_id_pairs", "np.unique", "× np.unique"], rows)


def panoptic_quality(truth: Ids, pred: Ids, rounds: int) -> str:
    """With torchmetrics' PanopticQuality on the same segments."""
    import torch
    from torchmetrics.detection import PanopticQuality

    zeros = np.zeros(truth.shape, np.uint8)
    sides = [torch.from_numpy(np.stack([zeros, s], -1).astype(int))[None] for s in (pred, truth)]
    counts, peer = PanopticCounts(1), PanopticQuality(things={0}, stuffs={1})
    runs = {
        "segiou": lambda: counts.update(zeros, truth, zeros, pred),
        "torchmetrics": lambda: peer.update(*sides),
    }
    ours, theirs = seconds(runs, rounds).values()
    np.testing.assert_allclose(counts.panoptic_quality()["pq"], float(peer.compute()), rtol=1e-6)
    return f"PQ: {1e3 * ours:.1f} ms, torchmetrics takes {theirs / ours:.0f} times as long"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print(pair_table(rounds))
    print(panoptic_quality(*next(id_maps())[1:], min(rounds, 3)))


if __name__ == "__main__":
    main()
